"""Owns the way in which one record separates the events of several sessions. Knows no scenario and no verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.record._record import Event, Record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Trace = Callable[[int, str, dict[str, Any]], None]


_ALPHABET_LENGTH = 26


def add_session_to_trace(trace: Trace, name: str) -> Trace:
    """Give the trace of one of several sessions: its events say whose they are, and its agent has its name.

    Args:
        trace: where the events of all sessions go.
        name: the session's; "" is the only one, whose events need no mark.
    """
    if not name:
        return trace

    def trace_with_session(at: int, code: str, data: dict[str, Any]) -> None:
        process = name if data["process"] == "agent" else data["process"]
        trace(at, code, {**data, "process": process, "session": name})

    return trace_with_session


def select_session_events(record: Record, name: str) -> Record:
    """Give the events of one session, as if there were no other: its agents are `agent`.

    That is what its supervisor noted, and what its agents and their descendants did.
    """
    only = Record(record.header)
    family: set[str] = set()
    for at, code, data in record.events:
        process = str(data["process"])
        is_agent = "session" not in data and process.partition(" ")[0] == name
        if is_agent or ("seen" in data and data.get("parent") in family):
            family.add(process)
        if data.get("session") == name or ("session" not in data and process in family):
            is_own = process.partition(" ")[0] == name
            only.add(at, code, {**data, "process": "agent" + process[len(name) :]} if is_own else data)
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
        for at, code, data in record.events:
            named = {key: _rename_process_of_record(data[key], number) for key in ("process", "parent") if key in data}
            events.append(Event(at, code, {**data, **named}))
    whole.merge_events(events)
    return whole


def _rename_process_of_record(process: object, number: int) -> object:
    """Name a process after its record, unless it is one of the host's, or of the first record."""
    if not number or not isinstance(process, str) or process in ("supervisor", "caller"):
        return process
    letter = chr(ord("A") + number) if number < _ALPHABET_LENGTH else f"Z{number}"
    return f"{process} {letter}"
