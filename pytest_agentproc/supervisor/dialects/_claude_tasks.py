"""What claude's lines of type `system` say of its work: background tasks and compactions. Knows no turn, no result.

A background agent (`local_agent`) is in flight as a tool is, from task_started to task_notification. A command in the
background (`local_bash`) has a terminal status; of the two lines that tell it either may come first, or alone. One in
the foreground that takes long is told as a task too, and is no more than its tool.

A compaction is announced by the status `compacting`, which may come again and again with a count. Another status or the
`compact_boundary` ends it, whichever comes first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor.dialects._base import Compaction, Other, TaskBegun, TaskOver, ToolEnded, ToolStarted

if TYPE_CHECKING:
    _Told = Compaction | TaskBegun | TaskOver | ToolEnded | ToolStarted | Other

__all__ = ["SystemLines"]

_OVER = ("completed", "failed", "stopped", "killed")
_STATUS = ("status", "session_state_changed")
_OF_COMPACTIONS = ("status", "compact_boundary")


class SystemLines:
    """Follow the lines of type `system` of one agent process."""

    def __init__(self) -> None:
        self._is_compacting = False

    def follow(self, event: dict[str, Any]) -> list[_Told]:
        """Say what a line means."""
        subtype = event.get("subtype")
        if subtype in _OF_COMPACTIONS and event.get("parent_tool_use_id") is None:
            return [self._compaction(str(subtype), event)]
        return _of_task(subtype, event)

    def settle(self) -> None:
        """Take note that a turn is over: nothing is compacted for it any more."""
        self._is_compacting = False

    def _compaction(self, subtype: str, event: dict[str, Any]) -> _Told:
        """Give a compaction's beginning and its end, once each; a status that changes nothing is a sign of life."""
        is_compacting = subtype == "status" and event.get("status") == "compacting"
        if is_compacting is self._is_compacting:
            return Other(f"system {subtype}", is_progress=subtype not in _STATUS)
        self._is_compacting = is_compacting
        return Compaction(is_over=not is_compacting)


def _of_task(subtype: object, event: dict[str, Any]) -> list[_Told]:
    name = str(event.get("task_id"))
    if subtype == "task_started":
        kind = str(event.get("task_type"))
        if kind == "local_bash" and event.get("is_backgrounded") is False:
            return [Other("system task_started")]
        begun = TaskBegun(name, kind, str(event.get("description") or ""))
        return [ToolStarted(f"task {name}", kind), begun] if kind == "local_agent" else [begun]
    if subtype == "task_notification":
        return [ToolEnded(f"task {name}"), *_over(name, event.get("status"))]
    if subtype == "task_updated":
        patch = event.get("patch")
        return _over(name, patch.get("status")) if isinstance(patch, dict) else []
    return [Other(f"system {subtype}", is_progress=subtype not in _STATUS)]


def _over(name: str, status: object) -> list[_Told]:
    return [TaskOver(name)] if status in _OVER else []
