"""Owns the step that starts a descendant: its forms, its name. Refuses to know how a process is started."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.scenario._elsewhere import COMMANDS
from pytest_agentproc.scenario._fields import Fields, Key
from pytest_agentproc.scenario._kinds import Choice, Flag, ListOf, Time, Whole, Word
from pytest_agentproc.scenario._nodes import Mapping, Node, Scalar
from pytest_agentproc.scenario._script import ProgramStep, Scope, Step, Steps
from pytest_agentproc.scenario._words import choices, shorten, unknown
from pytest_agentproc.vocabulary import SIGNALS

if TYPE_CHECKING:
    from pytest_agentproc.scenario._check import Check

__all__ = ["FORM", "KILL", "SPAWN", "build_kill", "build_spawn"]

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
        **{flag: True for flag in _FLAGS if value.get(flag)},
    }
    if child["how"] == _REFORK:
        child["every"] = scope.exact(value["every"]) if "every" in value else _HOP
        child["heads"] = value.get("heads", 1)
    steps = scope.steps(value["script"]) if "script" in value else None
    return [(step.line, "spawn", (child, steps))]


def build_kill(step: Step, _scope: Scope) -> list[ProgramStep]:
    """Compile to `kill`."""
    return [(step.line, "kill", (step.value,))]


_REFORK = "refork"
_ORPHANS = ("double_fork", "daemon", "launcher", _REFORK)
_HOWS = ("same_group", "own_group", "new_session", *_ORPHANS)
_LEADERS = ("own_group", "new_session")
"""Those that their parent can end with their whole group: it knows them, and they are not in its own."""

_HOP = 100_000_000
"""Nanoseconds between two forks of what re-forks, unless the file says otherwise."""

_FLAGS = ("closed_fds", "clear_env", "stopped", "zombie", "subreaper")


def _finish(values: dict[str, Any], node: Node, what: str, check: Check) -> dict[str, Any]:
    """Look for what does not go together."""
    how = values.get("how", _HOWS[0])
    for name in ("every", "heads"):
        if name in values and how != _REFORK:
            check.at(node, f"{what} has {name}, and how: {how} forks once: write how: refork, or leave {name} out")
    for name in ("script", "stopped", "subreaper"):
        if how == _REFORK and values.get(name) not in (None, False):
            check.at(node, f"{what} has {name}, and what re-forks only forks and exits: leave {name} out")
    if values.get("zombie") and how in _ORPHANS:
        alternatives = choices([one for one in _HOWS if one not in _ORPHANS])
        check.at(node, f"{what} is a zombie at its end, and how: {how} has no parent then: write how: {alternatives}")
    if "for" in values and "script" in values:
        check.at(node, f"{what} has both for and script: the end of its script is the end of the process")
    return values


FORM = Fields(
    (
        Key("id", Word(), "its name in expect and in the timeline; child1, child2, ... if absent"),
        Key("how", Choice(_HOWS), "how it leaves its parent, see above; same_group if absent"),
        Key("every", Time(), "refork: how long each of it lives before the next; 100ms if absent, 0s is for real time"),
        Key("heads", Whole(1, 64), "refork: so many of it at a time, each with its own followers; 1 if absent"),
        Key("holds", ListOf(Choice(("stdout", "stderr")), unique=True), "the streams it keeps open; none if absent"),
        Key("deaf", Flag(), "whether it catches and ignores TERM, INT and HUP"),
        Key("closed_fds", Flag(), "whether it closes all that it inherited beside the standard streams"),
        Key("clear_env", Flag(), "whether its environment is empty"),
        Key("stopped", Flag(), "whether it stops itself at its birth, as by SIGSTOP, until CONT or KILL"),
        Key("zombie", Flag(), "whether nobody waits for it: it stays a zombie until its parent ends"),
        Key("subreaper", Flag(), "whether it adopts what its descendants let go of"),
        Key("for", Time(("ever",)), "how long it lives; for ever if absent"),
        Key("script", Steps(), "what it does instead; its end ends the process"),
    ),
    finish=_finish,
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
            check.kinds[name] = (_HOWS[0], check.depth)
            return {"id": name}
        given = {key.text: value for key, value in node.pairs} if isinstance(node, Mapping) else {}
        own = given.get("id")
        word = own.text if isinstance(own, Scalar) else _next_name(check)
        name = _take_name(word, own or node, what, check)
        how = given.get("how")
        check.kinds[name] = (how.text if isinstance(how, Scalar) else _HOWS[0], check.depth)
        check.depth += 1
        values = FORM.read(node, what, check)
        check.depth -= 1
        if values is None or len(check.problems) > before:
            return None
        return {**values, "id": name}


class _Kill:
    """The id of a child that leads a group of its own."""

    label = "ID"

    def read(self, node: Node, what: str, check: Check) -> str:
        """Take the id."""
        name = Word().read(node, what, check)
        if not name:
            return name
        if name not in check.kinds:
            remedy = f": for its own death write die: {name}" if name.removeprefix("SIG") in SIGNALS else ""
            known = unknown("process", name, check.spawned) if check.spawned else "no process was spawned before"
            check.at(node, known + remedy)
            return name
        how, depth = check.kinds[name]
        if how not in _LEADERS:
            check.at(node, f'{what} ends a group, and "{shorten(name)}" leads none: write how: {choices(_LEADERS)}')
        elif depth != check.depth:
            check.at(node, f'{what} is for a child of its own, and "{shorten(name)}" is another\'s')
        return name


SPAWN = _Spawn()
KILL = _Kill()


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
