"""Fakes of one name that share their calls by the arguments. Owns the order of their starts; makes no fake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.harness._calls import Calls
from pytest_agentproc.harness._fake import FakeAgent, Lockstep

if TYPE_CHECKING:
    from pytest_agentproc.record import Start

__all__ = ["FakeByArguments"]


class FakeByArguments(Calls):
    """A fake that plays one of several scripts, by its arguments.

    Args:
        front: the fake that is started, and plays what no other does.
        others: those that it hands a start over to.
    """

    def __init__(self, front: FakeAgent, others: list[FakeAgent]) -> None:
        self.name, self.path, self.argv, self._fakes = front.name, front.path, front.argv, [front, *others]

    @property
    def starts(self) -> tuple[Start, ...]:
        """Each start so far, whichever script it played; see `FakeAgent.starts`."""
        placed = [pair for fake in self._fakes for pair in zip(_places(fake), fake.starts, strict=False)]
        return tuple(start for _, start in sorted(placed, key=lambda pair: pair[0]))


def _places(fake: FakeAgent) -> list[tuple[int, float]]:
    """Say where each start of a fake has its place: in virtual time many are at one instant, and the clock counts."""
    order = fake.watch.order if isinstance(fake.watch, Lockstep) else []
    return [*((0, float(number)) for number in order), *((1, start.at) for start in fake.starts[len(order) :])]
