"""Owns the table of a file's own keys: who the agent is, what it is told, what belongs to the claim.

Steps it knows by their names only.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_agentproc.scenario._drive import DRIVE, DRIVE_KEYS, HANDLERS
from pytest_agentproc.scenario._elsewhere import COMMANDS, words
from pytest_agentproc.scenario._expect import EXPECT, EXPECT_KEYS
from pytest_agentproc.scenario._expressions import Expression, Unfit, evaluate, names
from pytest_agentproc.scenario._fields import Either, Fields, Key
from pytest_agentproc.scenario._kinds import Choice, Flag, ListOf, Size, Text, Time
from pytest_agentproc.scenario._nodes import Mapping, Node, Scalar, Sequence
from pytest_agentproc.scenario._script import Step, Steps
from pytest_agentproc.scenario._steps import STEPS
from pytest_agentproc.scenario._words import choices, shorten, unknown
from pytest_agentproc.vocabulary import LIST_NAMES, NANOSECONDS, OPTIONAL_NAMES, POLICY_NAMES, RULES, SIZE_NAMES

if TYPE_CHECKING:
    from pytest_agentproc.scenario._check import Check

__all__ = ["AGENT", "FILE", "HOST", "MODES"]

MODES = {
    "raw": ("text",),
    "claude": ("print", "session"),
    "pi": ("json", "rpc"),
    "codex": ("exec",),
    "gemini": ("text", "json", "stream"),
    "acp": ("session",),
}
"""Every dialect with its modes, the default first."""


class _Dialect(Choice):
    """A dialect; the check keeps it, because steps differ."""

    def read(self, node: Node, what: str, check: Check) -> str:
        """Take the name."""
        check.dialect = super().read(node, "dialect", check)
        return check.dialect


def _agent_finish(values: dict[str, Any], node: Node, _what: str, check: Check) -> dict[str, Any]:
    modes = MODES[values["dialect"]]
    mode = values.get("mode", modes[0])
    if mode not in modes:
        known = f"known {'is' if len(modes) == 1 else 'are'} {choices(modes)}"
        check.at(node, f'the dialect {values["dialect"]} has no mode "{shorten(mode)}": {known}')
    check.mode = mode
    check.prompt_by = values.get("prompt", "argv")
    check.is_spawned = "cannot_spawn" not in values
    check.tell({})
    if "partials" in values and values["dialect"] != "claude":
        check.at(node, f"the dialect {values['dialect']} has no partial messages: leave partials out")
    return {**values, "mode": mode}


class _Policy:
    """Limits for the supervisor, in seconds or bytes, `off` switches one off; and names of tools."""

    label = "{NAME: T / SIZE / [NAME, ...] / off}"

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
        if name in LIST_NAMES:
            return tuple(ListOf(Text("NAME", may_be_empty=False), unique=True).read(node, what, check))
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


class _Script(Steps):
    """The agent's own script; whether it is sound decides whether names of processes can be checked."""

    def read(self, node: Node, what: str, check: Check) -> tuple[Step, ...]:
        """Read the steps."""
        before = len(check.problems)
        steps = super().read(node, what, check)
        check.is_script_sound = len(check.problems) == before
        return steps


class _Scripts:
    """A list of scripts; a tool's id is free again in the next one, a process's is not."""

    label = "[steps, ...]"
    script = _Script()

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


class _Covers(Text):
    """The id of a rule."""

    def read(self, node: Node, what: str, check: Check) -> str:
        """Take the id."""
        name = super().read(node, what, check)
        if name and name not in RULES:
            check.at(node, unknown("rule", name, RULES))
        return name


class _Catches:
    """Defects, each with the key that it must turn red."""

    label = "{DEFECT: KEY, ...}"

    def read(self, node: Node, what: str, check: Check) -> dict[str, str]:
        """Read the pairs; a key must be one that this file expects, or leaks."""
        if not isinstance(node, Mapping):
            check.wrong(node, what, f"a mapping such as {self.label}")
            return {}
        found: dict[str, str] = {}
        known = dict.fromkeys((*check.expected, "leaks"))
        for name, value in node.pairs:
            if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name.text):
                check.at(
                    name, f'a defect is named in small letters with "-" between the words, not "{shorten(name.text)}"'
                )
            key = Text().read(value, f"{what}.{name.text}", check)
            if isinstance(value, Scalar) and key and key not in known and check.is_expect_sound:
                check.at(value, unknown("key of this file's expect", key, known))
            found[name.text] = key
        return found


AGENT = Either(
    _Dialect(tuple(MODES)),
    Fields(
        (
            Key("dialect", _Dialect(tuple(MODES)), "the wire format it speaks", required=True),
            Key(
                "mode",
                Text("MODE"),
                "its variant: text for raw; print (if absent) or session for claude; json (if absent) or rpc for pi; "
                "exec for codex; text (if absent), json or stream for gemini; session for acp",
            ),
            Key("prompt", Choice(("argv", "stdin")), "how the prompt reaches it; argv if absent"),
            Key("newline", Choice(("lf", "crlf", "none")), "how its lines end; none: not the last; lf if absent"),
            Key("bom", Flag(), "whether a byte order mark comes first"),
            Key("partials", Flag(), "whether claude is asked for partial messages; true if absent"),
            Key("cannot_spawn", Choice(("not_found", "not_executable")), "why it cannot even be started"),
        ),
        finish=_agent_finish,
        elsewhere=COMMANDS,
    ),
    key="dialect",
)

_ELSEWHERE = {
    **words("it is a step, and belongs under script", STEPS),
    **words("it belongs under agent", (key.name for key in AGENT.mapping.keys)),
    **words("it belongs under drive", (name for name in DRIVE_KEYS if name not in STEPS)),
    **words("it belongs under policy", POLICY_NAMES),
    **words("it belongs under expect", EXPECT_KEYS),
    **COMMANDS,
}


def _host_finish(values: dict[str, Any], node: Node, _what: str, _check: Check) -> tuple[str, int]:
    return values["artifacts"], node.line


HOST = Fields(
    (
        Key(
            "artifacts",
            Choice(("read_only", "full")),
            "how the disk is that they go to: nobody can make a file there, or nothing can be written to one",
            required=True,
        ),
    ),
    finish=_host_finish,
)


FILE = Fields(
    (
        Key("scenario", Text(may_be_empty=False), "the claim, in one sentence", required=True),
        Key("source", Text(may_be_empty=False), "the URL of a bug report, or a seed"),
        Key("covers", ListOf(_Covers("RULE"), unique=True), "ids of the rules that it covers"),
        Key("tier", Choice(("must", "should", "info")), "whether it decides; must if absent"),
        Key("agent", AGENT, "who the agent is: a dialect, or more", required=True),
        Key("policy", _Policy(), "limits that the supervisor is told before the run"),
        Key("host", HOST, "the world around the supervisor"),
        Key("handler", HANDLERS, "how the caller of a session answers its agent; all questions are denied if absent"),
        Key("drive", DRIVE, "what the caller does; one prompt, hi, if absent"),
        Key("script", _Script(), "what the fake does"),
        Key("scripts", _Scripts(), "what it does in each invocation instead; the last holds for all further ones"),
        Key("expect", EXPECT, "what must be true"),
        Key("catches", _Catches(), "defects, each with the expect key that it turns red"),
    ),
    elsewhere=_ELSEWHERE,
)
