"""Owns the layout of the timeline as plain text: time, supervisor, agent; finds no words and judges nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.record._frames import Again, Silence, frames
from pytest_agentproc.record._times import duration, instant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_agentproc.record._frames import Frame, Source
    from pytest_agentproc.record._record import Record

__all__ = ["HEADINGS", "lines_of", "rows_of", "text"]

_MAX_LINES = 160
HEADINGS = "time", "supervisor", "agent and descendants"


def text(record: Record, scenario: Source | None = None) -> str:
    """Draw the timeline of both sides: one column for the time, one for the supervisor, one for agent and descendants.

    A silence of a second or more is shown as a jump, three or more like instants in a row as one with its count, and
    the middle of a very long run is left out. Equal records give equal text.

    Args:
        record: what happened.
        scenario: shows each step as it is written in its file; without it by its name.
    """
    rows = [HEADINGS, *rows_of(frames(record, scenario))]
    if len(rows) > _MAX_LINES:
        half = _MAX_LINES // 2
        left_out = ("", f"... {len(rows) - 2 * half} lines left out ...", "both")
        rows = [*rows[:half], left_out, *rows[-half:]]
    return "\n".join(lines_of(rows))


def rows_of(shown: Iterator[Frame | Silence | Again]) -> Iterator[tuple[str, str, str]]:
    """Give the rows of what is shown: time, supervisor, agent; "both" in the last column spans the two."""
    for one in shown:
        if isinstance(one, Silence):
            yield "", f"~~~ {duration(one.length)} pass ~~~", "both"
        elif isinstance(one, Again):
            yield "", f"... {one.words}", "both"
        else:
            yield from _rows_of(one)


def _rows_of(frame: Frame) -> Iterator[tuple[str, str, str]]:
    time = instant(frame.at)
    for cell, seen in frame.pairs:
        if cell.side == "both":
            yield time, cell.whole, "both"
        elif cell.side == "agent":
            yield time, seen.whole if seen is not None else "", cell.whole
        else:
            yield time, cell.whole, ""
        time = ""


def lines_of(rows: list[tuple[str, str, str]], time_width: int = 0, left_width: int = 0) -> Iterator[str]:
    """Lay rows out in columns, as wide as they need and at least as wide as is said."""
    time_width = max(time_width, *(len(time) for time, _, _ in rows), 0)
    left_width = max(left_width, *(len(left) for _, left, right in rows if right != "both"), 0)
    for time, left, right in rows:
        start = f"{time:>{time_width}}  "
        if right == "both":
            first, *more = left.splitlines() or [""]
            yield (start + first).rstrip()
            yield from (" " * len(start) + line for line in more)
        else:
            yield f"{start}{left:<{left_width}}  {right}".rstrip()
