"""Owns what the events of codex, of gemini's stream and of pi mean in a draft. Knows no other dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.capture._meaning import Later, Meaning, Told, block, inner, words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["is_rpc", "read_codex", "read_gemini", "read_pi"]

_FOLDED = Meaning("folded")
_OTHER = Meaning("other")
_BEGIN = Meaning("steps", (Told("begin", "turn"),))


def _goes_on_codex(event: Any) -> bool:
    return str(inner(event, "type")).startswith(("turn.", "item.", "error"))


def _is_failure(event: Any) -> bool:
    return bool(inner(event, "type") == "turn.failed")


def _goes_on_gemini(event: Any) -> bool:
    return inner(event, "type") not in ("init", None) and inner(event, "role") != "user"


def _goes_on_pi(event: Any) -> bool:
    return str(inner(event, "type")).startswith(("message", "tool", "turn", "agent_e"))


def _is_answer(event: Any) -> bool:
    return bool(inner(event, "type") == "message_end" and inner(event, "message", "role") == "assistant")


def _started_tool(event: Any) -> str | None:
    """Give the id of the tool that begins with this event."""
    number = inner(event, "toolCallId")
    return number if isinstance(number, str) and inner(event, "type") == "tool_execution_start" else None


def read_codex(event: Any, later: Later, _mode: str) -> Meaning:
    """Read an event of `codex exec --json`."""
    kind, item = inner(event, "type"), inner(event, "item")
    if not isinstance(kind, str) or not kind.startswith(("thread.", "turn.", "item.", "error")):
        return Meaning("foreign")
    if kind in ("thread.started", "turn.started"):
        is_last = not later.have(_goes_on_codex)
        return (_BEGIN if kind == "turn.started" else _OTHER) if is_last else _FOLDED
    if kind == "turn.completed":
        return Meaning("steps", (Told("result", {}),), ends="completed")
    if kind in ("turn.failed", "error"):
        words = inner(event, "error", "message") if kind == "turn.failed" else event.get("message")
        is_told_again = later.have(_is_failure)
        if kind == "error" and not is_told_again:
            return _OTHER
        told = {"is_error": True, **({"text": words} if isinstance(words, str) and words else {})}
        return Meaning("steps", (Told("result", told),), ends="failed")
    return _item(kind, item) if isinstance(item, dict) else _OTHER


def _item(kind: str, item: dict[str, Any]) -> Meaning:
    about, text, number = item.get("type"), item.get("text") or item.get("message"), item.get("id")
    names = {"agent_message": "say", "reasoning": "think", "error": "notice"}
    if about in names and kind == "item.completed" and isinstance(text, str):
        return Meaning("steps", (Told(names[about], text),), final=text if about == "agent_message" else None)
    if about not in ("command_execution", "mcp_tool_call") or not isinstance(number, str):
        return _OTHER
    if kind == "item.started":
        if about == "mcp_tool_call":
            name, given = item.get("tool"), item.get("arguments")
        else:
            name, given = "command_execution", {"command": item.get("command", "")}
        if not isinstance(name, str) or not isinstance(given, dict):
            return _OTHER
        return Meaning("steps", (Told("tool", {"id": number, "name": name, "input": given}),))
    if kind != "item.completed":
        return _OTHER
    output = item.get("aggregated_output") or words_of(inner(item, "result", "content") or "")
    failed = item.get("status") == "failed" or item.get("exit_code") not in (None, 0)
    said = {"error": inner(item, "error", "message") or output} if failed else ({"output": output} if output else {})
    return Meaning("steps", (Told("tool_done", {"id": number, **said}),))


def read_gemini(event: Any, later: Later, _mode: str) -> Meaning:
    """Read an event of `gemini -o stream-json`."""
    reader = _GEMINI.get(str(inner(event, "type")))
    return Meaning("foreign") if reader is None else reader(event, later)


def _gemini_init(_event: Any, later: Later) -> Meaning:
    goes_on = later.have(_goes_on_gemini)
    return _FOLDED if goes_on else _BEGIN


def _gemini_message(event: Any, _later: Later) -> Meaning:
    if event.get("role") == "user":
        return _FOLDED
    text = event.get("content")
    return Meaning("steps", (Told("say", text),)) if isinstance(text, str) else _OTHER


def _gemini_tool(event: Any, _later: Later) -> Meaning:
    number, name = event.get("tool_id"), event.get("tool_name")
    if not isinstance(number, str) or not isinstance(name, str):
        return _OTHER
    return Meaning("steps", (Told("tool", {"id": number, "name": name, "input": event.get("parameters") or {}}),))


def _gemini_tool_end(event: Any, _later: Later) -> Meaning:
    number, output, error = event.get("tool_id"), event.get("output"), inner(event, "error", "message")
    failed = event.get("status") == "error"
    said = {"error": error or output or ""} if failed else ({"output": output} if output else {})
    return Meaning("steps", (Told("tool_done", {"id": number, **said}),)) if isinstance(number, str) else _OTHER


def _gemini_result(event: Any, _later: Later) -> Meaning:
    words = inner(event, "error", "message")
    if event.get("status") == "error":
        told = {"is_error": True, **({"text": words} if words else {})}
        return Meaning("steps", (Told("result", told),), ends="failed")
    return Meaning("steps", (Told("result", {}),), ends="completed")


_GEMINI: dict[str, Callable[[Any, Later], Meaning]] = {
    "init": _gemini_init,
    "message": _gemini_message,
    "tool_use": _gemini_tool,
    "tool_result": _gemini_tool_end,
    "result": _gemini_result,
    "error": lambda _event, _later: _OTHER,
}
_PI = frozenset(
    [
        "session",
        "agent_start",
        "agent_end",
        "turn_start",
        "turn_end",
        "message_start",
        "message_update",
        "message_end",
        "tool_execution_start",
        "tool_execution_update",
        "tool_execution_end",
        "auto_retry_start",
        "auto_retry_end",
        "auto_compaction_start",
        "auto_compaction_end",
        "compaction_start",
        "compaction_end",
        "response",
        "prompt",
        "abort",
        "extension_ui_request",
        "extension_error",
        "queue_update",
    ]
)


def is_rpc(events: Sequence[Any]) -> bool:
    """Say whether a log of pi's is of its mode rpc."""
    return any(inner(event, "type") in ("response", "prompt", "extension_ui_request") for event in events)


