"""The real clock: it looks once at the start, then at each event or deadline, and never before it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import anyio
import pytest

from pytest_agentproc.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable

CEILING = 20.0


class Watched:
    """A run made of a function."""

    news = False

    def __init__(self, look: Callable[[], bool], descriptor: int | None = None, deadline: int | None = None) -> None:
        self.descriptor = descriptor
        self.deadline = deadline
        self._look = look

    def look(self) -> bool:
        """Look."""
        return self._look()

    def describe(self) -> str:
        """Say who it is."""
        return "is watched"


@pytest.fixture(params=["asyncio", "trio"])
def drive(request: pytest.FixtureRequest) -> Callable[[Watched], None]:
    """Give what drives a run on one event loop, within a ceiling."""

    def driver(watched: Watched) -> None:
        async def run() -> None:
            with anyio.fail_after(CEILING):
                await SystemClock().drive(watched)

        anyio.run(run, backend=request.param)

    return driver


def test_a_run_that_is_done_at_once_is_looked_at_once(drive: Callable[[Watched], None]) -> None:
    """No event, no deadline, no wait."""
    looks = []
    drive(Watched(lambda: not looks.append(1)))  # type: ignore[func-returns-value]
    assert looks == [1]


def test_a_deadline_is_looked_at_when_it_has_come_and_not_before(drive: Callable[[Watched], None]) -> None:
    """An early look would make a watchdog fire early, or spin until its time has come."""
    clock = SystemClock()
    seen: list[int] = []

    def look() -> bool:
        seen.append(clock.instant())
        if len(seen) == 1:
            watched.deadline = seen[0] + 20_000_000
        return len(seen) == 2

    watched = Watched(look)
    drive(watched)
    assert seen[1] - seen[0] >= 20_000_000


def test_a_deadline_in_the_past_is_looked_at_at_once(drive: Callable[[Watched], None]) -> None:
    """It waits for nothing, but lets other tasks run."""
    looks: list[int] = []

    def look() -> bool:
        looks.append(1)
        return len(looks) == 3

    drive(Watched(look, deadline=0))
    assert len(looks) == 3


def test_a_readable_descriptor_ends_the_wait_for_a_deadline(drive: Callable[[Watched], None]) -> None:
    """Past events come before possible ones."""
    begin, end = os.pipe()
    looks: list[int] = []

    def look() -> bool:
        looks.append(1)
        if len(looks) == 1:
            os.write(end, b"x")
        return len(looks) == 2

    drive(Watched(look, begin, SystemClock().instant() + 3600 * 10**9))
    os.close(begin)
    os.close(end)
    assert len(looks) == 2


def test_an_error_of_a_look_is_raised_in_the_waiting_task(drive: Callable[[Watched], None]) -> None:
    """It is not swallowed, and ends the wait."""

    def look() -> bool:
        raise LookupError("a bug in a look")

    with pytest.raises(LookupError, match="a bug in a look"):
        drive(Watched(look))
