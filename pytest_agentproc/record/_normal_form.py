"""Owns what makes two runs equal, and which step wrote which bytes where a record does not say so itself.

Chunking, pids and repeated re-arms do not count; everything else does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from pytest_agentproc.record._payload import get_payload_limit, join_payloads

EventTuple = tuple[int, str, Mapping[str, Any]]
NormalFormEntry = tuple[int, str, str, str, tuple[tuple[str, Any], ...]]
"""One event of the normal form: at, code, process, by (or ""), and the rest of its data, sorted."""

_KEYS_NOT_COMPARED = frozenset({"process", "by", "pid", "message", "given", "argv", "facts", "place", "stderr"})


class _HasEvents(Protocol):
    """Any holder of a run's events."""

    @property
    def events(self) -> Iterable[EventTuple]: ...


def join_chunks_of_instant(events: Iterable[EventTuple]) -> list[EventTuple]:
    """Join, within one instant, the bytes of each (process, code, by, line) at their first occurrence; sum up sizes.

    Bytes that are too many to be kept become a `Payload`. A timer that is armed again for the instant for which it is
    armed already is one event.
    """
    result: list[EventTuple] = []
    now: int | None = None
    chunks: dict[tuple[Any, ...], list[Any]] = {}
    armed: dict[tuple[Any, ...], Any] = {}
    places: list[tuple[int, str, list[Any]]] = []
    for event in events:
        at, code, data = event
        if at != now:
            now = at
            chunks.clear()
            armed.clear()
        if code == "t":
            timer = data.get("session"), data["process"], data["timer"]
            due = data.get("armed")
            if due is not None and armed.get(timer) == due:
                continue
            armed[timer] = due
        else:
            kind = "bytes" if "bytes" in data else "size" if "size" in data else ""
            if kind:
                stream = data["process"], code, data.get("by"), kind, data.get("line")
                parts = chunks.get(stream)
                if parts is not None:
                    parts.append(data[kind])
                    continue
                chunks[stream] = parts = [data[kind]]
                places.append((len(result), kind, parts))
        result.append(event)
    for place, kind, parts in places:
        at, code, data = result[place]
        value = join_payloads(parts, get_payload_limit(code)) if kind == "bytes" else sum(parts)
        if value != data[kind]:  # most chunks are alone
            result[place] = at, code, {**data, kind: value}
    return result


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
        for at, code, data in join_chunks_of_instant(record.events)
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


def add_step_lines(events: Iterable[EventTuple]) -> Iterator[EventTuple]:
    """Add the line of its step to output that does not carry it.

    The step that a process began last wrote it, if the process has one track only; else it is sure only of what
    follows in the same instant on a step that writes. A line that is not sure is left out.
    """
    steps: dict[str, tuple[int, Any, int]] = {}
    split: set[str] = set()
    for event in events:
        at, code, data = event
        process = data["process"]
        if code == "m" and "step" in data:
            steps[process] = at, data["step"], data["line"]
            if data["step"] in _STEPS_WITH_PARALLEL_TRACKS:
                split.add(process)
        elif code in "oe" and "bytes" in data and not data.get("line") and process in steps:
            since, step, line = steps[process]
            if process not in split or (since == at and step in _STEPS_THAT_WRITE):
                yield at, code, {**data, "line": line}
                continue
        yield event
