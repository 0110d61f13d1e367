"""pi: the events of `--mode json`, and the conversation of `--mode rpc`. Knows no other dialect and no fake's code.

json: a `message_end` of the assistant with stop, length, error or aborted completes, until a later turn_start,
message_start or auto_retry_start takes it back; toolUse does not (C2); agent_end is final. An API failure is stop
reason `error` with exit code 0.

rpc: the answer to `get_state` is the handshake. The answer to a prompt comes before its run's events, and none of them
names the prompt; agent_end is the completion. An abort is answered after the agent_end that it brings about.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor.dialects._base import Finished, Message, Noise, Other, Resumed
from pytest_agentproc.supervisor.dialects._json import objects, to_line
from pytest_agentproc.supervisor.dialects._talk import Begun, Declined, Ended, JsonTalk, Reply, Said, Settled, Welcome

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects._base import Meaning
    from pytest_agentproc.supervisor.dialects._talk import Question, Setting, Spoken

__all__ = ["PiDecoder", "PiTalk"]

_GOOD = frozenset({"stop", "length"})
_BAD = frozenset({"error", "aborted"})
_GOES_ON = frozenset({"turn_start", "message_start", "auto_retry_start"})
_TOOLS = frozenset({"tool_execution_start", "tool_execution_update", "tool_execution_end"})
_WAITS = frozenset({"select", "confirm", "input", "editor"})
"""What an extension asks and waits for an answer to."""


class PiDecoder:
    """Read the JSON events of pi."""

    has_completion = True

    def decode(self, line: bytes) -> list[Meaning]:
        """Say what a line means."""
        if not line.strip():
            return []
        found = objects(line)
        if found is None:
            return [Noise(line)]
        return [meaning for event in found for meaning in self._meanings(event, line)]

    def end(self, stderr: bytes) -> list[Meaning]:
        """Say nothing: every line is complete in itself."""
        return []

    def _meanings(self, event: dict[str, Any], line: bytes) -> list[Meaning]:
        kind = event.get("type")
        if not isinstance(kind, str):
            return [Noise(line)]
        if kind == "agent_end":
            return [Finished(None, final=True)]
        if kind in _GOES_ON:
            return [Resumed()]
        message = event.get("message")
        if kind == "message_end" and isinstance(message, dict) and message.get("role") == "assistant":
            return self._ended(message)
        return [Other(kind)]

    def _ended(self, message: dict[str, Any]) -> list[Meaning]:
        stop = message.get("stopReason")
        usage = message.get("usage")
        model = message.get("model")
        meaning = Message(
            _text(message.get("content")),
            stop if isinstance(stop, str) else None,
            model if isinstance(model, str) else None,
            usage if isinstance(usage, dict) else None,
        )
        if stop in _GOOD:
            return [meaning, Finished(True, final=False)]
        if stop in _BAD:
            return [meaning, Finished(False, final=False, error=str(message.get("errorMessage") or stop))]
        return [meaning]


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    blocks = [block for block in content if isinstance(block, dict) and block.get("type") == "text"]
    return "".join(str(block.get("text", "")) for block in blocks)


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
            **dict.fromkeys(_TOOLS, lambda event: [Said("tool", str(event.get("toolName", "")))]),
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
        return [Ended(self._stop not in _BAD, stop_reason=self._stop, error=self._error)]

    def _asked(self, event: dict[str, Any]) -> list[Spoken]:
        if event.get("method") not in _WAITS:
            return [Other("extension_ui_request")]
        return [Reply(to_line({"type": "extension_ui_response", "id": event.get("id"), "cancelled": True}))]

    def _answered(self, event: dict[str, Any]) -> list[Spoken]:
        command, _, number = str(event.get("id", "")).partition("-")
        if command == "greet":
            data = event.get("data")
            return [Welcome(data.get("sessionId") if isinstance(data, dict) else None)]
        if command == "abort" and number.isdigit():
            return [Settled(int(number))]
        if command == "prompt" and number.isdigit():
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
        self._error = str(message.get("errorMessage") or stop) if stop in _BAD else ""
        told = Said(
            "message",
            _text(message.get("content")),
            stop_reason=self._stop,
            model=model if isinstance(model, str) else None,
            usage=usage if isinstance(usage, dict) else None,
        )
        return [told]


def _delta(event: dict[str, Any]) -> str:
    part = event.get("assistantMessageEvent")
    return str(part.get("delta", "")) if isinstance(part, dict) and part.get("type") == "text_delta" else ""
