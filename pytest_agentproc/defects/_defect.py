"""The description of a defect. Values only; `breaks` makes one of each class that judges wrongly.

A class is a defect of the decider whose right class it inherits from, in runs, in sessions, or in both. So its
description stands beside it alone, and no list repeats its name. It is data, since Python can drop docstrings.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, TypeVar

from pytest_agentproc.supervisor import Deciders, SessionDeciders

if TYPE_CHECKING:
    from collections.abc import Callable

_WrongClass = TypeVar("_WrongClass", bound=type)


@dataclass(frozen=True, slots=True)
class Defect:
    """One wrong behaviour.

    Args:
        name: what scenarios call it.
        breaks: the rule that it breaks.
        story: its fault, in a clause.
        harmless: why no user is harmed, in a sentence; empty: a user is harmed, so a check at level must fails.
        one_kind: why it exists for runs only, or for sessions only; empty: it exists for both.
        deciders: the judgements of a run with the wrong one in place.
        session_deciders: those of a session.
    """

    name: str
    breaks: str
    story: str
    harmless: str = ""
    one_kind: str = ""
    deciders: Deciders = field(default_factory=Deciders)
    session_deciders: SessionDeciders = field(default_factory=SessionDeciders)


_WHY_RUNS_ONLY = {
    "watchdog": "A turn of a session has a watchdog of its own, with defects of its own.",
    "completion": "A turn of a session ends by the response of its protocol, not by the agent's last message.",
    "ending": "The exit of an agent ends a run, while a session starts its next agent.",
    "feeder": "A session keeps stdin open and writes every prompt to it.",
    "artifacts": "Only a run keeps files.",
}
"""Why a defect has no like in sessions, by the decider that it replaces."""

_WHY_SESSIONS_ONLY = {
    "turns": "A run has one prompt, no turns and no questions.",
    "watchdog": "A run has a watchdog of its own, with defects of its own.",
    "restarts": "A run starts its agent once.",
    "outbox": "A run writes its prompt and then ends the input.",
    "hooks": "Only a session has hooks.",
    "router": "A run has one turn.",
    "status_rules": "A run has no status.",
    "transcript": "A run has no viewers.",
}
"""Why a defect has no like in runs, by the decider that it replaces."""

MADE_DEFECTS: list[Defect] = []
"""The defects of the classes that judge wrongly, in the order in which their files are read."""

SESSION_CLASS_BY_DEFECT: dict[str, type] = {}
"""The classes that make in sessions what another class makes in runs, by the name of the defect."""


def find_decider(wrong: type, deciders: type[Deciders | SessionDeciders]) -> tuple[str, type]:
    """Give the decider that a class replaces, and the right class; "" if there is none."""
    right = ((part.name, part.default) for part in fields(deciders) if isinstance(part.default, type))
    return next((found for found in right if issubclass(wrong, found[1])), ("", object))


def breaks(
    name: str, rule: str, story: str, *, harmless: str = "", runs_only: str = "", sessions_only: str = ""
) -> Callable[[_WrongClass], _WrongClass]:
    """Make a class that judges wrongly a defect, in each decider whose right class it inherits from.

    Args:
        name: what scenarios call it.
        rule: the rule that it breaks.
        story: its fault, in a clause that follows "a supervisor with this defect".
        harmless: why no user is harmed, in a sentence; empty: a user is harmed.
        runs_only: why it has no like in sessions, in a sentence, where its decider does not say so.
        sessions_only: the same for runs.
    """

    def describe(wrong: _WrongClass) -> _WrongClass:
        run, in_run = find_decider(wrong, Deciders)
        session, in_session = find_decider(wrong, SessionDeciders)
        if sessions_only or (session and in_run is not in_session):
            run = ""
        one_kind = runs_only or sessions_only
        if not (run and session):
            one_kind = one_kind or (_WHY_RUNS_ONLY[run] if run else _WHY_SESSIONS_ONLY[session])
        of_run = {run: wrong} if run else {}
        of_session = {session: wrong} if session and not runs_only else {}
        deciders = Deciders(**of_run), SessionDeciders(**of_session)
        MADE_DEFECTS.append(Defect(name, rule, story, harmless, one_kind, *deciders))
        return wrong

    return describe


def breaks_in_sessions(name: str) -> Callable[[_WrongClass], _WrongClass]:
    """Make a class the like of another one, in sessions.

    Args:
        name: the defect of runs.
    """

    def describe(wrong: _WrongClass) -> _WrongClass:
        SESSION_CLASS_BY_DEFECT[name] = wrong
        return wrong

    return describe
