"""Verdicts on several sessions: each check sees one of them, as if there were no other."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_agentproc.errors import Deadlock
from pytest_agentproc.events import OutputWritten, TimerArmed, decode_event
from pytest_agentproc.record import (
    Record,
    add_session_to_trace,
    compute_normal_form,
    render_text,
    select_session_events,
)
from pytest_agentproc.verdict import Verdict, explain_play, judge_all_expectations
from pytest_agentproc.vocabulary import RunReport
from tests.event_lines import add_line, list_lines
from tests.unit.handmade import SECOND, BoundScenario, Expected, play_by_hand

LEFT = RunReport(turns=(RunReport(text="a", elapsed=SECOND),), statuses=("starting", "ready"), warnings=())
RIGHT = RunReport(turns=(RunReport(text="b", elapsed=2 * SECOND),), error="lost")


def record_two_sessions() -> Record:
    """Tell of two sessions: left's agent is started twice and killed, right's asks, has a helper and exits."""
    told = Record()
    traces = {name: add_session_to_trace(told.add, name) for name in ("left", "right")}

    def trace(name: str, *line: Any) -> None:
        traces[name](decode_event(*line))

    for name in ("left", "right"):
        add_line(told, 0, "p", {"process": name, "seen": True, "pid": 1, "parent": "supervisor", "line": 0})
    add_line(told, 0, "m", {"process": "right", "given": {"argv": ["--mode"], "env": {}, "cwd": "/", "longest": 99}})
    add_line(told, 0, "p", {"process": "helper", "seen": True, "pid": 2, "parent": "right", "line": 8})
    trace("left", SECOND, "s", {"process": "agent", "by": "supervisor", "signal": "TERM"})
    add_line(told, SECOND, "x", {"process": "left", "signal": "TERM"})
    trace("left", SECOND, "x", {"process": "agent", "by": "supervisor", "signal": "TERM"})
    add_line(told, 2 * SECOND, "p", {"process": "left 2", "seen": True, "pid": 3, "parent": "supervisor", "line": 0})
    add_line(told, 2 * SECOND, "m", {"process": "right", "asked": "Bash", "kind": "permission", "number": 1})
    add_line(told, 3 * SECOND, "m", {"process": "right", "answered": "Bash", "answer": "deny", "number": 1})
    trace("right", 3 * SECOND, "m", {"process": "supervisor", "event": "outcome", "turn": 1, "text": "completed"})
    add_line(told, 4 * SECOND, "x", {"process": "right", "code": 0})
    add_line(told, 4 * SECOND, "x", {"process": "left 2", "code": 3})
    return told


def judge_key(
    key: str, wanted: Any, answer: RunReport | None = None, fault: Exception | None = None
) -> tuple[Verdict, str]:
    """Judge one key of the two sessions; give the verdict and what was seen."""
    bound = BoundScenario((Expected(key, wanted),), parts={"left": BoundScenario(()), "right": BoundScenario(())})
    answer = answer or (None if fault else RunReport(sessions={"left": LEFT, "right": RIGHT}))
    row = judge_all_expectations(play_by_hand(bound, record_two_sessions(), answer, fault))[0]
    assert row.key == key
    return row.verdict, row.seen


@pytest.mark.parametrize(
    ("key", "wanted", "other"),
    [
        ("turns.1.text", ({"exact": "a"}, {"exact": "b"}), "b"),
        ("turns.1.elapsed", (SECOND, 2 * SECOND), "2 s"),
        ("signals", ([("TERM", SECOND)], []), "none"),
        ("spawns", ([0, 2 * SECOND], [0]), "0 s"),
        ("alive_at_once", (1, 1), "1"),
        (
            "agent_status",
            ({"code": 3, "signal": None, "forced": False}, {"code": 0, "signal": None, "forced": False}),
            "code 0, by itself",
        ),
        (
            "asked",
            ([], [{"kind": "permission", "name": "Bash", "answer": "deny", "after": SECOND}]),
            "Bash: deny after 1 s",
        ),
    ],
)
def test_a_check_sees_its_own_session_alone(key: str, wanted: tuple[Any, Any], other: str) -> None:
    """The acts of one of them are neither the merit nor the fault of the other."""
    left, right = wanted
    assert judge_key(f"sessions.left.{key}", left)[0] is Verdict.PASSED
    verdict, seen = judge_key(f"sessions.right.{key}", right)
    assert (verdict, seen.strip('"')) == (Verdict.PASSED, other)
    if left != right:
        assert judge_key(f"sessions.right.{key}", left)[0] is Verdict.FAILED


def test_what_is_given_is_given_to_each() -> None:
    """Only the agent that told it was given anything."""
    assert judge_key("sessions.right.received.argv", ["--mode"])[0] is Verdict.PASSED
    assert judge_key("sessions.left.received.argv", ["--mode"])[0] is Verdict.NOT_EXERCISED


def test_what_the_subject_does_not_report_is_undecided_and_what_the_record_proves_is_not() -> None:
    """A subject need not report its sessions one by one."""
    assert judge_key("sessions.left.turns.1.text", {"exact": "a"}, RunReport()) == (
        Verdict.UNDECIDED,
        "not reported by the subject",
    )
    assert judge_key("sessions.left.signals", [("TERM", SECOND)], RunReport())[0] is Verdict.PASSED


def test_a_turn_without_an_end_fails_in_a_deadlock_and_one_with_an_end_was_not_judged() -> None:
    """The fault of the clock belongs to the session that hangs."""
    fault = Deadlock("nobody can move")
    assert judge_key("sessions.left.turns.1.outcome", "completed", fault=fault)[0] is Verdict.FAILED
    bound = BoundScenario(
        (Expected("sessions.right.turns.1.outcome", "completed"),), parts={"right": BoundScenario(())}
    )
    rows = judge_all_expectations(play_by_hand(bound, record_two_sessions(), None, fault))
    assert [(row.key, row.verdict) for row in rows] == [
        ("outcome", Verdict.FAILED),
        ("sessions.right.turns.1.outcome", Verdict.NOT_EXERCISED),
    ]


def test_what_is_expected_of_all_needs_one_agent_of_any() -> None:
    """Nothing is green though no agent was started."""
    assert judge_key("processes.left 2.gone_at", 4 * SECOND)[0] is Verdict.PASSED
    bound = BoundScenario((Expected("leaks", []),), parts={"left": BoundScenario(())})
    assert (
        judge_all_expectations(play_by_hand(bound, Record(), RunReport(sessions={})))[0].verdict
        is Verdict.NOT_EXERCISED
    )


def test_one_session_of_a_record_reads_as_if_there_were_no_other() -> None:
    """Its agents are `agent`, on both sides, and its descendants keep their names."""
    left, right = (
        select_session_events(record_two_sessions(), "left"),
        select_session_events(record_two_sessions(), "right"),
    )
    assert {event.data["process"] for event in list_lines(left)} == {"agent", "agent 2"}
    assert {event.data["process"] for event in list_lines(right)} == {"agent", "helper", "supervisor"}
    assert len(left.events) + len(right.events) == len(record_two_sessions().events)


def test_a_flood_of_one_session_is_given_as_it_was_joined() -> None:
    """Its bytes are not kept whole, so they cannot be joined again; that was an error of the kit once."""
    told = Record()
    add_line(told, 0, "p", {"process": "left", "seen": True, "parent": "supervisor"})
    for _ in range(30):
        add_line(told, 5, "o", {"process": "left", "bytes": b"x" * 4096})
    written = select_session_events(told, "left").events[-1]
    assert isinstance(written, OutputWritten)
    assert (written.process, len(written.bytes)) == ("agent", 30 * 4096)


def test_timers_of_two_sessions_are_two_timers() -> None:
    """They are armed for the same instant, and neither is the other armed again."""
    told = Record()
    for name in ("left", "right"):
        add_session_to_trace(told.add, name)(TimerArmed(0, "supervisor", "prompt", SECOND))
    assert len(compute_normal_form(told)) == 2


def test_the_timeline_says_whose_every_event_is() -> None:
    """A reader must not guess which session the supervisor speaks of."""
    shown = [" ".join(line.split()) for line in render_text(record_two_sessions()).splitlines()]
    assert "1 s left: TERM ==> left" in shown
    assert "left: sees left: dies of TERM left: dies of TERM" in shown
    assert "right: ASKS to use Bash" in shown
    assert "3 s right: GETS ITS ANSWER for Bash: deny" in shown
    assert "right: OUTCOME of turn 1: completed" in shown


def test_a_failure_names_the_last_step_of_each_session() -> None:
    """The reader looks there first."""
    bound = BoundScenario(
        (Expected("sessions.left.turns.1.text", {"exact": "x"}),),
        parts={"left": BoundScenario(()), "right": BoundScenario(())},
    )
    told = record_two_sessions()
    add_line(told, 5 * SECOND, "m", {"process": "left", "step": "say", "line": 4})
    played = play_by_hand(bound, told, RunReport(sessions={"left": LEFT, "right": RIGHT}))
    assert (
        "  left's last step: one.scenario.yaml:4: " in explain_play(played, judge_all_expectations(played)).splitlines()
    )
