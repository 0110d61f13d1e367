"""What a clock is to the supervisor core. Owns the protocol and the current clock; knows no loop and no process."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol

__all__ = ["Clock", "Watched", "current_clock"]


class Watched(Protocol):
    """A run as a clock sees it: one descriptor, one deadline, one look a wake.

    `news` says that the last look woke somebody who waits in the loop, which then gets its turn.
    """

    news: bool

    @property
    def descriptor(self) -> int | None:
        """What becomes readable when something happened, or None before the start."""

    @property
    def deadline(self) -> int | None:
        """The instant, in nanoseconds of this clock, at which to look whatever happened; None: never.

        It changes in `look` only.
        """

    def look(self) -> bool:
        """Take one look at everything; return True once there is nothing left to wait for."""

    def describe(self) -> str:
        """Say in a clause what is waited for, for the message of a deadlock."""


class Clock(Protocol):
    """Three methods: what time it is, how to wait, what it is called."""

    name: str

    def instant(self) -> int:
        """Give the time in whole nanoseconds; only differences mean something."""

    async def drive(self, watched: Watched) -> None:
        """Look once at the start and then at each event or deadline, until `look` says that all is done.

        An exception of `look` ends the wait and is raised here. Cancellation ends the wait at once.
        """


current_clock: ContextVar[Clock | None] = ContextVar("agentproc_clock", default=None)
"""The clock that a run uses when it is told none: a virtual clock sets it for what it runs."""
