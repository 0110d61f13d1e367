"""Owns reading a pasted log: which of its lines are events, when they came, and what could not be read.

It knows what people and programs put around a line (quotes, fences, numbers, times, arrows), and no dialect.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from pytest_agentproc.capture._instants import Instant, instant_in

__all__ = ["Pasted", "read_paste"]

_QUOTE = re.compile(r"^(?:\s{0,3}>\s?)+")
_FENCE = re.compile(r"^\s{0,3}(?:```|~~~)")
_CUT = re.compile(
    r"(?:…|\.\.\.|\[(?:truncated|\.\.\.|snip)|<truncated|\(truncated|chars? (?:more|omitted))", re.IGNORECASE
)
_BEGINNING = re.compile(r'\{\s*(?:"|\.\.\.|…|$)')
_LONGEST_HEAD = 120
_MOST_LINES = 400
"""Lines of one event that is printed over many."""
_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class Pasted:
    """One thing in a log.

    Args:
        line: the line of the log on which it begins, from 1.
        kind: `event`; `broken`, an event that cannot be read; `words`, everything else.
        text: the line without what the paste put around it.
        event: the event.
        at: when it was printed.
        is_fenced: whether it stands in a block of code.
        why: why it cannot be read.
    """

    line: int
    kind: str
    text: str
    event: Any = None
    at: Instant | None = None
    is_fenced: bool = False
    why: str = ""


def read_paste(log: str) -> list[Pasted]:
    """Read a log, line by line; blank lines, fences and quotation marks are left out."""
    lines = [_QUOTE.sub("", line.rstrip()) for line in log.replace("\r\n", "\n").split("\n")]
    found: list[Pasted] = []
    number, is_fenced = 0, False
    while number < len(lines):
        line = lines[number]
        if _FENCE.match(line):
            is_fenced = not is_fenced
            number += 1
            continue
        taken, things = _things(lines, number, is_fenced=is_fenced)
        found += things
        number += taken
    return found


def _things(lines: list[str], index: int, *, is_fenced: bool) -> tuple[int, list[Pasted]]:
    """Read what begins on a line; give how many lines it takes, too."""
    line = lines[index]
    start = line.find("{")
    if start < 0 or start > _LONGEST_HEAD or not _BEGINNING.match(line, start):
        words = line.strip()
        at = instant_in(words[:_LONGEST_HEAD])
        return 1, [Pasted(index + 1, "words", words, at=at, is_fenced=is_fenced)] if words else []
    head = line[:start]
    about: dict[str, Any] = {"at": instant_in(head), "is_fenced": is_fenced}
    events, rest = _events(line[start:])
    if events:
        things = [Pasted(index + 1, "event", line[start:], event, **about) for event in events]
        if _BEGINNING.match(rest):
            things.append(Pasted(index + 1, "broken", rest, why=_why(rest), **about))
        return 1, things
    taken, whole = _over_lines(lines, index, start)
    if whole is not None:
        return taken, [Pasted(index + 1, "event", json.dumps(whole, ensure_ascii=False), whole, **about)]
    return 1, [Pasted(index + 1, "broken", line[start:], why=_why(line[start:]), **about)]


def _events(text: str) -> tuple[list[Any], str]:
    """Read all objects that a line has, one behind the other; give the rest of it, too."""
    events: list[Any] = []
    rest = text
    while rest.startswith("{"):
        try:
            event, end = _DECODER.raw_decode(rest)
        except (ValueError, RecursionError):
            break
        events.append(event)
        rest = rest[end:].lstrip(" ,`")
    return events, rest


def _over_lines(lines: list[str], index: int, start: int) -> tuple[int, Any]:
    """Read an object that is printed over several lines."""
    text = lines[index][start:]
    if text.rstrip() != "{" and not text.rstrip().endswith((",", "{", "[")):
        return 1, None
    for taken, line in enumerate(lines[index + 1 : index + _MOST_LINES], 2):
        if _FENCE.match(line) or line.startswith("{"):
            return 1, None
        text += "\n" + line
        if line.strip().startswith("}"):
            events, rest = _events(text)
            if events and not rest.strip():
                return taken, events[0]
    return 1, None


def _why(text: str) -> str:
    try:
        _DECODER.raw_decode(text)
    except RecursionError:
        return "it is nested too deeply"
    except ValueError as error:
        if _CUT.search(text):
            return "it was shortened"
        position = getattr(error, "pos", 0)
        is_cut = position >= len(text.rstrip()) - 1 or str(error).startswith("Unterminated")
        return "it ends too early" if is_cut else f"no JSON from column {position + 1} on"
    return "it is no event"
