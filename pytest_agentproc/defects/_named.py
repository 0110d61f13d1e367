"""The table of defects. Each breaks one rule in one decider; production code knows nothing of them."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_agentproc.defects import _judgements as wrong
from pytest_agentproc.errors import UsageError
from pytest_agentproc.supervisor import Deciders

__all__ = ["DEFECTS", "NAMES", "Defect", "defect"]


@dataclass(frozen=True, slots=True)
class Defect:
    """One wrong behaviour.

    Args:
        name: what scenarios call it.
        breaks: the rule that it breaks.
        story: what it does, in a clause.
        deciders: the judgements with the wrong one in place.
    """

    name: str
    breaks: str
    story: str
    deciders: Deciders


DEFECTS = {
    made.name: made
    for made in (
        Defect(
            "duration-timeout",
            "A1",
            "takes the inactivity limit for a limit of the whole duration",
            Deciders(watchdog=wrong.DurationWatchdog),
        ),
        Defect(
            "timer-beats-exit",
            "A4",
            "calls an agent inactive that exits at the very instant of the deadline",
            Deciders(ending=wrong.TimerFirstEnding),
        ),
        Defect(
            "direct-child-only",
            "T1",
            "signals the agent itself and never its descendants",
            Deciders(ladder=wrong.DirectChildLadder),
        ),
    )
}
NAMES = tuple(DEFECTS)


def defect(name: str) -> Defect:
    """Give a defect by its name.

    Raises:
        UsageError: there is none of that name.
    """
    if name not in DEFECTS:
        raise UsageError(f"defect is {name!r}, but must be one of {', '.join(NAMES)}")
    return DEFECTS[name]
