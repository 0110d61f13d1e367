"""Supervisors that are told nothing and look in turns: how late they may be. Owns that judgement; plays nothing.

One that looks every 50 ms and is right sees everything up to 50 ms late, and acts on it as much later: a style, and no
mistake. Who looks so is known by its loop, whose timers wake it at a steady pace; where a run is over too soon to tell,
it is played once more with a pause before its script. One that looks only while it ends a tree may look once: from then
on it is as late as the short timers that it set and slept through. Before that, instants are exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_agentproc.clock import LONGEST, ROUNDING
from pytest_agentproc.record import duration
from pytest_agentproc.vocabulary import NANOSECONDS

if TYPE_CHECKING:
    from pytest_agentproc.clock import Pulse
    from pytest_agentproc.record import Record
    from pytest_agentproc.scenario import Bound
    from pytest_agentproc.vocabulary import Subject

__all__ = ["Turns", "later", "may_look_in_turns", "naps_of", "patience_of"]

_STEPS = 10
"""So many looks, at most, go by between the steps of a run: the start, an answer, each rung of a ladder, each end."""

_STEPS_OF_DEED = 4
"""So many more for each thing that the caller of a session does: what is told, asked, cancelled, answered."""

_CLOSE = 4
"""So many looks, at most, one is late for an instant that competes with another: what it counts from is late, too.

What must have passed by then takes looks of its own.
"""

_EACH = 32_768
"""Bytes that pass at a look, at least, while there are more: half of what a pipe holds."""

_PAUSE = 1_000_000_000

_SILENT, _IDLE = 3600.0, 14_400.0
"""Virtual seconds for which an agent may be silent in a run; for which a session may be idle."""


@dataclass(frozen=True, slots=True)
class Turns:
    """How a supervisor looks that looks in turns, all the time or from some instant on.

    One that looks too few times for a pace to show is as late as the short timers are long that it slept through.

    Args:
        period: nanoseconds from one look to the next; 0: no pace was found.
        margin: nanoseconds between the nearest of the scenario's competing instants; None: nothing competes.
        size: how many bytes passed between it and its agent.
        deeds: how many things the caller of a session did.
        began: the instant at which it began to look so.
        naps: the instants at which its short timers were set, and woke it.
    """

    period: int
    margin: int | None
    size: int = 0
    deeds: int = 0
    began: int = 0
    naps: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, bound: Bound, record: Record, period: int, margin: int | None, began: int = 0) -> Turns:
        """Give it with what passed in a run."""
        if began >= _first_signal(record):
            margin = None  # what the run came to was decided before it began to look
        sizes = [len(event.data["bytes"]) for event in record.events if event.code in "ioe" and "bytes" in event.data]
        return cls(period, margin, sum(sizes), len(bound.drive), began)

    @property
    def tolerance(self) -> int:
        """How much later than expected a thing may happen at most, in nanoseconds."""
        if not self.period:
            return sum(end - start for start, end in self.naps)
        return self.period * (_STEPS + _STEPS_OF_DEED * self.deeds + self._passing)

    def late(self, at: int) -> int:
        """How much later than expected a thing may happen at an instant: not at all before the first look."""
        if not self.period:
            return sum(end - start for start, end in self.naps if end <= at)
        return self.tolerance if at >= self.began else 0

    @property
    def _passing(self) -> int:
        """How many looks it takes until all has passed."""
        return self.size // _EACH

    @property
    def undecided(self) -> str:
        """Why a difference may be nobody's fault; nothing if it cannot be."""
        if not self.period or self.margin is None or self.margin > self.period * (_CLOSE + self._passing):
            return ""
        apart = f"{duration(self.margin)} apart" if self.margin else "at the same time"
        return f"it looks every {duration(self.period)}, and two of the competing instants are {apart}"


def _first_signal(record: Record) -> float:
    """Give the instant of the first signal that anybody in the tree caught or died of; endless if there was none."""
    caught = (event.at for event in record.events if event.code in "sx" and "signal" in event.data)
    return min(caught, default=float("inf"))


def may_look_in_turns(subject: Subject, bound: Bound, pulse: Pulse) -> bool:
    """Say whether a subject may be of that kind: it woke soon, or twice in a short time that is no limit of its own.

    Args:
        subject: who; of the core it is known that it is woken, and that the timers of its loop are the caller's.
        bound: what it supervised, under its own limits.
        pulse: how its loop woke meanwhile.
    """
    if hasattr(subject, "deciders"):
        return False
    limits = _limits(bound)
    if pulse.period or 0 <= pulse.first <= LONGEST:
        return True
    return any(all(abs(gap - limit) > ROUNDING for limit in limits) for gap in pulse.quick)


def naps_of(subject: Subject, bound: Bound, pulse: Pulse) -> tuple[tuple[int, int], ...]:
    """Give the short timers that a subject slept through and that are no limit of its own; see `may_look_in_turns`."""
    if hasattr(subject, "deciders"):
        return ()
    limits = _limits(bound)
    return tuple(nap for nap in pulse.naps if all(abs(nap[1] - nap[0] - limit) > ROUNDING for limit in limits))


def _limits(bound: Bound) -> list[int]:
    policies = [one.policy for one in (bound, *bound.parts.values())]
    return [limit for policy in policies for limit in policy.nanoseconds().values() if limit is not None]


def patience_of(bound: Bound) -> float:
    """Say for how many virtual seconds somebody may look in turns while nothing happens: its limits are over by then.

    Args:
        bound: what it supervises, under its own limits.
    """
    limits = [limit for limit in bound.policy.nanoseconds().values() if limit is not None]
    least = _IDLE if bound.scenario.is_session or bound.parts else _SILENT
    return max(least, 4 * max(limits, default=0) / NANOSECONDS)


def later(bound: Bound) -> Bound:
    """Have an agent pause before its script, for long enough to tell whether somebody looks in turns meanwhile."""
    parts = {name: later(part) for name, part in bound.parts.items()}
    pause = (0, "sleep", (_PAUSE,))
    program = {**bound.program, "steps": [pause, *bound.program["steps"]]} if bound.program else bound.program
    return replace(bound, program=program, parts=parts)
