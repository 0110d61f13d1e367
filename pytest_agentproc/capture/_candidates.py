"""Guesses which steps may have printed some lines. Owns the guesses alone: whether one is right is tried out elsewhere.

What the lines mean comes from the supervisor's decoders; what these do not tell, such as a tool's input, is looked up
by the names that the dialects give it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_agentproc.capture._quoting import flow, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Candidate", "candidates"]

_AHEAD = 40
"""So many lines one step prints at most, as far as is looked for its text."""


class Candidate(NamedTuple):
    """A step that may be right.

    Args:
        written: the step as the file has it.
        op: the encoder's method, or the kind of event.
        value: what it gets.
    """

    written: str
    op: str
    value: Any


def candidates(lines: Sequence[bytes], meanings: Sequence[Sequence[Any]], told: str) -> Iterator[Candidate]:
    """Give the steps that may have printed the beginning of these lines.

    Args:
        lines: what was printed, from here on.
        meanings: what the decoder says of each.
        told: the pieces of the text in hand that were told already.
    """
    ahead = [meaning for some in meanings[:_AHEAD] for meaning in some]
    said = _unique(getattr(meaning, "text", None) for meaning in ahead)[:4]
    stops = _unique(getattr(meaning, "stop_reason", None) for meaning in ahead)[:2]
    errors = _unique(getattr(meaning, "error", None) for meaning in ahead)[:2]
    for one in _unique([*said, *(one.removeprefix(told) for one in said if told)]):
        yield Candidate(f"answer: {text(one)}", "answer", one)
        yield _result({"text": one})
        for stop in stops:
            yield Candidate(f"say: {{text: {flow(one)}, stop: {flow(stop)}}}", "say", (one, stop))
        yield Candidate(f"say: {text(one)}", "say", (one, None))
    for error in errors:
        yield _result({"text": error, "is_error": True})
    yield _result({})
    values = [_parsed(line) for line in lines[:6]]
    for value in values:
        yield from _parts(value)
    yield Candidate("begin: turn", "begin", "turn")


def _unique(found: Any) -> list[str]:
    return list(dict.fromkeys(one for one in found if isinstance(one, str) and one))


def _result(fields: dict[str, Any]) -> Candidate:
    given = {"text": None, "is_error": False, "usage": None, **fields}
    shown = flow(fields) if len(fields) != 1 else f"{{text: {flow(fields['text'])}}}"
    return Candidate(f"result: {shown}", "result", given)


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _parts(value: Any) -> Iterator[Candidate]:
    """Find pieces of texts, thoughts and tools anywhere in a line."""
    for one in _mappings(value):
        kind = one.get("type") or one.get("sessionUpdate")
        for key in ("text", "delta", "thinking", "content"):
            piece = one.get(key)
            if isinstance(piece, str) and piece and kind not in ("toolResult", "tool_result"):
                yield Candidate(f"delta: {text(piece)}", "delta", piece)
                yield Candidate(f"think: {text(piece)}", "think", piece)
        if kind == "error" and isinstance(one.get("message"), str):
            yield Candidate(f"notice: {text(one['message'])}", "notice", one["message"])
        yield from _tools(one)


def _tools(one: dict[str, Any]) -> Iterator[Candidate]:
    number = _first(one, ("toolCallId", "tool_id", "tool_use_id", "id"), str) or ""
    if not number:
        return
    name = _first(one, ("name", "toolName", "tool_name", "tool", "title"), str) or ""
    given = _first(one, ("input", "args", "parameters", "arguments", "rawInput"), dict) or {}
    if one.get("type") == "command_execution":
        name, given = "command_execution", {"command": one.get("command", "")}
    if name:
        fields = {"id": number, "name": name, "input": given}
        yield Candidate(f"tool: {flow(fields)}", "tool", fields)
        if "role" in one or "partial_json" in str(one.get("delta", "")):
            return
        yield Candidate(f"tool: {flow({**fields, 'more': True})}", "tool", {**fields, "more": True})
    for output in _unique([*_outputs(one)]) or [""]:
        for key in ("output", "error"):
            done = {"id": number, key: output}
            yield Candidate(f"tool_done: {flow(done)}", "tool_done", {"output": "", "error": None, **done})


def _first(one: dict[str, Any], keys: Sequence[str], kind: type) -> Any:
    """Give the first of these fields that is of a kind; None: none is."""
    return next((one[key] for key in keys if isinstance(one.get(key), kind)), None)


def _outputs(one: dict[str, Any]) -> Iterator[Any]:
    for key in ("content", "output", "aggregated_output", "result", "error"):
        value = one.get(key)
        yield value
        for inner in _mappings(value):
            yield inner.get("text")
            yield inner.get("message")


def _mappings(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from _mappings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _mappings(inner)
