"""Bytes to lines. Pure; knows no dialect.

A line ends with LF or CRLF; a byte order mark at the start of the stream is dropped (F1). Nothing is kept of a line
that is longer than `limit`, nor of what follows it (F3).
"""

from __future__ import annotations

from itertools import takewhile

__all__ = ["Framing"]

_BOM = b"\xef\xbb\xbf"


class Framing:
    """Cut a stream into lines, whatever the chunks were.

    `limit` is the size of the longest line; `is_overlong` says that there was a longer one.
    """

    limit = 16 * 1024**2

    def __init__(self) -> None:
        self.is_overlong = False
        self._rest = bytearray()
        self._begun = False

    def feed(self, data: bytes) -> list[bytes]:
        """Take bytes; return the lines that are now complete, without their ends."""
        if self.is_overlong:
            return []
        if b"\n" not in data:
            self._keep(data)
            return []
        text = data
        if self._rest:
            text = b"".join((self._rest, data))
            self._rest.clear()
        *lines, rest = text.split(b"\n")
        if self.is_too_long(max(map(len, lines))):
            fitting = list(takewhile(self._fits, lines))
            self.is_overlong, lines = len(fitting) < len(lines), fitting
        if rest:
            self._keep(rest)
        if self._begun and b"\r" not in text:
            return lines
        clean = self._clean
        return [clean(line) for line in lines]

    def is_too_long(self, size: int) -> bool:
        """Say whether a line of so many bytes, its end not counted, is longer than a line may be (F3)."""
        return size > self.limit

    def _fits(self, line: bytes | bytearray) -> bool:
        """Say whether a line fits that may have the first half of its end with it."""
        return not self.is_too_long(len(line) - line.endswith(b"\r"))

    def _keep(self, data: bytes) -> None:
        self._rest += data
        self.is_overlong = self.is_overlong or not self._fits(self._rest)
        if self.is_overlong:
            self._rest.clear()

    def flush(self) -> list[bytes]:
        """Return the last line, if it had no end."""
        rest = bytes(self._rest)
        self._rest.clear()
        return [self._clean(rest)] if rest else []

    def _clean(self, line: bytes) -> bytes:
        if not self._begun:
            self._begun = True
            line = line.removeprefix(_BOM)
        return line.removesuffix(b"\r")
