"""Whether a loop wakes again and again at a steady pace, as the loop of one does that looks in turns. Pure."""

from __future__ import annotations

__all__ = ["LONGEST", "ROUNDING", "Pulse"]

LONGEST = 250_000_000
"""Nanoseconds. Who looks less often than that is late, and not merely of another style."""

_FEW = 8
_STEADY = 3
"""So many steps in a row, from one wake to the next, must be equally long."""
ROUNDING = 10
"""Nanoseconds by which they may differ: a loop counts in binary seconds."""


class Pulse:
    """Follow the instants at which a loop's own timers woke it; its start, at 0, counts as one.

    `period` is the longest time, in nanoseconds, at which they did so steadily; 0 if they never did. `quick` has the
    first few of the times that lay between two wakes and may be a period, `first` the time until the first wake, in
    nanoseconds; -1 if there was none.
    """

    def __init__(self) -> None:
        self.period = 0
        self.quick: list[int] = []
        self.first = -1
        self._last = self._gap = self._count = 0

    def beat(self, now: int) -> None:
        """Take note of a wake.

        Args:
            now: the instant, in nanoseconds.
        """
        gap, self._last = now - self._last, now
        self.first = now if self.first < 0 else self.first
        if gap == 0:
            return
        if abs(gap - self._gap) > ROUNDING:
            self._gap, self._count = gap, 0
            if gap <= LONGEST and len(self.quick) < _FEW:
                self.quick.append(gap)
        self._count += 1
        if self._count >= _STEADY and self.period < gap <= LONGEST:
            self.period = gap
