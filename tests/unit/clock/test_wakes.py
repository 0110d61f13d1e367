"""A loop that only its own timers wake: the time that it may take, and the message after that."""

from __future__ import annotations

import pytest

from pytest_agentproc.clock import _guards
from pytest_agentproc.clock._guards import WakeCounter
from pytest_agentproc.errors import Hang

MS = 1_000_000
SECOND = 1000 * MS


def wake_until_hang(wakes: WakeCounter, *gaps: int) -> str:
    """Wake a loop after these times in turn until it hangs; give what is said of it."""
    with pytest.raises(Hang) as found:
        wake_a_million_times(wakes, gaps)
    return str(found.value)


def wake_a_million_times(wakes: WakeCounter, gaps: tuple[int, ...]) -> None:
    """Wake a loop a million times, after these times in turn."""
    now = 0
    for count in range(1_000_000):
        now += gaps[count % len(gaps)]
        wakes.count_wake(now)


@pytest.mark.parametrize(
    ("gaps", "said"),
    [
        ((50 * MS,), "every 50 ms for 1.01 h"),
        ((20 * MS + 3, 20 * MS - 2), "every 20 ms for 1 h"),
        ((SECOND,), "every 1 s for 1.14 h"),
        ((0, 10 * MS, 250 * MS), "every 10 ms to 250 ms for 1.01 h"),
        ((60 * SECOND,), "every 60 s for 17.1 h"),
        ((3600 * SECOND,), "every 1 h for 1.02e+03 h"),
    ],
)
def test_a_hang_says_how_often_the_loop_polled_and_for_how_long(gaps: tuple[int, ...], said: str) -> None:
    """A reader who knows the period finds the loop that polls."""
    assert (
        wake_until_hang(WakeCounter(3600 * SECOND), *gaps)
        == f"the event loop polled {said} of virtual time, and nothing else happened"
    )


def test_a_loop_that_meets_something_begins_anew() -> None:
    """The new input may change what it does."""
    wakes = WakeCounter(100 * SECOND)
    for now in range(5000):
        if now % 1000 == 0:
            wakes.reset()
        wakes.count_wake(now * SECOND)


def test_a_loop_that_polls_too_often_to_get_anywhere_hangs_in_real_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A virtual hour in steps of a microsecond takes longer than any tester waits."""
    seconds = iter([0.0, 121.0])
    monkeypatch.setattr(_guards, "monotonic", lambda: next(seconds))
    assert wake_until_hang(WakeCounter(3600 * SECOND), 1000) == (
        "the event loop polled every 1 us for 1.02 ms of virtual time (121 s of real time), and nothing else happened"
    )
