"""Supervisors of plain text and of pi that get no events: they look twenty times a second, and are right."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.plugin.examples.careful import LONGEST_LINE, SILENCE, Run, lives, of_plain
from tests.plugin.examples.streaming import PiRun, of_pi

if TYPE_CHECKING:
    from collections.abc import Iterable

    import psutil

    from pytest_agentproc.vocabulary import RunRequest

__all__ = ["PERIOD", "SHORT_PERIOD", "Polling", "PollingPi", "PollingTheEnd", "at_the_end", "pi", "subject"]

PERIOD = 0.05
SHORT_PERIOD = 0.02


class Polling(Run):
    """One agent that the supervisor polls."""

    def __init__(self, order: RunRequest) -> None:
        super().__init__(order)
        for descriptor in (self.pidfd, *(pipe.fileno() for pipe in self.kept)):
            self.loop.remove_reader(descriptor)
        self.loop.remove_writer(self.agent.stdin.fileno())

    def look(self) -> None:
        """Take what is there, and send what goes in."""
        for pipe in self.kept:
            while self.read(pipe):
                pass
        if not self.agent.stdin.closed:
            self.write()

    def limit(self) -> float:
        """Say when the supervisor has to act."""
        return self.last + SILENCE

    async def end(self) -> str | None:
        """Look until the agent has ended, or was silent for too long."""
        while True:
            has_ended = self.has_ended()
            self.look()
            if has_ended:
                return None
            if self.line > LONGEST_LINE:
                return "protocol_error"
            if self.loop.time() >= self.limit():
                return "input_failed" if self.refused else "inactive"
            await asyncio.sleep(PERIOD)

    async def gone(self, processes: Iterable[psutil.Process], longest: float | None) -> None:
        """Look until all have ended, as long as may be."""
        until = None if longest is None else self.loop.time() + longest
        while any(map(lives, processes)) and (until is None or self.loop.time() < until):
            self.look()
            await asyncio.sleep(PERIOD)


class PollingTheEnd(Run):
    """One agent that the supervisor polls only while its tree is ended: fifty times a second."""

    async def gone(self, processes: Iterable[psutil.Process], longest: float | None) -> None:
        """Look until all have ended, as long as may be; the first look comes after a pause."""
        self.loop.remove_reader(self.pidfd)
        until = None if longest is None else self.loop.time() + longest
        found = [*processes]
        while found and (until is None or self.loop.time() < until):
            await asyncio.sleep(SHORT_PERIOD)
            found = [*filter(lives, found)]


class PollingPi(PiRun, Polling):
    """One pi that the supervisor polls."""

    async def end(self) -> str | None:
        """Look until it has ended, or it is time."""
        outcome = await Polling.end(self)
        if outcome is None and self.rest:
            self.take(bytes(self.rest))
        return self.done or outcome if outcome == "inactive" else outcome


subject = of_plain(Polling)
at_the_end = of_plain(PollingTheEnd)
pi = of_pi(PollingPi)
