"""Owns what claude's events mean in a draft. Knows no other dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.capture._meaning import Later, Meaning, Told, block, inner, words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["is_session", "read_claude"]

_TYPES = frozenset(
    [
        "system",
        "assistant",
        "user",
        "result",
        "stream_event",
        "control_request",
        "control_response",
        "control_cancel_request",
        "rate_limit_event",
        "keep_alive",
        "tool_progress",
        "tool_use_summary",
        "auth_status",
        "summary",
    ]
)
_BEGINNERS = ("assistant", "stream_event", "result")
_FOLDED = Meaning("folded")
_OTHER = Meaning("other")


def is_session(events: Sequence[Any]) -> bool:
    """Say whether a log is of a session: somebody asks or answers on its stdin, or it has several results."""
    kinds = [inner(event, "type") for event in events]
    controls = any(str(kind).startswith("control_") for kind in kinds)
    return controls or kinds.count("result") > 1 or any(_prompt(event) is not None for event in events)


def read_claude(event: Any, later: Later, mode: str) -> Meaning:
    """Read an event of `--output-format stream-json`, or a line that claude was sent."""
    kind = inner(event, "type")
    if kind not in _TYPES:
        return Meaning("foreign")
    if kind == "control_request" and mode != "session":
        return _OTHER
    return _READERS[kind](event, later) if kind in _READERS else _OTHER


def _system(event: Any, later: Later) -> Meaning:
    """The first event is said with the first of these behind it."""
    is_said = event.get("subtype") == "init" and later.have(_begins)
    return _FOLDED if is_said else _OTHER


def _prompt(event: Any) -> str | None:
    """Give the words of a prompt; None for any other line."""
    if inner(event, "type") != "user" or event.get("parent_tool_use_id"):
        return None
    content = inner(event, "message", "content")
    if isinstance(content, list) and any(inner(one, "type") != "text" for one in content):
        return None
    return words_of(content) or None if content else None


def _piece(event: Any, later: Later) -> Meaning:
    """A piece says what its whole line says; where that is missing, it is a delta."""
    text = inner(event, "event", "delta", "text")
    is_whole = later.have(_is_message)
    if is_whole or not isinstance(text, str) or event.get("parent_tool_use_id"):
        return _FOLDED
    return Meaning("steps", (Told("delta", text),))


def _assistant(event: Any, later: Later) -> Meaning:
    parent = event.get("parent_tool_use_id")
    if inner(event, "message", "model") == "<synthetic>" and later.have(_is_error):
        return _FOLDED  # the error result says it
    blocks = block(event, "message", "content")
    steps: list[Told] = []
    number = inner(event, "message", "id")
    goes_on = isinstance(number, str) and later.have(_asking_message, number)
    uses = [one for one in blocks if one.get("type") == "tool_use"]
    for one in blocks:
        about = {"parent": parent} if parent else {}
        kind = one.get("type")
        if kind == "text" and isinstance(one.get("text"), str):
            steps.append(Told("nested" if parent else "say", {"text": one["text"], **about} if parent else one["text"]))
        elif kind == "thinking" and isinstance(one.get("thinking"), str):
            steps.append(Told("think", {"text": one["thinking"], **about} if parent else one["thinking"]))
        elif kind == "tool_use" and isinstance(one.get("id"), str) and isinstance(one.get("name"), str):
            more = {"more": True} if goes_on or one is not uses[-1] else {}
            told = {"id": one["id"], "name": one["name"], "input": one.get("input") or {}, **about, **more}
            steps.append(Told("tool", told))
        else:
            return _OTHER
    return Meaning("steps", tuple(steps)) if steps else _OTHER


def _begins(event: Any) -> bool:
    return inner(event, "type") in _BEGINNERS


def _is_message(event: Any) -> bool:
    return bool(inner(event, "type") == "assistant")


def _is_error(event: Any) -> bool:
    return inner(event, "is_error") is True


def _asking_message(event: Any) -> str | None:
    """Give the id of a message of which this line asks for a tool."""
    number = inner(event, "message", "id")
    return number if isinstance(number, str) and _is_message(event) and _asks(event) else None


def _asks(event: Any) -> bool:
    return any(one.get("type") == "tool_use" for one in block(event, "message", "content"))


def _user(event: Any, _later: Later) -> Meaning:
    prompt = _prompt(event)
    if prompt is not None:
        return Meaning("prompt", text=prompt)
    steps = []
    for one in block(event, "message", "content"):
        if one.get("type") != "tool_result" or not isinstance(one.get("tool_use_id"), str):
            return _OTHER
        said = words_of(one.get("content") or "")
        told = {"error": said} if one.get("is_error") else ({"output": said} if said else {})
        steps.append(Told("tool_done", {"id": one["tool_use_id"], **told}))
    return Meaning("steps", tuple(steps)) if steps else _OTHER


def _result(event: Any, _later: Later) -> Meaning:
    if inner(event, "origin", "kind") == "task-notification" or inner(event, "origin") == "task-notification":
        return _OTHER
    subtype, text = event.get("subtype", "success"), event.get("result")
    if subtype != "success":
        errors = event.get("errors")
        words = errors[0] if isinstance(errors, list) and errors and isinstance(errors[0], str) else text
        told = {"subtype": subtype, "is_error": True, **({"text": words} if words else {})}
        return Meaning("steps", (Told("result", told),), ends="failed")
    if event.get("is_error"):
        told = {"is_error": True, **({"text": text} if text else {})}
        return Meaning("steps", (Told("result", told),), ends="failed")
    said = {"text": text} if isinstance(text, str) else {}
    return Meaning("steps", (Told("result", said),), ends="completed", final=said.get("text"))


def _request(event: Any, _later: Later) -> Meaning:
    request = event.get("request")
    if inner(request, "subtype") == "interrupt":
        return Meaning("cancel")
    name = inner(request, "tool_name")
    if inner(request, "subtype") == "can_use_tool" and isinstance(name, str) and name:
        return Meaning("steps", (Told("ask", {"permission": name}),), is_sure=True)
    return _FOLDED if inner(request, "subtype") in ("initialize", "set_permission_mode", "set_model") else _OTHER


_READERS: dict[str, Callable[[Any, Later], Meaning]] = {
    "system": _system,
    "stream_event": _piece,
    "assistant": _assistant,
    "user": _user,
    "result": _result,
    "control_request": _request,
    "control_response": lambda _event, _later: _FOLDED,  # the dialect answers, or the caller did
}
