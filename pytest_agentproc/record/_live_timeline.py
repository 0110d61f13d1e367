"""Owns a record that is printed as it grows: the rows of each instant, once it is over. Judges nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.record._cells import format_duration
from pytest_agentproc.record._frames import SilentInterval, group_events_by_instant
from pytest_agentproc.record._record import Record
from pytest_agentproc.record._text import TIMELINE_HEADING_ROW, TextRow, lay_out_columns, make_text_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_agentproc.events import Event
    from pytest_agentproc.record._frames import ScenarioText


_TIME_AND_LEFT_COLUMN_WIDTHS = (9, 42)
_MIN_SHOWN_SILENCE_NS = 1_000_000_000
_MAX_PRINTED_LINES = 400
"""At most this number of lines are printed as they happen. The rest of a longer run stands in the record alone."""


class LiveRecord(Record):
    """A record whose timeline is printed line by line, in fixed columns, each instant once the next one begins."""

    __slots__ = ("_at", "_print_line", "_scenario", "_told", "_written")

    def __init__(self, header: Mapping[str, Any], print_line: Callable[[str], None], scenario: ScenarioText) -> None:
        super().__init__(header)
        self._print_line = print_line
        self._scenario = scenario
        self._told = self._written = 0
        self._at = 0
        self._print_timeline_rows([TIMELINE_HEADING_ROW])

    def add(self, event: Event) -> None:
        """Append one event, and print the instants before it."""
        if event.at != self._at:
            self.flush()
            if event.at - self._at >= _MIN_SHOWN_SILENCE_NS:
                self._print_timeline_rows([TextRow("", f"~~~ {format_duration(event.at - self._at)} pass ~~~", "both")])
            self._at = event.at
        super().add(event)

    def flush(self) -> None:
        """Print the events that were not printed yet."""
        new = self.events[self._told :]
        self._told += len(new)
        if not new or self._written > _MAX_PRINTED_LINES:
            return
        part = Record()
        part.merge_events(new)  # they are joined already
        self._print_timeline_rows(
            [
                *make_text_rows(
                    frame
                    for frame in group_events_by_instant(part, self._scenario)
                    if not isinstance(frame, SilentInterval)
                )
            ]
        )
        if self._written > _MAX_PRINTED_LINES:
            self._print_line("... and so on: the rest is not printed as it happens ...")

    def _print_timeline_rows(self, rows: list[TextRow]) -> None:
        for line in lay_out_columns(rows, *_TIME_AND_LEFT_COLUMN_WIDTHS):
            self._print_line(line)
            self._written += 1
