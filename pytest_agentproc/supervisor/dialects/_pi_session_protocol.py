"""The conversation of `pi --mode rpc`. Knows no other dialect and no fake's code.

The answer to `get_state` is the handshake. The answer to a prompt comes before its run's events, and none of them names
the prompt; agent_end is the completion. An abort is answered after the agent_end that it brings about.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor.dialects._base import Other, ToolEnded, ToolStarted
from pytest_agentproc.supervisor.dialects._json import encode_line
from pytest_agentproc.supervisor.dialects._pi import (
    BAD_STOP_REASONS,
    COMPACTION_BY_EVENT_TYPE,
    find_asked_tools,
    join_text,
)
from pytest_agentproc.supervisor.dialects._session_protocol import (
    CancelAnswered,
    HandshakeDone,
    HandshakeRefused,
    ImmediateReply,
    JsonSessionProtocol,
    PromptDeclined,
    TurnBegun,
    TurnEnded,
    TurnProgress,
)

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects._session_protocol import Question, SessionMeaning, Setting


_TURN_NUMBER_PATTERN = re.compile("[1-9][0-9]{0,17}")
_UI_REQUESTS_THAT_NEED_ANSWER = frozenset({"select", "confirm", "input", "editor"})
"""The requests of an extension that wait for an answer."""


class PiSessionProtocol(JsonSessionProtocol):
    """Talk to `pi --mode rpc`."""

    is_marked = True
    begins_at_once = False
    answers_cancel = True

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._stop: str | None = None
        self._error = ""
        self.readers = {
            "response": self._read_response,
            "agent_start": self._read_agent_start,
            "agent_end": self._read_agent_end,
            "message_update": lambda event: [TurnProgress("delta", _find_text_delta(event))],
            "message_end": self._read_message_end,
            "extension_ui_request": self._read_ui_request,
            "tool_execution_update": lambda event: [_read_tool(event)],
            "tool_execution_start": lambda event: [
                _read_tool(event),
                ToolStarted(_find_tool_call_id(event), str(event.get("toolName"))),
            ],
            "tool_execution_end": lambda event: [_read_tool(event), ToolEnded(_find_tool_call_id(event))],
            **{
                kind: lambda event: [TurnProgress("tool", "compaction"), COMPACTION_BY_EVENT_TYPE[event["type"]]]
                for kind in COMPACTION_BY_EVENT_TYPE
            },
        }

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

    def _read_agent_start(self, event: dict[str, Any]) -> list[SessionMeaning]:
        self._stop, self._error = None, ""
        return [TurnBegun()]

    def _read_agent_end(self, event: dict[str, Any]) -> list[SessionMeaning]:
        if event.get("willRetry") is True:
            return [Other("agent_end")]
        return [TurnEnded(self._stop not in BAD_STOP_REASONS, stop_reason=self._stop, error=self._error)]

    def _read_ui_request(self, event: dict[str, Any]) -> list[SessionMeaning]:
        method = event.get("method")
        if not isinstance(method, str) or method not in _UI_REQUESTS_THAT_NEED_ANSWER:
            return [Other("extension_ui_request")]
        return [
            ImmediateReply(encode_line({"type": "extension_ui_response", "id": event.get("id"), "cancelled": True}))
        ]

    def _read_response(self, event: dict[str, Any]) -> list[SessionMeaning]:
        command, _, number = str(event.get("id", "")).partition("-")
        if command == "greet" and event.get("success") is False:
            return [HandshakeRefused(str(event.get("error") or "get_state failed"))]
        if command == "greet":
            data = event.get("data")
            name = data.get("sessionId") if isinstance(data, dict) else None
            return [HandshakeDone(name if isinstance(name, str) else None)]
        if command == "abort" and _TURN_NUMBER_PATTERN.fullmatch(number):
            return [CancelAnswered(int(number))]
        if command == "prompt" and _TURN_NUMBER_PATTERN.fullmatch(number):
            if event.get("success") is True:
                return [TurnBegun((int(number),))]
            return [PromptDeclined(int(number), str(event.get("error") or "the prompt was refused"))]
        return [Other("response")]

    def _read_message_end(self, event: dict[str, Any]) -> list[SessionMeaning]:
        message = event.get("message")
        if not isinstance(message, dict) or message.get("role") != "assistant":
            return [Other("message_end")]
        stop, usage, model = message.get("stopReason"), message.get("usage"), message.get("model")
        self._stop = stop if isinstance(stop, str) else None
        self._error = str(message.get("errorMessage") or stop) if self._stop in BAD_STOP_REASONS else ""
        progress = TurnProgress(
            "message",
            join_text(message.get("content")),
            stop_reason=self._stop,
            model=model if isinstance(model, str) else None,
            usage=usage if isinstance(usage, dict) else None,
        )
        return [progress] if self._stop in BAD_STOP_REASONS else [progress, *find_asked_tools(message)]


def _read_tool(event: dict[str, Any]) -> TurnProgress:
    return TurnProgress("tool", str(event.get("toolName", "")))


def _find_tool_call_id(event: dict[str, Any]) -> str:
    return str(event.get("toolCallId"))


def _find_text_delta(event: dict[str, Any]) -> str:
    part = event.get("assistantMessageEvent")
    return str(part.get("delta", "")) if isinstance(part, dict) and part.get("type") == "text_delta" else ""
