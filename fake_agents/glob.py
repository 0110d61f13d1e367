"""Glob patterns over lines of bytes and over arguments. Owns `*` and `?` (`fnmatch` would load `re`)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_STAR_BYTE, _QUESTION_MARK_BYTE = b"*?"


def matches_glob(pattern: str | bytes, line: bytes) -> bool:
    """Say whether the whole line fits the pattern, in which `*` is any run of bytes and `?` any single one."""
    pattern = pattern.encode() if isinstance(pattern, str) else pattern
    if b"?" in pattern:
        return _matches_glob_bytewise(pattern, line)
    first, *rest = pattern.split(b"*")
    if not rest:
        return line == first
    if not line.startswith(first):
        return False
    at = len(first)
    for part in rest[:-1]:
        found = line.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return at + len(rest[-1]) <= len(line) and line.endswith(rest[-1])


def _matches_glob_bytewise(pattern: bytes, line: bytes) -> bool:
    """Say so of a pattern with single bytes that are any, byte by byte."""
    at = mark = start = 0
    star = -1
    while at < len(line):
        if mark < len(pattern) and pattern[mark] == _STAR_BYTE:
            star, start = mark, at
            mark += 1
        elif mark < len(pattern) and pattern[mark] in (_QUESTION_MARK_BYTE, line[at]):
            mark += 1
            at += 1
        elif star >= 0:
            start += 1
            at, mark = start, star + 1
        else:
            return False
    return all(byte == _STAR_BYTE for byte in pattern[mark:])


def has_matching_words_in_order(patterns: Sequence[str], words: Sequence[str]) -> bool:
    """Say whether words that fit these patterns stand in a command line, one after the other.

    `--name=value` is the same as `--name value`.
    """
    given: list[bytes] = []
    for word in words:
        parts = word.split("=", 1) if word[:2] == "--" else [word]
        given += [part.encode("utf-8", "surrogateescape") for part in parts]
    places = range(len(given) - len(patterns) + 1)
    return any(all(map(matches_glob, patterns, given[place:])) for place in places)
