"""Bytes to lines. Pure; knows no dialect.

A line ends with LF or CRLF; a byte order mark at the start of the stream is dropped (F1).
"""

from __future__ import annotations

__all__ = ["Framing"]

_BOM = b"\xef\xbb\xbf"


class Framing:
    """Cut a stream into lines, whatever the chunks were."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._begun = False

    def feed(self, data: bytes) -> list[bytes]:
        """Take bytes; return the lines that are now complete, without their ends."""
        if b"\n" not in data:
            self._parts.append(data)
            return []
        *lines, rest = b"".join([*self._parts, data]).split(b"\n")
        self._parts = [rest] if rest else []
        return [self._clean(line) for line in lines]

    def flush(self) -> list[bytes]:
        """Return the last line, if it had no end."""
        rest = b"".join(self._parts)
        self._parts = []
        return [self._clean(rest)] if rest else []

    def _clean(self, line: bytes) -> bytes:
        if not self._begun:
            self._begun = True
            line = line.removeprefix(_BOM)
        return line.removesuffix(b"\r")
