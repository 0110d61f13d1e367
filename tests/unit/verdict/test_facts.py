"""The facts that the record proves by itself, whatever the subject says: signals, deaths, descendants and leaks."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_agentproc.record import Record
from pytest_agentproc.verdict import CheckRow, Verdict, judge_all_expectations
from pytest_agentproc.vocabulary import RunReport
from tests.event_lines import add_line
from tests.unit.handmade import BoundScenario, Events, Expected, judge_events, judge_one_key, play_by_hand

EXIT_143: Events = [(5, "s", {"signal": "TERM"}), (6, "x", {"code": 143}), (6, "x", {"by": "supervisor", "code": 143})]
KILLED: Events = [
    (0, "p", {"seen": True, "line": 0}),
    (5, "s", {"process": "tree", "by": "supervisor", "signal": "TERM"}),
    (5, "s", {"signal": "TERM"}),
    (7, "s", {"process": "tree", "by": "supervisor", "signal": "KILL"}),
    (7, "x", {"signal": "KILL"}),
]
CHILD: Events = [
    (2, "p", {"process": "child1", "seen": True, "line": 4}),
    (5, "s", {"process": "child1", "signal": "TERM"}),
    (7, "x", {"process": "child1", "signal": "KILL"}),
]


def test_returned_is_the_instant_of_the_marker_not_of_the_answer() -> None:
    """A supervisor that says it returned early is not believed."""
    returned: Events = [(5, "m", {"process": "supervisor", "returned": True})]
    assert judge_one_key("returned", 5, events=returned)[0] == "passed"
    assert judge_one_key("returned", 4, events=returned)[::3] == ("failed", "1 ns later")
    assert judge_one_key("returned", 4)[::2] == ("failed", "it did not return")


def test_signals_are_what_the_agent_got() -> None:
    """Caught ones and the deadly one count; the supervisor's own word about its signals does not."""
    assert judge_one_key("signals", [("TERM", 5), ("KILL", 7)], events=KILLED)[0] == "passed"
    assert judge_one_key("signals", [])[0] == "passed"


def test_a_signal_that_comes_twice_at_an_instant_is_one() -> None:
    """To signal a group, and then each in it, sends two, and the kernel may merge them; later it is another."""
    twice: Events = [(5, "s", {"process": "agent", "signal": "TERM"}), *KILLED]
    assert judge_one_key("signals", [("TERM", 5), ("KILL", 7)], events=twice)[0] == "passed"
    again: Events = [(4, "s", {"process": "agent", "signal": "TERM"}), *KILLED]
    assert judge_one_key("signals", [("TERM", 5), ("KILL", 7)], events=again)[::3] == (
        "failed",
        "TERM at 0.000000004 s was not expected",
    )


def test_the_signals_of_a_session_are_those_of_all_its_agents_and_the_status_is_the_last_ones() -> None:
    """The crash of the first agent must not hide that the second one was killed, and the third one was not."""
    second, third = {"process": "agent 2"}, {"process": "agent 3"}
    seen = {"seen": True, "parent": "supervisor", "line": 0}
    restarted: Events = [
        (1, "x", {"code": 3}),
        (2, "p", {**second, **seen}),
        (5, "s", {"process": "tree", "by": "supervisor", "signal": "TERM"}),
        (5, "s", {**second, "signal": "TERM"}),
        (7, "x", {**second, "signal": "KILL"}),
        (8, "p", {**third, **seen}),
        (9, "x", {**third, "code": 0}),
    ]
    got = [("TERM", 5), ("KILL", 7)]
    assert judge_one_key("signals", got, events=restarted)[0] == "passed"
    assert judge_one_key("signals", [], events=restarted)[2] == "TERM at 0.000000005 s, KILL at 0.000000007 s"
    assert judge_one_key("agent_status", {"code": 0, "forced": False}, events=restarted)[0] == "passed"
    assert judge_one_key("processes.agent.signals", [], events=restarted)[0] == "passed"
    assert judge_one_key("processes.agent 2.signals", got, events=restarted)[0] == "passed"
    assert judge_one_key("processes.agent.status", {"code": 3, "forced": False}, events=restarted)[0] == "passed"
    assert judge_one_key("processes.agent 2.status", {"code": 0}, events=restarted)[:3] == (
        "failed",
        "code 0",
        "signal KILL, forced",
    )
    assert judge_one_key("agent_status", {"code": 0}, events=restarted[:-1])[::2] == ("failed", "it did not end")


