"""What claude tells of its background tasks: how one starts, how it ends, whose turn follows. Knows no turn."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["ended", "folded", "origin", "started", "tool_of"]

_PATCHES = {"stopped": "killed"}
"""Where the two lines about one end use two words."""


def tool_of(number: str) -> str:
    """Name the tool that started a task."""
    return f"toolu_{number}"


def started(number: str, run: str, *, is_agent: bool) -> dict[str, Any]:
    """Give what is told as a task starts."""
    told = {"task_id": number, "run_id": run, "tool_use_id": tool_of(number), "description": number}
    more = {"subagent_type": "general-purpose", "spawn_depth": 1, "prompt": number} if is_agent else {}
    return {**told, "is_backgrounded": True, "task_type": "local_agent" if is_agent else "local_bash", **more}


def ended(number: str, run: str, status: str, now: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Give what is told as a task ends: the update, and the notification."""
    about = {"task_id": number, "run_id": run}
    patch = {"status": _PATCHES.get(status, status), "end_time": now // 1_000_000}
    told = {"tool_use_id": tool_of(number), "status": status, "output_file": "", "summary": _summary(number, status)}
    return {**about, "patch": patch}, {**about, **told}


def origin(run: str) -> dict[str, Any]:
    """Say which task has a turn begin, or a prompt written."""
    return {"kind": "task-notification", "producer": "session-task", "runId": run}


def folded(number: str, run: str, status: str) -> dict[str, Any]:
    """Give what the model is told of a task's end within a turn, as if it were a prompt."""
    told = {"task-id": number, "tool-use-id": tool_of(number), "output-file": "", "status": status}
    lines = [f"<{name}>{value}</{name}>" for name, value in (*told.items(), ("summary", _summary(number, status)))]
    content = "\n".join(["<task-notification>", *lines, "</task-notification>"])
    return {"message": {"role": "user", "content": content}, "origin": origin(run)}


def _summary(number: str, status: str) -> str:
    return f'Background command "{number}" {status}'
