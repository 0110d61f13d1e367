"""Owns the table of a file's own keys: who the agent is, what it is told, what belongs to the claim.

Steps it knows by their names only.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_agentproc.scenario._agent import AGENT, Policies, Script, Scripts
from pytest_agentproc.scenario._drive import DRIVE, DRIVE_KEYS, HANDLERS, Item
from pytest_agentproc.scenario._elsewhere import COMMANDS, words
from pytest_agentproc.scenario._expect import EXPECT, EXPECT_BELOW, EXPECT_KEYS, Expected
from pytest_agentproc.scenario._fields import Fields, Key
from pytest_agentproc.scenario._kinds import Choice, ListOf, Text, Time
from pytest_agentproc.scenario._nodes import Mapping, Node, Scalar
from pytest_agentproc.scenario._several import SEVERAL
from pytest_agentproc.scenario._shapes import Form, MapOf
from pytest_agentproc.scenario._steps import STEPS
from pytest_agentproc.scenario._words import shorten, unknown
from pytest_agentproc.vocabulary import LEVELS, POLICY_NAMES, RULES

if TYPE_CHECKING:
    from pytest_agentproc.scenario._check import Check

__all__ = ["BLOCKAGE", "FILE", "HOST"]


class _Covers(Text):
    """The id of a rule."""

    shape = Choice(tuple(RULES))

    def read(self, node: Node, what: str, check: Check) -> str:
        """Take the id."""
        name = super().read(node, what, check)
        if name and name not in RULES:
            check.at(node, unknown("rule", name, RULES))
        return name


class _Catches:
    """Defects, each with the key that it must turn red."""

    label = "{DEFECT: KEY, ...}"
    shape = MapOf(Text(), Form("[a-z0-9]+(-[a-z0-9]+)*"))

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


_ELSEWHERE = {
    **words("it is a step, and belongs under script", STEPS),
    **words("it belongs under agent", (key.name for key in AGENT.mapping.keys)),
    **words("it belongs under drive", (name for name in DRIVE_KEYS if name not in (*STEPS, "session"))),
    **words("it belongs under policy", POLICY_NAMES),
    **words("it belongs under expect", EXPECT_KEYS),
    **COMMANDS,
}


def _host_finish(values: dict[str, Any], node: Node, what: str, check: Check) -> dict[str, Any]:
    if not values:
        check.at(node, f"{what} says nothing: write artifacts, loop_blocked, or both")
    disk = {"disk": values["artifacts"]} if "artifacts" in values else {}
    return {**disk, "host_line": node.line, "blockage": values.get("loop_blocked")}


def _blockage_finish(values: dict[str, Any], node: Node, _what: str, _check: Check) -> Item:
    return Item(node.line, "block", values["for"], at=values["at"])


BLOCKAGE = Fields(
    (
        Key("at", Time(), "from when on", required=True),
        Key("for", Time(), "for how long", required=True),
    ),
    finish=_blockage_finish,
)


HOST = Fields(
    (
        Key(
            "artifacts",
            Choice(("read_only", "full")),
            "how the disk is that they go to: nobody can make a file there, or nothing can be written to one",
        ),
        Key(
            "loop_blocked",
            BLOCKAGE,
            "when other code keeps the event loop from running: what comes and what is due then is found at once",
        ),
    ),
    finish=_host_finish,
)


def _finish(values: dict[str, Any], node: Node, _what: str, check: Check) -> dict[str, Any]:
    """Put the checks of all levels together, in the order of the file; each key stands once."""
    level = values.get("level", LEVELS[0])
    lines = {key.text: key for key, _ in node.pairs} if isinstance(node, Mapping) else {}
    found: dict[str, Expected] = {one.key: one for one in values.get("expect", ())}
    for block in EXPECT_BELOW:
        if block in values and LEVELS.index(block) <= LEVELS.index(level):
            check.at(lines[block], f"the level of this file is {level}: write these checks under expect")
        for one in values.pop(block, ()):
            first = found.setdefault(one.key, one)
            if first is not one and one.key.rpartition(".")[2] != "background":  # that one counts, in every block
                message = f"{one.key} stands in line {first.line} already: write it at one level only"
                check.report(one.line, one.column, message)
    if found:
        values["expect"] = tuple(sorted(found.values(), key=lambda one: (one.line, one.column)))
    return values


FILE = Fields(
    (
        Key("scenario", Text(may_be_empty=False), "the claim, in one sentence", required=True),
        Key("source", Text(may_be_empty=False), "the URL of a bug report, or a seed"),
        Key("covers", ListOf(_Covers("RULE"), unique=True), "ids of the rules that it covers"),
        Key("level", Choice(LEVELS), "how much the checks under expect count; must if absent"),
        Key("harm", Text(may_be_empty=False), "what a user loses if the supervisor breaks it, in one sentence"),
        Key("agent", AGENT, "who the agent is: a dialect, or more", required=True, unless="sessions"),
        Key("policy", Policies(), "limits that the supervisor is told before the run"),
        Key("host", HOST, "the world around the supervisor"),
        Key("sessions", SEVERAL, "several agents at a time; each session has these keys for itself"),
        Key("handler", HANDLERS, "how the caller of a session answers its agent; all questions are denied if absent"),
        Key("drive", DRIVE, "what the caller does; one prompt, hi, if absent"),
        Key("script", Script(), "what the fake does"),
        Key("scripts", Scripts(), "what it does in each invocation instead; the last holds for all further ones"),
        Key("expect", EXPECT, "what must be true, at the level of the file"),
        Key("should", EXPECT_BELOW["should"], "checks at level should, in a file whose level is must"),
        Key("info", EXPECT_BELOW["info"], "checks at level info, in a file whose level is must or should"),
        Key("catches", _Catches(), "defects, each with the expect key that it turns red"),
    ),
    finish=_finish,
    elsewhere=_ELSEWHERE,
)
