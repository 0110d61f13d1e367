"""Owns the confirmation of a find: real processes, three times. A find that does not repeat is the kit's own fault."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_agentproc.record import normal_form
from pytest_agentproc.search._find import not_met
from pytest_agentproc.search._invariants import broken
from pytest_agentproc.verdict import alike, differing

if TYPE_CHECKING:
    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.search._find import Find
    from pytest_agentproc.vocabulary import Subject


_TIMES = 3


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The verdict of real processes on a find.

    Args:
        repeats: whether each play went as the find did, and is red as it is.
        difference: where the timelines first differ, if they do; else how it was green.
    """

    repeats: bool
    difference: str = ""


def confirm(find: Find, subject: Subject, lab: ScenarioRunner, *, backend: str = "asyncio") -> Confirmed:
    """Play a find with real processes, three times, and compare each whole timeline with that of the find.

    Args:
        find: what was found.
        subject: the supervisor in which it was.
        lab: where processes are started.
        backend: the event loop on which the supervisor is, "asyncio" or "trio".
    """
    foretold = normal_form(find.played.record)
    for number in range(1, _TIMES + 1):
        played = lab.play(find.scenario, subject, backend=backend)
        is_same = normal_form(played.record) == foretold or alike(find.played, played)
        difference = "" if is_same else differing(find.played, played)
        if difference:
            return Confirmed(repeats=False, difference=difference)
        if not_met(played) is None and not broken(played):
            return Confirmed(repeats=False, difference=f"play {number} has the same timeline, and breaks nothing")
    return Confirmed(repeats=True)