@pytest.mark.parametrize(
    ("clock", "again", "verdict"),
    [
        ("real", 5, "passed"),
        ("real", 7, "passed"),
        ("real", 8, "failed"),
        ("virtual", 13, "passed"),
        ("virtual", 14, "failed"),
    ],
)
def test_in_real_time_two_signals_are_one_only_if_nothing_decides_between_them(
    clock: str, again: int, verdict: str
) -> None:
    """An instant may be late by a second, but two in one second are two; looks in turns keep their distance."""
    record = Record({"clock": clock})
    for at in (5, again):
        add_line(record, at, "s", {"process": "agent", "signal": "TERM"})
    add_line(record, again, "x", {"process": "agent", "by": "supervisor", "signal": "TERM"})
    add_line(record, 0, "p", {"process": "agent", "seen": True, "parent": "supervisor", "line": 0})
    bound = BoundScenario((Expected("signals", [("TERM", 5)]),))
    (row,) = judge_all_expectations(play_by_hand(bound, record, RunReport(), tolerance=8))
    assert row.verdict.value == verdict


@pytest.mark.parametrize(
    ("wanted", "hint"),
    [
        ([("TERM", 5), ("KILL", 2_000_000_007)], "KILL 2 s earlier"),
        ([("TERM", 4), ("KILL", 8)], "TERM 1 ns later, KILL 1 ns earlier"),
        ([("TERM", 5)], "KILL was not expected"),
        ([], "TERM was not expected"),
        ([("INT", 5), ("KILL", 7)], "INT at 0.000000005 s did not come"),
        ([("TERM", 5), ("KILL", 7), ("INT", 9)], "INT at 0.000000009 s did not come"),
        ([("KILL", 7)], "TERM was not expected"),
    ],
)
def test_a_signal_that_differs_is_named(wanted: list[tuple[str, int]], hint: str) -> None:
    """The row shows two lists; the hint says where to look."""
    assert judge_one_key("signals", wanted, events=KILLED) == (
        "failed",
        ", ".join(f"{name} at {at / 1e9:.9f} s" for name, at in wanted) or "none",
        "TERM at 0.000000005 s, KILL at 0.000000007 s",
        hint,
    )


@pytest.mark.parametrize(
    ("wanted", "observed", "hint"),
    [
        ("TERM 5 KILL 7", "TERM 5 TERM 6 KILL 7", "TERM at 0.000000006 s was not expected"),
        ("TERM 5 KILL 7", "TERM 4 TERM 5 TERM 6 KILL 7", "TERM at 0.000000004 s was not expected"),
        ("TERM 5 KILL 7", "KILL 7", "TERM at 0.000000005 s did not come"),
        ("TERM 5 KILL 7", "INT 5 TERM 5 KILL 7", "INT was not expected"),
        ("TERM 5 KILL 7", "TERM 4 KILL 7", "TERM 1 ns earlier"),
        ("TERM 5 KILL 7", "TERM 5 TERM 7", "KILL at 0.000000007 s did not come"),
        ("TERM 5 KILL 7", "KILL 5 TERM 7", "they came in another order"),
        ("TERM 5 TERM 7", "TERM 7", "TERM at 0.000000005 s did not come"),
        ("TERM 5 TERM 7", "TERM 5", "TERM at 0.000000007 s did not come"),
        ("TERM 5 KILL 7 TERM 9", "TERM 5 TERM 9 KILL 9", "they came in another order"),
        ("INT 5 TERM 5 KILL 7", "TERM 5 INT 5", "KILL at 0.000000007 s did not come"),
        ("TERM 5", "TERM 5 INT 6 TERM 7", "INT was not expected"),
    ],
)
def test_a_hint_about_signals_is_true(wanted: str, observed: str, hint: str) -> None:
    """A signal that came again is named with its instant; a signal that came is never called missing."""
    events: Events = [(at, "s", {"signal": name}) for name, at in read_signals(observed)]
    assert judge_one_key("signals", read_signals(wanted), events=events)[::3] == ("failed", hint)


