"""Owns the way in which one record separates the events of several sessions. Knows no scenario and no verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_agentproc.events import ProcessStarted
from pytest_agentproc.record._record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_agentproc.events import Event, Trace


_ALPHABET_LENGTH = 26


def add_session_to_trace(trace: Trace, name: str) -> Trace:
    """Give the trace of one of several sessions: its events say whose they are, and its agent has its name.

    Args:
        trace: where the events of all sessions go.
        name: the session's; "" is the only one, whose events need no mark.
    """
    if not name:
        return trace

    def trace_with_session(event: Event) -> None:
        trace(replace(event, process=name if event.process == "agent" else event.process, session=name))

    return trace_with_session


def select_session_events(record: Record, name: str) -> Record:
    """Give the events of one session, as if there were no other: its agents are `agent`.

    That is what its supervisor noted, and what its agents and their descendants did.
    """
    only = Record(record.header)
    own: list[Event] = []
    family: set[str] = set()
    for event in record.events:
        process = event.process
        is_own = process.partition(" ")[0] == name
        if (is_own and not event.session) or (isinstance(event, ProcessStarted) and event.parent in family):
            family.add(process)
        if event.session == name or (not event.session and process in family):
            own.append(replace(event, process="agent" + process[len(name) :]) if is_own else event)
    only.merge_events(own)  # they are joined already
    return only


def join_records(records: Sequence[Record]) -> Record:
    """Give what happened in several records of one clock as one; the agent of the second is `agent B`, and so on.

    Events of one instant come in the order of the records.
    """
    if len(records) == 1:
        return records[0]
    whole = Record(records[0].header if records else None)
    events = []
    for number, record in enumerate(records):
        for event in record.events:
            renamed = replace(event, process=_rename_process_of_record(event.process, number))
            if isinstance(renamed, ProcessStarted):
                renamed = replace(renamed, parent=_rename_process_of_record(renamed.parent, number))
            events.append(renamed)
    whole.merge_events(events)
    return whole


def _rename_process_of_record(process: str, number: int) -> str:
    """Name a process after its record, unless it is one of the host's, or of the first record."""
    if not number or process in ("", "supervisor", "caller"):
        return process
    letter = chr(ord("A") + number) if number < _ALPHABET_LENGTH else f"Z{number}"
    return f"{process} {letter}"