def read_pi(event: Any, later: Later, _mode: str) -> Meaning:
    """Read an event of `pi --mode json` or rpc, or a command that it was sent."""
    kind = inner(event, "type")
    if kind not in _PI:
        return Meaning("foreign")
    if kind in _PI_FOLDED:
        return _FOLDED
    return _PI_READERS[kind](event, later) if kind in _PI_READERS else _OTHER


def _pi_start(_event: Any, later: Later) -> Meaning:
    is_last = not later.have(_goes_on_pi)
    return _BEGIN if is_last else _FOLDED


def _pi_begun(event: Any, later: Later) -> Meaning:
    """The start of a message is said with its end."""
    role = inner(event, "message", "role")
    is_said = role != "assistant" or later.have(_is_answer)
    return _FOLDED if is_said else _OTHER


def _pi_ended(event: Any, later: Later) -> Meaning:
    is_own = inner(event, "message", "role") == "assistant"
    return _pi_message(event["message"], later) if is_own else _FOLDED


def _pi_tool_end(event: Any, _later: Later) -> Meaning:
    said = words_of(inner(event, "result", "content") or "")
    told = {"error": said} if event.get("isError") else ({"output": said} if said else {})
    return Meaning("steps", (Told("tool_done", {"id": str(event.get("toolCallId")), **told}),))


def _pi_message(message: dict[str, Any], later: Later) -> Meaning:
    """A message that asks for a tool is told with the tool's start, which says the call, too."""
    stop, text = message.get("stopReason"), words_of(message.get("content") or "")
    steps = [
        Told("think", one["thinking"]) for one in block(message, "content") if isinstance(one.get("thinking"), str)
    ]
    if stop == "error":
        if later.have(_is_answer):
            return _OTHER  # it tries again
        told = {"is_error": True, "text": str(message.get("errorMessage") or "error")}
        return Meaning("steps", (Told("result", told),), ends="failed")
    calls = [one for one in block(message, "content") if one.get("type") == "toolCall"]
    if calls:
        if text:
            steps.append(Told("delta", text))
        steps += [
            Told("tool", {"id": one["id"], "name": str(one.get("name")), "input": one.get("arguments") or {}})
            for one in calls[:1]
            if isinstance(one.get("id"), str) and later.have(_started_tool, one["id"])
        ]
        return Meaning("steps", tuple(steps)) if steps else _OTHER
    steps.append(Told("turn_said", {"text": text, "stop": str(stop or "stop")}))
    return Meaning("steps", tuple(steps), final=text if stop in ("stop", "length", None) else None)


def _pi_tool(event: Any, _later: Later) -> Meaning:
    number, name = event.get("toolCallId"), event.get("toolName")
    if not isinstance(number, str) or not isinstance(name, str):
        return _OTHER
    return Meaning("steps", (Told("tool", {"id": number, "name": name, "input": event.get("args") or {}}),))


_PI_FOLDED = ("session", "response", "message_update", "tool_execution_update", "turn_start", "turn_end")
_PI_READERS: dict[str, Callable[[Any, Later], Meaning]] = {
    "agent_start": _pi_start,
    "message_start": _pi_begun,
    "message_end": _pi_ended,
    "tool_execution_start": _pi_tool,
    "tool_execution_end": _pi_tool_end,
    "agent_end": lambda _event, _later: Meaning("steps", (Told("result", {}),), ends="completed"),
    "prompt": lambda event, _later: Meaning("prompt", text=str(event.get("message") or "hi")),
    "abort": lambda _event, _later: Meaning("cancel"),
}