def test_a_signal_that_comes_on_and_on_is_reported_as_too_much() -> None:
    """The number of times does not matter: that is a finding, and no fault of the kit."""
    events: Events = [(at, "s", {"signal": "TERM"}) for at in range(5, 3005)]
    assert judge_one_key("signals", [("TERM", 5)], events=events)[3] == "TERM at 0.000000006 s was not expected"


def read_signals(words: str) -> list[tuple[str, int]]:
    """Read signals and their instants."""
    names, instants = words.split()[::2], words.split()[1::2]
    return [(name, int(at)) for name, at in zip(names, instants, strict=True)]


@pytest.mark.parametrize(
    ("events", "wanted", "verdict", "observed"),
    [
        (EXIT_143, {"code": 143, "signal": None, "forced": True}, "passed", "code 143, forced"),
        (EXIT_143, {"code": 143, "signal": None, "forced": None}, "passed", "code 143, forced"),
        (EXIT_143, {"code": 143, "signal": None, "forced": False}, "failed", "code 143, forced"),
        (EXIT_143, {"code": 0, "signal": None, "forced": None}, "failed", "code 143, forced"),
        (KILLED, {"code": None, "signal": "KILL", "forced": True}, "passed", "signal KILL, forced"),
        (KILLED, {"code": None, "signal": "TERM", "forced": None}, "failed", "signal KILL, forced"),
        ([(1, "x", {"code": 0})], {"code": 0, "signal": None, "forced": False}, "passed", "code 0, by itself"),
        (
            [(1, "m", {"line": 3, "step": "die"}), (1, "x", {"signal": "SEGV"})],
            {"code": None, "signal": "SEGV", "forced": False},
            "passed",
            "signal SEGV, by itself",
        ),
        (
            [(1, "x", {"signal": "TERM"})],
            {"code": None, "signal": "TERM", "forced": True},
            "passed",
            "signal TERM, forced",
        ),
        (
            [(1, "x", {"unknown": True})],
            {"code": 0, "signal": None, "forced": None},
            "undecided",
            "nobody knows how it ended",
        ),
        ([], {"code": 0, "signal": None, "forced": None}, "failed", "it did not end"),
    ],
)
def test_the_agents_status_is_read_from_its_death(
    events: Events, wanted: dict[str, Any], verdict: str, observed: str
) -> None:
    """A supervisor that reports 0 for an agent that it killed does not decide this check."""
    assert judge_one_key("agent_status", wanted, events=events)[::2] == (verdict, observed)


TOLD = " is how the agent ended, which agent_status reports; exit_code is the supervisor's own"


@pytest.mark.parametrize(
    ("events", "code", "hint"),
    [
        (EXIT_143, 143, f"143{TOLD}"),
        ([(7, "x", {"signal": "TERM"})], 143, f"143{TOLD}"),
        ([(7, "x", {"signal": "TERM"})], -15, f"-15{TOLD}"),
        ([(7, "x", {"signal": "TERM"})], 137, ""),
    ],
)
def test_an_exit_code_that_is_the_agents_own_is_reported(events: Events, code: int, hint: str) -> None:
    """A wrapper of pi passed the agent's 143 on as its own failure."""
    assert judge_one_key("exit_code", 124, events=events, exit_code=code)[3] == hint


@pytest.mark.parametrize(
    ("key", "wanted", "verdict", "observed"),
    [
        (
            "processes.child1.signals",
            [("TERM", 5), ("KILL", 7)],
            "passed",
            "TERM at 0.000000005 s, KILL at 0.000000007 s",
        ),
        ("processes.child1.gone_at", 7, "passed", "0.000000007 s"),
        ("processes.child1.gone_at", 8, "failed", "0.000000007 s"),
        ("processes.child1.alive_at", 6, "passed", "started at 0.000000002 s, ended at 0.000000007 s"),
        ("processes.child1.alive_at", 7, "failed", "started at 0.000000002 s, ended at 0.000000007 s"),
        ("processes.child1.alive_at", 1, "failed", "started at 0.000000002 s, ended at 0.000000007 s"),
        ("processes.child2.gone_at", 7, "not exercised", "there was no process child2"),
    ],
)
def test_a_descendant_is_judged_like_its_agent(key: str, wanted: Any, verdict: str, observed: str) -> None:
    """A process that never appeared is not exercised: its checks are not green."""
    assert judge_one_key(key, wanted, events=CHILD)[::2] == (verdict, observed)


