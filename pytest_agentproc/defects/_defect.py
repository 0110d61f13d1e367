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
    """What a class that judges wrongly breaks, and how; the fields are those of `Defect`."""

    breaks: str
    story: str
    harmless: str = ""


DESCRIPTION_BY_CLASS: dict[type, Description] = {}
"""What each class that judges wrongly breaks. Users read it, so it is data: Python can drop docstrings."""


def breaks(rule: str, story: str, *, harmless: str = "") -> Callable[[_WrongClass], _WrongClass]:
    """Describe a class that judges wrongly.

    Args:
        rule: the rule that it breaks.
        story: its fault, in a clause that follows "a supervisor with this defect".
        harmless: why no user is harmed, in a sentence; empty: a user is harmed.
    """

    def describe(wrong: _WrongClass) -> _WrongClass:
        DESCRIPTION_BY_CLASS[wrong] = Description(rule, story, harmless)
        return wrong

    return describe
