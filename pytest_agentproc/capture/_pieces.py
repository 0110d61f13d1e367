"""Puts together what the lines of a dialect tell in pieces: deltas. Owns where each byte of a piece stood.

A secret that a model prints comes in pieces, each in a line of its own: no line has it, and whoever joins them does.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["joined_pieces"]

_KEYS = (b"text", b"delta", b"thinking", b"partial_json", b"content")
_LOOKS = {key: re.compile(rb'"' + key + rb'":\s?"((?:[^"\\]|\\.)*)"') for key in _KEYS}
_FEWEST = 2


def joined_pieces(data: bytes) -> Iterator[tuple[bytes, list[int]]]:
    """Yield for each key of pieces what they say together, as it is escaped, and the place of each byte in the data."""
    for key, look in _LOOKS.items():
        if data.count(b'"' + key + b'"') < _FEWEST:
            continue
        text, places = bytearray(), list[int]()
        for found in look.finditer(data):
            start, end = found.span(1)
            text += found[1]
            places += range(start, end)
        yield bytes(text), places
