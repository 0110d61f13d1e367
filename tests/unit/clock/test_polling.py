"""Supervisors that look in turns: how their loops are known, and what is forgiven them."""

from __future__ import annotations

import pytest

from pytest_agentproc.clock import PollingDetector
from pytest_agentproc.harness._pace import add_pause_before_script, can_be_polling, find_short_timers
from pytest_agentproc.plays import PollingPace
from pytest_agentproc.record import Record
from pytest_agentproc.scenario import loads
from pytest_agentproc.subjects import StartsAgentAndReturns, reference_supervisor
from pytest_agentproc.verdict import Verdict, judge_all_expectations
from pytest_agentproc.vocabulary import Policy, RunReport
from tests.event_lines import add_line
from tests.unit.handmade import BoundScenario, Expected, play_by_hand

MS = 1_000_000


@pytest.mark.parametrize(
    ("instants", "period"),
    [
        ([], 0),
        ([50, 100, 150], 50),
        ([50, 100], 0),
        ([50, 50, 100, 100, 150], 50),
        ([1000, 1050, 1100, 1150, 1151], 50),
        ([20, 70, 75, 125, 130], 0),
        ([10, 20, 30, 80, 130, 180], 50),
        ([300, 600, 900, 1200], 0),
        ([250, 500, 750], 250),
        ([200, 210, 410, 420, 620, 630, 830, 840], 210),
        ([200, 210, 410, 420, 620, 630, 830], 0),
        ([200, 260, 460, 520, 720, 780, 980, 1040], 0),
        ([50, 100, 150, 200, 250, 300, 350, 400], 50),
    ],
)
def test_a_steady_pace_is_one_of_three_equal_steps(instants: list[int], period: int) -> None:
    """Two limits may be as far apart as two looks are; four times a second is the least that counts for a style.

    A shell looks at stdout and then at stderr, each for a time of its own: two steps in turn are one.
    """
    polling = PollingDetector()
    for at in instants:
        polling.record_wake(at * MS)
    assert polling.period == period * MS


def test_what_a_loop_rounds_is_equal() -> None:
    """It counts in seconds, of which no binary fraction is a tenth."""
    polling = PollingDetector()
    for at in (33_333_333, 66_666_667, 100_000_000):
        polling.record_wake(at)
    assert abs(polling.period - 33_333_333) <= 1


def test_a_wake_at_an_own_limit_is_no_look() -> None:
    """A supervisor with a grace of a quarter second is woken at its end; the reference supervisor always is."""
    bound = loads("scenario: x\nagent: raw\nscript: [{say: a}]\n").bind(Policy())
    for gap, may in ((250, False), (240, True), (260, False)):
        polling = PollingDetector()
        polling.record_wake(1_000 * MS)
        polling.record_wake((1_000 + gap) * MS)
        assert can_be_polling(StartsAgentAndReturns(), bound, polling) is may
        assert not can_be_polling(reference_supervisor(), bound, polling)
    soon = PollingDetector()
    soon.record_wake(250 * MS)
    assert can_be_polling(StartsAgentAndReturns(), bound, soon)  # it may be its first look


def test_steps_bytes_and_deeds_each_take_looks() -> None:
    """A pipe holds 64 KiB, and whoever looks empties it at most once a look."""
    assert PollingPace(50 * MS, None).tolerance == 500 * MS
    assert PollingPace(50 * MS, None, size=1 << 20).tolerance == (10 + 32) * 50 * MS
    assert PollingPace(50 * MS, None, actions=3).tolerance == (10 + 12) * 50 * MS


def test_nothing_is_late_before_the_first_look() -> None:
    """A supervisor may look in turns only while it ends a tree: whatever it did before is exact."""
    steady = PollingPace(20 * MS, None, began=60_000 * MS)
    assert (steady.compute_allowed_delay(59_999 * MS), steady.compute_allowed_delay(60_000 * MS), steady.tolerance) == (
        0,
        200 * MS,
        200 * MS,
    )
    twice = PollingPace(0, 0, naps=((60_000 * MS, 60_020 * MS), (60_030 * MS, 60_050 * MS)))
    assert [twice.compute_allowed_delay(at * MS) for at in (60_019, 60_020, 60_049, 60_050)] == [
        0,
        20 * MS,
        20 * MS,
        40 * MS,
    ]
    assert (twice.tolerance, twice.undecided) == (40 * MS, "")


def test_looks_that_begin_with_the_end_decide_no_outcome() -> None:
    """However near to one another its instants are, a run was decided before its supervisor began to look."""
    bound = loads("scenario: x\nagent: raw\nscript: [{say: a}]\n").bind(Policy())
    record = Record()
    add_line(record, 60_000 * MS, "x", {"process": "agent", "signal": "TERM"})
    assert PollingPace.measure(bound, record, 20 * MS, 0, 60_000 * MS).undecided == ""
    assert PollingPace.measure(bound, record, 20 * MS, 0, 59_999 * MS).undecided.startswith(
        "it looks every 20 ms, and two of"
    )


