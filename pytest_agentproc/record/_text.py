"""Owns the layout of the timeline as plain text: time, supervisor, agent; finds no words and judges nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_agentproc.record._cells import format_duration, format_instant
from pytest_agentproc.record._frames import RepeatedFrames, SilentInterval, group_events_by_instant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pytest_agentproc.record._frames import InstantFrame, ScenarioText
    from pytest_agentproc.record._record import Record


_MAX_TIMELINE_ROWS = 160


class TextRow(NamedTuple):
    """A line of the text: its columns (`both` on the right: the left goes through), and what marks it."""

    time: str
    left: str
    right: str
    mark: str = ""


TIMELINE_HEADING_ROW = TextRow("time", "supervisor", "agent and descendants")


def render_text(record: Record, scenario: ScenarioText | None = None) -> str:
    """Draw the timeline of both sides: one column for the time, one for the supervisor, one for agent and descendants.

    A silence of a second or more is shown as a jump. Three or more like instants in a row are shown as one with its
    count. The middle of a very long run is left out. Equal records give equal text.

    Args:
        record: what happened.
        scenario: shows each step as it is written in its file; without it by its name.
    """
    return render_timeline(group_events_by_instant(record, scenario))


def render_timeline(
    shown: Iterable[InstantFrame | SilentInterval | RepeatedFrames], marks: Mapping[int, str] | None = None
) -> str:
    """Draw what is shown together.

    Args:
        shown: the rows of the timeline.
        marks: what stands in front of a row, by the id of its cell; those rows are never left out.
    """
    rows = [TIMELINE_HEADING_ROW, *make_text_rows(shown, marks)]
    if len(rows) > _MAX_TIMELINE_ROWS:
        rows = [*_shorten_long_timeline(rows)]
    return "\n".join(lay_out_columns(rows))


def _shorten_long_timeline(rows: list[TextRow]) -> Iterator[TextRow]:
    """Leave out the middle of a very long run, but for what is marked there."""
    half = _MAX_TIMELINE_ROWS // 2
    left_out = 0
    for number, row in enumerate(rows):
        if half <= number < len(rows) - half and not row.mark:
            left_out += 1
            continue
        if left_out:
            yield TextRow("", f"... {left_out} lines left out ...", "both")
            left_out = 0
        yield row


def make_text_rows(
    shown: Iterable[InstantFrame | SilentInterval | RepeatedFrames], marks: Mapping[int, str] | None = None
) -> Iterator[TextRow]:
    """Give the rows of what is shown; `marks` is as in `render_timeline`."""
    for row in shown:
        if isinstance(row, SilentInterval):
            yield TextRow("", f"~~~ {format_duration(row.length)} pass ~~~", "both")
        elif isinstance(row, RepeatedFrames):
            yield TextRow("", f"... {row.words}", "both")
        else:
            yield from _make_rows_of_frame(row, marks or {})


def _make_rows_of_frame(frame: InstantFrame, marks: Mapping[int, str]) -> Iterator[TextRow]:
    time = format_instant(frame.at)
    for cell, seen in frame.pairs:
        mark = marks.get(id(cell), "") or marks.get(id(seen), "")
        if cell.side == "both":
            yield TextRow(time, cell.whole, "both", mark)
        elif cell.side == "agent":
            yield TextRow(time, seen.whole if seen is not None else "", cell.whole, mark)
        else:
            yield TextRow(time, cell.whole, "", mark)
        time = ""


def lay_out_columns(rows: list[TextRow], time_width: int = 0, left_width: int = 0) -> Iterator[str]:
    """Lay rows out in columns, as wide as they need and at least as wide as is said."""
    time_width = max(time_width, *(len(row.time) for row in rows), 0)
    left_width = max(left_width, *(len(row.left) for row in rows if row.right != "both"), 0)
    mark_width = max((len(row.mark) for row in rows), default=0)
    for time, left, right, mark in rows:
        margin = f"{f'{mark}>' if mark else '':>{mark_width + 1}} " if mark_width else ""
        start = f"{margin}{time:>{time_width}}  "
        if right == "both":
            first, *more = left.splitlines() or [""]
            yield (start + first).rstrip()
            yield from (" " * len(start) + line for line in more)
        else:
            yield f"{start}{left:<{left_width}}  {right}".rstrip()
