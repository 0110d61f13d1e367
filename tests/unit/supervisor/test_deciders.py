"""What no scenario says about the deciders, as values: equal instants, late looks, explanations and roundings."""

from __future__ import annotations

import pytest

from pytest_agentproc.supervisor import (
    OutcomeRules,
    RestartCounter,
    StdinFeeder,
    Watchdog,
)
from pytest_agentproc.vocabulary import Outcome, Policy

SECOND = 1_000_000_000


def build_watchdog(
    inactivity_timeout: float | None = 10.0, max_runtime: float | None = 60.0, start: int = 0
) -> Watchdog:
    """Make a watchdog that watches from an instant on."""
    made = Watchdog(Policy(inactivity_timeout=inactivity_timeout, max_runtime=max_runtime))
    made.start(start)
    return made


def test_at_one_instant_silence_is_reported_before_the_runtime() -> None:
    """Among equals the gentler word wins (A3)."""
    assert build_watchdog(60.0).find_expired_limit(60 * SECOND) == ("inactivity_timeout", Outcome.INACTIVE)


def test_a_late_look_reports_of_the_limit_that_came_first() -> None:
    """A host that was away must not swap what happened."""
    assert build_watchdog(10.0, 4.0).find_expired_limit(100 * SECOND) == ("max_runtime", Outcome.OVERRAN)


def test_a_watchdog_at_rest_has_no_limit_until_it_is_armed_again() -> None:
    """A completion that is taken back brings the old limits back."""
    watchdog = build_watchdog()
    watchdog.disarm()
    assert (watchdog.deadline, watchdog.find_expired_limit(100 * SECOND)) == (None, None)
    watchdog.note_activity(8 * SECOND, "stdout", 1)
    assert watchdog.deadline is None
    watchdog.arm(9 * SECOND)
    assert watchdog.deadlines == {"inactivity_timeout": 18 * SECOND, "max_runtime": 60 * SECOND}


def test_a_watchdog_explains_itself() -> None:
    """The sentence says what a person would ask: how long, after how much, and what was closed."""
    watchdog = build_watchdog()
    watchdog.note_activity(2 * SECOND, "stdout", 5)
    assert (
        watchdog.explain_expiry("inactivity_timeout", 12 * SECOND + SECOND // 2)
        == "no output for 10.5 s, after 5 bytes"
    )
    assert watchdog.explain_expiry("max_runtime", 60 * SECOND) == "still running after 60 s, with 5 bytes of output"
    watchdog.note_stream_end(3 * SECOND, "stdout")
    watchdog.note_stream_end(4 * SECOND, "stderr")
    closed = "no output for 10 s, after 5 bytes, and stdout and stderr closed"
    assert watchdog.explain_expiry("inactivity_timeout", 12 * SECOND) == closed


@pytest.mark.parametrize(("errno", "missing"), [(2, True), (20, True), (13, False), (8, False), (7, False)])
def test_a_start_that_fails_is_of_two_kinds(errno: int, missing: bool) -> None:
    """There is no such file, or there is one that cannot be executed (P6)."""
    assert OutcomeRules().is_missing(errno) is missing


@pytest.mark.parametrize(
    ("outcome", "status", "forced", "expected"),
    [
        (Outcome.COMPLETED, 3, False, ["exit_contradicts_result"]),
        (Outcome.COMPLETED, 3, True, []),
        (Outcome.COMPLETED, 0, False, []),
        (Outcome.COMPLETED, -15, False, []),
        (Outcome.FAILED, 3, False, []),
    ],
)
def test_a_good_result_with_a_bad_exit_is_a_warning(
    outcome: Outcome, status: int, forced: bool, expected: list[str]
) -> None:
    """The result stands; a contradiction of the agent is reported, unless we caused it."""
    assert OutcomeRules().find_warnings(outcome, status, forced=forced) == expected


def test_a_feeder_hands_out_what_is_left() -> None:
    """Every byte goes out once and in order, however few are taken at a time."""
    feeder = StdinFeeder(b"abcdef")
    feeder.note_written(4)
    assert (bytes(feeder.unwritten_bytes), feeder.is_delivered) == (b"ef", False)
    feeder.note_written(2)
    assert feeder.is_delivered


def test_a_backoff_is_doubled_before_it_is_rounded() -> None:
    """A third of a second is no whole number of nanoseconds, and two thirds are not twice the one above (P6)."""
    restarts = RestartCounter(Policy(restart_backoff=1 / 3))
    assert [restarts.plan_restart(0) for _ in range(6)] == [
        333333334,
        666666667,
        1333333334,
        2666666667,
        5333333334,
        None,
    ]
