"""A pipe as Linux keeps it: sixteen page slots. Owns capacity and merging; knows no process.

A write first fills up the last page, if its odd bytes fit there as a whole; the rest takes a slot a page. So 3,000-byte
writes fill a pipe at 48,000 bytes, and single bytes share a page.
"""

from __future__ import annotations

from collections import deque

__all__ = ["Pipe"]

PAGE = 4096


class _Page:
    __slots__ = ("data", "end")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.end = len(data)


class Pipe:
    """Bytes between processes, with the counts of those that hold either end."""

    slots = 16

    def __init__(self) -> None:
        self.writers = 1
        self.readers = 1
        self.pages: deque[_Page] = deque()

    def has_room(self) -> bool:
        """Say whether poll would call it writable: a free slot, or nobody to read."""
        return len(self.pages) < self.slots or not self.readers

    def has_news(self) -> bool:
        """Say whether poll would call it readable: bytes, or the end."""
        return bool(self.pages) or not self.writers

    def write(self, data: bytes | memoryview) -> int | None:
        """Take what fits; None if nothing does.

        Raises:
            BrokenPipeError: nobody can read it.
        """
        if not self.readers:
            raise BrokenPipeError
        odd = len(data) % PAGE
        taken = 0
        if odd and self.pages and self.pages[-1].end + odd <= PAGE:
            last = self.pages[-1]
            last.data += bytes(data[:odd])
            last.end += odd
            taken = odd
        while taken < len(data) and len(self.pages) < self.slots:
            page = bytes(data[taken : taken + PAGE])
            self.pages.append(_Page(page))
            taken += len(page)
        return taken or None

    def read(self, limit: int) -> bytes | None:
        """Give what is there: None would block, b"" is the end."""
        if not self.pages:
            return None if self.writers else b""
        parts = []
        while self.pages and limit:
            page = self.pages[0]
            size = len(page.data)
            if size <= limit:
                parts.append(page.data)
                limit -= size
                self.pages.popleft()
            else:
                part, page.data = page.data[:limit], page.data[limit:]
                parts.append(part)
                limit = 0
        return parts[0] if len(parts) == 1 else b"".join(parts)
