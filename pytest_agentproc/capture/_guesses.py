"""Guesses which step printed some lines, and tries each guess on the fake's own encoder.

The supervisor's decoders say what the lines mean. Other facts, such as a tool's input, are looked up by the names that
the dialects give them. A step is right if the encoder, as it stands after all steps before, prints these very lines.
Ids, times, durations, costs and folders may differ, but must be there, in the same place.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_agentproc.capture._replay import copy_encoder
from pytest_agentproc.capture._wording import format_inline_yaml, format_yaml_text
from pytest_agentproc.fake_agents.dialects import make_encoder
from pytest_agentproc.supervisor import LineSplitter
from pytest_agentproc.supervisor.dialects import Piece, Setting, make_decoder, make_session_protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


_VARYING_KEY_PATTERN = re.compile(
    r"(?i)(?:.*_ms|.*_at|.*duration|.*latency.*|timestamp|.*time|.*cost.*|uuid|.*session_?id|thread_id|cwd|.*latencyMs)"
)
_ID_OR_TIMESTAMP_PATTERN = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.]*(?:Z|[+-]\d\d:?\d\d)"
)
_REDACTION_PLACEHOLDER_PATTERN = re.compile(r"redacted\d+x*")


def normalize_output_line(line: bytes) -> Any:
    """Give what counts of a line: of JSON its keys in their order and what does not vary; of other text all of it."""
    value = _parse_json_object(line)
    return line if value is None else _normalize_value("", value)


def are_lines_equivalent(line: bytes, other: bytes) -> bool:
    """Say whether two lines are the same but for what varies."""
    return line == other or normalize_output_line(line) == normalize_output_line(other)


def _normalize_value(key: str, value: Any) -> Any:
    if isinstance(value, dict):
        return [(name, _normalize_value(name, inner)) for name, inner in value.items()]
    if isinstance(value, list):
        return [_normalize_value(key, inner) for inner in value]
    if (
        isinstance(value, str | int | float)
        and not isinstance(value, bool)
        and _VARYING_KEY_PATTERN.fullmatch(key)
        and value != ""
    ):
        return "<varies>"
    return (
        _REDACTION_PLACEHOLDER_PATTERN.sub("<redacted>", _ID_OR_TIMESTAMP_PATTERN.sub("<varies>", value))
        if isinstance(value, str)
        else value
    )


_MAX_LINES_TO_LOOK_AHEAD = 40
"""So many lines one step prints at most, as far as is looked for its text."""


class StepCandidate(NamedTuple):
    """A step that may be right.

    Args:
        written: the step as the file has it.
        op: the encoder's method, or the kind of event.
        value: what it gets.
    """

    written: str
    op: str
    value: Any


def generate_step_candidates(
    lines: Sequence[bytes], meanings: Sequence[Sequence[Any]], printed_text: str
) -> Iterator[StepCandidate]:
    """Give the steps that may have printed the beginning of these lines.

    Args:
        lines: what was printed, from here on.
        meanings: what the decoder says of each.
        printed_text: the pieces of the current text that were printed already.
    """
    found = [meaning for some in meanings[:_MAX_LINES_TO_LOOK_AHEAD] for meaning in some]
    ahead = sorted(found, key=lambda meaning: isinstance(meaning, Piece))  # what is whole prints the most lines
    texts = _list_unique_texts(getattr(meaning, "text", None) for meaning in ahead)[:4]
    stops = _list_unique_texts(getattr(meaning, "stop_reason", None) for meaning in ahead)[:2]
    errors = _list_unique_texts(getattr(meaning, "error", None) for meaning in ahead)[:2]
    for words in _list_unique_texts([*texts, *(words.removeprefix(printed_text) for words in texts if printed_text)]):
        yield StepCandidate(f"answer: {format_yaml_text(words)}", "answer", words)
        yield _make_result_candidate({"text": words})
        for stop in stops:
            yield StepCandidate(
                f"say: {{text: {format_inline_yaml(words)}, stop: {format_inline_yaml(stop)}}}", "say", (words, stop)
            )
        yield StepCandidate(f"say: {format_yaml_text(words)}", "say", (words, None))
    for error in errors:
        yield _make_result_candidate({"text": error, "is_error": True})
    yield _make_result_candidate({})
    values = [_parse_json_or_none(line) for line in lines[:6]]
    for value in values:
        yield from _find_step_candidates_in_value(value)
    yield StepCandidate("begin: turn", "begin", "turn")


def _list_unique_texts(found: Any) -> list[str]:
    return list(dict.fromkeys(words for words in found if isinstance(words, str) and words))


def _make_result_candidate(fields: dict[str, Any]) -> StepCandidate:
    given = {"text": None, "is_error": False, "usage": None, **fields}
    shown = format_inline_yaml(fields) if len(fields) != 1 else f"{{text: {format_inline_yaml(fields['text'])}}}"
    return StepCandidate(f"result: {shown}", "result", given)


def _parse_json_or_none(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _find_step_candidates_in_value(value: Any) -> Iterator[StepCandidate]:
    """Find pieces of texts, thoughts and tools anywhere in a line."""
    for mapping in _walk_nested_mappings(value):
        kind = mapping.get("type") or mapping.get("sessionUpdate")
        for key in ("text", "delta", "thinking", "content"):
            piece = mapping.get(key)
            if isinstance(piece, str) and piece and kind not in ("toolResult", "tool_result"):
                yield StepCandidate(f"delta: {format_yaml_text(piece)}", "delta", piece)
                yield StepCandidate(f"think: {format_yaml_text(piece)}", "think", piece)
        if kind == "error" and isinstance(mapping.get("message"), str):
            yield StepCandidate(f"notice: {format_yaml_text(mapping['message'])}", "notice", mapping["message"])
        yield from _find_tool_step_candidates(mapping)


def _find_tool_step_candidates(mapping: dict[str, Any]) -> Iterator[StepCandidate]:
    number = _get_first_field_of_type(mapping, ("toolCallId", "tool_id", "tool_use_id", "id"), str) or ""
    if not number:
        return
    name = _get_first_field_of_type(mapping, ("name", "toolName", "tool_name", "tool", "title"), str) or ""
    given = _get_first_field_of_type(mapping, ("input", "args", "parameters", "arguments", "rawInput"), dict) or {}
    if mapping.get("type") == "command_execution":
        name, given = "command_execution", {"command": mapping.get("command", "")}
    if name:
        fields = {"id": number, "name": name, "input": given}
        yield StepCandidate(f"tool: {format_inline_yaml(fields)}", "tool", fields)
        if "role" in mapping or "partial_json" in str(mapping.get("delta", "")):
            return
        yield StepCandidate(f"tool: {format_inline_yaml({**fields, 'more': True})}", "tool", {**fields, "more": True})
    for output in _list_unique_texts([*_find_tool_outputs(mapping)]) or [""]:
        for key in ("output", "error"):
            done = {"id": number, key: output}
            yield StepCandidate(
                f"tool_done: {format_inline_yaml(done)}", "tool_done", {"output": "", "error": None, **done}
            )


def _get_first_field_of_type(mapping: dict[str, Any], keys: Sequence[str], kind: type) -> Any:
    """Give the first of these fields that is of a kind; None: none is."""
    return next((mapping[key] for key in keys if isinstance(mapping.get(key), kind)), None)


def _find_tool_outputs(mapping: dict[str, Any]) -> Iterator[Any]:
    for key in ("content", "output", "aggregated_output", "result", "error"):
        value = mapping.get(key)
        yield value
        for inner in _walk_nested_mappings(value):
            yield inner.get("text")
            yield inner.get("message")


def _walk_nested_mappings(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from _walk_nested_mappings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _walk_nested_mappings(inner)


_MAX_LINES_WITH_GUESSED_STEPS = 3000
"""Of longer recordings each line is an event of its own: the encoder's state grows with what it said."""


