"""How long the timers of a loop have woken it, and nothing else happened. Owns when that is a hang; knows no loop."""

from __future__ import annotations

from time import monotonic

from pytest_agentproc.clock._debugger import is_over
from pytest_agentproc.clock._pulse import ROUNDING
from pytest_agentproc.errors import Hang

__all__ = ["Wakes"]

_SOME = 1024
"""After so many wakes each the time is looked at."""

_LONGEST_WATCH = 120.0
"""Real seconds for which a loop may wake again and again, however short the virtual time is that goes by."""

_UNITS = ((3_600_000_000_000, "h"), (1_000_000_000_000, "min"), (1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"))
"""From how many nanoseconds on a time is shown in a unit."""
_SIZES = {"min": 60_000_000_000}


class Wakes:
    """Count the wakes of a loop in a row.

    A supervisor that polls for what never comes would poll for ever, each time at another instant.

    Args:
        patience: nanoseconds of virtual time for which it may do so.
    """

    def __init__(self, patience: int) -> None:
        self._patience = patience
        self._count = self._since = self._last = self._shortest = self._longest = 0
        self._begun = 0.0

    def forget(self) -> None:
        """Begin anew: something else happened."""
        self._count = 0

    def add(self, now: int) -> None:
        """Take note of a wake.

        Args:
            now: the instant, in nanoseconds of virtual time.

        Raises:
            Hang: there were too many of them.
        """
        gap, self._last = now - self._last, now
        if self._count == 0:
            self._since, self._begun = now, monotonic()
            self._shortest = self._longest = 0
        elif gap:
            self._shortest = min(self._shortest or gap, gap)
            self._longest = max(self._longest, gap)
        self._count += 1
        if self._count % _SOME == 0:
            self._guard()

    def _guard(self) -> None:
        passed, real = self._last - self._since, monotonic() - self._begun
        if passed <= self._patience and not is_over(self._begun, _LONGEST_WATCH):
            return
        is_steady = self._longest - self._shortest <= ROUNDING
        period = _shown(self._shortest) + ("" if is_steady else f" to {_shown(self._longest)}")
        took = "" if passed > self._patience else f" ({real:.0f} s of real time)"
        raise Hang(
            f"the event loop polled every {period} for {_shown(passed)} of virtual time{took}, "
            "and nothing else happened"
        )


def _shown(ns: int) -> str:
    """Show nanoseconds with three digits."""
    for least, unit in _UNITS:
        if ns >= least:
            return f"{ns / _SIZES.get(unit, least):.3g} {unit}"
    return f"{ns} ns"
