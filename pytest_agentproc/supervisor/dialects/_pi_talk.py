"""The conversation of `pi --mode rpc`. Knows no other dialect and no fake's code.

The answer to `get_state` is the handshake. The answer to a prompt comes before its run's events, and none of them names
the prompt; agent_end is the completion. An abort is answered after the agent_end that it brings about.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor.dialects._base import Other, ToolEnded, ToolStarted
from pytest_agentproc.supervisor.dialects._json import to_line
from pytest_agentproc.supervisor.dialects._pi import BAD, COMPACTIONS, asked, text_of
from pytest_agentproc.supervisor.dialects._talk import (
    Begun,
    Declined,
    Ended,
    JsonTalk,
    Refusal,
    Reply,
    Said,
    Settled,
    Welcome,
)

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects._talk import Question, Setting, Spoken


_NUMBER = re.compile("[1-9][0-9]{0,17}")
_WAITS = frozenset({"select", "confirm", "input", "editor"})
"""The requests of an extension that wait for an answer."""


class PiTalk(JsonTalk):
    """Talk to `pi --mode rpc`."""

    is_marked = True
    begins_at_once = False
    answers_cancel = True

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._stop: str | None = None
        self._error = ""
        self.readers = {
            "response": self._answered,
            "agent_start": self._started,
            "agent_end": self._finished,
            "message_update": lambda event: [Said("delta", _delta(event))],
            "message_end": self._ended,
            "extension_ui_request": self._asked,
            "tool_execution_update": lambda event: [_tool(event)],
            "tool_execution_start": lambda event: [_tool(event), ToolStarted(_id(event), str(event.get("toolName")))],
            "tool_execution_end": lambda event: [_tool(event), ToolEnded(_id(event))],
            **{kind: lambda event: [Said("tool", "compaction"), COMPACTIONS[event["type"]]] for kind in COMPACTIONS},
        }

    def greet(self) -> bytes:
        """Ask for the state: the answer shows that it reads and lives."""
        return to_line({"id": "greet-0", "type": "get_state"})

    def prompt(self, number: int, text: str) -> bytes:
        """Give the prompt of a turn."""
        return to_line({"id": f"prompt-{number}", "type": "prompt", "message": text})

    def cancel(self, number: int) -> bytes:
        """Abort whatever runs."""
        return to_line({"id": f"abort-{number}", "type": "abort"})

    def answer(self, question: Question, *, allowed: bool | None) -> bytes:
        """Answer nothing: pi asks no permission."""
        return b""

    def _started(self, event: dict[str, Any]) -> list[Spoken]:
        self._stop, self._error = None, ""
        return [Begun()]

    def _finished(self, event: dict[str, Any]) -> list[Spoken]:
        return [Ended(self._stop not in BAD, stop_reason=self._stop, error=self._error)]

    def _asked(self, event: dict[str, Any]) -> list[Spoken]:
        method = event.get("method")
        if not isinstance(method, str) or method not in _WAITS:
            return [Other("extension_ui_request")]
        return [Reply(to_line({"type": "extension_ui_response", "id": event.get("id"), "cancelled": True}))]

    def _answered(self, event: dict[str, Any]) -> list[Spoken]:
        command, _, number = str(event.get("id", "")).partition("-")
        if command == "greet" and event.get("success") is False:
            return [Refusal(str(event.get("error") or "get_state failed"))]
        if command == "greet":
            data = event.get("data")
            name = data.get("sessionId") if isinstance(data, dict) else None
            return [Welcome(name if isinstance(name, str) else None)]
        if command == "abort" and _NUMBER.fullmatch(number):
            return [Settled(int(number))]
        if command == "prompt" and _NUMBER.fullmatch(number):
            if event.get("success") is True:
                return [Begun((int(number),))]
            return [Declined(int(number), str(event.get("error") or "the prompt was refused"))]
        return [Other("response")]

    def _ended(self, event: dict[str, Any]) -> list[Spoken]:
        message = event.get("message")
        if not isinstance(message, dict) or message.get("role") != "assistant":
            return [Other("message_end")]
        stop, usage, model = message.get("stopReason"), message.get("usage"), message.get("model")
        self._stop = stop if isinstance(stop, str) else None
        self._error = str(message.get("errorMessage") or stop) if self._stop in BAD else ""
        told = Said(
            "message",
            text_of(message.get("content")),
            stop_reason=self._stop,
            model=model if isinstance(model, str) else None,
            usage=usage if isinstance(usage, dict) else None,
        )
        return [told] if self._stop in BAD else [told, *asked(message)]


def _tool(event: dict[str, Any]) -> Said:
    return Said("tool", str(event.get("toolName", "")))


def _id(event: dict[str, Any]) -> str:
    return str(event.get("toolCallId"))


def _delta(event: dict[str, Any]) -> str:
    part = event.get("assistantMessageEvent")
    return str(part.get("delta", "")) if isinstance(part, dict) and part.get("type") == "text_delta" else ""
