"""Owns the step that asks the client, and waits: for a permission, or for a hook. Knows no wire format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.scenario._events import is_told
from pytest_agentproc.scenario._fields import Fields, Key
from pytest_agentproc.scenario._kinds import Choice, Text
from pytest_agentproc.scenario._script import Steps

if TYPE_CHECKING:
    from pytest_agentproc.scenario._check import Check
    from pytest_agentproc.scenario._nodes import Node
    from pytest_agentproc.scenario._script import ProgramStep, Scope, Step

__all__ = ["ASK", "KINDS", "build_ask"]

KINDS = ("permission", "hook")
"""What can be asked for."""

_HOOKS = ("claude",)


def _ask(values: dict[str, Any], node: Node, what: str, check: Check) -> dict[str, Any]:
    if not is_told("ask", node, check):
        return values
    if check.depth:
        check.at(node, "a spawned process asks nothing: only the agent does")
    if "hook" in values and check.dialect not in _HOOKS:
        check.at(node, f"the dialect {check.dialect} has no hooks: ask for a permission")
    if "event" in values and "permission" in values:
        check.at(node, f"only a hook has an event: leave event out of {what}")
    return values


def build_ask(step: Step, scope: Scope) -> list[ProgramStep]:
    """Compile to the question and what follows each answer."""
    value = step.value
    kind = next(kind for kind in KINDS if kind in value)
    fields = {"kind": kind, "name": value[kind], "id": value.get("id"), "event": value.get("event", "PreToolUse")}
    branches = (scope.steps(value.get("allowed", ())), scope.steps(value.get("denied", ())))
    return [(step.line, step.name, (fields, *branches))]


ASK = Fields(
    (
        Key("permission", Text("TOOL", may_be_empty=False), "the tool that it wants to use"),
        Key("hook", Text("NAME", may_be_empty=False), "the callback that it wants called, by its id (claude)"),
        Key("event", Choice(("PreToolUse", "PostToolUse")), "what the hook is told of; PreToolUse if absent"),
        Key("id", Text("ID", may_be_empty=False), "the id of the request; one of its own if absent"),
        Key("allowed", Steps(), "what it does if that is allowed; nothing if absent"),
        Key("denied", Steps(), "what it does if that is denied; nothing if absent"),
    ),
    one_of=KINDS,
    finish=_ask,
)
