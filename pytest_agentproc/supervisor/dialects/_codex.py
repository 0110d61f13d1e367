"""The events of `codex exec --json`. Knows no other dialect, and shares no code with the fake that writes them.

`turn.completed` and `turn.failed` complete. An `error` completes nothing: codex tells with it that it connects again as
well as that it gives up. If it is the last word, the exit decides. An item of type `error` is a mere warning. Codex
executes all its tools itself and asks no host for any, so no run of its ends as `tool_use`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor.dialects._json import ObjectDecoder, as_dict
from pytest_agentproc.supervisor.dialects._meanings import Failure, Finished, Message, Other, ToolEnded, ToolStarted

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects._meanings import Meaning


_ITEM_TYPES_WITHOUT_TOOL = frozenset({"agent_message", "reasoning", "todo_list", "error"})
"""Items that are no work: a plan is begun early and ends with the turn."""


class CodexDecoder(ObjectDecoder):
    """Read the JSON events of codex."""

    has_completion = True
    limit: int | None = None

    def __init__(self) -> None:
        self._erred = False

    def _read_event(self, kind: str, event: dict[str, Any]) -> list[Meaning]:
        if kind == "error":
            self._erred = True
            return [Failure(_read_error_message(event))]
        recovered: list[Meaning] = [Failure("")] if self._erred else []
        self._erred = False
        return [*recovered, self._read_turn_event(kind, event)]

    def _read_turn_event(self, kind: str, event: dict[str, Any]) -> Meaning:
        if kind == "turn.completed":
            usage = event.get("usage")
            return Finished(True, final=True, usage=usage if isinstance(usage, dict) else None)
        if kind == "turn.failed":
            return Finished(False, error=_read_error_message(as_dict(event.get("error"))))
        item = event.get("item")
        if kind in ("item.started", "item.completed") and isinstance(item, dict):
            return _read_item(kind, item)
        return Other(kind)


def _read_item(kind: str, item: dict[str, Any]) -> Meaning:
    what = str(item.get("type"))
    if what == "agent_message" and kind == "item.completed":
        return Message(str(item.get("text", "")))
    if what in _ITEM_TYPES_WITHOUT_TOOL:
        return Other(kind)
    number = str(item.get("id"))
    return ToolStarted(number, what) if kind == "item.started" else ToolEnded(number)


def _read_error_message(event: dict[str, Any]) -> str:
    return str(event.get("message") or "error")
