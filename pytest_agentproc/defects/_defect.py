"""The description of a defect. Values only; a class that judges wrongly describes itself."""

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


def read_rule_and_story(wrong: type) -> tuple[str, str]:
    """Read the rule that a wrong judgement breaks, and its story, from the first line of its class."""
    story, _, rule = (wrong.__doc__ or "").partition("\n")[0].rpartition(" (")
    return rule.removesuffix(")."), story[:1].lower() + story[1:]
