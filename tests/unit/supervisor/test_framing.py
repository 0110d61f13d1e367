"""Bytes to lines: one line is one line, however the pipe cut it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_agentproc.supervisor import LineSplitter

BOM = b"\xef\xbb\xbf"
TEXT = st.lists(st.sampled_from([b"a", b"{}", b"\r", b"\n", b"\r\n", b" ", "ü".encode(), BOM, b"\0", b"\xff"])).map(
    b"".join
)
CUTS = st.lists(st.integers(min_value=0, max_value=40))
LINES = st.lists(st.binary(max_size=8).filter(lambda line: not set(line) & set(b"\r\n") and line[:3] != BOM))


def split_lines(*chunks: bytes) -> list[bytes]:
    """Frame a whole stream."""
    framing = LineSplitter()
    return [*(line for chunk in chunks for line in framing.feed(chunk)), *framing.flush()]


def cut_at(data: bytes, cuts: list[int]) -> list[bytes]:
    """Cut data at some places; cutting twice at one place gives an empty chunk."""
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    return [data[begin:end] for begin, end in pairwise(places)]


@pytest.mark.slow
@settings(deadline=None)  # the machine may be busy
@given(TEXT, CUTS)
@example(BOM + b"a\r\nb", [1, 2, 4, 5, 6])
def test_any_chunking_gives_the_same_lines(data: bytes, cuts: list[int]) -> None:
    """A pipe cuts where it likes: in a character, in a line's end, in the byte order mark."""
    assert split_lines(*cut_at(data, cuts)) == split_lines(data)


@settings(deadline=None)  # the machine may be busy
@given(TEXT)
def test_a_byte_at_a_time_gives_the_same_lines(data: bytes) -> None:
    """The worst chunking of all is no other stream."""
    assert split_lines(*(data[at : at + 1] for at in range(len(data)))) == split_lines(data)


@pytest.mark.slow
@settings(deadline=None)  # the machine may be busy
@given(LINES, st.sampled_from([b"\n", b"\r\n"]), st.booleans())
def test_lines_come_out_as_they_went_in(written: list[bytes], end: bytes, marked: bool) -> None:
    """Neither kind of line end, nor a byte order mark, is part of a line."""
    data = (BOM if marked and written else b"") + b"".join(line + end for line in written)
    assert split_lines(data) == written


@pytest.mark.slow
@settings(deadline=None)  # the machine may be busy
@given(LINES, st.binary(min_size=1, max_size=8).filter(lambda line: b"\n" not in line and b"\r" not in line))
def test_a_last_line_without_its_end_is_a_line(written: list[bytes], last: bytes) -> None:
    """An agent that dies in the middle of a line has still said it."""
    data = b"".join(line + b"\n" for line in written) + last
    assert split_lines(data) == [*written, last if written else last.removeprefix(BOM)]


def test_a_line_is_given_as_soon_as_it_ends() -> None:
    """The watcher of a stream must not be a line behind."""
    framing = LineSplitter()
    assert framing.feed(b"one") == []
    assert framing.feed(b"\ntw") == [b"one"]
    assert framing.feed(b"o\n\nthree") == [b"two", b""]
    assert framing.flush() == [b"three"]
    assert framing.flush() == []


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"\n", [b""]),
        (b"a\r\n\r\nb\r\n", [b"a", b"", b"b"]),
        (b"a\rb\n", [b"a\rb"]),
        (b"a\r\r\n", [b"a\r"]),
        (b"a\n" + BOM + b"b\n", [b"a", BOM + b"b"]),
        (BOM + BOM + b"a\n", [BOM + b"a"]),
    ],
)
def test_only_line_ends_and_the_first_mark_are_taken_off(data: bytes, expected: list[bytes]) -> None:
    """A lone carriage return is a progress bar's, and a mark in the middle is the agent's own text."""
    assert split_lines(data) == expected


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("size", [1, 4, 99])
def test_an_end_is_no_part_of_the_longest_line(end: bytes, size: int) -> None:
    """Whichever it is, and wherever the pipe cuts it."""

    def framed(data: bytes) -> tuple[list[bytes], bool]:
        framing = LineSplitter()
        framing.limit = 3
        lines = [line for part in range(0, len(data), size) for line in framing.feed(data[part : part + size])]
        return [*lines, *framing.flush()], framing.is_overlong

    assert framed(b"abc" + end + b"abc" + end) == ([b"abc", b"abc"], False)
    assert framed(b"ab" + end + b"abcd" + end + b"a") == ([b"ab"], True)
    assert framed(b"a" + end + b"abc\rd" + end) == ([b"a"], True)
