"""Moves bytes between our own streams and a program's. Owns buffers and readiness; knows no record and no process."""

from __future__ import annotations

import os
import select
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Flow"]

_READ = 1 << 16
_WRITE = select.PIPE_BUF
_FULL = 1 << 16


class Flow:
    """One direction: what is read from one descriptor is told and written to another.

    Args:
        source: where it comes from.
        sink: where it goes; a pipe that has room takes what is written at once, so nothing blocks.
        tell: called with each chunk as it came; empty: the end, None: nobody takes it any more.
        closes_sink: whether the sink is closed, or `at_end` written, behind the last byte.
        at_end: what is written for the end where the sink cannot be closed.
    """

    def __init__(
        self, source: int, sink: int, tell: Callable[[bytes | None], None], *, closes: bool, at_end: bytes = b""
    ) -> None:
        self.source: int | None = source
        self.sink: int | None = sink
        self._tell = tell
        self._closes = closes
        self._at_end = at_end
        self._waiting: deque[bytes] = deque()
        self._size = 0

    @property
    def is_over(self) -> bool:
        """Whether nothing can come or go any more."""
        return self.source is None and not self._waiting

    def wants(self) -> list[tuple[int, int]]:
        """Say which descriptors to watch, and for what."""
        wanted = []
        if self.source is not None and self._size < _FULL:
            wanted.append((self.source, select.POLLIN))
        if self.sink is not None and self._waiting:
            wanted.append((self.sink, select.POLLOUT))
        return wanted

    def go(self, ready: set[int]) -> None:
        """Move what can be moved."""
        if self.source in ready and self._size < _FULL:
            self.take()
        if self.sink in ready and self._waiting:
            self.give()

    def take(self) -> bool:
        """Read once; say whether something came."""
        assert self.source is not None
        try:
            data = os.read(self.source, _READ)
        except BlockingIOError:
            return False
        except OSError:  # a terminal whose other end is closed
            data = b""
        self._tell(data)
        if not data:
            self.source = None
            if self._at_end:
                self._waiting.append(self._at_end)
            elif not self._waiting:
                self._end_sink()
            return False
        if self.sink is not None:
            self._waiting.append(data)
            self._size += len(data)
        return True

    def give(self) -> None:
        """Write once, as much as a pipe with room takes for sure."""
        assert self.sink is not None
        data = self._waiting.popleft()
        try:
            written = os.write(self.sink, data[:_WRITE])
        except BlockingIOError:
            written = 0
        except OSError:
            self.break_off()
            return
        self._size -= written
        if data[written:]:
            self._waiting.appendleft(data[written:])
        if self.is_over:
            self._end_sink()

    def break_off(self) -> None:
        """Nobody takes it any more: the source hears of that, too."""
        self._waiting.clear()
        self._size = 0
        self._tell(None)
        self._end_sink()
        if self.source is not None and self.source > 2:  # noqa: PLR2004  # our own streams are not ours to close
            os.close(self.source)
            self.source = None

    def drain(self) -> None:
        """Read what there is, and give it away, waiting as long as that takes."""
        while self.source is not None:
            os.set_blocking(self.source, False)
            if not self.take():
                break
        while self.sink is not None and self._waiting:
            poll = select.poll()
            poll.register(self.sink, select.POLLOUT)
            poll.poll(1000)
            self.give()

    def _end_sink(self) -> None:
        if self._closes and self.sink is not None:
            with suppress(OSError):
                os.close(self.sink)
        self.sink = None
