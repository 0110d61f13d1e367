"""Streams, pure: bytes to lines, the kept tail, the prompt on its way into stdin, a session's outgoing bytes.

A line ends with LF or CRLF; a byte order mark at the start of the stream is dropped (F1). Nothing is kept of a line
that is longer than `limit`, nor of what follows it (F3).
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from pytest_agentproc.supervisor._events import CloseStdin, WatchStream

if TYPE_CHECKING:
    from pytest_agentproc.supervisor._events import MachineCommand


_UTF8_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class LineSplitter:
    """Cut a stream into lines, whatever the chunks were.

    `limit` is the size of the longest line (None: any size); `is_overlong` says that there was a longer one.
    """

    limit: int | None = 16 * 1024**2

    def __init__(self) -> None:
        self.is_overlong = False
        self._rest = bytearray()
        self._begun = False

    def feed(self, data: bytes) -> list[bytes]:
        """Take bytes; return the lines that are now complete, without their ends."""
        if self.is_overlong:
            return []
        if b"\n" not in data:
            self._keep_unfinished_line(data)
            return []
        text = data
        if self._rest:
            text = b"".join((self._rest, data))
            self._rest.clear()
        *lines, rest = text.split(b"\n")
        if self.is_too_long(max(map(len, lines))):
            fitting = list(takewhile(self._is_short_enough, lines))
            self.is_overlong, lines = len(fitting) < len(lines), fitting
        if rest:
            self._keep_unfinished_line(rest)
        if self._begun and b"\r" not in text:
            return lines
        clean = self._strip_line
        return [clean(line) for line in lines]

    def is_too_long(self, size: int) -> bool:
        """Say whether a line of this size, without its end, is longer than a line may be (F3)."""
        return self.limit is not None and size > self.limit

    def _is_short_enough(self, line: bytes | bytearray) -> bool:
        """Say whether a line fits that may have the first half of its end with it."""
        return not self.is_too_long(len(line) - line.endswith(b"\r"))

    def _keep_unfinished_line(self, data: bytes) -> None:
        self._rest += data
        self.is_overlong = self.is_overlong or not self._is_short_enough(self._rest)
        if self.is_overlong:
            self._rest.clear()

    @property
    def unfinished_line(self) -> bytes:
        """The bytes of a line that has no end yet."""
        return bytes(self._rest)

    def flush(self) -> list[bytes]:
        """Return the last line, if it had no end."""
        rest = bytes(self._rest)
        self._rest.clear()
        return [self._strip_line(rest)] if rest else []

    def _strip_line(self, line: bytes) -> bytes:
        if not self._begun:
            self._begun = True
            line = line.removeprefix(_UTF8_BYTE_ORDER_MARK)
        return line.removesuffix(b"\r")


_UTF8_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))
_MAX_BATCH_BYTES = 4096
_EXTRA_BYTES_PER_TEXT = 64
"""Bytes, about, that a short text takes besides its own."""
_UNICODE_ERROR_HANDLER = "surrogatepass"  # half a pair is what JSON may hold, and is no reason to lose a message


class OutputTail:
    """Keep the last bytes that came. At most twice as many are held, so that a byte costs what it costs in a big piece.

    `size` is how many bytes came in all.

    Args:
        limit: how many to keep, 1 or more; None: all.
    """

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.size = 0
        self._held = bytearray()

    def add(self, data: bytes) -> None:
        """Take what comes next."""
        self.size += len(data)
        self._held += data
        if self.limit is not None and len(self._held) > 2 * self.limit:
            del self._held[: -self.limit]

    @property
    def is_cut(self) -> bool:
        """Whether there was more than is kept."""
        return self.limit is not None and self.size > self.limit

    def __bytes__(self) -> bytes:
        return bytes(self._held if self.limit is None else memoryview(self._held)[-self.limit :])

    def __str__(self) -> str:
        """Give it as text, without the rest of a character that the cut has torn."""
        data = bytes(self)
        return (data.lstrip(_UTF8_CONTINUATION_BYTES) if self.is_cut else data).decode(errors=_UNICODE_ERROR_HANDLER)


class Transcript:
    """Keep messages, each on a line of its own: of more than a limit the last lines, and the last message always whole.

    `last` is the last message, None while there is none. Short ones are put away many at a time: most runs that have
    many have very many.

    Args:
        limit: how many bytes of UTF-8 to keep, 1 or more; None: all.
    """

    def __init__(self, limit: int | None) -> None:
        self.last: str | None = None
        self._limit = limit
        self._new: list[str] = []
        self._weight = 0
        self._has_begun = False
        self._tail = OutputTail(None if limit is None else limit + 1)  # one more tells whether a line begins at the cut

    def add(self, text: str) -> None:
        """Take the next message."""
        self.last = text
        self._new.append(text)
        self._weight += len(text) + _EXTRA_BYTES_PER_TEXT
        if self._weight > _MAX_BATCH_BYTES:
            self._flush_new_messages()

    def add_lines(self, text: str) -> None:
        """Take messages of one line each, which LF parts from one another."""
        self.add(text)
        self.last = text[text.rfind("\n") + 1 :]

    def _flush_new_messages(self) -> None:
        if self._new:
            data = "\n".join(self._new).encode(errors=_UNICODE_ERROR_HANDLER)
            self._tail.add(b"\n" + data if self._has_begun else data)
            self._new, self._weight, self._has_begun = [], 0, True

    @property
    def is_cut(self) -> bool:
        """Whether there was more than is kept."""
        self._flush_new_messages()
        return self._limit is not None and self._tail.size > self._limit

    def __str__(self) -> str:
        if self._limit is None or not self.is_cut or self.last is None:
            self._flush_new_messages()
            return bytes(self._tail).decode(errors=_UNICODE_ERROR_HANDLER)
        if len(self.last.encode(errors=_UNICODE_ERROR_HANDLER)) >= self._limit:
            return self.last
        return bytes(self._tail).partition(b"\n")[2].decode(errors=_UNICODE_ERROR_HANDLER)


class StdinFeeder:
    """Hold what is still to be written, and which streams are to be read."""

    READ_LIMIT = 1 << 16

    def __init__(self, prompt: bytes) -> None:
        self._rest = memoryview(prompt)
        self.is_broken = False
        self.is_closed = False
        self._open = ["stdout", "stderr"]

    @property
    def unwritten_bytes(self) -> memoryview:
        """The bytes that are still to be written."""
        return self._rest

    @property
    def streams(self) -> list[str]:
        """The streams to read now: every stream that has not ended."""
        return self._open

    @property
    def is_delivered(self) -> bool:
        """Whether the whole prompt was taken."""
        return not self._rest

    def note_written(self, count: int) -> None:
        """Take note of bytes that were taken."""
        self._rest = self._rest[count:]

    def note_stream_end(self, stream: str) -> None:
        """Take note of a stream's end: it is read no more."""
        if stream in self._open:
            self._open.remove(stream)

    def end_input(self) -> list[MachineCommand]:
        """End the agent's input: the prompt is written, or the agent does not read it (C1)."""
        self.is_closed = True
        return [CloseStdin()]


