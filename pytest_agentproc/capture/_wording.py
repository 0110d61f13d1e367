"""How a draft's words, values and times are written, and long texts cut."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pytest_agentproc.errors import ScenarioError
from pytest_agentproc.events import OutputWritten, get_letter
from pytest_agentproc.fake_agents.objects import encode_json_line as json_line
from pytest_agentproc.scenario import loads, quote_yaml_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_agentproc.capture._meaning import DraftStep
    from pytest_agentproc.events import Event


_UNQUOTED_TEXT_PATTERN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*")
_YAML_RESERVED_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n", "none", "for ever"})
_UNQUOTED_KEY_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNQUOTED_WORD_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_MAX_COMMENT_CHARACTERS = 200
_MAX_NUMBER_DIGITS = 18
_TIME_UNITS_LARGEST_FIRST = (("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000), ("ns", 1))


def format_yaml_text(value: str) -> str:
    """Write a text: as it stands where it is plain words, else in double quotes."""
    return _quote_if_needed(value, _UNQUOTED_TEXT_PATTERN)


def format_inline_yaml(value: Any) -> str:
    """Write a value in one line, as JSON has it; a word needs no quotes."""
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(
                f"{_quote_if_needed(key, _UNQUOTED_KEY_PATTERN)}: {format_inline_yaml(item)}"
                for key, item in value.items()
            )
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(format_inline_yaml(item) for item in value) + "]"
    if isinstance(value, str):
        return _quote_if_needed(value, _UNQUOTED_WORD_PATTERN)
    return format(Decimal(repr(value)), "f") if isinstance(value, float) else json.dumps(value)


def is_writable_value(value: Any) -> bool:
    """Say whether a value can be written: a number of more digits than the language reads cannot."""
    if isinstance(value, dict):
        return all(is_writable_value(item) for item in value.values())
    if isinstance(value, list):
        return all(is_writable_value(item) for item in value)
    if isinstance(value, float):
        whole, _, part = format(Decimal(repr(value)), "f").lstrip("-").partition(".")
        return whole.isdigit() and len(whole) <= _MAX_NUMBER_DIGITS and len(part) <= _MAX_NUMBER_DIGITS
    return not isinstance(value, int) or abs(value) < 10**_MAX_NUMBER_DIGITS


def format_comment_text(value: str) -> str:
    """Write a foreign line so that it stays in its comment, and short."""
    shown = "".join(char if char.isprintable() else " " for char in value.replace("\t", " "))
    return shown if len(shown) <= _MAX_COMMENT_CHARACTERS else f"{shown[: _MAX_COMMENT_CHARACTERS - 3]}..."


def round_to_two_digits(nanoseconds: int) -> int:
    """Round a time to two digits that count."""
    digits = len(str(nanoseconds)) - 2
    return round(nanoseconds, -digits) if digits > 0 else nanoseconds


def format_time(nanoseconds: int) -> str:
    """Write a time with two digits that count, in the unit that reads best."""
    shown = round_to_two_digits(nanoseconds)
    unit, size = next((unit for unit in _TIME_UNITS_LARGEST_FIRST if shown >= unit[1]), _TIME_UNITS_LARGEST_FIRST[-1])
    return f"{(Decimal(shown) / size).normalize():f}{unit}"


def _quote_if_needed(value: str, plain: re.Pattern[str]) -> str:
    return value if plain.fullmatch(value) and value.lower() not in _YAML_RESERVED_WORDS else quote_yaml_text(value)


_YAML_STEP_BY_DRAFT_STEP = {"turn_said": "say", "nested": "say"}
"""Steps that a draft tells apart and the language does not."""


def format_step(step: DraftStep) -> str:
    """Write a step as it stands in a script."""
    name, value = _YAML_STEP_BY_DRAFT_STEP.get(step.name, step.name), step.value
    if name == "silence":
        return f"silence: {format_time(value)}"
    if name == "tool_done" and set(value) == {"id"}:
        return f"tool_done: {format_yaml_text(value['id'])}"
    return f"{name}: {format_yaml_text(value) if isinstance(value, str) else format_inline_yaml(value)}"


def are_steps_loadable(steps: Sequence[DraftStep], dialect: str, mode: str) -> bool:
    """Say whether the loader takes these steps; tools that they name began before."""
    if not all(is_writable_value(step.value) for step in steps):
        return False
    started_ids = {str(step.value["id"]) for step in steps if step.name == "tool"}
    named = {value for step in steps for value in _find_tool_ids(step.value) if value not in started_ids}
    lines = [f"tool: {{id: {format_inline_yaml(name)}, name: t}}" for name in sorted(named)]
    try:
        lines += [format_step(step) for step in steps]
        loads(
            f"scenario: a\nagent: {{dialect: {dialect}, mode: {mode}}}\nscript:\n"
            + "".join(f"  - {it}\n" for it in lines)
        )
    except (ScenarioError, TypeError):  # a value of another type than the step's
        return False
    return True


def _find_tool_ids(value: Any) -> list[str]:
    found = [value.get(key) for key in ("id", "parent")] if isinstance(value, dict) else []
    return [name for name in found if isinstance(name, str) and name]


def shorten_output(events: Sequence[Event], most: int) -> tuple[list[Event], int]:
    """Give the events with each long text on stdout and stderr cut, and how many were.

    A line that came in several chunks is cut where it ends.

    Args:
        events: those of a record.
        most: how many characters of a text are kept.
    """
    count = 0
    rests: dict[str, bytes] = {"stdout": b"", "stderr": b""}
    result: list[Event] = []
    for event in events:
        if not isinstance(event, OutputWritten) or not isinstance(event.bytes, bytes):
            result.append(event)
            continue
        *lines, rests[event.stream] = (rests[event.stream] + event.bytes).split(b"\n")
        if not lines:
            continue
        cut = [_shorten_line(line, most) for line in lines]
        count += sum(number for _, number in cut)
        result.append(replace(event, bytes=b"".join(line + b"\n" for line, _ in cut)))
    for stream, rest in rests.items():
        if rest:
            last = [event for event in events if isinstance(event, OutputWritten) and event.stream == stream][-1]
            place = next(i for i, event in enumerate(result) if event.at >= last.at and get_letter(event) != "i")
            shortened, number = _shorten_line(rest, most)
            count += number
            result.insert(place, replace(last, bytes=shortened))
    return result, count


def _shorten_line(line: bytes, most: int) -> tuple[bytes, int]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        counts = [0]
        shortened = _shorten_json_texts(value, most, counts)
        return (json_line(shortened), counts[0]) if counts[0] else (line, 0)
    try:
        words = line.decode()
    except UnicodeDecodeError:
        return line, 0
    return (_shorten_text(words, most).encode(), 1) if len(words) > most else (line, 0)


def _shorten_json_texts(value: Any, most: int, counts: list[int]) -> Any:
    if isinstance(value, dict):
        return {key: _shorten_json_texts(inner, most, counts) for key, inner in value.items()}
    if isinstance(value, list):
        return [_shorten_json_texts(inner, most, counts) for inner in value]
    if isinstance(value, str) and len(value) > most:
        counts[0] += 1
        return _shorten_text(value, most)
    return value


def _shorten_text(text: str, most: int) -> str:
    return f"{text[:most]}...[+{len(text) - most}]"
