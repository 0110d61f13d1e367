"""The events of a record as its file has them: short to compare with, and to write by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.events import Event, EventLine, decode_event, encode_event
from pytest_agentproc.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def list_lines(record: Record | Iterable[Event]) -> list[EventLine]:
    """Give the events of a record."""
    return [encode_event(event) for event in (record.events if isinstance(record, Record) else record)]


def add_line(record: Record, at: int, code: str, data: Mapping[str, Any]) -> None:
    """Add an event to a record."""
    record.add(decode_event(at, code, data))
