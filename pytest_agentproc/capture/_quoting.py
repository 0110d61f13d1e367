"""Owns how a draft's words, values and times are written, so that the loader reads what was meant. Knows no step."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

__all__ = ["comment", "flow", "is_faithful", "rounded", "seconds", "text"]

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*")
_RESERVED = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n", "none", "for ever"})
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
_LONGEST_QUOTE = 200
_DIGITS = 18
_UNITS = (("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000), ("ns", 1))


def text(value: str) -> str:
    """Write a text: as it stands where it is plain words, else in double quotes."""
    return _unquoted(value, _PLAIN)


def flow(value: Any) -> str:
    """Write a value in one line, as JSON has it; a word needs no quotes."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_unquoted(key, _KEY)}: {flow(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(one) for one in value) + "]"
    if isinstance(value, str):
        return _unquoted(value, _WORD)
    return format(Decimal(repr(value)), "f") if isinstance(value, float) else json.dumps(value)


def is_faithful(value: Any) -> bool:
    """Say whether a value can be written: a number of more digits than the language reads cannot."""
    if isinstance(value, dict):
        return all(is_faithful(one) for one in value.values())
    if isinstance(value, list):
        return all(is_faithful(one) for one in value)
    if isinstance(value, float):
        whole, _, part = format(Decimal(repr(value)), "f").lstrip("-").partition(".")
        return whole.isdigit() and len(whole) <= _DIGITS and len(part) <= _DIGITS
    return not isinstance(value, int) or abs(value) < 10**_DIGITS


def comment(value: str) -> str:
    """Write a foreign line so that it stays in its comment, and short."""
    shown = "".join(char if char.isprintable() else " " for char in value.replace("\t", " "))
    return shown if len(shown) <= _LONGEST_QUOTE else f"{shown[: _LONGEST_QUOTE - 3]}..."


def rounded(nanoseconds: int) -> int:
    """Round a time to two digits that count."""
    digits = len(str(nanoseconds)) - 2
    return round(nanoseconds, -digits) if digits > 0 else nanoseconds


def seconds(nanoseconds: int) -> str:
    """Write a time with two digits that count, in the unit that reads best."""
    shown = rounded(nanoseconds)
    unit, size = next((one for one in _UNITS if shown >= one[1]), _UNITS[-1])
    return f"{(Decimal(shown) / size).normalize():f}{unit}"


def _unquoted(value: str, plain: re.Pattern[str]) -> str:
    return value if plain.fullmatch(value) and value.lower() not in _RESERVED else _quoted(value)


def _quoted(value: str) -> str:
    return _UNPRINTABLE.sub(_escape, json.dumps(value, ensure_ascii=False))


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    return "\ufffd" if 0xD800 <= number <= 0xDFFF else f"\\u{number:04x}"  # noqa: PLR2004 -- half a character is none
