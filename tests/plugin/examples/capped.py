"""Supervisors of plain text that give a whole run less time than they give silence: the limits' order is their own."""

from __future__ import annotations

import asyncio

from tests.plugin.examples.careful import Run, of_plain
from tests.plugin.examples.faulty import KillsTheAgentAlone

LONGEST = 50


class Capped(Run):
    """A run ends after fifty seconds, so that a minute of silence never does it."""

    async def end(self) -> str | None:
        """Wait for the agent's end, but not for longer; an end at that very instant is the agent's."""
        try:
            async with asyncio.timeout(LONGEST):
                return await super().end()
        except TimeoutError:
            while any(self.read(pipe) for pipe in self.kept):
                pass
            return None if self.has_ended() else "overran"


class CappedAndFaulty(Capped, KillsTheAgentAlone):
    """The same, and it forgets the processes that the agent started."""


subject = of_plain(Capped, max_runtime=LONGEST)
faulty = of_plain(CappedAndFaulty, max_runtime=LONGEST)
