"""The events of pi, which are the same in `pi --mode json` and `pi --mode rpc`, and the conversation of the second.

Knows no other dialect, and shares no code with the fake that writes them. A `message_end` of the assistant with stop,
length, error or aborted completes, until a later turn_start, message_start or auto_retry_start takes it back; toolUse
does not (C2). agent_end is final, but if it says `willRetry`, it takes the completion back. A session waits for the
final one. An API failure is stop reason `error`; the exit code is 0.

In a session the answer to `get_state` is the handshake. The answer to a prompt comes before its run's events, and none
of them names the prompt. An abort is answered after the agent_end that it brings about.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor.dialects._json import ObjectDecoder, as_dict, as_text, encode_line
from pytest_agentproc.supervisor.dialects._meanings import (
    Asked,
    CancelAnswered,
    Compaction,
    Finished,
    HandshakeDone,
    HandshakeRefused,
    ImmediateReply,
    Message,
    Other,
    Piece,
    PromptDeclined,
    Resumed,
    ToolEnded,
    ToolProgress,
    ToolStarted,
    TurnBegun,
)
from pytest_agentproc.supervisor.dialects._session_protocol import SessionDefaults

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects._meanings import Meaning, Question


_GOOD_STOP_REASONS = frozenset({"stop", "length"})
_BAD_STOP_REASONS = frozenset({"error", "aborted"})
"""The stop reasons of a message that failed."""

_TOOL_MEANING_BY_EVENT_TYPE = {
    "tool_execution_start": ToolStarted,
    "tool_execution_update": ToolProgress,
    "tool_execution_end": ToolEnded,
}
_IS_COMPACTION_OVER_BY_EVENT_TYPE = {
    f"{auto}compaction_{word}": word == "end" for auto in ("", "auto_") for word in ("start", "end")
}
"""The events of a compaction; older versions wrote `auto_` before them."""

_EVENTS_THAT_UNDO_COMPLETION = frozenset({"turn_start", "message_start", "auto_retry_start"})
_TURN_NUMBER_PATTERN = re.compile("[1-9][0-9]{0,17}")
_UI_REQUESTS_THAT_NEED_ANSWER = frozenset({"select", "confirm", "input", "editor"})
"""The requests of an extension that wait for an answer."""


class PiDecoder(ObjectDecoder):
    """Read the JSON events of pi."""

    has_completion = True
    limit: int | None = None

    def __init__(self) -> None:
        self._stop: str | None = None
        self._error = ""

    def _read_event(self, kind: str, event: dict[str, Any]) -> list[Meaning]:
        if kind == "message_update":
            return [Piece(_find_text_delta(event))]
        if kind == "message_end":
            message = event.get("message")
            if isinstance(message, dict) and message.get("role") == "assistant":
                return self._read_message_end(message)
        if kind in _EVENTS_THAT_UNDO_COMPLETION or (kind == "agent_end" and event.get("willRetry") is True):
            self._stop, self._error = None, ""
            return [Resumed()]
        if kind == "agent_end":
            return [self._make_end()]
        if kind in _IS_COMPACTION_OVER_BY_EVENT_TYPE:
            return [Compaction(_IS_COMPACTION_OVER_BY_EVENT_TYPE[kind])]
        tool = _TOOL_MEANING_BY_EVENT_TYPE.get(kind)
        return [Other(kind) if tool is None else tool(str(event.get("toolCallId")), str(event.get("toolName", "")))]

    def _read_message_end(self, message: dict[str, Any]) -> list[Meaning]:
        usage = message.get("usage")
        self._stop = as_text(message.get("stopReason"))
        is_bad = self._stop in _BAD_STOP_REASONS
        self._error = str(message.get("errorMessage") or self._stop) if is_bad else ""
        meanings: list[Meaning] = [
            Message(
                _join_text(message.get("content")),
                self._stop,
                as_text(message.get("model")),
                usage if isinstance(usage, dict) else None,
                ends_message=self._stop == "stop",
            )
        ]
        calls = _list_content_blocks(message.get("content"), "toolCall")
        if calls and not is_bad:
            meanings.append(Asked(tuple(str(block.get("name")) for block in calls)))
        is_end = is_bad or self._stop in _GOOD_STOP_REASONS
        return [*meanings, Finished(not is_bad, final=False, error=self._error)] if is_end else meanings

    def _make_end(self) -> Finished:
        return Finished(None)


class PiSessionProtocol(SessionDefaults, PiDecoder):
    """Talk to `pi --mode rpc`."""

    is_marked = True
    begins_at_once = False
    answers_cancel = True

    def encode_greeting(self) -> bytes:
        """Ask for the state: the answer shows that it reads and lives."""
        return encode_line({"id": "greet-0", "type": "get_state"})

    def encode_prompt(self, number: int, text: str) -> bytes:
        """Give the prompt of a turn."""
        return encode_line({"id": f"prompt-{number}", "type": "prompt", "message": text})

    def encode_cancel(self, number: int) -> bytes:
        """Abort whatever runs."""
        return encode_line({"id": f"abort-{number}", "type": "abort"})

    def encode_answer(self, question: Question, *, allowed: bool | None) -> bytes:
        """Answer nothing: pi asks no permission."""
        return b""

    def _make_end(self) -> Finished:
        """Say all: a session keeps nothing of an end that may be taken back."""
        return Finished(self._stop not in _BAD_STOP_REASONS, error=self._error, stop_reason=self._stop)

    def _read_event(self, kind: str, event: dict[str, Any]) -> list[Meaning]:
        if kind == "response":
            return [_read_response(event)]
        if kind == "agent_start":
            self._stop, self._error = None, ""
            return [TurnBegun()]
        if kind == "extension_ui_request" and str(event.get("method")) in _UI_REQUESTS_THAT_NEED_ANSWER:
            answer = {"type": "extension_ui_response", "id": event.get("id"), "cancelled": True}
            return [ImmediateReply(encode_line(answer))]
        return super()._read_event(kind, event)


def _read_response(event: dict[str, Any]) -> Meaning:
    command, _, number = str(event.get("id", "")).partition("-")
    if command == "greet" and event.get("success") is False:
        return HandshakeRefused(str(event.get("error") or "get_state failed"))
    if command == "greet":
        return HandshakeDone(as_text(as_dict(event.get("data")).get("sessionId")))
    if command == "abort" and _TURN_NUMBER_PATTERN.fullmatch(number):
        return CancelAnswered(int(number))
    if command == "prompt" and _TURN_NUMBER_PATTERN.fullmatch(number):
        if event.get("success") is True:
            return TurnBegun((int(number),))
        return PromptDeclined(int(number), str(event.get("error") or "the prompt was refused"))
    return Other("response")


def _find_text_delta(event: dict[str, Any]) -> str:
    part = as_dict(event.get("assistantMessageEvent"))
    return str(part.get("delta", "")) if part.get("type") == "text_delta" else ""


def _join_text(content: object) -> str:
    """Give the text of a message's content."""
    if isinstance(content, str):
        return content
    return "".join(str(block.get("text", "")) for block in _list_content_blocks(content, "text"))


def _list_content_blocks(content: object, kind: str) -> list[dict[str, Any]]:
    if not isinstance(content, list):
        return []
    return [block for block in content if isinstance(block, dict) and block.get("type") == kind]