class GuessedStep(NamedTuple):
    """A step, how many lines it prints, and whether a turn ends with it."""

    written: str
    lines: int
    ends_turn: bool = False


class StepGuesser:
    """Know what the fake would print.

    Args:
        program: a program of the dialect; its steps do not matter.
        lines: all lines that the agent printed, so that their meanings are known.
    """

    def __init__(self, program: dict[str, Any], lines: Sequence[bytes]) -> None:
        self._encoder: Any = make_encoder(program)
        self._meanings = _decode_meanings_by_line(program, lines)
        self._lines = lines
        self._told = ""
        self._tools: set[str] = set()
        self.serves = bool(program["serves"])
        self.at = 0
        """How many of the lines have their steps."""

    def guess_next_step(self, most: int) -> GuessedStep | None:
        """Give the step that prints the most of the next lines, and move past them; None: no step prints them.

        Args:
            most: how many lines one step may print.
        """
        lines = self._lines[self.at : self.at + most]
        best: tuple[int, StepCandidate, Any] | None = None
        if len(self._lines) <= _MAX_LINES_WITH_GUESSED_STEPS:
            for candidate in generate_step_candidates(lines, self._meanings[self.at : self.at + most], self._told):
                if candidate.op == "tool_done" and candidate.value["id"] not in self._tools:
                    continue  # it began as an event that no step tells
                trial = copy_encoder(self._encoder)
                count = _count_matching_lines(_encode_candidate(trial, candidate), lines)
                if count > (best[0] if best else 0):
                    best = count, candidate, trial
        if best is None:
            return self._guess_verbatim_event_step(lines[0])
        count, candidate, self._encoder = best
        self.at += count
        if candidate.op == "tool":
            self._tools.add(candidate.value["id"])
        if candidate.op in ("delta", "say", "answer", "result"):
            self._told = self._told + candidate.value if candidate.op == "delta" else ""
        return GuessedStep(candidate.written, count, candidate.op in ("answer", "result"))

    def _guess_verbatim_event_step(self, line: bytes) -> GuessedStep | None:
        """Give the event as it stands, if it is printed so to the byte."""
        value = _parse_json_object(line)
        if value is None or "event" not in self._encoder.events:
            return None
        try:
            if self._encoder.events["event"](value, 0) != line:
                return None
        except (KeyError, TypeError, ValueError, AttributeError):
            return None
        self.at += 1
        return GuessedStep(f"event: {format_inline_yaml(value)}", 1, value.get("type") in ("result", "agent_end"))

    def skip_line(self) -> None:
        """Skip a line that no step prints."""
        self.at += 1

    def match_fake_output(self, data: bytes) -> bool:
        """Take what the fake prints by itself now; say whether that is what was printed."""
        count = _count_matching_lines(data, self._lines[self.at :]) if data else 0
        self.at += count
        return count > 0 or not data

    def receive_stdin_line(self, line: bytes) -> tuple[bytes, str]:
        """Take a line of stdin; give the immediate answer, and the kind of line."""
        reply, event = self._encoder.handle_request(line, 0)
        return reply + self._encoder.take_late_answers(), event

    def begin_prompt(self, number: int) -> bytes | None:
        """Take a prompt in hand, if it is there; give what begins its turn."""
        return self._encoder.begin_prompt_turn(number, 0) if self._encoder.has_received_prompt(number) else None

    def acknowledge_cancel(self) -> bytes:
        """End the turn that was cancelled; give what says so."""
        encoded: bytes = self._encoder.end_cancelled_turn(0)
        return encoded


