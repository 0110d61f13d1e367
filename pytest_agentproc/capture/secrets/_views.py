r"""Reads bytes as others will: unescaped, in one line, without colours, put together from pieces.

A secret is the same secret as `a\\/b`, as `a\u002fb`, as `a%2Fb`, cut by a colour or by the end of a line. Each reading
is a view; `find_source_ranges` gives the original places of a secret in it, so that the secret can be replaced there.

    data ──unescape──> layer 1 ──unescape──> layer 2 ...      escapes in escapes: JSON in JSON, a URL in JSON
      └──join lines      └──join lines                        the same without colours and line breaks

A secret that a model prints comes in pieces, each in a line of its own: no line has it, but a reader joins them.
Or each line repeats the text so far: then all lines but the last have a part of the secret.
"""

from __future__ import annotations

import base64
import html
import itertools
import re
from bisect import bisect_right
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


_MAX_ESCAPE_LAYERS = 4
_ESCAPE_SEQUENCE_PATTERN = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]{1,6}\}"
    rb"|x[0-9a-fA-F]{2}|[\x00-\xff])"
    rb"|&(?:\#[0-9]{1,7}|\#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,6});"
    rb"|%[0-9a-fA-F]{2}"
)
_BYTE_BY_ESCAPE_LETTER = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f"}
_COLOUR_SEQUENCE_PATTERN = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-Z]|[@-Z\\^_])"
)
_COLOUR_OR_LINE_BREAK_PATTERN = re.compile(_COLOUR_SEQUENCE_PATTERN.pattern + rb"|(?<![ \t])[ \t]*[\r\n]\s*")


class TextView:
    """One reading of some bytes.

    Args:
        text: what is read.
        starts: where in the text each segment begins.
        sources: where in the data each segment stood: its beginning and its end. A segment of the same size stood there
            byte for byte; any other stood there as a whole.
        of: the view whose text the data is; None: the data is the original.
    """

    def __init__(
        self, text: bytes, starts: list[int], sources: list[tuple[int, int]], of: TextView | None = None
    ) -> None:
        self.text = text
        self._starts = starts
        self._sources = sources
        self._of = of

    @classmethod
    def from_bytes(cls, data: bytes) -> TextView:
        """Read the bytes as they are."""
        return cls(data, [0], [(0, len(data))])

    def find_source_ranges(self, start: int, end: int) -> list[tuple[int, int]]:
        """Give the original places of a part of the text, in order; places that touch are one range."""
        found: list[tuple[int, int]] = []
        index = bisect_right(self._starts, start) - 1
        while index < len(self._starts) and self._starts[index] < end:
            begin = self._starts[index]
            size = (self._starts[index + 1] if index + 1 < len(self._starts) else len(self.text)) - begin
            first, last = self._sources[index]
            if size == last - first:
                first, last = first + max(start - begin, 0), first + min(end - begin, size)
            if found and found[-1][1] == first:
                found[-1] = (found[-1][0], last)
            else:
                found.append((first, last))
            index += 1
        if self._of is None:
            return found
        return [place for part in found for place in self._of.find_source_ranges(*part)]

    @property
    def line_join_offsets(self) -> list[int]:
        """Where lines were joined that the data had apart."""
        assert self._of is not None
        data = self._of.text
        pairs = zip(self._starts[1:], itertools.pairwise(self._sources), strict=True)
        gaps = ((start, data[before[1] : after[0]]) for start, (before, after) in pairs)
        return [start for start, gap in gaps if b"\n" in gap or b"\r" in gap]


def make_view_of_parts(view: TextView, parts: Iterable[tuple[int, int, bytes]]) -> TextView:
    """Make a view of parts of another: of each part where it begins and ends there, and what is read for it."""
    text, starts, sources = bytearray(), list[int](), list[tuple[int, int]]()
    for start, end, read in parts:
        if read:
            starts.append(len(text))
            sources.append((start, end))
            text += read
    return TextView(bytes(text), starts, sources, view)


def list_unescaped_views(view: TextView) -> list[TextView]:
    """Give a view, and its text with the escapes resolved once, twice and so on."""
    found = [view]
    while (
        len(found) <= _MAX_ESCAPE_LAYERS
        and (deeper := _replace_in_text_view(found[-1], _ESCAPE_SEQUENCE_PATTERN, _unescape_sequence)) is not None
    ):
        found.append(deeper)
    return found


def strip_colours_and_line_breaks(view: TextView, *, joins_lines: bool) -> TextView | None:
    """Read a view without colours, and without line breaks and what indents the next line; None: it has none."""
    return _replace_in_text_view(
        view, _COLOUR_OR_LINE_BREAK_PATTERN if joins_lines else _COLOUR_SEQUENCE_PATTERN, lambda _found: b""
    )


