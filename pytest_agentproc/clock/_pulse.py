"""Whether a loop wakes again and again at a steady pace, as the loop of one does that looks in turns. Pure."""

from __future__ import annotations

__all__ = ["LONGEST", "ROUNDING", "Pulse"]

LONGEST = 250_000_000
"""Nanoseconds. Who looks less often than that is late, and not merely of another style."""

_FEW = 8
_NAPS = 256
_STEADY = 3
"""So many steps in a row, from one wake to the next, must be equally long."""
ROUNDING = 10
"""Nanoseconds by which they may differ: a loop counts in binary seconds."""


class Pulse:
    """Follow the instants at which a loop's own timers woke it; its start, at 0, counts as one.

    `period` is the longest time, in nanoseconds, at which they did so steadily; 0 if they never did. `began` is the
    instant at which the first steady pace began; -1 if there was none. `quick` has the first few of the times that lay
    between two wakes and may be a period, `first` the time until the first wake, in nanoseconds; -1 if there was none.
    `naps` has the instants at which each of the first short timers was set, and woke the loop.
    """

    def __init__(self) -> None:
        self.period = 0
        self.began = -1
        self.naps: list[tuple[int, int]] = []
        self._due: int | None = None
        self._set_at = 0
        self.quick: list[int] = []
        self.first = -1
        self._last = self._gap = self._count = 0

    def park(self, now: int, deadline: int | None) -> None:
        """Take note that the loop goes to sleep: its earliest timer, if it is another than before, was set now.

        Args:
            now: the instant, in nanoseconds.
            deadline: when that timer is due; None: there is none.
        """
        if deadline != self._due:
            self._due, self._set_at = deadline, now

    def beat(self, now: int) -> None:
        """Take note of a wake.

        Args:
            now: the instant, in nanoseconds.
        """
        if self._due is not None and now >= self._due:
            if 0 < now - self._set_at <= LONGEST and len(self.naps) < _NAPS:
                self.naps.append((self._set_at, now))
            self._due = None
        gap, self._last = now - self._last, now
        self.first = now if self.first < 0 else self.first
        if gap == 0:
            return
        if abs(gap - self._gap) > ROUNDING:
            self._gap, self._count = gap, 0
            if gap <= LONGEST and len(self.quick) < _FEW:
                self.quick.append(gap)
        self._count += 1
        if self._count >= _STEADY and gap <= LONGEST:
            self.period = max(self.period, gap)
            self.began = now - gap * self._count if self.began < 0 else self.began
