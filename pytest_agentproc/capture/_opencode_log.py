"""The meaning of an event of `opencode run --format json`, in a pasted log. Knows no other dialect.

A tool is printed once, when it has ended: the event has its start and its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.capture._meaning import (
    TURN_BEGIN_MEANING,
    UNTRANSLATED_EVENT_MEANING,
    DraftStep,
    EventMeaning,
    get_nested,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.capture._meaning import LaterEvents


def read_opencode_event(event: Any, later: LaterEvents, _mode: str) -> EventMeaning:
    """Read an event of `opencode run --format json`."""
    kind, part = get_nested(event, "type"), get_nested(event, "part")
    if kind == "error" and isinstance(event.get("error"), dict):
        words = get_nested(event, "error", "data", "message") or get_nested(event, "error", "name")
        fields = {"is_error": True, "text": str(words or "error")}
        return EventMeaning("steps", (DraftStep("result", fields),), ends="failed")
    if not isinstance(part, dict) or kind not in _READER_BY_EVENT_TYPE:
        return EventMeaning("foreign")
    return _READER_BY_EVENT_TYPE[kind](part, later)


def _read_text_part(part: dict[str, Any], _later: LaterEvents) -> EventMeaning:
    text = part.get("text")
    return (
        EventMeaning("steps", (DraftStep("say", text),), final=text)
        if isinstance(text, str)
        else UNTRANSLATED_EVENT_MEANING
    )


def _read_tool_part(part: dict[str, Any], later: LaterEvents) -> EventMeaning:
    """The step of the tool's end also ends its model step, if no other tool runs."""
    number, name, state = part.get("callID"), part.get("tool"), part.get("state")
    if not (isinstance(number, str) and isinstance(name, str) and isinstance(state, dict)):
        return UNTRANSLATED_EVENT_MEANING
    if not later.has_event_with_trait(_is_tool_step_end):
        return UNTRANSLATED_EVENT_MEANING
    given, output = state.get("input"), state.get("output")
    fields = {"error": str(state.get("error") or "error")} if state.get("status") == "error" else {}
    fields |= {"output": output} if isinstance(output, str) and output and not fields else {}
    tool = DraftStep("tool", {"id": number, "name": name, "input": given if isinstance(given, dict) else {}})
    return EventMeaning("steps", (tool, DraftStep("tool_done", {"id": number, **fields})), is_sure=True)


def _is_tool_step_end(event: Any) -> bool:
    return bool(get_nested(event, "part", "reason") == "tool-calls")


def _read_model_step_end(part: dict[str, Any], _later: LaterEvents) -> EventMeaning:
    reason = part.get("reason")
    if reason == "tool-calls":
        return UNTRANSLATED_EVENT_MEANING  # unless the end of the tool has printed it
    if reason != "stop":
        return EventMeaning("other", ends="completed" if reason == "length" else "")
    return EventMeaning("steps", (DraftStep("result", {}),), ends="completed")


_READER_BY_EVENT_TYPE: dict[str, Callable[[dict[str, Any], LaterEvents], EventMeaning]] = {
    "step_start": lambda _part, _later: TURN_BEGIN_MEANING,
    "text": _read_text_part,
    "reasoning": lambda _part, _later: UNTRANSLATED_EVENT_MEANING,
    "tool_use": _read_tool_part,
    "step_finish": _read_model_step_end,
}
