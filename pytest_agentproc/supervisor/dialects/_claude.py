"""The lines of claude's stream-json in a turn, and all of them in `claude -p --output-format stream-json`.

Knows no other dialect, and shares no code with the fake's side. A message ends at `message_stop`; without partial
messages nothing marks its end but a line with another message id, or the result. A tool is in flight from its block
until its result, a background agent (`local_agent`) from task_started to task_notification. A line with a
parent_tool_use_id is a sub-agent's and is given as `Nested`: it ends no message, no tool and no run of the agent's own
(A6, A7).

The result completes. One whose origin is a `task-notification` belongs to a background turn. In a run so does all that
comes after the prompt's own result: neither is ever the prompt's (B1). Nothing marks a background turn before its
result, so the messages of one that comes first, as after `--resume`, stand in the transcript; the text is the result's
own. After the result, background tasks count: how each of them ends, or that it never does (B2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor.dialects._claude_messages import MessageReaders
from pytest_agentproc.supervisor.dialects._claude_tasks import SystemLines
from pytest_agentproc.supervisor.dialects._json import ObjectDecoder, as_dict, as_text
from pytest_agentproc.supervisor.dialects._meanings import (
    BACKGROUND_TURN_MARK,
    Finished,
    Other,
    TaskBegun,
    TaskOver,
    ToolProgress,
)

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects._meanings import Meaning


_KINDS_OF_MESSAGE_LINES = ("stream_event", "assistant", "user")
_EVENTS_WITHOUT_PROGRESS = ("keep_alive", "rate_limit_event")
"""The lines that say that claude is there, and not that it has got any further."""


class ClaudeReader(ObjectDecoder):
    """Read what claude says in a turn, whoever began it.

    Args:
        by_block: whether each block of a message is given as soon as it comes; see `MessageReaders`.
    """

    def __init__(self, *, by_block: bool) -> None:
        self._messages = MessageReaders(by_block=by_block)
        self._system_lines = SystemLines()

    def _read_event(self, kind: str, event: dict[str, Any]) -> list[Meaning]:
        if kind in _KINDS_OF_MESSAGE_LINES:
            if kind == "assistant":
                self._system_lines.note_stop_requests(event)
            return self._messages.read_line(kind, event, self._find_turns(event))
        if kind == "result":
            return self._read_result(event)
        if kind == "system":
            return self._read_system(event)
        if kind == "tool_progress":
            return [Other(kind, is_progress=False) if event.get("heartbeat") else ToolProgress()]
        return [Other(kind, is_progress=kind not in _EVENTS_WITHOUT_PROGRESS)]

    def _find_turns(self, event: dict[str, Any]) -> tuple[int, ...]:
        """Say which turns a line names."""
        return ()

    def _read_system(self, event: dict[str, Any]) -> list[Meaning]:
        if event.get("subtype") == "init":
            self._messages.model = as_text(event.get("model"))
        return [*self._system_lines.read_line(event)]

    def _read_result(self, event: dict[str, Any]) -> list[Meaning]:
        self._system_lines.note_turn_end()
        meanings = self._messages.end_messages()
        usage, ok = event.get("usage"), event.get("subtype") == "success" and not event.get("is_error")
        finished = Finished(
            ok,
            error="" if ok else _read_error_message(event),
            model=self._messages.model,
            usage=usage if isinstance(usage, dict) else None,
            text=as_text(event.get("result")),
            stop_reason=as_text(event.get("stop_reason")),
            marks=(BACKGROUND_TURN_MARK,) if is_background_result(event) else self._find_turns(event),
        )
        return [*meanings, finished]


class ClaudePrintDecoder(ClaudeReader):
    """Read the events of one prompt."""

    has_completion = True
    limit: int | None = None

    def __init__(self) -> None:
        super().__init__(by_block=False)
        self._is_over = False

    def end(self, stderr: bytes) -> list[Meaning]:
        """Give the messages that were begun, if their end never came."""
        return [] if self._is_over else self._messages.end_messages()

    def _read_event(self, kind: str, event: dict[str, Any]) -> list[Meaning]:
        if not self._is_over:
            self._messages.limit = self.limit
            return super()._read_event(kind, event)
        # Only background tasks count after the result, and they are followed to their end.
        if kind == "assistant":
            self._system_lines.note_stop_requests(event)
        meanings = self._system_lines.read_line(event) if kind == "system" else []
        return [meaning for meaning in meanings if isinstance(meaning, (TaskBegun, TaskOver))] or [Other(kind)]

    def _read_result(self, event: dict[str, Any]) -> list[Meaning]:
        if is_background_result(event):
            self._messages.forget_messages()
            return [Other("result")]
        meanings = super()._read_result(event)
        self._is_over = True
        return meanings


def is_background_result(event: dict[str, Any]) -> bool:
    """Say whether a result is of a turn that a background task began."""
    return bool(as_dict(event.get("origin")).get("kind") == "task-notification")


def _read_error_message(event: dict[str, Any]) -> str:
    errors = event.get("errors")
    text = "; ".join(str(error) for error in errors) if isinstance(errors, list) else ""
    return text or as_text(event.get("result")) or str(event.get("subtype") or "error")
