"""Claude's lines of type `system` about its work: background tasks and compactions. Knows no turn, no result.

A background agent (`local_agent`) is in flight as a tool is, from task_started to task_notification. A command in the
background (`local_bash`) has a terminal status; of the two lines that tell it either may come first, or alone. A long
tool in the foreground is reported as a task too, and is no more than its tool. A hook of the user's settings is in
flight from hook_started to hook_response. If a task is stopped without a tool of
the agent's to stop it, claude or another process ended it: its work is lost.

A compaction is announced by the status `compacting`, which may come again and again with a count. Another status or the
`compact_boundary` ends it, whichever comes first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor.dialects._meanings import (
    MAX_ID_CHARS,
    MAX_TOOLS_IN_FLIGHT,
    Compaction,
    Other,
    TaskBegun,
    TaskOver,
    TaskReported,
    ToolEnded,
    ToolProgress,
    ToolStarted,
)

if TYPE_CHECKING:
    _Told = Compaction | TaskBegun | TaskOver | TaskReported | ToolProgress | Other


_STATUSES_OF_STOPPED_TASKS = ("stopped", "killed")
_STATUSES_OF_ENDED_TASKS = ("completed", "failed", *_STATUSES_OF_STOPPED_TASKS)
_TOOLS_THAT_STOP_TASKS = ("KillShell", "KillBash", "TaskStop")
_INPUT_KEYS_OF_TASK_IDS = ("shell_id", "task_id", "bash_id")
_SYSTEM_EVENTS_WITHOUT_PROGRESS = ("status", "session_state_changed", "api_retry", "permission_denied")
_HOOK_MEANING_BY_SUBTYPE = {
    "hook_started": ToolStarted,
    "hook_progress": ToolProgress,
    "hook_response": ToolEnded,
}
_SYSTEM_EVENTS_OF_COMPACTIONS = ("status", "compact_boundary")


class SystemLines:
    """Follow the lines of type `system` of one agent process."""

    def __init__(self) -> None:
        self._is_compacting = False
        self._to_stop: set[str] = set()

    def note_stop_requests(self, event: dict[str, Any]) -> None:
        """Take note, from a line of type `assistant`, of the tasks that a tool is to stop."""
        message = event.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        for block in content if isinstance(content, list) else ():
            asked = (
                block.get("input") if isinstance(block, dict) and block.get("name") in _TOOLS_THAT_STOP_TASKS else None
            )
            if isinstance(asked, dict) and len(self._to_stop) < MAX_TOOLS_IN_FLIGHT:
                self._to_stop |= {str(asked[key])[:MAX_ID_CHARS] for key in _INPUT_KEYS_OF_TASK_IDS if key in asked}

    def read_line(self, event: dict[str, Any]) -> list[_Told]:
        """Say what a line means."""
        subtype = str(event.get("subtype"))
        if subtype in _SYSTEM_EVENTS_OF_COMPACTIONS and event.get("parent_tool_use_id") is None:
            return [self._read_compaction(subtype, event)]
        return [
            self._judge_task_end(meaning) if isinstance(meaning, TaskOver) else meaning
            for meaning in _read_task_line(subtype, event)
        ]

    def note_turn_end(self) -> None:
        """Take note that a turn is over: nothing is compacted for it any more."""
        self._is_compacting = False

    def _judge_task_end(self, over: TaskOver) -> TaskOver:
        return TaskOver(over.id, over.was_stopped and over.id[:MAX_ID_CHARS] not in self._to_stop)

    def _read_compaction(self, subtype: str, event: dict[str, Any]) -> _Told:
        """Give a compaction's beginning and its end, once each; a status that changes nothing is a sign of life."""
        is_compacting = subtype == "status" and event.get("status") == "compacting"
        if is_compacting is self._is_compacting:
            return Other(f"system {subtype}", is_progress=subtype not in _SYSTEM_EVENTS_WITHOUT_PROGRESS)
        self._is_compacting = is_compacting
        return Compaction(is_over=not is_compacting)


def _read_task_line(subtype: str, event: dict[str, Any]) -> list[_Told]:
    name = str(event.get("task_id"))
    if subtype == "task_started":
        return [_read_task_start(name, event)]
    if subtype == "task_notification":
        return [TaskReported(name), *_read_task_end(name, event.get("status"))]
    if subtype == "task_updated":
        patch = event.get("patch")
        return _read_task_end(name, patch.get("status")) if isinstance(patch, dict) else []
    if subtype in _HOOK_MEANING_BY_SUBTYPE:
        return [_HOOK_MEANING_BY_SUBTYPE[subtype](f"hook {event.get('hook_id')}", str(event.get("hook_name")))]
    return [Other(f"system {subtype}", is_progress=subtype not in _SYSTEM_EVENTS_WITHOUT_PROGRESS)]


def _read_task_start(name: str, event: dict[str, Any]) -> _Told:
    if event.get("is_backgrounded") is False:
        return Other("system task_started")
    return TaskBegun(name, str(event.get("task_type")), str(event.get("description") or ""))


def _read_task_end(name: str, status: object) -> list[_Told]:
    return (
        [TaskOver(name, was_stopped=status in _STATUSES_OF_STOPPED_TASKS)] if status in _STATUSES_OF_ENDED_TASKS else []
    )
