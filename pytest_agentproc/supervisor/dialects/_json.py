"""JSON objects on a line: one, several, or none read; one written. Pure; knows no dialect's objects.

Escape sequences for a terminal, such as the title of its window, are no part of a frame: programs print them to the
same stdout, and seldom end them with a line break. They are passed over before, between and after the objects of a
line, and make no noise. A line that holds nothing else is noise.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from json.scanner import make_scanner
from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor.dialects._meanings import Noise

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects._meanings import Meaning


_scan_json_value = make_scanner(json.JSONDecoder())  # type: ignore[arg-type]  # what it takes is typed as what it makes
"""The function that `raw_decode` calls: it saves a frame for each of several thousand lines a second."""

_ESCAPE_BYTE = b"\x1b"
_ESCAPE_SEQUENCE_PATTERN = (
    r"\x1b(?:"
    r"\[[0-?]*[ -/]*[@-~]"  # CSI: colours, the cursor
    r"|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC, DCS, SOS, PM, APC: a title, a notification
    r"|[ -/]+[0-~]"  # a character set
    r"|[0-OQ-WYZ\\`-~]"  # what is one character long
    r")"
)
"""One escape sequence of ECMA-48, with the BEL that terminals take for the end of an OSC."""

_LEADING_ESCAPES_PATTERN = re.compile(rf"\s*(?:{_ESCAPE_SEQUENCE_PATTERN}\s*)+".encode())
_SPACE_AND_ESCAPES_PATTERN = re.compile(rf"\s*(?:{_ESCAPE_SEQUENCE_PATTERN}\s*)*")


class ObjectDecoder(ABC):
    """Read a dialect that prints an object a line."""

    def decode(self, line: bytes) -> list[Meaning]:
        """Say what a line means."""
        found = parse_objects(line)
        if found is None:
            return [Noise(line)]
        try:
            if len(found) == 1:
                return self._read_object(found[0], line)
            return [meaning for event in found for meaning in self._read_object(event, line)]
        except RecursionError:  # nested so deeply that it can be read, but not be written
            return [Noise(line)]

    def end(self, stderr: bytes) -> list[Meaning]:
        """Say nothing: every line is complete in itself."""
        return []

    def _read_object(self, event: dict[str, Any], line: bytes) -> list[Meaning]:
        kind = event.get("type")
        return self._read_event(kind, event) if isinstance(kind, str) else [Noise(line)]

    @abstractmethod
    def _read_event(self, kind: str, event: dict[str, Any]) -> list[Meaning]: ...


def strip_escapes(line: bytes) -> bytes:
    """Give a line without the escape sequences that it begins with; their own text may be in any encoding."""
    found = _LEADING_ESCAPES_PATTERN.match(line) if _ESCAPE_BYTE in line else None
    return line if found is None else line[found.end() :]


def parse_objects(line: bytes) -> list[dict[str, Any]] | None:
    """Give the JSON objects of a line, in order; None if it holds anything else but escape sequences (F1, F2)."""
    try:
        text = strip_escapes(line).decode().strip()
    except UnicodeDecodeError:
        return None
    found: list[dict[str, Any]] = []
    at, end = 0, len(text)
    while at < end:
        try:
            value, at = _scan_json_value(text, at)
        except (ValueError, StopIteration, RecursionError):
            return None
        if not isinstance(value, dict):
            return None
        found.append(value)
        if at < end:
            passed = _SPACE_AND_ESCAPES_PATTERN.match(text, at)
            assert passed is not None  # it matches nothing, too
            at = passed.end()
    return found if found or _ESCAPE_BYTE not in line else None


def as_dict(value: object) -> dict[str, Any]:
    """Give a mapping, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def as_text(value: object) -> str | None:
    """Give a text, or None for anything else."""
    return value if isinstance(value, str) else None


def encode_line(value: dict[str, Any]) -> bytes:
    """Write an object as one line, in ASCII, which no reader splits."""
    return json.dumps(value).encode() + b"\n"
