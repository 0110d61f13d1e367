"""The hub's time as programs compute with it: in seconds, as floating-point numbers. Owns their rounding errors.

A deadline is often a sum, such as 9.999 + 20.0, and lies a rounding error above the instant that is meant. A program
that compares the time with it when its timer has fired would find it too early: so the time is the deadline, as long as
the instant lasts. anyio's `fail_after` is such a program, and raises no TimeoutError where it is too early.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_agentproc.clock._hub import Hub

__all__ = ["Seconds"]

_HALF_A_NANOSECOND = 0.5e-9
_NANOSECONDS = 1_000_000_000


class Seconds:
    """What a loop says of the time.

    Args:
        hub: whose time it is.
    """

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._asked = 0.0
        self._asked_at = -1

    @property
    def instant(self) -> float:
        """The instant, as near as a float can be."""
        return self._hub.now / _NANOSECONDS

    @property
    def leeway(self) -> float:
        """Half a nanosecond; when months have passed, the least by which floats of that size differ."""
        return max(_HALF_A_NANOSECOND, math.ulp(self.instant))

    @staticmethod
    def meant(deadline: float) -> int | None:
        """Give the nanosecond that is meant by a deadline; None for one that never comes, 0 for one that always has."""
        exact = deadline * _NANOSECONDS
        if exact == math.inf:
            return None
        return round(exact) if exact > 0 else 0

    def is_due(self, deadline: float) -> bool:
        """Say whether the instant that is meant by a deadline has come."""
        meant = self.meant(deadline)
        return meant is not None and meant <= self._hub.now

    def now(self) -> float:
        """Give the instant; after `ask` as long as it lasts the deadline that is meant by it."""
        return self._asked if self._asked_at == self._hub.now else self.instant

    def ask(self, deadline: float) -> None:
        """Take note of a timer that is set: if it is meant for this very instant, that has come."""
        if self.now() < deadline and self.is_due(deadline):
            self._asked, self._asked_at = deadline, self._hub.now

    def reach(self, deadline: float) -> None:
        """Take note of the last timer that fires at this instant.

        Who always counts on from there adds up rounding errors: from half of the leeway on the instant is the time.
        """
        if deadline - self.instant <= max(self.leeway / 2, math.ulp(self.instant)):
            self.ask(deadline)

    def last_due(self, heap: Sequence[Any], when: Callable[[Any], float]) -> float:
        """Find the last deadline that is due; those stand together on top of a heap. 0: none is.

        Args:
            heap: of timers.
            when: gives the deadline of one.
        """
        last, places = 0.0, [0]
        while places:
            place = places.pop()
            if place < len(heap) and self.is_due(deadline := when(heap[place])):
                last = max(last, deadline)
                places += (2 * place + 1, 2 * place + 2)
        return last
