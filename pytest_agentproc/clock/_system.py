"""The real clock, on asyncio or trio through anyio. Owns real waiting; knows no virtual time."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_agentproc.clock._protocol import Watched

__all__ = ["SystemClock"]


class SystemClock:
    """Real time: `time.monotonic_ns`, and waits that a loop makes."""

    name = "real"

    def instant(self) -> int:
        """Give the monotonic clock of the machine in nanoseconds."""
        return time.monotonic_ns()

    async def drive(self, watched: Watched) -> None:
        """Wait for the descriptor or the deadline, look, and again."""
        import anyio  # loaded by whoever runs a loop; a checker of scenarios never pays for it

        while not watched.look():
            deadline = watched.deadline
            left = math.inf if deadline is None else (deadline - self.instant()) / 1_000_000_000
            if left <= 0:
                await anyio.lowlevel.checkpoint()
                continue
            with anyio.move_on_after(left):
                if watched.descriptor is None:
                    await anyio.sleep_forever()
                else:
                    await anyio.wait_readable(watched.descriptor)
