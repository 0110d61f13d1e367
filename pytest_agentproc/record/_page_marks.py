"""Owns the places of failed checks in a diagram: the row that is wrong, and the instant where it was expected.

Knows no verdict: whoever judges says what was seen and what was expected. Draws nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_agentproc import events
from pytest_agentproc.record._frames import InstantFrame, RepeatedFrames, SilentInterval

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_agentproc.record._frames import EventWithSupervisorView


class FailureMark(NamedTuple):
    """One thing that a failed check is about.

    Args:
        kind: `outcome`, `returned`, `start`, `end`, or the name of a signal.
        process: the process that it happened to; empty: any.
        seen: the instant at which it happened, in nanoseconds; None: never.
        expected: the instant at which it was expected; None: never, or at no special instant.
        note: words beside what happened.
        words: words at the expected instant.
    """

    kind: str
    process: str
    seen: int | None
    expected: int | None
    note: str
    words: str

    def is_about(self, at: int, pair: EventWithSupervisorView) -> bool:
        """Say whether these events are what was seen."""
        event = pair.cell.event
        is_view = isinstance(event, events.SupervisorView)
        if at != self.seen or (self.process and not is_view and event.process != self.process):
            return False
        kind = _EVENTS_BY_KIND.get(self.kind)
        if kind is not None:
            return isinstance(event, kind)
        ends = events.SignalCaught | events.SignalSent | events.ProcessEnded | events.EndSeen
        return isinstance(event, ends) and event.signal == self.kind


_EVENTS_BY_KIND = {
    "outcome": events.OutcomeReached | events.TurnEnded,
    "returned": events.Returned,
    "start": events.ProcessStarted,
    "end": events.ProcessEnded,
}


class ExpectedInstant(NamedTuple):
    """An instant at which something was expected, with the words for it."""

    at: int
    words: str


def find_failure_notes(marks: Iterable[FailureMark], at: int, pair: EventWithSupervisorView) -> str:
    """Give the words for a row that is wrong; empty: it is none."""
    return ", ".join(dict.fromkeys(mark.note for mark in marks if mark.is_about(at, pair)))


def insert_expected_instants(
    shown: Iterable[InstantFrame | SilentInterval | RepeatedFrames], marks: Sequence[FailureMark]
) -> Iterator[InstantFrame | SilentInterval | RepeatedFrames | ExpectedInstant]:
    """Put each expected instant to its place; a silence around it is shown as the two that it divides."""
    waiting = sorted({ExpectedInstant(mark.expected, mark.words) for mark in marks if mark.expected is not None})
    now = 0
    for item in shown:
        if isinstance(item, SilentInterval):
            end = now + item.length
            while waiting and waiting[0].at < end:
                if waiting[0].at > now:
                    yield SilentInterval(waiting[0].at - now)
                now = waiting[0].at
                yield waiting.pop(0)
            yield SilentInterval(end - now)
            now = end
            continue
        now = item.at if isinstance(item, InstantFrame) else item.last
        while isinstance(item, InstantFrame) and waiting and waiting[0].at < now:
            yield waiting.pop(0)
        yield item
        while waiting and waiting[0].at <= now:
            yield waiting.pop(0)
    for late in waiting:
        if late.at > now:
            yield SilentInterval(late.at - now)
        now = late.at
        yield late
