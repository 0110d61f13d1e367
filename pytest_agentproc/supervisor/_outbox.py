"""What a session writes: bytes in the order of the intents behind them, as the agent takes them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.supervisor._events import Watch
from pytest_agentproc.supervisor._feeder import Feeder

if TYPE_CHECKING:
    from pytest_agentproc.supervisor._events import Command

__all__ = ["Outbox"]


class Outbox(Feeder):
    """Hold what is still to be written to one agent; its stdin stays open between prompts."""

    MOST_ANSWERS = 16 * 1024**2
    """So many bytes of answers may wait before an agent that reads none of them is given up (F6)."""

    def __init__(self) -> None:
        super().__init__(b"")
        self._is_watched = False
        self.taken = 0
        self.put_in = 0
        self._next: list[bytes] = []
        self._answers = 0

    def put(self, data: bytes) -> list[Command]:
        """Add bytes; nothing is kept for an agent that reads no more."""
        if self.is_closed or self.is_broken or not data:
            return []
        if self._rest:
            self._next.append(data)
        else:
            self._rest = memoryview(data)
        self.put_in += len(data)
        return self._watch(wanted=True)

    def reply(self, data: bytes) -> list[Command]:
        """Add bytes that the agent itself asked for."""
        self._answers += len(data)
        return self.put(data)

    @property
    def is_ignored(self) -> bool:
        """Whether the agent asks on and on and reads no answers."""
        return self._answers > self.MOST_ANSWERS

    def wrote(self, count: int) -> None:
        """Take note of bytes that were taken."""
        super().wrote(count)
        self.taken += count
        if not self._rest:
            self._rest, self._next = memoryview(b"".join(self._next)), []
        if not self._rest:
            self._answers = 0

    def pause(self) -> list[Command]:
        """Have stdin watched only as long as there is something to write."""
        return self._watch(wanted=not self.is_delivered)

    def end(self) -> list[Command]:
        """End the agent's input, once."""
        self._rest, self._next = memoryview(b""), []
        watch = self._watch(wanted=False)
        return [] if self.is_closed else [*watch, *super().end()]

    def _watch(self, *, wanted: bool) -> list[Command]:
        if wanted is self._is_watched:
            return []
        self._is_watched = wanted
        return [Watch("stdin", wanted)]
