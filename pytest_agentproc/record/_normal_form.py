"""Owns what makes two runs equal, and which step wrote which bytes where a record does not say so itself.

Chunking, pids and repeated re-arms do not count; everything else does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from pytest_agentproc.events import (
    OutputWritten,
    StepBegun,
    StreamBytes,
    StreamSize,
    TimerArmed,
    TimerEvent,
    encode_event,
    get_letter,
)
from pytest_agentproc.record._payload import get_payload_limit, join_payloads

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_agentproc.events import Event

NormalFormEntry = tuple[int, str, str, str, tuple[tuple[str, Any], ...]]
"""One event of the normal form: at, code, process, by (or ""), and the rest of its data, sorted."""

_KEYS_NOT_COMPARED = frozenset({"process", "by", "pid", "message", "given", "argv", "facts", "place", "stderr"})


class _HasEvents(Protocol):
    """Any holder of a run's events."""

    @property
    def events(self) -> Iterable[Event]: ...


def is_armed_again(event: TimerEvent, armed: dict[tuple[str, ...], int | None]) -> bool:
    """Note a timer's instant; say whether it was armed for that one already."""
    timer, due = (event.session, event.process, event.timer), event.armed if isinstance(event, TimerArmed) else None
    before, armed[timer] = armed.get(timer), due
    return due is not None and before == due


def join_chunks_of_instant(events: Iterable[Event]) -> list[Event]:
    """Join, within one instant, the bytes of each process, stream and line at their first occurrence; sum up sizes.

    Bytes that are too many to be kept become a `Payload`. A timer that is armed again for the instant for which it is
    armed already is one event.
    """
    result: list[Event] = []
    now: int | None = None
    chunks: dict[tuple[object, ...], list[Any]] = {}
    armed: dict[tuple[str, ...], int | None] = {}
    places: list[tuple[int, list[Any]]] = []
    for event in events:
        if event.at != now:
            now = event.at
            chunks.clear()
            armed.clear()
        if isinstance(event, TimerEvent):
            if is_armed_again(event, armed):
                continue
        elif isinstance(event, (StreamBytes, StreamSize)):
            value = event.bytes if isinstance(event, StreamBytes) else event.size
            stream = event.process, get_letter(event), type(event), event.line
            parts = chunks.get(stream)
            if parts is not None:
                parts.append(value)
                continue
            chunks[stream] = parts = [value]
            places.append((len(result), parts))
        result.append(event)
    for place, parts in places:
        result[place] = _join_parts(result[place], parts)
    return result


def _join_parts(event: Event, parts: list[Any]) -> Event:
    if isinstance(event, StreamBytes):
        joined = join_payloads(parts, get_payload_limit(event))
        return event if joined is event.bytes else replace(event, bytes=joined)  # most chunks are alone
    assert isinstance(event, StreamSize)
    return replace(event, size=sum(parts))


def compute_normal_form(record: _HasEvents) -> list[NormalFormEntry]:
    """Reduce a record to what must be equal in every run of one scenario, model and real processes alike.

    Within one instant bytes are joined per process, stream, side and line, and identical re-arms collapse. These are
    left out: pids, the wording of faults, places in code, the agent's start values and a program's stderr (both name
    folders). Ends of streams, deaths and timers stay where they are. Of bytes that are too many to be kept, length and
    hash count.
    """
    return [
        (
            at,
            code,
            data["process"],
            data.get("by", ""),
            tuple((key, _convert_to_hashable(data[key])) for key in sorted(data) if _is_compared_key(key, data[key])),
        )
        for at, code, data in map(encode_event, join_chunks_of_instant(record.events))
    ]


def _is_compared_key(key: str, value: object) -> bool:
    return key not in _KEYS_NOT_COMPARED and not (key == "parent" and isinstance(value, int))


def _convert_to_hashable(value: object) -> object:
    if isinstance(value, Mapping):
        return tuple((key, _convert_to_hashable(value[key])) for key in sorted(value))
    if isinstance(value, (list, tuple)):
        return tuple(_convert_to_hashable(entry) for entry in value)
    return value


_STEPS_THAT_WRITE = frozenset({"say", "answer", "result", "bytes", "flood"})
_STEPS_WITH_PARALLEL_TRACKS = frozenset({"meanwhile", "when"})


def add_step_lines(events: Iterable[Event]) -> Iterator[Event]:
    """Add the line of its step to output that does not carry it.

    The step that a process began last wrote it, if the process has one track only; else it is sure only of what
    follows in the same instant on a step that writes. A line that is not sure is left out.
    """
    steps: dict[str, StepBegun] = {}
    split: set[str] = set()
    for event in events:
        process = event.process
        if isinstance(event, StepBegun):
            steps[process] = event
            if event.step in _STEPS_WITH_PARALLEL_TRACKS:
                split.add(process)
        elif isinstance(event, OutputWritten) and not event.line and process in steps:
            begun = steps[process]
            if process not in split or (begun.at == event.at and begun.step in _STEPS_THAT_WRITE):
                yield replace(event, line=begun.line)
                continue
        yield event
