"""What a clock is to the supervisor core. Owns the protocol and the current clock; knows no loop and no process."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Clock", "Watched", "current_clock", "running"]


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
    """What time it is, how to wait, whom to meet, and what it is called."""

    name: str

    def instant(self) -> int:
        """Give the time in whole nanoseconds; only differences mean something."""

    async def drive(self, watched: Watched) -> None:
        """Look once at the start and then at each event or deadline, until `look` says that all is done.

        An exception of `look` ends the wait and is raised here. Cancellation ends the wait at once.
        """

    def meet(self, pid: int) -> None:
        """Take note of an agent that was started otherwise than by `subprocess`, right after its start.

        A virtual clock waits until it, or a fake below it, has said hello, or it is dead. What is found to be neither
        is a fault unless it was declared. That is what it does by itself when `subprocess` starts one. In real time
        there is nothing to do.

        Args:
            pid: the process, whose number nobody else gets meanwhile.
        """


class _Running:
    """What contexts hold of a clock: loops copy them, and keep the copies longer than the clock is wanted."""

    __slots__ = ("clock",)

    def __init__(self, clock: Clock) -> None:
        self.clock: Clock | None = clock


_running: ContextVar[_Running | None] = ContextVar("agentproc_clock", default=None)


def current_clock() -> Clock | None:
    """Give the clock that a run uses when it is told none: a virtual one for whatever it runs; else None."""
    held = _running.get()
    return None if held is None else held.clock


@contextmanager
def running(clock: Clock) -> Iterator[None]:
    """Let a clock be the current one while the block runs, in contexts that are copied meanwhile as well."""
    held = _Running(clock)
    token = _running.set(held)
    try:
        yield
    finally:
        held.clock = None
        _running.reset(token)
