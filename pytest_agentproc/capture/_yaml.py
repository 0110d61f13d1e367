"""Writes values as YAML that the loader reads back as they were. Owns quoting; knows no step."""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["flow", "seconds", "text"]

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_ .,/-]*[A-Za-z0-9_.]|[A-Za-z]")
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n", "for ever", "none"})
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\U00010000-\U0010ffff]")


def text(value: str) -> str:
    """Give a text: plain where it is words, else in double quotes."""
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS and ", " not in value and "  " not in value:
        return value if "," not in value else _quoted(value)
    return _quoted(value)


def _quoted(value: str) -> str:
    return _UNPRINTABLE.sub(_escape, json.dumps(value, ensure_ascii=False))


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"  # noqa: PLR2004  # what four digits hold


def flow(value: Any) -> str:
    """Give a value on one line, as JSON has it; keys that are words need no quotes."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)}: {flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(inner) for inner in value) + "]"
    if isinstance(value, str):
        return value if _WORD.fullmatch(value) and value.lower() not in _WORDS else _quoted(value)
    return json.dumps(value)


def _key(key: str) -> str:
    return key if _KEY.fullmatch(key) and key.lower() not in _WORDS else _quoted(key)


def seconds(nanoseconds: int) -> str:
    """Give a time in the unit that reads best, with two digits that count."""
    digits = len(str(nanoseconds)) - 2
    rounded = round(nanoseconds, -digits) if digits > 0 else nanoseconds
    for unit, size in (("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000)):
        if rounded >= size:
            return f"{rounded / size:g}{unit}"
    return f"{rounded}ns"
