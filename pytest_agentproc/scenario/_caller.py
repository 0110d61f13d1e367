"""Owns what the caller does once it is bound to limits: deeds, answers, callbacks. Reads no file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.vocabulary import Deed, Handler, HookUse

if TYPE_CHECKING:
    from pytest_agentproc.scenario._drive import Item
    from pytest_agentproc.scenario._script import Scope

__all__ = ["bind_deed", "bind_handler", "bind_hooks"]


def bind_deed(item: Item, scope: Scope) -> Deed:
    """Give a deed of a caller, or of other code in its program; raises as `Scope.exact`."""
    return Deed(
        item.line,
        item.kind,
        scope.exact(item.value) if item.kind in ("wait", "block") else item.value,
        None if item.at is None else scope.exact(item.at),
        None if item.after is None else scope.exact(item.after),
        item.session,
    )


def bind_handler(handlers: tuple[dict[str, Any], ...], scope: Scope) -> Handler | None:
    """Give how the caller answers questions; raises as `Scope.exact`."""
    for handler in handlers:
        if "permission" in handler:
            after = handler.get("after")
            allowed = {"allow": True, "deny": False}.get(handler["permission"])
            return Handler(allowed, 0 if after is None else scope.exact(after))
    return None


def bind_hooks(handlers: tuple[dict[str, Any], ...], scope: Scope) -> tuple[HookUse, ...]:
    """Give what the caller has hooks do; raises as `Scope.exact`."""
    return tuple(
        HookUse(
            handler["hook"],
            handler.get("event", "PostToolUse"),
            scope.ns(handler["registers_at"]) if "registers_at" in handler else 0,
            handler.get("raises", False),
            handler.get("allowed", True),
        )
        for handler in handlers
        if "hook" in handler
    )
