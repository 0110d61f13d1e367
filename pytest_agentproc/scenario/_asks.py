"""Owns the step that asks the client, and waits: for a permission, or for a hook. Knows no wire format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.scenario._events import is_told
from pytest_agentproc.scenario._fields import Fields, Key
from pytest_agentproc.scenario._kinds import Choice, Text, Time
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
    for key in ("event", "output"):
        if key in values and "permission" in values:
            check.at(node, f"only a hook has an {key}: leave {key} out of {what}")
    if "output" in values and "hook" in values and values.get("event") != "PostToolUse":
        check.at(node, f"only PostToolUse tells what a tool gave: leave output out of {what}")
    if "for" in values and check.dialect not in _HOOKS:
        check.at(node, f"the dialect {check.dialect} takes no question back: leave for out of {what}")
    if "unanswered" in values and "for" not in values:
        check.at(node, f"{what} waits for ever: write how long it does, for: 60s, or leave unanswered out")
    return values


def build_ask(step: Step, scope: Scope) -> list[ProgramStep]:
    """Compile to the question and what follows each answer."""
    value = step.value
    kind = next(kind for kind in KINDS if kind in value)
    fields = {"kind": kind, "name": value[kind], "id": value.get("id"), "event": value.get("event", "PreToolUse")}
    if "output" in value:
        fields["output"] = value["output"]
    if "for" in value:
        fields["for"] = scope.ns(value["for"])
    branches = (scope.steps(value.get(name, ())) for name in ("allowed", "denied", "unanswered"))
    return [(step.line, step.name, (fields, *branches))]


ASK = Fields(
    (
        Key("permission", Text("TOOL", may_be_empty=False), "the tool that it wants to use"),
        Key("hook", Text("NAME", may_be_empty=False), "the callback that it wants called, by its id (claude)"),
        Key("event", Choice(("PreToolUse", "PostToolUse", "Stop")), "what the hook is told of; PreToolUse if absent"),
        Key("output", Text(), "what the tool gave, for PostToolUse"),
        Key("id", Text("ID", may_be_empty=False), "the id of the request; one of its own if absent"),
        Key("allowed", Steps(), "what it does if that is allowed; nothing if absent"),
        Key("denied", Steps(), "what it does if that is denied; nothing if absent"),
        Key("for", Time(), "how long it waits, then it takes the question back; for ever if absent (claude)"),
        Key("unanswered", Steps(), "what it does then; nothing if absent"),
    ),
    one_of=KINDS,
    finish=_ask,
)