def test_a_nap_is_a_short_timer_that_is_slept_through() -> None:
    """A timer that was set long ago, and rings soon after something else happened, is none."""
    polling = PollingDetector()
    for now, due in ((0, 60_000), (59_990, 60_000)):
        polling.record_sleep(now * MS, due * MS)
    polling.record_wake(60_000 * MS)
    assert polling.naps == []
    polling.record_sleep(60_000 * MS, 60_020 * MS)
    polling.record_wake(60_020 * MS)
    polling.record_sleep(60_020 * MS, None)
    polling.record_sleep(60_500 * MS, 60_520 * MS)
    polling.record_sleep(60_510 * MS, 60_520 * MS)
    polling.record_wake(60_520 * MS)
    assert polling.naps == [(60_000 * MS, 60_020 * MS), (60_500 * MS, 60_520 * MS)]
    assert (polling.period, polling.began) == (0, -1)


def test_a_nap_as_long_as_a_limit_is_none() -> None:
    """A grace is slept through, too; of the reference supervisor it is known that it is woken."""
    bound = loads("scenario: x\nagent: raw\nscript: [{say: a}]\n").bind(Policy())
    polling = PollingDetector()
    polling.naps = [(0, 250 * MS), (300 * MS, 320 * MS)]
    assert find_short_timers(StartsAgentAndReturns(), bound, polling) == ((300 * MS, 320 * MS),)
    assert find_short_timers(reference_supervisor(), bound, polling) == ()


def test_a_steady_pace_has_a_beginning() -> None:
    """It is the instant before the first of its looks."""
    polling = PollingDetector()
    for at in (60_000, 60_020, 60_040, 60_060, 60_080):
        polling.record_wake(at * MS)
    assert (polling.period, polling.began) == (20 * MS, 60_000 * MS)


@pytest.mark.parametrize(
    ("margin", "size", "words"),
    [
        (None, 0, ""),
        (201 * MS, 0, ""),
        (200 * MS, 0, "it looks every 50 ms, and two of the competing instants are 200 ms apart"),
        (0, 0, "it looks every 50 ms, and two of the competing instants are at the same time"),
        (1_001 * MS, 1 << 19, ""),
        (1_000 * MS, 1 << 19, "it looks every 50 ms, and two of the competing instants are 1 s apart"),
    ],
)
def test_nearer_instants_decide_nothing(margin: int | None, size: int, words: str) -> None:
    """They may have changed places, the more so where much must pass first."""
    assert PollingPace(50 * MS, margin, size).undecided == words


def judge_silent_run(polling: PollingPace | None, **answer: object) -> dict[str, str]:
    """Judge a run that was to be silent until 5 s, and whose agent died at 6 s."""
    record = Record()
    add_line(record, 0, "p", {"process": "agent", "seen": True, "parent": "supervisor", "line": 0})
    add_line(record, 6_000 * MS, "x", {"process": "agent", "code": 0})
    add_line(record, 6_000 * MS, "p", {"process": "agent", "gone": True})
    add_line(record, 6_000 * MS, "m", {"process": "supervisor", "returned": True})
    add_line(record, 6_000 * MS, "m", {"process": "x", "leaked": "alive", "line": 3})
    wanted = {"outcome": "inactive", "text": {"exact": "a"}, "returned": 5_000 * MS, "exit_code": 3, "leaks": []}
    bound = BoundScenario(tuple(Expected(key, value) for key, value in wanted.items()))
    played = play_by_hand(bound, record, RunReport(**answer), polling=polling)  # type: ignore[arg-type]
    return {row.key: row.verdict.value for row in judge_all_expectations(played)}


def test_of_what_nothing_decides_instants_alone_are_not_judged() -> None:
    """The right outcome with the wrong text is wrong; and a process that is left is left."""
    failed, none = Verdict.FAILED.value, Verdict.NOT_APPLICABLE.value
    fields = {"outcome": "inactive", "text": "b", "exit_code": 3}
    right = {"outcome": "passed", "exit_code": "passed"}
    assert judge_silent_run(None, **fields) == {**right, "text": failed, "returned": failed, "leaks": failed}
    assert judge_silent_run(PollingPace(50 * MS, 0), **fields) == {
        **right,
        "text": failed,
        "returned": none,
        "leaks": failed,
    }


def test_of_another_outcome_nothing_is_judged_but_what_was_left() -> None:
    """The rest follows from it, and a fit by chance is no pass."""
    failed, none = Verdict.FAILED.value, Verdict.NOT_APPLICABLE.value
    fields = {"outcome": "completed", "text": "b", "exit_code": 3}
    others = dict.fromkeys(("outcome", "text", "returned", "exit_code"), none)
    assert judge_silent_run(PollingPace(50 * MS, 0), **fields) == {**others, "leaks": failed}


def test_each_agent_of_a_scenario_pauses_before_its_script() -> None:
    """Of several sessions, too."""
    bound = loads("scenario: x\nagent: raw\nscript: [{say: a}]\n").bind(Policy())
    assert add_pause_before_script(bound).program["steps"] == [(0, "sleep", (1_000_000_000,)), *bound.program["steps"]]
    several = loads(
        "scenario: x\nsessions:\n  one: {agent: acp, script: [{wait_for: prompt 1}, {answer: a}]}\n"
        "  two: {agent: acp, script: [{wait_for: prompt 1}, {answer: b}]}\ndrive: [{prompt: x, session: one}]\n"
    )
    terms = {name: Policy().adapt_to_session() for name in several.parts}
    assert all(
        part.program["steps"][0][1] == "sleep" for part in add_pause_before_script(several.bind(terms)).parts.values()
    )
