"""The events of `pi --mode json`. Knows no other dialect, and shares no code with the fake that writes them.

A `message_end` of the assistant with stop, length, error or aborted completes, until a later turn_start, message_start
or auto_retry_start takes it back; toolUse does not (C2). agent_end is final, but if it says `willRetry`, it takes the
completion back. An API failure is stop reason `error` with exit code 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor.dialects._base import (
    Asked,
    Compaction,
    Finished,
    Message,
    Other,
    Resumed,
    ToolEnded,
    ToolStarted,
)
from pytest_agentproc.supervisor.dialects._json import ObjectDecoder

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects._base import Meaning


_GOOD_STOP_REASONS = frozenset({"stop", "length"})
BAD_STOP_REASONS = frozenset({"error", "aborted"})
"""The stop reasons of a message that failed."""

COMPACTION_BY_EVENT_TYPE = {
    "compaction_start": Compaction(),
    "auto_compaction_start": Compaction(),
    "compaction_end": Compaction(is_over=True),
    "auto_compaction_end": Compaction(is_over=True),
}
"""The events of a compaction; older versions wrote `auto_` before them."""

_EVENTS_THAT_UNDO_COMPLETION = frozenset({"turn_start", "message_start", "auto_retry_start"})


class PiDecoder(ObjectDecoder):
    """Read the JSON events of pi."""

    has_completion = True
    limit: int | None = None

    def _read_event(self, kind: str, event: dict[str, Any]) -> list[Meaning]:
        message = event.get("message")
        if kind == "message_end" and isinstance(message, dict) and message.get("role") == "assistant":
            return self._read_message_end(message)
        return [_read_plain_event(kind, event)]

    def _read_message_end(self, message: dict[str, Any]) -> list[Meaning]:
        stop = message.get("stopReason")
        usage = message.get("usage")
        model = message.get("model")
        meaning = Message(
            join_text(message.get("content")),
            stop if isinstance(stop, str) else None,
            model if isinstance(model, str) else None,
            usage if isinstance(usage, dict) else None,
        )
        if stop in _GOOD_STOP_REASONS:
            return [meaning, Finished(True, final=False)]
        if stop in BAD_STOP_REASONS:
            return [meaning, Finished(False, final=False, error=str(message.get("errorMessage") or stop))]
        return [meaning, *find_asked_tools(message)]


def _read_plain_event(kind: str, event: dict[str, Any]) -> Meaning:
    if kind == "agent_end":
        return Resumed() if event.get("willRetry") is True else Finished(None, final=True)
    if kind in _EVENTS_THAT_UNDO_COMPLETION:
        return Resumed()
    if kind == "tool_execution_start":
        return ToolStarted(str(event.get("toolCallId")), str(event.get("toolName")))
    if kind == "tool_execution_end":
        return ToolEnded(str(event.get("toolCallId")))
    return COMPACTION_BY_EVENT_TYPE.get(kind) or Other(kind)


def find_asked_tools(message: dict[str, Any]) -> list[Asked]:
    """Give the tools that a message asks for."""
    calls = _list_content_blocks(message.get("content"), "toolCall")
    return [Asked(tuple(str(block.get("name")) for block in calls))] if calls else []


def join_text(content: object) -> str:
    """Give the text of a message's content."""
    if isinstance(content, str):
        return content
    return "".join(str(block.get("text", "")) for block in _list_content_blocks(content, "text"))


def _list_content_blocks(content: object, kind: str) -> list[dict[str, Any]]:
    if not isinstance(content, list):
        return []
    return [block for block in content if isinstance(block, dict) and block.get("type") == kind]
