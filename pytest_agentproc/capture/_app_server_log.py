"""The meaning of a message of `codex app-server`, in a pasted log. Knows no other dialect.

The ids of a thread and a turn are the log's own, and so they are left out of a message that stands as it stood.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.capture._meaning import (
    PARTIAL_OUTPUT_MEANING,
    REPEATED_EVENT_MEANING,
    UNTRANSLATED_EVENT_MEANING,
    DraftStep,
    EventMeaning,
    get_nested,
    read_content_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_agentproc.capture._meaning import LaterEvents


_NOTIFICATIONS_OF_OTHER_STEPS = (
    *("initialized", "thread/started", "thread/status/changed", "thread/tokenUsage/updated"),
    *("turn/started", "serverRequest/resolved"),
)
"""The client's own notification, and those that the fake prints with its other steps."""
_LOG_SPECIFIC_PARAMS = ("threadId", "turnId", "startedAtMs", "completedAtMs")


def is_app_server_log(events: Sequence[Any]) -> bool:
    """Say whether a log of codex is of its app server."""
    return any(isinstance(get_nested(event, "method"), str) for event in events)


def strip_log_specific_params(event: Any) -> Any:
    """Give a message without the ids that are its own log's."""
    params = get_nested(event, "params")
    if not isinstance(params, dict):
        return event
    kept = {key: value for key, value in params.items() if key not in _LOG_SPECIFIC_PARAMS}
    return {"method": event["method"], "params": kept}


def read_app_server_event(event: Any, later: LaterEvents, _mode: str) -> EventMeaning:
    """Read a message of either side: a method, or the answer to one."""
    method, params = get_nested(event, "method"), get_nested(event, "params")
    if method is None:
        is_answer = isinstance(event, dict) and "id" in event and ("result" in event or "error" in event)
        refused = EventMeaning("steps", is_sure=True, ends="failed")
        return (refused if "error" in event else REPEATED_EVENT_MEANING) if is_answer else EventMeaning("foreign")
    if method == "item/agentMessage/delta":
        is_whole_later = later.has_event_with_trait(_read_ended_message_id, get_nested(params, "itemId"))
        text = str(get_nested(params, "delta"))
        return (
            EventMeaning("piece", text=text)
            if is_whole_later
            else EventMeaning("steps", (DraftStep("delta", text),), is_sure=True)
        )
    if method.startswith("item/") and method.endswith(("Delta", "/delta", "/progress")):
        return PARTIAL_OUTPUT_MEANING
    if "id" in event and method.startswith(("item/", "mcpServer/")):
        return _read_agent_request(method, params or {})
    if method in _READER_BY_METHOD:
        return _READER_BY_METHOD[method](params, later)
    is_repeated = "id" in event or method in _NOTIFICATIONS_OF_OTHER_STEPS
    return REPEATED_EVENT_MEANING if is_repeated else UNTRANSLATED_EVENT_MEANING


def _read_error(params: Any, later: LaterEvents) -> EventMeaning:
    """Read an error: the step of a failed end prints it, too. If no end follows, it is the end itself."""
    if get_nested(params, "willRetry") is not False:
        return UNTRANSLATED_EVENT_MEANING
    if later.has_event_with_trait(_read_turn_status, "failed"):
        return REPEATED_EVENT_MEANING
    return EventMeaning("other", ends="" if later.has_event_with_trait(_is_turn_end) else "failed")


def _read_turn_status(event: Any) -> Any:
    """Give the status with which this event ends a turn."""
    return get_nested(event, "params", "turn", "status") if _is_turn_end(event) else None


def _is_turn_end(event: Any) -> bool:
    return bool(get_nested(event, "method") == "turn/completed")


def _read_ended_message_id(event: Any) -> Any:
    """Give the id of the message that ends with this event."""
    item = get_nested(event, "params", "item")
    is_end = get_nested(event, "method") == "item/completed" and get_nested(item, "type") == "agentMessage"
    return get_nested(item, "id") if is_end else None


def _read_agent_request(method: str, params: dict[str, Any]) -> EventMeaning:
    if method.endswith("/requestApproval"):
        about = params.get("command") or params.get("reason") or params.get("itemId") or "command"
        return EventMeaning("steps", (DraftStep("ask", {"permission": str(about)}),), is_sure=True)
    given = {key: value for key, value in params.items() if key not in _LOG_SPECIFIC_PARAMS}
    return EventMeaning("steps", (DraftStep("request", {"method": method, "params": given}),), is_sure=True)


def _read_turn_end(turn: Any) -> EventMeaning:
    status = get_nested(turn, "status")
    if status == "interrupted":
        return EventMeaning("steps", (DraftStep("acknowledge", "cancel"),), is_sure=True, ends="cancelled")
    if status != "completed":
        fields = {"is_error": True, "text": str(get_nested(turn, "error", "message") or status)}
        return EventMeaning("steps", (DraftStep("result", fields),), is_sure=True, ends="failed")
    return EventMeaning("steps", (DraftStep("result", {}),), is_sure=True, ends="completed")


def _read_thread_item(item: dict[str, Any], *, is_over: bool) -> EventMeaning:
    kind, number = item.get("type"), item.get("id")
    if kind == "agentMessage" and isinstance(item.get("text"), str) and is_over:
        return EventMeaning("steps", (DraftStep("say", item["text"]),), is_sure=True, final=item["text"])
    if kind in ("agentMessage", "userMessage", "reasoning"):
        return REPEATED_EVENT_MEANING
    if kind not in ("commandExecution", "mcpToolCall") or not isinstance(number, str):
        return UNTRANSLATED_EVENT_MEANING
    if not is_over:
        name, given = item.get("tool"), item.get("arguments")
        if kind == "commandExecution":
            name, given = "command_execution", {"command": item.get("command", "")}
        fields = {"id": number, "name": str(name), "input": given if isinstance(given, dict) else {}}
        return EventMeaning("steps", (DraftStep("tool", fields),), is_sure=True)
    output = item.get("aggregatedOutput") or read_content_text(get_nested(item, "result", "content") or "")
    failed = item.get("status") in ("failed", "declined")
    details = (
        {"error": get_nested(item, "error", "message") or output} if failed else ({"output": output} if output else {})
    )
    return EventMeaning("steps", (DraftStep("tool_done", {"id": number, **details}),), is_sure=True)


_READER_BY_METHOD: dict[str, Callable[[Any, LaterEvents], EventMeaning]] = {
    "error": _read_error,
    "turn/start": lambda params, _: EventMeaning(
        "prompt", text=read_content_text(get_nested(params, "input") or "") or "hi"
    ),
    "turn/interrupt": lambda _params, _: EventMeaning("cancel"),
    "turn/completed": lambda params, _: _read_turn_end(get_nested(params, "turn")),
    "item/started": lambda params, _: _read_thread_item(get_nested(params, "item") or {}, is_over=False),
    "item/completed": lambda params, _: _read_thread_item(get_nested(params, "item") or {}, is_over=True),
}
