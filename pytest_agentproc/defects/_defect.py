"""The description of a defect. Values only; a class that judges wrongly is given its rule and its story by `breaks`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

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


class Description(NamedTuple):
    """What a class judges wrongly, and where; `name`, `breaks`, `story` and `harmless` are those of `Defect`."""

    wrong: type
    name: str
    breaks: str
    story: str
    harmless: str
    runs_only: str
    sessions_only: str


DESCRIPTIONS: list[Description] = []
"""What each class that judges wrongly breaks. Users read it, so it is data: Python can drop docstrings."""

SESSION_CLASS_BY_DEFECT: dict[str, type] = {}
"""The classes that make in sessions what another class makes in runs, by the name of the defect."""


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
        DESCRIPTIONS.append(Description(wrong, name, rule, story, harmless, runs_only, sessions_only))
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
