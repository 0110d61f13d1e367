"""JSON objects on a line: one, several, or none read; one written. Pure; knows no dialect's objects."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from json.scanner import make_scanner
from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor.dialects._base import Noise

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects._base import Meaning

__all__ = ["ObjectDecoder", "objects", "to_line"]

_scan = make_scanner(json.JSONDecoder())  # type: ignore[arg-type]  # what it takes is typed as what it makes
"""What `raw_decode` calls: several thousand lines a second are worth a frame each."""


class ObjectDecoder(ABC):
    """Read a dialect that prints an object a line."""

    def decode(self, line: bytes) -> list[Meaning]:
        """Say what a line means."""
        found = objects(line)
        if found is None:
            return [Noise(line)]
        if len(found) == 1:
            return self._meanings(found[0], line)
        return [meaning for event in found for meaning in self._meanings(event, line)]

    @abstractmethod
    def _meanings(self, event: dict[str, Any], line: bytes) -> list[Meaning]: ...


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
            value, at = _scan(text, at)
        except (ValueError, StopIteration, RecursionError):
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
