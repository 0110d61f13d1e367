"""Owns the layout of the timeline as plain text: time, supervisor, agent; finds no words and judges nothing."""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pytest_agentproc.record._cells import Cell, cells
from pytest_agentproc.record._lines import attributed
from pytest_agentproc.record._normal import joined
from pytest_agentproc.record._times import duration, instant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_agentproc.record._record import Record

__all__ = ["text"]

_LONG_NS = 1_000_000_000
_REPEATS = 3
_MAX_LINES = 160
_SEEN_CODES = frozenset("oex")
_HEADINGS = Cell(0, "supervisor", "supervisor", (), ("", "")), Cell(0, "agent", "agent and descendants", (), ("", ""))


class _Source(Protocol):
    """The scenario, as far as a timeline needs it: its text, for the lines of its steps."""

    @property
    def text(self) -> str: ...


class _Frame(NamedTuple):
    """All rows of one instant, and what makes two frames alike."""

    at: int
    rows: list[tuple[str, str, str]]
    likeness: tuple[object, ...]


def text(record: Record, scenario: _Source | None = None) -> str:
    """Draw the timeline of both sides: one column for the time, one for the supervisor, one for agent and descendants.

    A silence of a second or more is shown as a jump, three or more like instants in a row as one with its count, and
    the middle of a very long run is left out. Equal records give equal text.

    Args:
        record: what happened.
        scenario: shows each step as it is written in its file; without it by its name.
    """
    source = scenario.text.splitlines() if scenario is not None else ()
    shown = cells(joined(attributed(record.events), by_line=True), source)
    frames = [_frame(at, list(group)) for at, group in groupby(shown, key=lambda cell: cell.at)]
    rows = [("time", *_sides(_HEADINGS)), *_rows(frames)]
    if len(rows) > _MAX_LINES:
        half = _MAX_LINES // 2
        left_out = ("", f"... {len(rows) - 2 * half} lines left out ...", "both")
        rows = [*rows[:half], left_out, *rows[-half:]]
    return "\n".join(_lines(rows))


def _sides(pair: Sequence[Cell]) -> tuple[str, str]:
    return pair[0].words, pair[1].words


def _frame(at: int, group: list[Cell]) -> _Frame:
    rows: list[tuple[str, str, str]] = []
    before: Cell | None = None
    for cell in group:
        time = "" if rows else instant(at)
        if cell.side == "both":
            rows.append((time, cell.words, "both"))
        elif cell.side == "agent":
            rows.append((time, "", cell.words))
        elif before is not None and before.side == "agent" and _answers(cell, before):
            rows[-1] = (rows[-1][0], cell.words, before.words)
        else:
            rows.append((time, cell.words, ""))
        before = cell
    return _Frame(at, rows, tuple(cell.likeness for cell in group))


def _answers(cell: Cell, before: Cell) -> bool:
    """Say whether the supervisor's cell is what it saw of the agent's output or exit just before."""
    return cell.subject == before.subject and cell.subject[1] in _SEEN_CODES


def _rows(frames: list[_Frame]) -> Iterator[tuple[str, str, str]]:
    before = 0
    for _, group in groupby(frames, key=lambda frame: frame.likeness):
        alike = list(group)
        for frame in alike[: None if len(alike) < _REPEATS else 1]:
            if frame.at - before >= _LONG_NS:
                yield "", f"~~~ {duration(frame.at - before)} pass ~~~", "both"
            before = frame.at
            yield from frame.rows
        if len(alike) >= _REPEATS:
            gaps = {later.at - earlier.at for earlier, later in pairwise(alike)}
            every = f"every {duration(gaps.pop())}, " if len(gaps) == 1 else ""
            before = alike[-1].at
            yield "", f"... the same {len(alike) - 1} times more, {every}the last at {instant(before)}", "both"


def _lines(rows: list[tuple[str, str, str]]) -> Iterator[str]:
    time_width = max(len(time) for time, _, _ in rows)
    left_width = max(len(left) for _, left, right in rows if right != "both")
    for time, left, right in rows:
        start = f"{time:>{time_width}}  "
        if right == "both":
            first, *more = left.splitlines() or [""]
            yield (start + first).rstrip()
            yield from (" " * len(start) + line for line in more)
        else:
            yield f"{start}{left:<{left_width}}  {right}".rstrip()
