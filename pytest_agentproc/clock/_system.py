"""The real clock, on asyncio or trio through anyio. Owns real waiting; knows no virtual time."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_agentproc.clock._protocol import Watched

__all__ = ["SystemClock"]


class SystemClock:
    """Real time: `time.monotonic_ns`, and waits that a loop makes.

    Args:
        scale: so many times faster than the machine's clock; every duration is divided by it.
        zero: the monotonic instant of the machine, in nanoseconds, that counts as 0.
    """

    name = "real"

    def __init__(self, scale: float = 1, zero: int = 0) -> None:
        self.scale = scale
        self.zero = zero

    def start(self) -> None:
        """Have the present count as 0."""
        self.zero = time.monotonic_ns()

    def instant(self) -> int:
        """Give the monotonic clock of the machine in nanoseconds since `zero`, times the scale."""
        return self.instant_of(time.monotonic_ns())

    def instant_of(self, moment: int) -> int:
        """Give the instant of this clock that is a moment of the machine's monotonic clock, in nanoseconds."""
        return int((moment - self.zero) * self.scale)

    def moment_of(self, instant: int) -> int:
        """Give the moment of the machine's monotonic clock that is an instant of this clock, in nanoseconds."""
        return self.zero + int(instant / self.scale)

    def meet(self, pid: int) -> None:
        """See `Clock.meet`: real time waits for nobody."""

    async def drive(self, watched: Watched) -> None:
        """Wait for the descriptor or the deadline, look, and again."""
        import anyio  # loaded by whoever runs a loop; a checker of scenarios never pays for it

        while not watched.look():
            deadline = watched.deadline
            left = math.inf if deadline is None else (deadline - self.instant()) / 1_000_000_000 / self.scale
            if left <= 0:
                await anyio.lowlevel.checkpoint()
                continue
            with anyio.move_on_after(left):
                if watched.descriptor is None:
                    await anyio.sleep_forever()
                else:
                    await anyio.wait_readable(watched.descriptor)
