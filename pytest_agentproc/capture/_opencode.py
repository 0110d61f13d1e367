"""The meaning of an event of `opencode run --format json`, in a pasted log. Knows no other dialect.

A tool is printed once, when it has ended: the event has its start and its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.capture._meaning import BEGIN, OTHER, DraftStep, Meaning, get_nested

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.capture._meaning import LaterEvents


def read_opencode(event: Any, later: LaterEvents, _mode: str) -> Meaning:
    """Read an event of `opencode run --format json`."""
    kind, part = get_nested(event, "type"), get_nested(event, "part")
    if kind == "error" and isinstance(event.get("error"), dict):
        words = get_nested(event, "error", "data", "message") or get_nested(event, "error", "name")
        told = {"is_error": True, "text": str(words or "error")}
        return Meaning("steps", (DraftStep("result", told),), ends="failed")
    if not isinstance(part, dict) or kind not in _READERS:
        return Meaning("foreign")
    return _READERS[kind](part, later)


def _read_text_part(part: dict[str, Any], _later: LaterEvents) -> Meaning:
    text = part.get("text")
    return Meaning("steps", (DraftStep("say", text),), final=text) if isinstance(text, str) else OTHER


def _read_tool(part: dict[str, Any], later: LaterEvents) -> Meaning:
    """The step of the tool's end also ends its model step, if no other tool runs."""
    number, name, state = part.get("callID"), part.get("tool"), part.get("state")
    if not (isinstance(number, str) and isinstance(name, str) and isinstance(state, dict)):
        return OTHER
    if not later.any_has_trait(_is_tool_step_end):
        return OTHER
    given, output = state.get("input"), state.get("output")
    said = {"error": str(state.get("error") or "error")} if state.get("status") == "error" else {}
    said |= {"output": output} if isinstance(output, str) and output and not said else {}
    tool = DraftStep("tool", {"id": number, "name": name, "input": given if isinstance(given, dict) else {}})
    return Meaning("steps", (tool, DraftStep("tool_done", {"id": number, **said})), is_sure=True)


def _is_tool_step_end(event: Any) -> bool:
    return bool(get_nested(event, "part", "reason") == "tool-calls")


def _read_model_step_end(part: dict[str, Any], _later: LaterEvents) -> Meaning:
    reason = part.get("reason")
    if reason == "tool-calls":
        return OTHER  # unless the end of the tool has printed it
    if reason != "stop":
        return Meaning("other", ends="completed" if reason == "length" else "")
    return Meaning("steps", (DraftStep("result", {}),), ends="completed")


_READERS: dict[str, Callable[[dict[str, Any], LaterEvents], Meaning]] = {
    "step_start": lambda _part, _later: BEGIN,
    "text": _read_text_part,
    "reasoning": lambda _part, _later: OTHER,
    "tool_use": _read_tool,
    "step_finish": _read_model_step_end,
}
