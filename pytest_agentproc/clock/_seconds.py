"""The hub's time as programs compute with it: in seconds, as floating-point numbers. Owns their rounding errors.

A deadline is often a sum, such as 9.999 + 20.0, and lies a rounding error above the instant that is meant. A program
that compares the time with it when its timer has fired would find it too early: so the time is the deadline, as long as
the instant lasts. A deadline that lies further above a nanosecond than rounding errors reach comes at the next one.
anyio's `fail_after` is such a program, and raises no TimeoutError where it is too early.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_agentproc.clock._jump import JumpRule

__all__ = ["Seconds"]

_ERROR, _MOST = 0.25e-9, 0.5e-9
"""Up to here rounding errors may add up, in seconds; and where floats are that far apart, a single one."""
_NANOSECONDS = 1_000_000_000


class Seconds:
    """What a loop says of the time, and `time.monotonic()` with it.

    Args:
        rule: whose time it is.
    """

    def __init__(self, rule: JumpRule) -> None:
        self._rule = rule
        self._asked = 0.0
        self._asked_at = -1

    @property
    def instant(self) -> float:
        """The instant, as near as a float can be."""
        return self._rule.now / _NANOSECONDS

    @staticmethod
    def meant(deadline: float) -> int | None:
        """Give the nanosecond that is meant by a deadline; None for one that never comes, 0 for one that always has."""
        exact = deadline * _NANOSECONDS
        if exact == math.inf:
            return None
        if not exact > 0:  # nor is what is no number
            return 0
        before = math.floor(exact)
        error = min(max(_ERROR, math.ulp(deadline)), _MOST)
        return before if deadline - before / _NANOSECONDS <= error else before + 1

    def is_due(self, deadline: float) -> bool:
        """Say whether the instant that is meant by a deadline has come."""
        meant = self.meant(deadline)
        return meant is not None and meant <= self._rule.now

    def now(self) -> float:
        """Give the instant; after `ask` as long as it lasts the deadline that is meant by it."""
        return self._asked if self._asked_at == self._rule.now else self.instant

    def ask(self, deadline: float) -> None:
        """Take note of a timer that is set: if it is meant for this very instant, that has come."""
        if self.now() < deadline and self.is_due(deadline):
            self._asked, self._asked_at = deadline, self._rule.now

    def fire(self, heap: Sequence[Any], when: Callable[[Any], float]) -> float:
        """Have the time be the last deadline that is due, and give up to which one timers fire: that, or the instant.

        Who always counts on from there adds up rounding errors. Where they have grown to a quarter of a nanosecond,
        its next timer fires a nanosecond later: not one of them fires before its time.

        Args:
            heap: of timers; those that are due stand together on top.
            when: gives the deadline of one.
        """
        last, places = self.instant, [0]
        while places:
            place = places.pop()
            if place < len(heap) and self.is_due(deadline := when(heap[place])):
                last = max(last, deadline)
                places += (2 * place + 1, 2 * place + 2)
        self.ask(last)
        return last
