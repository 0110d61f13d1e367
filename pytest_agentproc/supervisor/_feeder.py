"""The prompt on its way into stdin, and what is read meanwhile. Pure; knows no descriptor (F5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.supervisor._events import Close

if TYPE_CHECKING:
    from pytest_agentproc.supervisor._events import Command

__all__ = ["Feeder"]


class Feeder:
    """Hold what is still to be written, and which streams are to be read.

    Args:
        prompt: the bytes for stdin.
    """

    READ_LIMIT = 1 << 16

    def __init__(self, prompt: bytes) -> None:
        self._rest = memoryview(prompt)
        self.is_broken = False
        self.is_closed = False
        self._open = ["stdout", "stderr"]

    @property
    def rest(self) -> memoryview:
        """What is still to be written."""
        return self._rest

    @property
    def streams(self) -> list[str]:
        """What is to be read now: every stream that has not ended."""
        return self._open

    @property
    def is_delivered(self) -> bool:
        """Whether the whole prompt was taken."""
        return not self._rest

    def wrote(self, count: int) -> None:
        """Take note of bytes that were taken."""
        self._rest = self._rest[count:]

    def ended(self, stream: str) -> None:
        """Take note of a stream's end: it is read no more."""
        if stream in self._open:
            self._open.remove(stream)

    def end(self) -> list[Command]:
        """End the agent's input: the prompt is through, or nobody reads it (C1)."""
        self.is_closed = True
        return [Close()]
