"""Owns what of a record is shown together: the rows of an instant, silences, repetitions. Words no event."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pytest_agentproc.events import get_letter
from pytest_agentproc.record._cells import describe_events, format_duration, format_instant
from pytest_agentproc.record._normal_form import add_step_lines, join_chunks_of_instant

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from pytest_agentproc.record._cells import DescribedEvent
    from pytest_agentproc.record._record import Record


_MIN_SHOWN_SILENCE_NS = 1_000_000_000
_MIN_FOLDED_REPEATS = 3
_OUTPUT_AND_EXIT_LETTERS = frozenset("oex")


class ScenarioText(Protocol):
    """The scenario, as far as a renderer needs it: its text, for the lines of its steps."""

    @property
    def text(self) -> str: ...


class EventWithSupervisorView(NamedTuple):
    """A cell, and the cell in which the supervisor saw this output or exit, if it did so directly after it."""

    cell: DescribedEvent
    seen: DescribedEvent | None = None


@dataclass(frozen=True, slots=True)
class InstantFrame:
    """The events of one instant.

    Args:
        at: the instant in nanoseconds.
        pairs: its rows, in order.
        likeness: equal for two frames that differ in their instant only.
    """

    at: int
    pairs: tuple[EventWithSupervisorView, ...]
    likeness: tuple[object, ...] = field(repr=False)


class SilentInterval(NamedTuple):
    """A time in which nothing happened, in nanoseconds."""

    length: int


class RepeatedFrames(NamedTuple):
    """Frames that are left out because they are like the one before.

    Args:
        times: how many they are.
        every: the nanoseconds between any two of them; None if they differ.
        last: the instant of the last one.
    """

    times: int
    every: int | None
    last: int

    @property
    def words(self) -> str:
        """Say how often, how far apart, and until when."""
        every = "" if self.every is None else f"every {format_duration(self.every)}, "
        return f"the same {self.times} times more, {every}the last at {format_instant(self.last)}"


def group_events_by_instant(
    record: Record, source: ScenarioText | None = None
) -> Iterator[InstantFrame | SilentInterval | RepeatedFrames]:
    """Group what happened by its instants.

    A silence of a second or more is shown, and three or more like instants in a row are the first and a count.

    Args:
        record: what happened.
        source: shows each step as it is written there; without it by its name.
    """
    lines = source.text.splitlines() if source is not None else ()
    return group_described_events(describe_events(join_chunks_of_instant(add_step_lines(record.events)), lines))


def group_described_events(
    shown: Iterable[DescribedEvent], marked: Container[int] = ()
) -> Iterator[InstantFrame | SilentInterval | RepeatedFrames]:
    """Group cells as `group_events_by_instant` does those of a record.

    Args:
        shown: the cells.
        marked: the ids of the cells that are always shown.
    """
    every = [_make_frame(at, list(group)) for at, group in groupby(shown, key=lambda cell: cell.at)]
    before = 0
    for _, group in groupby(every, key=lambda frame: _make_frame_comparison_key(frame, marked)):
        alike = list(group)
        for frame in alike[: None if len(alike) < _MIN_FOLDED_REPEATS else 1]:
            if frame.at - before >= _MIN_SHOWN_SILENCE_NS:
                yield SilentInterval(frame.at - before)
            before = frame.at
            yield frame
        if len(alike) >= _MIN_FOLDED_REPEATS:
            gaps = {later.at - earlier.at for earlier, later in pairwise(alike)}
            before = alike[-1].at
            yield RepeatedFrames(len(alike) - 1, gaps.pop() if len(gaps) == 1 else None, before)


def _make_frame_comparison_key(frame: InstantFrame, marked: Container[int]) -> tuple[object, ...]:
    """Give the common content of a frame and the frames that it may stand for; a frame with a mark is like no other."""
    is_marked = any(id(cell) in marked for pair in frame.pairs for cell in pair if cell is not None)
    return (frame.at, *frame.likeness) if is_marked else frame.likeness


def _make_frame(at: int, group: list[DescribedEvent]) -> InstantFrame:
    pairs: list[EventWithSupervisorView] = []
    before: DescribedEvent | None = None
    for cell in group:
        if (
            before is not None
            and before.side == "agent"
            and cell.side == "supervisor"
            and _is_supervisor_view_of(cell, before)
        ):
            pairs[-1] = EventWithSupervisorView(before, cell)
        else:
            pairs.append(EventWithSupervisorView(cell))
        before = cell
    return InstantFrame(at, tuple(pairs), tuple(cell.likeness for cell in group))


def _is_supervisor_view_of(cell: DescribedEvent, before: DescribedEvent) -> bool:
    letter = get_letter(cell.event)
    return (
        letter in _OUTPUT_AND_EXIT_LETTERS
        and letter == get_letter(before.event)
        and cell.event.process == before.event.process
    )
