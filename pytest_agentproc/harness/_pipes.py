"""The pipes that lead nowhere any more: what a supervisor keeps of agents that have ended. Judges nothing."""

from __future__ import annotations

import gc
import select
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.lowlevel

if TYPE_CHECKING:
    from pytest_agentproc.scenario import BoundScenario

_LOOP_ITERATIONS_UNTIL_CLOSED = 10
"""Iterations of the loop after which a transport that was closed has closed its pipe."""


class PipeCount:
    """The number of pipes that a supervisor leaves open, if a check of the scenario asks for it."""

    def __init__(self, bound: BoundScenario) -> None:
        self.left: int | None = None
        """The number; None: it was not counted."""
        self._is_asked = any(expectation.key == "pipes_left" for expectation in bound.expect)
        self._before = _list_dead_pipes() if self._is_asked else frozenset()

    async def count_dead_pipes(self) -> None:
        """Count; the supervisor has returned."""
        if self._is_asked:
            for _ in range(_LOOP_ITERATIONS_UNTIL_CLOSED):
                await anyio.lowlevel.checkpoint()
            gc.collect()  # an object that only waits for the collector closes its pipes in any program
            self.left = len(_list_dead_pipes() - self._before)


def _list_dead_pipes() -> frozenset[tuple[int, str]]:
    """List this process's ends of pipes whose other end is closed everywhere, each with the name of its pipe.

    A pipe to a process that lives does not count: it may be of other code. So each one that counts, and was not there
    before the run, is of the run. The number alone does not show that: a new pipe may get the number of an older one.
    A pipe of garbage from before the run may close meanwhile, or not: it counts in no case.
    """
    poll = select.poll()
    names: dict[int, str] = {}
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the descriptor of the listing is closed by now
            name = str(descriptor.readlink())
            if name.startswith("pipe:"):
                names[int(descriptor.name)] = name
                poll.register(int(descriptor.name), 0)
    return frozenset((number, names[number]) for number, _ in poll.poll(0))
