"""Has the caller's own functions run, each in a task that ends with the need for it. Judges nothing."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from anyio.abc import TaskGroup

__all__ = ["Attendant"]


class _Errand:
    """Something to run, on behalf of what the agent wants."""

    def __init__(self, cause: object, work: Callable[[], Awaitable[None]]) -> None:
        self.cause = cause
        self.is_recalled = False
        self._work = work
        self._scope: anyio.CancelScope | None = None

    async def run(self) -> None:
        """Run it; cancelled, it ends quietly."""
        with anyio.CancelScope() as self._scope:
            await self._work()

    def end(self) -> None:
        """Cancel it, where it stands."""
        self.is_recalled = True
        if self._scope is not None:
            self._scope.cancel()


class Attendant:
    """Hold the errands of a session: those that wait to be begun, and those that run."""

    def __init__(self) -> None:
        self._waiting: deque[_Errand] = deque()
        self._running: list[_Errand] = []

    def send(self, cause: object, work: Callable[[], Awaitable[None]]) -> None:
        """Have something run, soon."""
        self._waiting.append(_Errand(cause, work))

    def recall(self, cause: object) -> None:
        """End what runs on behalf of a cause, or forget it if it was not begun."""
        self._waiting = deque(errand for errand in self._waiting if errand.cause is not cause)
        for errand in self._running:
            if errand.cause is cause:
                errand.end()

    def is_wanted(self, cause: object) -> bool:
        """Say whether what runs on behalf of a cause was not recalled."""
        return any(errand.cause is cause and not errand.is_recalled for errand in self._running)

    def begin(self, group: TaskGroup) -> None:
        """Begin everything that waits."""
        while self._waiting:
            errand = self._waiting.popleft()
            self._running.append(errand)
            group.start_soon(self._run, errand)

    async def _run(self, errand: _Errand) -> None:
        try:
            await errand.run()
        finally:
            self._running.remove(errand)
