"""The words of a check on a session: each turn by its number, background turns apart, and no end is never green."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_agentproc.errors import Deadlock
from pytest_agentproc.vocabulary import RunReport, View
from tests.unit.handmade import SECOND, Expected, judge_events, judge_one_key

TURNS = (RunReport(outcome="completed", text="one", elapsed=SECOND), RunReport(outcome="failed", text="two"))


def build_report_event(kind: str, turn: int | None, text: str) -> tuple[int, str, dict[str, Any]]:
    """Give the report about a session in a supervisor's side of a record."""
    return 0, "m", {"process": "supervisor", "event": kind, "turn": turn, "text": text}


def test_a_turn_is_judged_by_its_own_answer() -> None:
    """A text in the wrong turn is the fault that sessions are about."""
    assert judge_one_key("turns.1.text", {"exact": "one"}, turns=TURNS)[0] == "passed"
    row = judge_one_key("turns.2.text", {"exact": "one"}, turns=TURNS)
    assert row == ("failed", '"one"', '"two"', "")
    assert judge_one_key("turns.1.elapsed", 2 * SECOND, turns=TURNS)[:3] == ("failed", "2 s", "1 s")


def test_a_turn_that_is_not_reported_is_undecided_and_one_too_few_has_failed() -> None:
    """A supervisor that reports turns reports all of them."""
    assert judge_one_key("turns.1.text", {"exact": "one"})[::2] == ("undecided", "not reported by the subject")
    assert judge_one_key("turns.2.elapsed", 1, turns=TURNS)[0] == "undecided"
    assert judge_one_key("turns.3.text", {"exact": "a"}, turns=TURNS)[::2] == ("failed", "there were 2 turns")
    assert judge_one_key("turns.2.text", {"exact": "a"}, turns=TURNS[:1])[::2] == ("failed", "there was 1 turn")
    assert judge_one_key("background.1.text", {"exact": "a"}, background=())[::2] == (
        "failed",
        "there were no background turns",
    )


def test_background_turns_are_counted() -> None:
    """One too many is a leak of its own."""
    assert judge_one_key("background", 2, background=TURNS)[:3] == ("passed", "2", '2: "one", "two"')
    assert judge_one_key("background", 0, background=TURNS)[0] == "failed"
    assert judge_one_key("background", 0, background=())[:3] == ("passed", "0", "none")


def test_the_time_of_a_background_turn_is_undecided_until_it_is_reported() -> None:
    """A subject that does not measure it gets no green for 0 s."""
    assert judge_one_key("background.1.elapsed", 0, background=(RunReport(text="a"),))[::2] == (
        "undecided",
        "not reported by the subject",
    )
    assert judge_one_key("background.1.elapsed", 0, background=(RunReport(elapsed=SECOND),))[:3] == (
        "failed",
        "0 s",
        "1 s",
    )


def test_the_history_of_statuses_is_compared_whole() -> None:
    """A status in between is what a viewer would have acted on."""
    row = judge_one_key("status", ["starting", "ready", "closed"], statuses=("starting", "closed"))
    assert row[:3] == ("failed", "starting, ready, closed", "starting, closed")
    assert judge_one_key("status", ["starting"], statuses=("starting",))[0] == "passed"
    assert judge_one_key("status", ["starting"])[0] == "undecided"


@pytest.mark.parametrize(
    ("observed", "verdict"),
    [
        (("starting", "prompting", "ready", "prompting", "closed"), "passed"),
        (("starting", "ready", "prompting", "prompting", "closed"), "failed"),
        (("starting", "prompting", "ready", "closed"), "failed"),
    ],
)
def test_a_session_may_pass_through_ready_on_its_way_to_a_prompt_that_waits(
    observed: tuple[str, ...], verdict: str
) -> None:
    """Between handshake and prompt no supervisor could have acted on it; between two prompts it could."""
    wanted = ["starting", "ready", "prompting", "ready", "prompting", "closed"]
    assert judge_one_key("status", wanted, statuses=observed)[0] == verdict


def test_a_viewer_is_judged_by_what_it_saw() -> None:
    """The last status, and the words."""
    views = {"v": View("ready", "one\ntwo")}
    assert judge_one_key("viewers.v.status", "ready", viewers=views)[:3] == ("passed", "ready", "ready")
    assert judge_one_key("viewers.v.transcript", {"contains": "three"}, viewers=views)[:3] == (
        "failed",
        'contains "three"',
        '"one\\ntwo"',
    )
    assert judge_one_key("viewers.w.status", "ready", viewers=views)[0] == "not exercised"
    assert judge_one_key("viewers.v.status", "ready")[0] == "undecided"


def test_the_order_in_which_a_viewer_saw_events_is_judged_at_the_first_difference() -> None:
    """A viewer that is told the outcome before the words stops reading too early."""
    views = {"v": View("ready", "one", ("prompt", "outcome", "message")), "silent": View("ready", "one")}
    wanted = ["prompt", "message", "outcome"]
    assert judge_one_key("viewers.v.saw", wanted, viewers=views)[0] == "failed"
    assert judge_one_key("viewers.v.saw", ["prompt", "outcome", "message"], viewers=views)[0] == "passed"
    assert judge_one_key("viewers.silent.saw", wanted, viewers=views)[0] == "not applicable"


def test_a_turn_without_an_end_fails_its_checks_when_nobody_can_move() -> None:
    """A session that ended before is not exercised: its answer is lost with the run."""
    rows = judge_events(
        Expected("turns.1.text", {"exact": "one"}),
        Expected("turns.2.text", {"exact": "two"}),
        Expected("background.1.text", {"exact": "x"}),
        events=[build_report_event("outcome", 1, "completed"), build_report_event("background", 0, "")],
        fault=Deadlock("nobody can move"),
    )
    assert [(row.key, row.verdict.value) for row in rows] == [
        ("turns.1.text", "not exercised"),
        ("turns.2.text", "failed"),
        ("background.1.text", "failed"),
    ]
    assert rows[1].seen == "no outcome: deadlock: nobody can move"


def test_a_fault_after_every_outcome_fails_the_session() -> None:
    """A close that never ends is no detail."""
    rows = judge_events(
        Expected("turns.1.text", {"exact": "one"}),
        events=[build_report_event("outcome", 1, "completed")],
        fault=Deadlock("nobody can move"),
    )
    assert [(row.key, row.verdict.value) for row in rows] == [
        ("outcome", "failed"),
        ("turns.1.text", "not exercised"),
    ]