def test_a_descendant_may_start_late_in_real_time_alone() -> None:
    """As any other instant there; an end comes late as well, so an earlier end is too early in both times."""
    started_late: Events = [(4, "p", {"process": "child1", "seen": True, "line": 4}), *CHILD[1:]]
    assert judge_one_key("processes.child1.alive_at", 2, events=started_late)[0] == "failed"
    assert judge_one_key("processes.child1.alive_at", 2, events=started_late, tolerance=2)[0] == "passed"
    assert judge_one_key("processes.child1.alive_at", 2, events=started_late, tolerance=1)[0] == "failed"
    assert judge_one_key("processes.child1.alive_at", 7, events=CHILD, tolerance=9)[0] == "failed"


def test_a_descendant_that_lives_on_never_ended() -> None:
    """No end is an end of the wrong time."""
    assert judge_one_key("processes.child1.gone_at", 7, events=CHILD[:1])[::2] == ("failed", "it never ended")
    assert judge_one_key("processes.child1.alive_at", 7, events=CHILD[:1])[0] == "passed"


TWICE: Events = [
    (5, "x", {"code": 1}),
    (5, "p", {"process": "agent 2", "seen": True, "parent": "supervisor", "line": 0}),
    (6, "p", {"process": "child1", "seen": True, "parent": "agent 2", "line": 4}),
    (7, "p", {"process": "agent 3", "seen": True, "parent": "supervisor", "line": 0}),
    (7, "x", {"process": "agent 3", "code": 0}),
]
"""The second starts as the first ends; the third beside the second, and ends at once."""


def test_the_starts_of_an_agent_are_those_of_its_invocations() -> None:
    """A descendant is none, and the subject's word about its starts is not asked."""
    assert judge_one_key("spawns", [0, 5, 7], events=TWICE)[0] == "passed"
    assert judge_one_key("spawns", [0], events=TWICE) == (
        "failed",
        "0 s",
        "0 s, 0.000000005 s, 0.000000007 s",
        "agent 2, started at 0.000000005 s, was not expected; agent 3, started at 0.000000007 s, was not expected",
    )
    assert judge_one_key("spawns", [0, 8]) == ("failed", "0 s, 0.000000008 s", "0 s", "")


def test_agents_that_live_at_once_are_counted_at_each_start() -> None:
    """One that ends at the instant at which the next one starts is not beside it."""
    assert judge_one_key("alive_at_once", 1, events=TWICE[:3])[0] == "passed"
    assert judge_one_key("alive_at_once", 1, events=TWICE) == ("failed", "1", "2", "agent 2, agent 3")
    assert judge_one_key("alive_at_once", 1, events=[(0, "x", {"code": 0})])[0] == "passed"


def test_an_end_that_is_seen_late_in_real_time_is_not_beside_the_next_start() -> None:
    """The end of an agent as the next one starts is heard after that start; a longer life was beside it."""
    late: Events = [TWICE[1], (8, "x", {"code": 1})]
    assert judge_one_key("alive_at_once", 1, events=late)[0] == "failed"
    assert judge_one_key("alive_at_once", 1, events=late, tolerance=3)[0] == "passed"
    assert judge_one_key("alive_at_once", 1, events=late, tolerance=2)[0] == "failed"


def test_a_leak_fails_at_the_line_that_started_the_process() -> None:
    """The default of every file is an empty tree; the place to look is the spawn."""
    leak: Events = [(9, "m", {"process": "child1", "leaked": "alive", "line": 4})]
    (row,) = judge_events(Expected("leaks", [], line=0), events=leak)
    assert row == CheckRow("leaks", 4, "none", "child1 (still alive)", Verdict.FAILED, "child1 was started by line 4")
    assert judge_one_key("leaks", ["child1"], events=leak)[0] == "passed"
    assert judge_one_key("leaks", ["child1"])[2:] == ("none", "child1 was to be left, but is gone")
