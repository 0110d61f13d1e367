"""Cuts long texts of a recording. Owns what is cut: texts inside of JSON lines, and long lines of words."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fake_agents.objects import line as json_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_agentproc.record import Event

__all__ = ["shortened"]


def shortened(events: Sequence[Event], most: int) -> tuple[list[Event], int]:
    """Give the events with each long text on stdout and stderr cut, and how many were.

    A line that came in several chunks is cut where it ends.

    Args:
        events: those of a record.
        most: so many characters of a text are kept.
    """
    count = 0
    rests: dict[str, bytes] = {"o": b"", "e": b""}
    result = []
    for event in events:
        if event.code not in rests or "bytes" not in event.data:
            result.append(event)
            continue
        *lines, rests[event.code] = (rests[event.code] + event.data["bytes"]).split(b"\n")
        if not lines:
            continue
        cut = [_line(one, most) for one in lines]
        count += sum(number for _, number in cut)
        data = b"".join(one + b"\n" for one, _ in cut)
        result.append(event._replace(data={**event.data, "bytes": data}))
    for code, rest in rests.items():
        if rest:
            last = max(index for index, event in enumerate(events) if event.code == code and "bytes" in event.data)
            place = next(i for i, event in enumerate(result) if event.at >= events[last].at and event.code != "i")
            made, number = _line(rest, most)
            count += number
            result.insert(place, events[last]._replace(data={**events[last].data, "bytes": made}))
    return result, count


def _line(line: bytes, most: int) -> tuple[bytes, int]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        counts = [0]
        made = _value(value, most, counts)
        return (json_line(made), counts[0]) if counts[0] else (line, 0)
    try:
        words = line.decode()
    except UnicodeDecodeError:
        return line, 0
    return (_text(words, most).encode(), 1) if len(words) > most else (line, 0)


def _value(value: Any, most: int, counts: list[int]) -> Any:
    if isinstance(value, dict):
        return {key: _value(inner, most, counts) for key, inner in value.items()}
    if isinstance(value, list):
        return [_value(inner, most, counts) for inner in value]
    if isinstance(value, str) and len(value) > most:
        counts[0] += 1
        return _text(value, most)
    return value


def _text(text: str, most: int) -> str:
    return f"{text[:most]}...[+{len(text) - most}]"
