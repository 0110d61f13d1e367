"""What claude's lines tell of background work. Knows no turn and no result.

A background agent (`local_agent`) is in flight as a tool is, from task_started to task_notification. A command in the
background (`local_bash`) has a terminal status; of the two lines that tell it either may come first, or alone. One in
the foreground that takes long is told as a task too, and is no more than its tool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor.dialects._base import Other, TaskBegun, TaskOver, ToolEnded, ToolStarted

if TYPE_CHECKING:
    _Told = TaskBegun | TaskOver | ToolEnded | ToolStarted | Other

__all__ = ["follow"]

_OVER = ("completed", "failed", "stopped", "killed")
_STATUS = ("status", "session_state_changed")


def follow(event: dict[str, Any]) -> list[_Told]:
    """Say what a line of type `system` tells of a task."""
    subtype, name = event.get("subtype"), str(event.get("task_id"))
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
