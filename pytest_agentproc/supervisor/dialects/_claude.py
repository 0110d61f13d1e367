"""What `claude -p --output-format stream-json` prints. Knows no other dialect, and shares no code with the fake's side.

A message ends at `message_stop`; without partial messages nothing marks its end but a line with another message id, or
the result. A tool is in flight from its block until its result, a background agent (`local_agent`) from task_started to
task_notification. A line with a parent_tool_use_id is a sub-agent's and is given as `Nested`: it ends no message, no
tool and no run of the agent's own (A6, A7).

The result completes. One whose origin is a `task-notification` belongs to a background turn, and so does all that comes
after the prompt's own result: neither is ever the prompt's (B1). Nothing marks a background turn before its result, so
the messages of one that comes first, as after `--resume`, stand in the transcript; the text is the result's own. After
the result, background tasks count: how each of them ends, or that it never does (B2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor.dialects._base import Finished, Other, TaskBegun, TaskOver
from pytest_agentproc.supervisor.dialects._claude_messages import MessageReaders, as_text
from pytest_agentproc.supervisor.dialects._claude_tasks import SystemLines
from pytest_agentproc.supervisor.dialects._json import ObjectDecoder

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects._base import Meaning


_EVENTS_WITHOUT_PROGRESS = ("keep_alive", "rate_limit_event")
"""The lines that say that claude is there, and not that it has got any further."""


class ClaudePrintDecoder(ObjectDecoder):
    """Read the events of one prompt."""

    has_completion = True
    limit: int | None = None

    def __init__(self) -> None:
        self._model: str | None = None
        self._readers = MessageReaders()
        self._system_lines = SystemLines()
        self._is_over = False

    def end(self, stderr: bytes) -> list[Meaning]:
        """Give the messages that were begun, if their end never came."""
        return [] if self._is_over else self._readers.end_messages()

    def _read_event(self, kind: str, event: dict[str, Any]) -> list[Meaning]:
        if kind == "assistant":
            self._system_lines.note_stop_requests(event)
        if self._is_over:
            return self._read_task_event_after_result(kind, event)
        if kind == "result":
            return self._read_result(event)
        if kind == "system":
            return self._read_system(event)
        self._readers.limit = self.limit
        return self._readers.read_line(kind, event) or [Other(kind, is_progress=kind not in _EVENTS_WITHOUT_PROGRESS)]

    def _read_task_event_after_result(self, kind: str, event: dict[str, Any]) -> list[Meaning]:
        """Follow background tasks to their end; nothing else counts after the result."""
        meanings = self._system_lines.read_line(event) if kind == "system" else []
        return [meaning for meaning in meanings if isinstance(meaning, (TaskBegun, TaskOver))] or [Other(kind)]

    def _read_system(self, event: dict[str, Any]) -> list[Meaning]:
        if event.get("subtype") == "init":
            self._model = as_text(event.get("model"))
        return [*self._system_lines.read_line(event)]

    def _read_result(self, event: dict[str, Any]) -> list[Meaning]:
        origin = event.get("origin")
        if isinstance(origin, dict) and origin.get("kind") == "task-notification":
            self._readers.forget_messages()
            return [Other("result")]
        meanings = self._readers.end_messages()
        self._is_over = True
        usage, text = event.get("usage"), as_text(event.get("result"))
        ok = event.get("subtype") == "success" and event.get("is_error") is not True
        finished = Finished(
            ok,
            final=True,
            error="" if ok else _read_error_message(event),
            model=self._model,
            usage=usage if isinstance(usage, dict) else None,
            text=text or None,
            stop_reason=as_text(event.get("stop_reason")),
        )
        return [*meanings, finished]


def _read_error_message(event: dict[str, Any]) -> str:
    errors = event.get("errors")
    text = "; ".join(str(error) for error in errors) if isinstance(errors, list) else ""
    return text or as_text(event.get("result")) or str(event.get("subtype") or "error")
