"""Owns who has a life-line on the page, and where: caller, supervisor, timers, agents, descendants. Draws nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pytest_agentproc.events import Leaked, ProcessStarted, SignalSent, TimerArmed, TimerEvent

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_agentproc.events import Event
    from pytest_agentproc.record._cells import DescribedEvent


CALLER, SUPERVISOR, _TIMER_COLUMN_NAME = "caller", "supervisor", "timers"
_LIFE_LINES_BEFORE_AGENT = (CALLER, SUPERVISOR)
_MAX_PROCESS_LIFE_LINES = 18
_MAX_WIDE_LIFE_LINES = 5
_WIDE_LIFE_LINE_WIDTHS_PX, _NARROW_LIFE_LINE_WIDTHS_PX = (60, 78), (32, 44)
"""The widths of a process's lane and of a host's; names stand upright over narrow ones."""

_TIMER_SLOT_WIDTH_PX, _TIMER_SLOT_MARGIN_PX = 12, 20


class LifeLine(NamedTuple):
    """One life-line.

    Args:
        name: what stands above it.
        x: its middle, in pixels.
        width: the column that is its own.
        left: how its process was left: `alive`, `stopped`, `zombie`, or "".
    """

    name: str
    x: int
    width: int
    left: str = ""


@dataclass(slots=True)
class TimerSlots:
    """Gives armed timers a place beside each other: the one that they had before, if it is free."""

    taken: dict[tuple[str, str], int] = field(default_factory=dict)
    last: dict[tuple[str, str], int] = field(default_factory=dict)
    count: int = 0

    def assign_slot(self, timer: tuple[str, str]) -> int:
        """Give a timer its place."""
        if timer not in self.taken:
            busy = set(self.taken.values())
            place = self.last.get(timer, -1)
            if place < 0 or place in busy:
                place = next(number for number in range(len(busy) + 1) if number not in busy)
            self.taken[timer] = self.last[timer] = place
            self.count = max(self.count, place + 1)
        return self.taken[timer]

    def release_slot(self, timer: tuple[str, str]) -> int | None:
        """Take its place from a timer; None if it had none."""
        return self.taken.pop(timer, None)


@dataclass(frozen=True, slots=True)
class LifeLines:
    """All life-lines, from left to right.

    Args:
        all: the lanes, that of the timers among them.
        homes: the lane of each process, by its name; several share one if there are too many.
        roots: the agent that each process descends from.
        timers: the lane in which timers have their places.
        slots: how many places there are.
    """

    all: tuple[LifeLine, ...]
    homes: Mapping[str, LifeLine]
    roots: Mapping[str, str]
    timers: LifeLine | None
    slots: int = 0

    @property
    def width(self) -> int:
        """How wide they are together, in pixels."""
        return sum(lane.width for lane in self.all)

    def get_timer_slot_center(self, number: int) -> int:
        """Give the middle of a timer's place, in pixels."""
        assert self.timers is not None, "a timer has a lane"
        return self.timers.x + number * _TIMER_SLOT_WIDTH_PX - (self.slots - 1) * _TIMER_SLOT_WIDTH_PX // 2


def get_timer_name(event: TimerEvent) -> tuple[str, str]:
    """Name a timer: its session, and its own name."""
    return event.session, event.timer


def build_life_lines(events: Iterable[Event], shown: Iterable[DescribedEvent]) -> LifeLines:
    """Say who has a lane: in the order of birth, and those who were left before all others if there are too many.

    Args:
        events: all that happened.
        shown: the cells that a page may show; the timers among them need places.
    """
    left: dict[str, str] = {}
    parents: dict[str, str] = {}
    known: dict[str, None] = {}
    has_caller = False
    for event in events:
        process = event.process
        has_caller = has_caller or process == CALLER
        if isinstance(event, Leaked):
            left[process] = event.leaked
        if isinstance(event, ProcessStarted):
            parents[process] = event.parent
        if process not in _LIFE_LINES_BEFORE_AGENT and not isinstance(event, SignalSent):
            known.setdefault(process)
    slots = _count_timer_slots(shown)
    own = set(
        [*(name for name in known if name in left), *known][:_MAX_PROCESS_LIFE_LINES]
        if _has_too_many_processes(known)
        else known
    )
    names = [name for name in known if name in own]
    width, host_width = _WIDE_LIFE_LINE_WIDTHS_PX if len(names) <= _MAX_WIDE_LIFE_LINES else _NARROW_LIFE_LINE_WIDTHS_PX
    hosts = [*([(CALLER, width, "")] if has_caller else []), (SUPERVISOR, host_width, "")]
    columns = [
        *hosts,
        *([(_TIMER_COLUMN_NAME, 2 * _TIMER_SLOT_MARGIN_PX + slots * _TIMER_SLOT_WIDTH_PX, "")] if slots else []),
    ]
    columns += [(name, width, left.get(name, "")) for name in names]
    others = [name for name in known if name not in own]
    if others:
        columns.append((f"{len(others)} others", 2 * width, next((left[name] for name in others if name in left), "")))
    lanes = _place_life_lines(columns)
    homes = {lane.name: lane for lane in lanes} | dict.fromkeys(others, lanes[-1])
    roots = {name: _find_topmost_ancestor(name, parents) for name in known}
    return LifeLines(lanes, homes, roots, lanes[len(hosts)] if slots else None, slots)


def _has_too_many_processes(known: Mapping[str, None]) -> bool:
    return len(known) > _MAX_PROCESS_LIFE_LINES + 1


def _count_timer_slots(shown: Iterable[DescribedEvent]) -> int:
    slots = TimerSlots()
    for cell in shown:
        if isinstance(cell.event, TimerArmed):
            slots.assign_slot(get_timer_name(cell.event))
        elif isinstance(cell.event, TimerEvent):
            slots.release_slot(get_timer_name(cell.event))
    return slots.count


def _place_life_lines(columns: Sequence[tuple[str, int, str]]) -> tuple[LifeLine, ...]:
    lanes, edge = [], 0
    for name, width, left in columns:
        lanes.append(LifeLine(name, edge + width // 2, width, left))
        edge += width
    return tuple(lanes)


def _find_topmost_ancestor(name: str, parents: Mapping[str, str]) -> str:
    seen = {name}
    while (above := parents.get(name)) is not None and above not in _LIFE_LINES_BEFORE_AGENT and above not in seen:
        seen.add(above)
        name = above
    return name
