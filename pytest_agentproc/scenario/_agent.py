"""Owns what a file says of one agent: who it is, its supervisor's limits, its scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fake_agents.program import CHUNK
from pytest_agentproc.scenario._elsewhere import COMMANDS
from pytest_agentproc.scenario._expressions import Expression, Unfit, evaluate, names
from pytest_agentproc.scenario._fields import Either, Fields, Key
from pytest_agentproc.scenario._kinds import Choice, Flag, ListOf, Size, Text, Time
from pytest_agentproc.scenario._nodes import Mapping, Node, Scalar, Sequence
from pytest_agentproc.scenario._script import Step, Steps
from pytest_agentproc.scenario._shapes import AnyOf
from pytest_agentproc.scenario._spawn import check_children
from pytest_agentproc.scenario._words import choices, shorten, unknown
from pytest_agentproc.vocabulary import (
    CONTAINMENTS,
    LIST_NAMES,
    NANOSECONDS,
    OPTIONAL_NAMES,
    POLICY_NAMES,
    SIZE_NAMES,
    WORD_NAMES,
    Policy,
)

if TYPE_CHECKING:
    from pytest_agentproc.scenario._check import Check

__all__ = ["AGENT", "MODES", "Policies", "Script", "Scripts"]

MODES = {
    "raw": ("text",),
    "claude": ("print", "session"),
    "pi": ("json", "rpc"),
    "codex": ("exec",),
    "gemini": ("text", "json", "stream"),
    "acp": ("session",),
}
"""Every dialect with its modes, the default first."""

_NAMELESS = (("raw", "text"), ("codex", "exec"), ("gemini", "text"), ("acp", "session"))
"""Those that never tell which model answers."""


class _Dialect(Choice):
    """A dialect; the check keeps it, because steps differ."""

    def read(self, node: Node, what: str, check: Check) -> str:
        """Take the name, of one of the kit's or of one that was added, if that can be used."""
        added = check.language.dialects
        check.dialect = Choice((*self.options, *added)).read(node, "dialect", check)
        fault = added[check.dialect].fault if check.dialect in added else ""
        if fault:
            check.at(node, fault)
        return check.dialect


class _Each:
    """The agents that a file runs with; the loader takes one of them in its place before it reads the file."""

    label = "[DIALECT, DIALECT MODE, ...]"
    shape = ListOf(Text("DIALECT", may_be_empty=False), unique=True)

    def read(self, node: Node, what: str, check: Check) -> None:
        """Refuse it: the loader has left it where a file has several agents at a time."""
        check.at(node, f"{what} is for a file with one agent at a time: leave sessions out")


def _agent_finish(values: dict[str, Any], node: Node, _what: str, check: Check) -> dict[str, Any]:
    added = check.language.dialects.get(values["dialect"])
    modes = MODES[values["dialect"]] if added is None else added.dialect.modes
    mode = values.get("mode", modes[0])
    if mode not in modes:
        known = f"known {'is' if len(modes) == 1 else 'are'} {choices(modes)}"
        check.at(node, f'the dialect {values["dialect"]} has no mode "{shorten(mode)}": {known}')
    check.mode = mode
    check.prompt_by = values.get("prompt", "argv")
    check.is_spawned = "cannot_spawn" not in values
    check.tell({})
    if "model" in values and (values["dialect"], mode) in _NAMELESS:
        check.at(node, f"the dialect {values['dialect']} names no model in mode {mode}: leave model out")
    if "partials" in values and values["dialect"] != "claude":
        check.at(node, f"the dialect {values['dialect']} has no partial messages: leave partials out")
    if "states" in values and (values["dialect"], mode) != ("claude", "session"):
        check.at(node, f"the dialect {values['dialect']} tells no states in mode {mode}: known by claude session")
    return {**values, "mode": mode}


def _limit_of(name: str) -> Key:
    """Show one limit as a key."""
    default = getattr(Policy(), name)
    may_be_off = name in OPTIONAL_NAMES
    kind: Any = Time(("off",) if may_be_off else ())
    if name in LIST_NAMES:
        kind, told = ListOf(Text("NAME", may_be_empty=False), unique=True), "none"
    elif name in WORD_NAMES:
        kind, told = Choice(CONTAINMENTS), default
    elif name in SIZE_NAMES:
        kind, told = AnyOf((Size(low=1), *([Choice(("off",))] if may_be_off else []))), f"{default} B"
    else:
        told = "off" if default is None else f"{default:g} s"
    return Key(name, kind, f"a limit; of most dialects the reference supervisor's is {told}")


