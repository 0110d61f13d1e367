"""Owns the layout of the timeline as plain text: time, supervisor, agent; finds no words and judges nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_agentproc.record._frames import Again, Silence, frames
from pytest_agentproc.record._times import duration, instant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pytest_agentproc.record._frames import Frame, Source
    from pytest_agentproc.record._record import Record

__all__ = ["drawn", "text"]

_MAX_LINES = 160


class _Row(NamedTuple):
    """A line of the text: its columns (`both` on the right: the left goes through), and what marks it."""

    time: str
    left: str
    right: str
    mark: str = ""


_HEADINGS = _Row("time", "supervisor", "agent and descendants")


def text(record: Record, scenario: Source | None = None) -> str:
    """Draw the timeline of both sides: one column for the time, one for the supervisor, one for agent and descendants.

    A silence of a second or more is shown as a jump, three or more like instants in a row as one with its count, and
    the middle of a very long run is left out. Equal records give equal text.

    Args:
        record: what happened.
        scenario: shows each step as it is written in its file; without it by its name.
    """
    return drawn(frames(record, scenario))


def drawn(shown: Iterable[Frame | Silence | Again], marks: Mapping[int, str] | None = None) -> str:
    """Draw what is shown together.

    Args:
        shown: the rows of the timeline.
        marks: what stands in front of a row, by the id of its cell; those rows are never left out.
    """
    rows = [_HEADINGS, *_rows(shown, marks or {})]
    if len(rows) > _MAX_LINES:
        rows = [*_shortened(rows)]
    return "\n".join(_lines(rows))


def _shortened(rows: list[_Row]) -> Iterator[_Row]:
    """Leave out the middle of a very long run, but for what is marked there."""
    half = _MAX_LINES // 2
    left_out = 0
    for number, row in enumerate(rows):
        if half <= number < len(rows) - half and not row.mark:
            left_out += 1
            continue
        if left_out:
            yield _Row("", f"... {left_out} lines left out ...", "both")
            left_out = 0
        yield row


def _rows(shown: Iterable[Frame | Silence | Again], marks: Mapping[int, str]) -> Iterator[_Row]:
    for one in shown:
        if isinstance(one, Silence):
            yield _Row("", f"~~~ {duration(one.length)} pass ~~~", "both")
        elif isinstance(one, Again):
            yield _Row("", f"... {one.words}", "both")
        else:
            yield from _rows_of(one, marks)


def _rows_of(frame: Frame, marks: Mapping[int, str]) -> Iterator[_Row]:
    time = instant(frame.at)
    for cell, seen in frame.pairs:
        mark = marks.get(id(cell), "") or marks.get(id(seen), "")
        if cell.side == "both":
            yield _Row(time, cell.whole, "both", mark)
        elif cell.side == "agent":
            yield _Row(time, seen.whole if seen is not None else "", cell.whole, mark)
        else:
            yield _Row(time, cell.whole, "", mark)
        time = ""


def _lines(rows: list[_Row]) -> Iterator[str]:
    time_width = max(len(row.time) for row in rows)
    left_width = max(len(row.left) for row in rows if row.right != "both")
    mark_width = max(len(row.mark) for row in rows)
    for time, left, right, mark in rows:
        margin = f"{f'{mark}>' if mark else '':>{mark_width + 1}} " if mark_width else ""
        start = f"{margin}{time:>{time_width}}  "
        if right == "both":
            first, *more = left.splitlines() or [""]
            yield (start + first).rstrip()
            yield from (" " * len(start) + line for line in more)
        else:
            yield f"{start}{left:<{left_width}}  {right}".rstrip()
