"""The output of `gemini -o json` and `-o stream-json`. Knows no other dialect, and shares no code with the fake's side.

The stream completes by its `result`; assistant messages come in deltas, which a tool, the result or the exit ends. Json
is one object over many lines, the real CLI's error object comes on stderr, and the exit alone completes. `-o text` is
plain lines, as raw.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor._streams import OutputTail
from pytest_agentproc.supervisor.dialects._json import ObjectDecoder, as_text, parse_objects, strip_escapes
from pytest_agentproc.supervisor.dialects._meanings import (
    Asked,
    Failure,
    Finished,
    Message,
    Noise,
    Other,
    Piece,
    ToolEnded,
    ToolStarted,
)

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects._meanings import Meaning


_MAX_ANSWER_BYTES = 64 * 1024**2
"""An object that grows beyond this is none: memory is bounded whatever the agent prints."""

_NONBLANK_LINE_PATTERN = re.compile(rb"\S[^\n]*")
_JSON_STRING_PATTERN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?')
"""Possessive quantifiers: the others remember every place to try again, a hundred bytes for each."""


class GeminiStreamDecoder(ObjectDecoder):
    """Read the JSON events of `-o stream-json`."""

    has_completion = True
    limit: int | None = None

    def __init__(self) -> None:
        self._model: str | None = None
        self._deltas: OutputTail | None = None

    def end(self, stderr: bytes) -> list[Meaning]:
        """Give the message that was begun, if its end never came."""
        return self._end_message()

    def _read_event(self, kind: str, event: dict[str, Any]) -> list[Meaning]:
        if kind == "result":
            return [*self._end_message(), self._read_result(event)]
        if kind == "message" and event.get("role") == "assistant":
            return self._read_message(event)
        if kind == "init":
            self._model = as_text(event.get("model"))
        if kind == "tool_use":
            name = str(event.get("tool_name"))
            return [*self._end_message(), ToolStarted(str(event.get("tool_id")), name), Asked((name,))]
        if kind == "tool_result":
            return [ToolEnded(str(event.get("tool_id")))]
        ended = self._end_message() if kind == "message" else []
        return [*ended, Other(kind)]

    def _read_message(self, event: dict[str, Any]) -> list[Meaning]:
        text = as_text(event.get("content")) or ""
        if event.get("delta") is not True:
            return [*self._end_message(), Message(text, model=self._model)]
        self._deltas = self._deltas or OutputTail(self.limit)
        self._deltas.add(text.encode(errors="surrogatepass"))
        return [Piece(text)]

    def _end_message(self) -> list[Meaning]:
        deltas, self._deltas = self._deltas, None
        return [] if deltas is None else [Message(str(deltas), model=self._model, is_torn=deltas.is_cut)]

    def _read_result(self, event: dict[str, Any]) -> Finished:
        stats = event.get("stats")
        stats = stats if isinstance(stats, dict) else None
        model = _find_model(stats, lambda used: used.get("total_tokens")) or self._model
        if event.get("status") == "success":
            return Finished(True, final=True, model=model, usage=stats)
        message = _read_error_message(event.get("error")) or str(event.get("status") or "error")
        return Finished(False, final=True, error=message, model=model, usage=stats)


class GeminiJsonDecoder:
    """Read the one object of `-o json`, from its first brace to the brace that closes it.

    A brace at the very start of a line begins an object: inside of one the real CLI indents.
    """

    has_completion = False
    limit: int | None = None

    def __init__(self) -> None:
        self._text = bytearray()
        self._depth = 0

    def decode(self, line: bytes) -> list[Meaning]:
        """Say what a line means; an object means something at its last line."""
        bare = strip_escapes(line)
        begins = bare.startswith(b"{")
        given_up: list[Meaning] = self._give_up_object() if begins else []
        if not begins and not self._text:
            return [Noise(line)] if line.strip() else []
        self._text += bare + b"\n"
        if len(self._text) > _MAX_ANSWER_BYTES:
            return [*given_up, *self._give_up_object()]
        braces = _JSON_STRING_PATTERN.sub(b"", bare)
        self._depth += braces.count(b"{") - braces.count(b"}")
        return given_up if self._depth > 0 else [*given_up, *self._read_closed_object()]

    def end(self, stderr: bytes) -> list[Meaning]:
        """Give up what was begun and never closed, and look for the error that the real CLI tells on stderr."""
        given_up = self._give_up_object()
        meanings = [meaning for line in stderr.splitlines() for meaning in self.decode(line)]
        self._give_up_object()
        return [*given_up, *(meaning for meaning in meanings if isinstance(meaning, Failure))]

    def _give_up_object(self) -> list[Meaning]:
        text, self._text, self._depth = self._text, bytearray(), 0
        lines = sum(1 for _ in _NONBLANK_LINE_PATTERN.finditer(text))
        return [Noise(bytes(text), lines)] if lines else []

    def _read_closed_object(self) -> list[Meaning]:
        found = parse_objects(bytes(self._text))
        if found is None or not all("response" in call or "error" in call for call in found):
            return self._give_up_object()
        self._give_up_object()
        return [meaning for call in found for meaning in _read_answer(call)]


def _read_answer(found: dict[str, Any]) -> list[Meaning]:
    meanings: list[Meaning] = []
    response, stats = found.get("response"), found.get("stats")
    if isinstance(response, str):
        stats = stats if isinstance(stats, dict) else None
        meanings.append(Message(response, model=_find_model(stats, _was_used_as_main_model), usage=stats))
    error = _read_error_message(found.get("error"))
    return [*meanings, Failure(error)] if error else meanings


def _was_used_as_main_model(used: dict[str, Any]) -> object:
    roles = used.get("roles")
    return isinstance(roles, dict) and "main" in roles


def _find_model(stats: dict[str, Any] | None, answered: Any) -> str | None:
    """Name the model that answered, if exactly one did: routers and helpers are in the stats too."""
    models = (stats or {}).get("models")
    if not isinstance(models, dict):
        return None
    names = [str(name) for name, used in models.items() if isinstance(used, dict) and answered(used)]
    return names[0] if len(names) == 1 else None


def _read_error_message(error: object) -> str:
    if isinstance(error, dict):
        return str(error.get("message") or error.get("type") or "error")
    return str(error) if error else ""
