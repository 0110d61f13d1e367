"""Owns what a scenario expects of the answers to its agent's questions. Refuses to judge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.scenario._asks import ANSWERS
from pytest_agentproc.scenario._fields import Fields, Key
from pytest_agentproc.scenario._kinds import Choice, ListOf, Text, Time
from pytest_agentproc.scenario._words import choices

if TYPE_CHECKING:
    from pytest_agentproc.scenario._check import Check
    from pytest_agentproc.scenario._nodes import Node
    from pytest_agentproc.scenario._script import Scope

__all__ = ["ASKED", "ASKED_KEYS", "bind_asked"]


def _item(values: dict[str, Any], node: Node, what: str, check: Check) -> dict[str, Any]:
    kind = next(kind for kind in ANSWERS if kind in values)
    if values.get("answer", "none") not in ANSWERS[kind]:
        check.at(node, f"{what}: a {kind} is never told {values['answer']}: known are {choices(ANSWERS[kind])}")
    if values.get("answer") == "none" and "after" in values:
        check.at(node, f"what was never answered has no time: leave after out of {what}")
    return values


def bind_asked(value: list[dict[str, Any]], scope: Scope) -> list[dict[str, Any]]:
    """Give the normal form: kind and name, the answer and its time in nanoseconds, None where the file has none."""
    return [
        {
            "kind": kind,
            "name": item[kind],
            "answer": item.get("answer"),
            "after": scope.exact(item["after"]) if "after" in item else None,
        }
        for item in value
        for kind in ANSWERS
        if kind in item
    ]


_WORDS = tuple(dict.fromkeys(word for words in ANSWERS.values() for word in words))

ASKED_KEYS = (
    Key("permission", Text("TOOL", may_be_empty=False), "the tool that it wanted to use"),
    Key("hook", Text("NAME", may_be_empty=False), "the callback that it wanted called"),
    Key("request", Text("METHOD", may_be_empty=False), "the method that it called"),
    Key("answer", Choice(_WORDS), "what it was told; not checked if absent"),
    Key("after", Time(), "from the question to the answer; not checked if absent"),
)
ASKED = ListOf(Fields(ASKED_KEYS, one_of=tuple(ANSWERS), finish=_item))
