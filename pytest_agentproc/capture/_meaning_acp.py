"""Owns what the messages of an ACP conversation mean in a draft, of both sides. Knows no other dialect."""

from __future__ import annotations

from typing import Any

from pytest_agentproc.capture._meaning import Later, Meaning, Told, inner, words_of

__all__ = ["read_acp"]

_FOLDED = Meaning("folded")
_OTHER = Meaning("other")
_KINDS = ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other")


def read_acp(event: Any, _later: Later, _mode: str) -> Meaning:
    """Read a message of either side: a method, or the answer to one."""
    method, params = inner(event, "method"), inner(event, "params")
    if method is None:
        return _answer(event)
    if not isinstance(method, str):
        return Meaning("foreign")
    if method in _METHODS:
        return _METHODS[method](params)
    if method.startswith(("fs/", "terminal/")) and isinstance(params, dict):
        given = {key: value for key, value in params.items() if key != "sessionId"}
        return Meaning("steps", (Told("request", {"method": method, "params": given}),), is_sure=True)
    return _FOLDED if method == "initialize" or method.startswith(("session/", "auth")) else _OTHER


def _prompted(params: Any) -> Meaning:
    return Meaning("prompt", text=words_of(inner(params, "prompt") or "") or "hi")


def _asked(params: Any) -> Meaning:
    call = inner(params, "toolCall", "title") or inner(params, "toolCall", "toolCallId")
    return Meaning("steps", (Told("ask", {"permission": str(call or "tool")}),), is_sure=True)


def _answer(event: Any) -> Meaning:
    """Read an answer; only that to a prompt is the script's, all others are the dialect's own or the caller's."""
    stop, error = inner(event, "result", "stopReason"), inner(event, "error")
    if isinstance(stop, str):
        if stop == "cancelled":
            return Meaning("steps", (Told("acknowledge", "cancel"),), is_sure=True, ends="cancelled")
        name = Told("result", {}) if stop == "end_turn" else Told("turn_said", {"text": "", "stop": stop})
        return Meaning("steps", (name,), is_sure=True, ends="completed")
    if isinstance(error, dict):
        told = {"is_error": True, "text": str(error.get("message") or "error")}
        return Meaning("steps", (Told("result", told),), is_sure=True, ends="failed")
    return _FOLDED if inner(event, "jsonrpc") or "result" in event else Meaning("foreign")


def _update(update: Any) -> Meaning:
    kind, number = inner(update, "sessionUpdate"), inner(update, "toolCallId")
    text = inner(update, "content", "text")
    if kind == "agent_message_chunk" and isinstance(text, str):
        return Meaning("steps", (Told("say", text),))
    if kind == "agent_thought_chunk" and isinstance(text, str):
        return Meaning("steps", (Told("think", text),))
    if kind == "user_message_chunk":
        return _FOLDED
    if kind == "tool_call" and isinstance(number, str):
        given, about = inner(update, "rawInput"), inner(update, "kind")
        told = {"id": number, "name": str(update.get("title") or number), "input": given or {}}
        return Meaning("steps", (Told("tool", told | ({"kind": about} if about in _KINDS else {})),), is_sure=True)
    if kind == "tool_call_update" and isinstance(number, str) and update.get("status") in ("completed", "failed"):
        said = words_of(update.get("content") or "")
        failed = update["status"] == "failed"
        told = {"id": number, **({"error": said} if failed else ({"output": said} if said else {}))}
        return Meaning("steps", (Told("tool_done", told),), is_sure=True)
    return _OTHER


_METHODS = {
    "session/prompt": _prompted,
    "session/cancel": lambda _: Meaning("cancel"),
    "session/update": lambda params: _update(inner(params, "update")),
    "session/request_permission": _asked,
}