class Policies:
    """Limits for the supervisor, in seconds or bytes, `off` switches one off; names of tools; how a tree is held."""

    label = "{NAME: T / SIZE / [NAME, ...] / WORD / off}"

    @property
    def shape(self) -> Fields:
        """Show every limit with its type."""
        return Fields(tuple(_limit_of(name) for name in POLICY_NAMES))

    def read(self, node: Node, what: str, check: Check) -> dict[str, Any]:
        """Read the limits; the check keeps them, because expressions are tried with them."""
        if not isinstance(node, Mapping):
            check.wrong(node, what, f"a mapping such as {self.label}")
            return {}
        limits: dict[str, Any] = {}
        for name, given in node.pairs:
            if name.text not in POLICY_NAMES:
                check.at(name, unknown("limit", name.text, POLICY_NAMES))
                continue
            before = len(check.problems)
            limit = self._limit(name.text, given, f"{what}.{name.text}", check)
            if len(check.problems) == before:
                limits[name.text] = limit
        check.tell(limits)
        return limits

    def _limit(self, name: str, node: Node, what: str, check: Check) -> Any:
        check.told_lines.setdefault(name, node.line)
        if name in LIST_NAMES:
            return tuple(ListOf(Text("NAME", may_be_empty=False), unique=True).read(node, what, check))
        if name in WORD_NAMES:
            return Choice(CONTAINMENTS).read(node, what, check)
        is_off = isinstance(node, Scalar) and node.text == "off"
        if name not in OPTIONAL_NAMES and is_off:
            return check.at(node, f"{what} cannot be off: only {choices(sorted(OPTIONAL_NAMES), 'and')} can")
        if name in SIZE_NAMES:
            return None if is_off else Size(low=1).read(node, what, check)
        time = Time(("off",) if name in OPTIONAL_NAMES else ()).read(node, what, check)
        return self._seconds(time, node, what, check) if isinstance(time, Expression) else None

    def _seconds(self, time: Expression, node: Node, what: str, check: Check) -> float | None:
        if names(time.tree):
            check.at(node, f"{what} must be a plain time: limits do not depend on one another")
            return None
        try:
            return evaluate(time, {}) / NANOSECONDS
        except Unfit:  # as the time was read, this was told
            return None


class Script(Steps):
    """The agent's own script; whether it is sound decides whether names of processes can be checked."""

    def read(self, node: Node, what: str, check: Check) -> tuple[Step, ...]:
        """Read the steps."""
        before = len(check.problems)
        steps = super().read(node, what, check)
        check_children(check)
        check.is_script_sound = len(check.problems) == before
        return steps


class Scripts:
    """A list of scripts; a tool's id is free again in the next one, a process's is not."""

    label = "[steps, ...]"
    script = Script()
    shape = ListOf(script)

    def read(self, node: Node, what: str, check: Check) -> tuple[tuple[Step, ...], ...]:
        """Read every script."""
        if not isinstance(node, Sequence):
            check.wrong(node, what, "a list of scripts, one for each invocation")
            return ()
        if not node.items:
            check.at(node, f"{what} must have one script at least")
        found, are_sound = [], True
        for item in node.items:
            check.tools.clear()
            check.tasks.clear()
            found.append(self.script.read(item, f"each item of {what}", check))
            are_sound = are_sound and check.is_script_sound
        check.is_script_sound = are_sound
        return tuple(found)


AGENT = Either(
    _Dialect(tuple(MODES)),
    Fields(
        (
            Key("dialect", _Dialect(tuple(MODES)), "the wire format it speaks", required=True, unless="each"),
            Key("each", _Each(), "instead of a dialect: the file runs once for each of these"),
            Key(
                "mode",
                Text("MODE"),
                "its variant: text for raw; print (if absent) or session for claude; json (if absent) or rpc for pi; "
                "exec for codex; text (if absent), json or stream for gemini; session for acp",
            ),
            Key("prompt", Choice(("argv", "stdin")), "how the prompt reaches it; argv if absent"),
            Key("model", Text("NAME", may_be_empty=False), "what it calls its model; the fake's own word if absent"),
            Key("newline", Choice(("lf", "crlf", "none")), "how its lines end; none: not the last; lf if absent"),
            Key("bom", Flag(), "whether a byte order mark comes first"),
            Key(
                "chunk",
                Size(low=1, high=CHUNK),
                "the most that it writes at a time, each piece once the one before can be read; "
                f"if absent {CHUNK} B, and 64 KiB of more than that",
            ),
            Key("partials", Flag(), "whether claude is asked for partial messages; true if absent"),
            Key("states", Flag(), "whether claude is asked to tell its session's state; false if absent"),
            Key("cannot_spawn", Choice(("not_found", "not_executable")), "why it cannot even be started"),
        ),
        finish=_agent_finish,
        elsewhere=COMMANDS,
    ),
    key="dialect",
)
