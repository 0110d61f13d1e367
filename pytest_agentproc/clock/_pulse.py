"""Whether a loop wakes again and again at a steady pace, as the loop of one does that looks in turns. Pure."""

from __future__ import annotations

__all__ = ["LONGEST", "Pulse"]

LONGEST = 250_000_000
"""Nanoseconds. Who looks less often than that is late, and not merely of another style."""

_STEADY = 3
"""So many wakes in a row must be equally far apart."""
_ROUNDING = 10
"""Nanoseconds by which they may differ: a loop counts in binary seconds."""


class Pulse:
    """Follow the instants at which a loop's own timers woke it.

    `period` is the longest time, in nanoseconds, at which they did so steadily; 0 if they never did. `is_quick` says
    whether two came as near to one another.
    """

    def __init__(self) -> None:
        self.period = 0
        self.is_quick = False
        self._last = self._gap = self._count = 0

    def beat(self, now: int) -> None:
        """Take note of a wake.

        Args:
            now: the instant, in nanoseconds.
        """
        gap, self._last = now - self._last, now
        if gap == 0:
            return
        self.is_quick = self.is_quick or gap <= LONGEST
        if abs(gap - self._gap) > _ROUNDING:
            self._gap, self._count = gap, 0
        self._count += 1
        if self._count >= _STEADY and self.period < gap <= LONGEST:
            self.period = gap
