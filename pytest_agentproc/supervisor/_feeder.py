"""The prompt on its way into stdin, and how much to read at a time. Pure; knows no descriptor (F5)."""

from __future__ import annotations

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
        self.streams = ["stdout", "stderr"]

    @property
    def rest(self) -> memoryview:
        """What is still to be written."""
        return self._rest

    @property
    def is_delivered(self) -> bool:
        """Whether the whole prompt was taken."""
        return not self._rest

    def wrote(self, count: int) -> None:
        """Take note of bytes that were taken."""
        self._rest = self._rest[count:]

    def ended(self, stream: str) -> None:
        """Take note of a stream's end: it is read no more."""
        if stream in self.streams:
            self.streams.remove(stream)
