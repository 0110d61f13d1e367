"""Owns the step that starts a descendant: its forms, its name. Refuses to know how a process is started."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.scenario._elsewhere import COMMANDS
from pytest_agentproc.scenario._fields import Fields, Key
from pytest_agentproc.scenario._kinds import Choice, Flag, ListOf, Time, Word
from pytest_agentproc.scenario._nodes import Mapping, Node, Scalar
from pytest_agentproc.scenario._script import ProgramStep, Scope, Step, Steps
from pytest_agentproc.scenario._words import shorten

if TYPE_CHECKING:
    from pytest_agentproc.scenario._check import Check

__all__ = ["FORM", "SPAWN", "build_spawn"]

_RESERVED = ("agent", "caller", "supervisor", "tree")


def build_spawn(step: Step, scope: Scope) -> list[ProgramStep]:
    """Compile to `spawn`, with the child's own steps if it has a script."""
    value = step.value
    child = {
        "id": value["id"],
        "how": value.get("how", "same_group"),
        "holds": list(value.get("holds", ())),
        "deaf": value.get("deaf", False),
        "for": scope.ns(value.get("for")),
    }
    steps = scope.steps(value["script"]) if "script" in value else None
    return [(step.line, "spawn", (child, steps))]


FORM = Fields(
    (
        Key("id", Word(), "its name in expect and in the timeline; child1, child2, ... if absent"),
        Key("how", Choice(("same_group",)), "an ordinary child, in the agent's process group"),
        Key("holds", ListOf(Choice(("stdout", "stderr")), unique=True), "the streams it keeps open; none if absent"),
        Key("deaf", Flag(), "whether it catches and ignores TERM, INT and HUP"),
        Key("for", Time(("ever",)), "how long it lives; for ever if absent"),
        Key("script", Steps(), "what it does instead; its end ends the process"),
    ),
    elsewhere=COMMANDS,
)


class _Spawn:
    """An id, or the long form. The name is given away before the child's own script is read: names follow the file."""

    label = f"ID or {FORM.label}"
    form = FORM

    def read(self, node: Node, what: str, check: Check) -> Any:
        """Read either form into the values of the long one, the id among them."""
        before = len(check.problems)
        if isinstance(node, Scalar):
            name = _take_name(Word().read(node, what, check), node, what, check)
            return {"id": name}
        given = {key.text: value for key, value in node.pairs} if isinstance(node, Mapping) else {}
        own = given.get("id")
        word = own.text if isinstance(own, Scalar) else _next_name(check)
        name = _take_name(word, own or node, what, check)
        check.depth += 1
        values = FORM.read(node, what, check)
        check.depth -= 1
        if values is None or len(check.problems) > before:
            return None
        if "for" in values and "script" in values:
            check.at(node, f"{what} has both for and script: the end of its script is the end of the process")
        return {**values, "id": name}


SPAWN = _Spawn()


def _take_name(name: str, node: Node, what: str, check: Check) -> str:
    if name in _RESERVED:
        check.at(node, f'{what}.id cannot be "{name}": records call another by that name')
    elif name in check.sessions:
        check.at(node, f'{what}.id "{shorten(name)}" is taken by the session in line {check.sessions[name]}')
    elif name in check.spawned:
        check.at(node, f'{what}.id "{shorten(name)}" is taken by the spawn in line {check.spawned[name]}')
    elif name:
        check.spawned[name] = node.line
    return name


def _next_name(check: Check) -> str:
    check.nameless += 1
    while f"child{check.nameless}" in (*check.spawned, *check.sessions):
        check.nameless += 1
    return f"child{check.nameless}"
