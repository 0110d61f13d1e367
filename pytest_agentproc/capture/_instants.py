"""Owns the instants that stand before a line of a log, in the shapes that programs print. Knows no line's meaning.

An instant counts from an unknown beginning: only differences between instants of one log mean something. Absolute and
relative ones are told apart by `base`, since no difference between them does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

__all__ = ["LONGEST", "Instant", "instant_in", "since"]

_SECOND = 1_000_000_000
LONGEST = 3_000_000_000 * _SECOND
"""A longer time is none that a log is about; the language reads times up to a century."""
_DAY = 24 * 3600 * _SECOND
_LONGEST_HEAD = 200
"""An instant stands in so many characters, and a number has no more digits."""

_UNITS = {"ms": 1_000_000, "s": _SECOND, "m": 60 * _SECOND, "min": 60 * _SECOND, "": _SECOND}

_DATED = re.compile(
    r"(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?\s*(Z|[+-]\d\d:?\d\d)?", re.ASCII
)
_CLOCK = re.compile(r"(?<![\d:.+])(\d\d?):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(?![\d:])", re.ASCII)
_ELAPSED = re.compile(r"\+(?:(\d{1,9}):)?(\d{1,9}):(\d\d)(?:\.(\d{1,9}))?(?![\d:])", re.ASCII)
_EPOCH = re.compile(r"(?<![\d.])(1\d{9})(?:\.(\d{1,9})|(\d{3}))?(?![\d.])", re.ASCII)
_RELATIVE = re.compile(
    r"(?:(?<=^)|(?<=[\[(\s]))(?:[Tt]?\+)?(\d{1,15}(?:\.\d{1,30})?)\s*(ms|s|min|m)(?=[\])\s:|]|$)"
    r"|(?:(?<=^)|(?<=[\[(\s]))[Tt]?\+(\d{1,15}(?:\.\d{1,30})?)(?=[\])\s:|]|$)"
    r"|\[\s*(\d{1,15}\.\d{1,30})\]",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Instant:
    """When something was printed: nanoseconds from the beginning that `base` names (date, clock or start)."""

    base: str
    ns: int


def instant_in(head: str) -> Instant | None:
    """Find the instant in what stands before a line; None without one."""
    head = head[:_LONGEST_HEAD]
    if found := _DATED.search(head):
        return _dated(found)
    if found := _ELAPSED.search(head):
        hours, minutes, whole = (int(part or 0) for part in found.groups()[:3])
        return Instant("start", _added(hours, minutes, whole, found[4]))
    if found := _CLOCK.search(head):
        hours, minutes, whole = (int(part) for part in found.groups()[:3])
        return Instant("clock", _added(hours, minutes, whole, found[4]))
    if found := _EPOCH.search(head):
        return Instant("date", int(found[1]) * _SECOND + _part(found[2] or found[3]))
    if found := _RELATIVE.search(head):
        number, unit = found[1] or found[3] or found[4], found[2] or ""
        return Instant("start", round(float(number) * _UNITS[unit]))
    return None


def since(earlier: Instant, later: Instant) -> int | None:
    """Give the time between two instants in nanoseconds.

    Returns:
        None where they do not count from the same beginning, the log goes backwards, or nobody waits that long; a clock
        passes midnight.
    """
    if earlier.base != later.base:
        return None
    passed = later.ns - earlier.ns
    if passed < -_DAY // 2 and later.base == "clock":
        passed += _DAY
    return passed if 0 <= passed <= LONGEST else None


def _dated(found: re.Match[str]) -> Instant | None:
    year, month, day, hours, minutes, whole = (int(part) for part in found.groups()[:6])
    try:
        moment = datetime(year, month, day, hours, minutes, whole, tzinfo=UTC)
    except ValueError:
        return None
    zone = found[8] or "Z"
    shift = 0 if zone == "Z" else int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
    passed = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
    passed += shift if zone[0] == "-" else -shift
    return Instant("date", passed * _SECOND + _part(found[7]))


def _added(hours: int, minutes: int, whole: int, part: str | None) -> int:
    return (hours * 3600 + minutes * 60 + whole) * _SECOND + _part(part)


def _part(digits: str | None) -> int:
    return int((digits or "0").ljust(9, "0"))
