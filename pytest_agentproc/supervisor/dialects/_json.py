"""JSON objects on a line: one, several, or none read; one written. Pure; knows no dialect."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["objects", "to_line"]

_decoder = json.JSONDecoder()


def objects(line: bytes) -> list[dict[str, Any]] | None:
    """Give the JSON objects of a line, in order; None if it holds anything else (F1, F2)."""
    try:
        text = line.decode().strip()
    except UnicodeDecodeError:
        return None
    found: list[dict[str, Any]] = []
    at, end = 0, len(text)
    while at < end:
        try:
            value, at = _decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, dict):
            return None
        found.append(value)
        while at < end and text[at].isspace():
            at += 1
    return found


def to_line(value: dict[str, Any]) -> bytes:
    """Write an object as one line, in ASCII, which no reader splits."""
    return json.dumps(value).encode() + b"\n"