_BASE64_PATTERN = re.compile(rb"(?<![\w+/-])(?:[\w+/-]{60,76}\r?\n){0,1000}[\w+/-]{20,}={0,2}")
_STANDARD_BASE64 = bytes.maketrans(b"-_", b"+/")
_PRINTABLE_PATTERN = re.compile(r"[\t\r\n -~\u00a1-\uffff]+")


def decode_base64_texts(data: bytes) -> Iterator[bytes]:
    """Yield what the words and blocks of base64 say, if it is text: an image says nothing."""
    for found in _BASE64_PATTERN.finditer(data):
        letters = found[0].translate(_STANDARD_BASE64, b"\r\n=")
        with suppress(ValueError):
            text = base64.b64decode(letters + b"=" * (-len(letters) % 4), validate=True)
            if _PRINTABLE_PATTERN.fullmatch(text.decode()):
                yield text


def _replace_in_text_view(
    view: TextView, look: re.Pattern[bytes], read: Callable[[re.Match[bytes]], bytes]
) -> TextView | None:
    text = view.text
    found = [(match.start(), match.end(), read(match)) for match in look.finditer(text)]
    if not found:
        return None

    def parts() -> Iterator[tuple[int, int, bytes]]:
        at = 0
        for start, end, shown in found:
            if at < start:
                yield at, start, text[at:start]
            yield start, end, shown
            at = end
        if at < len(text):
            yield at, len(text), text[at:]

    return make_view_of_parts(view, parts())


def _unescape_sequence(found: re.Match[bytes]) -> bytes:
    escape = found[0]
    kind = escape[1:2]
    if escape[:1] == b"%":
        return bytes.fromhex(escape[1:].decode())
    if escape[:1] == b"&":
        return html.unescape(escape.decode()).encode(errors="surrogatepass")
    if len(escape) == 2:  # noqa: PLR2004  # a backslash and what it protects
        return _BYTE_BY_ESCAPE_LETTER.get(kind, kind)
    if kind == b"x":
        return bytes.fromhex(escape[2:].decode())
    if escape.count(b"u") > 1:
        return bytes.fromhex((escape[2:6] + escape[8:]).decode()).decode("utf-16-be").encode()
    number = int(escape[2:].strip(b"{}"), 16)
    return chr(number).encode(errors="surrogatepass") if number <= 0x10FFFF else escape  # noqa: PLR2004  # the last


_TEXT_PIECE_KEYS = (b"text", b"delta", b"thinking", b"partial_json", b"content")
_TEXT_PIECE_PATTERN_BY_KEY = {key: re.compile(rb'"' + key + rb'":\s?"((?:[^"\\]|\\.)*)"') for key in _TEXT_PIECE_KEYS}
_MIN_PIECES_TO_JOIN = 2
_JSON_STRING_PATTERN = re.compile(rb'"((?:[^"\\\r\n]|\\.)*)"(\s?:)?')
_LINE_PATTERN = re.compile(rb"[^\r\n]+")
_MIN_REPEATED_TEXT_BYTES = 4
"""A text of fewer bytes is too short to give away a part of a secret."""


def join_text_pieces(view: TextView, *, whole: bool = False) -> Iterator[TextView]:
    """Yield for each key of pieces what they say together, as it is escaped.

    Args:
        view: the lines of a dialect.
        whole: whether a text that the next one continues is left out where most do so: these are not pieces, and
        joining a text with its own beginning gives words that were never said.
    """
    data = view.text
    for key, look in _TEXT_PIECE_PATTERN_BY_KEY.items():
        if data.count(b'"' + key + b'"') >= _MIN_PIECES_TO_JOIN:
            found = [(*match.span(1), match[1]) for match in look.finditer(data)]
            grows = [later[2].startswith(match[2]) for match, later in pairwise(found)]
            if whole and 2 * sum(grows) > len(grows):
                found = [match for match, is_continued in zip(found, [*grows, False], strict=True) if not is_continued]
            yield make_view_of_parts(view, found)


def find_continued_texts(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield texts that another text continues: where both begin, and the size of the shorter one.

    A continued text comes after all that continue it. Texts are strings of the same key, and lines.
    """
    texts: dict[bytes, list[tuple[bytes, int]]] = {
        b"": [(match[0], match.start()) for match in _LINE_PATTERN.finditer(data)]
    }
    key = b'"'
    for match in _JSON_STRING_PATTERN.finditer(data):
        if match[2]:
            key = match[0]
        elif len(match[1]) >= _MIN_REPEATED_TEXT_BYTES:
            texts.setdefault(key, []).append((match[1], match.start(1)))
    for same_key in texts.values():
        same_key.sort(reverse=True)
        longer: list[tuple[bytes, int]] = []
        for text, start in same_key:
            while longer and longer[-1][0].startswith(text):
                yield longer.pop()[1], start, len(text)
            longer.append((text, start))