class Outbox(StdinFeeder):
    """Hold what is still to be written to one agent; its stdin stays open between prompts."""

    MAX_ANSWERS = 16 * 1024**2
    """So many bytes of answers may wait before an agent that reads none of them is given up (F6)."""

    def __init__(self) -> None:
        super().__init__(b"")
        self._is_watched = False
        self.taken = 0
        self.put_in = 0
        self._next: list[bytes] = []
        self._answers = 0

    def put(self, data: bytes) -> list[MachineCommand]:
        """Add bytes; nothing is kept for an agent that reads no more."""
        if self.is_closed or self.is_broken or not data:
            return []
        if self._rest:
            self._next.append(data)
        else:
            self._rest = memoryview(data)
        self.put_in += len(data)
        return self._watch_stdin(wanted=True)

    def put_reply(self, data: bytes) -> list[MachineCommand]:
        """Add bytes that the agent itself asked for."""
        self._answers += len(data)
        return self.put(data)

    @property
    def is_ignored(self) -> bool:
        """Whether the agent asks on and on and reads no answers."""
        return self._answers > self.MAX_ANSWERS

    def note_written(self, count: int) -> None:
        """Take note of bytes that were taken."""
        super().note_written(count)
        self.taken += count
        if not self._rest:
            self._rest, self._next = memoryview(b"".join(self._next)), []
        if not self._rest:
            self._answers = 0

    def watch_while_pending(self) -> list[MachineCommand]:
        """Have stdin watched only as long as there is something to write."""
        return self._watch_stdin(wanted=not self.is_delivered)

    def end_input(self) -> list[MachineCommand]:
        """End the agent's input, once."""
        self._rest, self._next = memoryview(b""), []
        watch = self._watch_stdin(wanted=False)
        return [] if self.is_closed else [*watch, *super().end_input()]

    def _watch_stdin(self, *, wanted: bool) -> list[MachineCommand]:
        if wanted is self._is_watched:
            return []
        self._is_watched = wanted
        return [WatchStream("stdin", wanted)]
