"""The end of what came, for those who must not keep all of it (F6). Pure; knows no dialect and nobody's limit."""

from __future__ import annotations

__all__ = ["Tail", "Transcript"]

_CONTINUATIONS = bytes(range(0x80, 0xC0))
_BATCH = 4096
_OBJECT = 64
"""Bytes, about, that a short text takes besides its own."""
_ERRORS = "surrogatepass"  # half a pair is what JSON may hold, and is no reason to lose a message


class Tail:
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
        return (data.lstrip(_CONTINUATIONS) if self.is_cut else data).decode(errors=_ERRORS)


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
        self._tail = Tail(None if limit is None else limit + 1)  # one more tells whether a line begins at the cut

    def add(self, text: str) -> None:
        """Take the next message."""
        self.last = text
        self._new.append(text)
        self._weight += len(text) + _OBJECT
        if self._weight > _BATCH:
            self._put_away()

    def add_lines(self, text: str) -> None:
        """Take messages of one line each, which LF parts from one another."""
        self.add(text)
        self.last = text[text.rfind("\n") + 1 :]

    def _put_away(self) -> None:
        if self._new:
            data = "\n".join(self._new).encode(errors=_ERRORS)
            self._tail.add(b"\n" + data if self._has_begun else data)
            self._new, self._weight, self._has_begun = [], 0, True

    @property
    def is_cut(self) -> bool:
        """Whether there was more than is kept."""
        self._put_away()
        return self._limit is not None and self._tail.size > self._limit

    def __str__(self) -> str:
        if self._limit is None or not self.is_cut or self.last is None:
            self._put_away()
            return bytes(self._tail).decode(errors=_ERRORS)
        if len(self.last.encode(errors=_ERRORS)) >= self._limit:
            return self.last
        return bytes(self._tail).partition(b"\n")[2].decode(errors=_ERRORS)
