"""Owns the steps of a conversation: waiting for a prompt or a cancel, acknowledging one. Knows no wire format."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_agentproc.scenario._fields import Either, Fields, Key
from pytest_agentproc.scenario._kinds import Choice, ListOf, Only, Text, Time, Whole
from pytest_agentproc.scenario._language import SESSIONS
from pytest_agentproc.scenario._nodes import Node, Scalar
from pytest_agentproc.scenario._shapes import Form
from pytest_agentproc.scenario._words import choices

if TYPE_CHECKING:
    from pytest_agentproc.scenario._check import Check
    from pytest_agentproc.scenario._script import ProgramStep, Scope, Step

__all__ = [
    "ACKNOWLEDGE",
    "AWAITED",
    "HANDSHAKE",
    "HAPPENS",
    "build_acknowledge",
    "build_awaited",
    "build_handshake",
]

_SHAKERS = (("claude", "session"), ("acp", "session"))

_INTERRUPTED = ("claude", "session")
"""The one that ends its turn in its own words when a signal comes."""

_VERSIONED = _LOADED = ("acp",)
_PROMPT = re.compile(r"prompt ([1-9][0-9]{0,8})", re.ASCII)
_FORMS = "eof, prompt N, cancel, {stdin: PATTERN} or {exit: ID}"
_EVENTS = "eof, epipe, cancel or {signal: TERM}"


def _is_heard(node: Node, what: str, check: Check) -> None:
    """Report what only a session hears, where the agent is none; of a mode that is itself wrong nothing is said."""
    if check.depth:
        check.at(node, f"a spawned process hears no {what}: only the agent does")
    elif check.mode and not check.is_session:
        known = choices([f"{dialect} {mode}" for dialect, mode in check.language.sessions])
        check.at(node, f"the dialect {check.dialect} hears no {what} in mode {check.mode}: known by {known}")


@dataclass(frozen=True)
class _Awaited:
    """What a script can wait for, in a word: the end of stdin, a prompt by its number, a cancel."""

    label: str = "eof / prompt N / cancel"
    shape = Form("eof|cancel|prompt [1-9][0-9]*", ("prompt 1", "cancel", "eof"))

    def read(self, node: Node, what: str, check: Check) -> str | int:
        """Take the word, or the prompt's number."""
        text = node.text if isinstance(node, Scalar) else ""
        found = _PROMPT.fullmatch(text)
        if found is None and text not in ("eof", "cancel"):
            remedy = 'count them from 1: "prompt 1"' if text.partition(" ")[0] in ("prompt", "prompts") else ""
            check.wrong(node, what, _FORMS, remedy)
        elif text != "eof":
            _is_heard(node, text.partition(" ")[0], check)
        return text if found is None else int(found[1])


@dataclass(frozen=True)
class _Happens(Only):
    """What a script can react to, in a word."""

    def read(self, node: Node, what: str, check: Check) -> str:
        """Take the word."""
        word = super().read(node, what, check)
        if word == "cancel":
            _is_heard(node, word, check)
        return word


@dataclass(frozen=True)
class _Acknowledged(Choice):
    """What a script can acknowledge."""

    def read(self, node: Node, what: str, check: Check) -> str:
        """Take the word."""
        word = super().read(node, what, check)
        if word == "cancel":
            _is_heard(node, word, check)
        elif word and check.mode and (check.depth or (check.dialect, check.mode) != _INTERRUPTED):
            who = "a spawned process" if check.depth else f"the dialect {check.dialect} in mode {check.mode}"
            told = "nothing of a signal" if word == "signal" else "no receipt of a cancel"
            check.at(node, f"{who} tells {told}: known by {' '.join(_INTERRUPTED)}")
        return word


def _handshake(values: dict[str, Any], node: Node, _what: str, check: Check) -> dict[str, Any]:
    if check.depth:
        check.at(node, "a spawned process has no handshake: only the agent has")
    elif check.mode and (check.dialect, check.mode) not in (*_SHAKERS, *check.language.sessions[len(SESSIONS) :]):
        known = choices([f"{dialect} {mode}" for dialect, mode in _SHAKERS])
        check.at(node, f"the dialect {check.dialect} has no handshake in mode {check.mode}: known by {known}")
    elif check.mode and "version" in values and check.dialect not in _VERSIONED:
        check.at(node, f"the dialect {check.dialect} tells no version of a protocol: only {choices(_VERSIONED)} does")
    elif check.mode and "history" in values and check.dialect not in _LOADED:
        check.at(node, f"the dialect {check.dialect} tells no history of a session: only {choices(_LOADED)} does")
    return values


_PAST = Fields(
    (
        Key("prompt", Text(), "what was asked"),
        Key("think", Text(), "what the agent thought"),
        Key("answer", Text(), "what it said"),
    ),
    one_of=("prompt", "think", "answer"),
)
AWAITED = _Awaited()
HANDSHAKE = Either(
    Only(("never",), "never, {after: T}, {error: TEXT}, {version: N} or {history: [...]}"),
    Fields(
        (
            Key("after", Time(positive=True), "how long its answer takes"),
            Key("error", Text(may_be_empty=False), "why it is refused"),
            Key("version", Whole(0, 65535), "the version of the protocol that it tells; 1 unless told (acp)"),
            Key("history", ListOf(_PAST), "what is told of a loaded session, in order; nothing unless told (acp)"),
        ),
        one_of=("after", "error", "version", "history"),
        finish=_handshake,
    ),
    key="word",
)
HAPPENS = _Happens(("eof", "epipe", "cancel"), _EVENTS)
ACKNOWLEDGE = _Acknowledged(("cancel", "receipt", "signal"))


def build_awaited(step: Step, _scope: Scope) -> list[ProgramStep]:
    """Compile to what is waited for."""
    value: Any = step.value.get("eof")
    if value is None:
        kind = next(kind for kind in ("stdin", "exit") if kind in step.value)
        return [(step.line, f"await_{kind}", (step.value[kind],))]
    if isinstance(value, int):
        return [(step.line, "await_prompt", (value,))]
    return [(step.line, f"await_{value}", ())]


def build_handshake(step: Step, scope: Scope) -> list[ProgramStep]:
    """Compile to how handshakes go from here on."""
    value = step.value
    if "history" in value:
        return [(step.line, step.name, ("history", [said for past in value["history"] for said in past.items()]))]
    if "after" in value:
        return [(step.line, step.name, ("after", scope.ns(value["after"])))]
    kind = next((kind for kind in ("error", "version") if kind in value), "never")
    return [(step.line, step.name, (kind, value.get(kind)))]


def build_acknowledge(step: Step, _scope: Scope) -> list[ProgramStep]:
    """Compile to `acknowledge`, to the receipt that goes before it, or to what a signal does."""
    return [(step.line, {"cancel": "acknowledge", "signal": "interrupted"}.get(step.value, step.value), ())]
