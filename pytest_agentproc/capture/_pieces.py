"""Puts together what the lines of a dialect tell in pieces, and finds what they repeat. Owns what a piece is.

A secret that a model prints comes in pieces, each in a line of its own: no line has it, but a reader joins them.
Or each line repeats the text so far: then all lines but the last have a part of the secret.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from pytest_agentproc.capture._views import View, spliced

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["growing_texts", "joined_pieces"]

_KEYS = (b"text", b"delta", b"thinking", b"partial_json", b"content")
_LOOKS = {key: re.compile(rb'"' + key + rb'":\s?"((?:[^"\\]|\\.)*)"') for key in _KEYS}
_FEWEST = 2
_STRING = re.compile(rb'"((?:[^"\\\r\n]|\\.)*)"(\s?:)?')
_LINE = re.compile(rb"[^\r\n]+")
_SHORTEST = 4
"""A text of fewer bytes is too short to give away a part of a secret."""


def joined_pieces(view: View, *, whole: bool = False) -> Iterator[View]:
    """Yield for each key of pieces what they say together, as it is escaped.

    Args:
        view: the lines of a dialect.
        whole: whether a text that the next one continues is left out where most do so: they are no pieces, and a text
            that is joined with its own beginning says what nobody said.
    """
    data = view.text
    for key, look in _LOOKS.items():
        if data.count(b'"' + key + b'"') >= _FEWEST:
            found = [(*one.span(1), one[1]) for one in look.finditer(data)]
            grows = [later[2].startswith(one[2]) for one, later in pairwise(found)]
            if whole and 2 * sum(grows) > len(grows):
                found = [one for one, is_continued in zip(found, [*grows, False], strict=True) if not is_continued]
            yield spliced(view, found)


def growing_texts(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield texts that another text continues: where both begin, and the size of the shorter one.

    A continued text comes after all that continue it. Texts are strings of the same key, and lines.
    """
    texts: dict[bytes, list[tuple[bytes, int]]] = {b"": [(one[0], one.start()) for one in _LINE.finditer(data)]}
    key = b'"'
    for one in _STRING.finditer(data):
        if one[2]:
            key = one[0]
        elif len(one[1]) >= _SHORTEST:
            texts.setdefault(key, []).append((one[1], one.start(1)))
    for same_key in texts.values():
        same_key.sort(reverse=True)
        longer: list[tuple[bytes, int]] = []
        for text, start in same_key:
            while longer and longer[-1][0].startswith(text):
                yield longer.pop()[1], start, len(text)
            longer.append((text, start))
