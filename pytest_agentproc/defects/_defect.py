"""The description of a defect. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_agentproc.supervisor import Deciders, SessionDeciders


@dataclass(frozen=True, slots=True)
class Defect:
    """One wrong behaviour.

    Args:
        name: what scenarios call it.
        breaks: the rule that it breaks.
        story: its fault, in a clause.
        deciders: the judgements of a run with the wrong one in place.
        session_deciders: those of a session.
    """

    name: str
    breaks: str
    story: str
    deciders: Deciders = field(default_factory=Deciders)
    session_deciders: SessionDeciders = field(default_factory=SessionDeciders)