def _encode_candidate(trial: Any, candidate: StepCandidate) -> bytes:
    try:
        if candidate.op == "say":
            return bytes(trial.encode_text(*candidate.value, 0))
        if candidate.op == "answer":
            return bytes(trial.encode_answer(candidate.value, 0))
        if candidate.op == "result":
            return bytes(trial.encode_result(candidate.value, 0))
        return bytes(trial.events[candidate.op](candidate.value, 0)) if candidate.op in trial.events else b""
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        return b""


def _count_matching_lines(data: bytes, lines: Sequence[bytes]) -> int:
    """Say how many of the lines these bytes are; 0 if they are others."""
    encoded_lines = data.splitlines(keepends=True) if b"\r" not in data else data.split(b"\n")
    if not encoded_lines or len(encoded_lines) > len(lines):
        return 0
    return (
        len(encoded_lines)
        if all(are_lines_equivalent(*pair) for pair in zip(encoded_lines, lines, strict=False))
        else 0
    )


def _parse_json_object(line: bytes) -> dict[str, Any] | None:
    value = _parse_json_or_none(line)
    return value if isinstance(value, dict) else None


def _decode_meanings_by_line(program: dict[str, Any], lines: Sequence[bytes]) -> list[list[Any]]:
    dialect, mode = program["dialect"], program["mode"]
    is_session = bool(program["serves"])
    decode: Callable[[bytes], Sequence[Any]]
    decode = (
        make_session_protocol(dialect, mode, Setting()).decode if is_session else make_decoder(dialect, mode).decode
    )
    found = []
    for line in lines:
        framed = [*LineSplitter().feed(line)] if line.endswith(b"\n") else []
        found.append([meaning for frame in framed for meaning in decode(frame)])
    return found
