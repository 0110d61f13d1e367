"""Owns the steps that ask the client, and wait: for a permission, a hook, any other method. Knows no wire format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.scenario._events import is_told
from pytest_agentproc.scenario._fields import Fields, Key
from pytest_agentproc.scenario._kinds import Choice, Data, Text, Time
from pytest_agentproc.scenario._script import Steps

if TYPE_CHECKING:
    from pytest_agentproc.scenario._check import Check
    from pytest_agentproc.scenario._nodes import Node
    from pytest_agentproc.scenario._script import ProgramStep, Scope, Step

__all__ = ["ANSWERS", "ASK", "REQUEST", "build_ask", "build_request"]

_KINDS = ("permission", "hook")

ANSWERS = dict.fromkeys(_KINDS, ("allow", "deny", "cancelled", "none")) | {"request": ("answered", "refused", "none")}
"""What can be asked for, and what can be told; none: nothing."""

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
    if "told" in values and ("hook" in values or check.dialect not in _HOOKS):
        check.at(node, f"only claude's permissions are asked for with more: leave told out of {what}")
    if "for" in values and check.dialect not in _HOOKS:
        check.at(node, f"the dialect {check.dialect} takes no question back: leave for out of {what}")
    if "unanswered" in values and "for" not in values:
        check.at(node, f"{what} waits for ever: write how long it does, for: 60s, or leave unanswered out")
    return values


def _request(values: dict[str, Any], node: Node, _what: str, check: Check) -> dict[str, Any]:
    if is_told("request", node, check) and check.depth:
        check.at(node, "a spawned process asks nothing: only the agent does")
    return values


def build_ask(step: Step, scope: Scope) -> list[ProgramStep]:
    """Compile to the question and what follows each answer."""
    value = step.value
    kind = next(kind for kind in _KINDS if kind in value)
    fields = {"kind": kind, "name": value[kind], "id": value.get("id"), "event": value.get("event", "PreToolUse")}
    if "output" in value:
        fields["output"] = value["output"]
    if "told" in value:
        fields["told"] = value["told"]
    if "for" in value:
        fields["for"] = scope.ns(value["for"])
    branches = (scope.steps(value.get(name, ())) for name in ("allowed", "denied", "unanswered"))
    return [(step.line, step.name, (fields, *branches))]


def build_request(step: Step, scope: Scope) -> list[ProgramStep]:
    """Compile to a question, too: what its answer is called alone differs."""
    value = step.value
    fields = {"kind": "request", "name": value["method"], "id": value.get("id"), "params": value.get("params", {})}
    branches = (scope.steps(value.get("answered", ())), scope.steps(value.get("refused", ())))
    return [(step.line, "ask", (fields, *branches, []))]


ASK = Fields(
    (
        Key("permission", Text("TOOL", may_be_empty=False), "the tool that it wants to use"),
        Key("hook", Text("NAME", may_be_empty=False), "the callback that it wants called, by its id (claude)"),
        Key("event", Choice(("PreToolUse", "PostToolUse", "Stop")), "what the hook is told of; PreToolUse if absent"),
        Key("output", Text(), "what the tool gave, for PostToolUse"),
        Key("told", Data(), "what the request for a permission tells beside the tool (claude)"),
        Key("id", Text("ID", may_be_empty=False), "the id of the request; one of its own if absent"),
        Key("allowed", Steps(), "what it does if that is allowed; nothing if absent"),
        Key("denied", Steps(), "what it does if that is denied; nothing if absent"),
        Key("for", Time(), "how long it waits, then it takes the question back; for ever if absent (claude)"),
        Key("unanswered", Steps(), "what it does then; nothing if absent"),
    ),
    one_of=_KINDS,
    finish=_ask,
)
REQUEST = Fields(
    (
        Key("method", Text("METHOD", may_be_empty=False), "the method, in the protocol's words", required=True),
        Key("params", Data(), "what goes with it; the session's id is added; nothing else if absent"),
        Key("id", Text("ID", may_be_empty=False), "the id of the request; one of its own if absent"),
        Key("answered", Steps(), "what it does once it has the result; nothing if absent"),
        Key("refused", Steps(), "what it does if an error comes instead; nothing if absent"),
    ),
    finish=_request,
)
