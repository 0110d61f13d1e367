"""The events of one run in their order, and their JSON lines; refuses to know who records or judges them."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_agentproc.events import Payload, StepBegun, StreamBytes, StreamSize, TimerEvent, encode_event, get_letter
from pytest_agentproc.record._normal_form import compute_normal_form, is_armed_again, join_chunks_of_instant
from pytest_agentproc.record._payload import MAX_WHOLE_OUTPUT_BYTES, PayloadBuffer, get_payload_limit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pytest_agentproc.events import Event


class EventJoiner:
    """Joins the events of one instant as the renderers would, so that they need not be held until then.

    A step that begins parts what comes after it from what came before, if that names no line: the place of a chunk
    among the steps may be all that tells who wrote it.
    """

    __slots__ = ("_armed", "_events", "_owns", "_sizes", "_streams", "_wholes")

    def __init__(self, events: list[Event]) -> None:
        self._events = events
        self._armed: dict[tuple[str, ...], int | None] = {}
        self._sizes: dict[tuple[Any, ...], list[int]] = {}
        self._streams: dict[tuple[Any, ...], PayloadBuffer] = {}
        self._wholes: dict[tuple[Any, ...], PayloadBuffer] = {}
        self._owns: list[PayloadBuffer] = []

    def add(self, event: Event) -> None:
        """Append an event, or join it with one of those before it."""
        match event:
            case StreamBytes():
                if self._join_with_earlier_bytes(event):
                    return
            case StreamSize():
                if self._join_with_earlier_size(event):
                    return
            case TimerEvent():
                if is_armed_again(event, self._armed):
                    return
            case StepBegun():
                self._streams = {key: own for key, own in self._streams.items() if key[-1]}
        self._events.append(event)

    def flush(self) -> None:
        """Write what was joined so far into its events."""
        for own in self._owns:
            written = self._events[own.place]
            assert isinstance(written, StreamBytes)
            self._events[own.place] = replace(written, bytes=own.get_payload())
        for place, size in self._sizes.values():
            passed = self._events[place]
            assert isinstance(passed, StreamSize)
            self._events[place] = replace(passed, size=size)

    def _join_with_earlier_bytes(self, event: StreamBytes) -> bool:
        """Take bytes in; say whether they need no event of their own."""
        assert isinstance(event.bytes, bytes), "no part of this instant was joined before"
        about = event.process, get_letter(event)
        key = *about, event.line
        own = self._streams.get(key)
        is_joined = own is not None
        if own is None:
            own = self._streams[key] = PayloadBuffer(get_payload_limit(event), len(self._events))
            self._owns.append(own)
            whole = self._wholes.setdefault(about, own)
            if whole is not own:
                if whole.place >= 0:
                    whole.whole = self._wholes[about] = whole.copy()
                own.whole = self._wholes[about]
        own.add(event.bytes)
        if own.whole is not None:
            own.whole.add(event.bytes)
        return is_joined

    def _join_with_earlier_size(self, event: StreamSize) -> bool:
        key = event.process, get_letter(event), event.line
        if key in self._sizes:
            self._sizes[key][1] += event.size
            return True
        self._sizes[key] = [len(self._events), event.size]
        return False


_EXTRA_BYTES_COUNTED_PER_EVENT = 64
"""So many bytes more each event of an instant counts: a flood of single bytes has millions, and is to be joined too."""

_NANOSECONDS_PER_SECOND = 1_000_000_000


class Record:
    """Keep what happened in one run, both sides, in order.

    Its size grows with the steps of a run and not with the printed bytes. Where an instant has more than 64 KiB, the
    bytes of one stream become one event. Over a limit they become a `Payload`: 64 KiB of a process's output, 16 MiB of
    its input, as a check may want all of its stdin.

    Args:
        header: the kit's version, the corpus hash, clock, policy and subject: whatever tells what was run.
    """

    __slots__ = ("_begin", "_events", "_joiner", "_now", "_weight", "header")

    def __init__(self, header: Mapping[str, Any] | None = None) -> None:
        self.header: dict[str, Any] = dict(header or {})
        self._events: list[Event] = []
        self._now: int | None = None
        self._begin = self._weight = 0
        self._joiner: EventJoiner | None = None

    @property
    def events(self) -> list[Event]:
        """The events so far, in order."""
        if self._joiner is not None:
            self._join_events_of_instant()
            self._joiner.flush()
        return self._events

    def add(self, event: Event) -> None:
        """Append one event. It is called for every chunk of a flood, and a few of them are left to the renderers."""
        if event.at == self._now:
            weight = self._weight + _EXTRA_BYTES_COUNTED_PER_EVENT
        else:
            if self._joiner is not None:
                self._flush_joiner()
            self._now = event.at
            self._begin = len(self._events)
            weight = 0
        if isinstance(event, StreamBytes):
            weight += len(event.bytes)
        self._weight = weight
        self._events.append(event)
        if weight > MAX_WHOLE_OUTPUT_BYTES:
            self._join_events_of_instant()

    def flush_and_count_events(self) -> int:
        """Be done with what came so far, and give how many events that are."""
        self._flush_joiner()
        self._now = None
        return len(self._events)

    def truncate_events(self, count: int) -> None:
        """Drop all but the first events."""
        self._flush_joiner()
        self._now = None
        del self._events[count:]

    def merge_events(self, events: Iterable[Event]) -> None:
        """Put events that were kept elsewhere among the events here, before the events of the same instant."""
        self._flush_joiner()
        self._now = None
        self._events[:] = sorted([*events, *self._events], key=lambda event: event.at)

    def _flush_joiner(self) -> None:
        """Be done with the joining of an instant."""
        if self._joiner is not None:
            self._join_events_of_instant()
            self._joiner.flush()
            self._joiner = None

    def _join_events_of_instant(self) -> None:
        """Join what came in this instant and is not joined yet."""
        if self._joiner is None:
            self._joiner = EventJoiner(self._events)
        chunks = self._events[self._begin :]
        del self._events[self._begin :]
        for event in chunks:
            self._joiner.add(event)
        self._begin = len(self._events)
        self._weight = 0

    def lines(self) -> Iterator[str]:
        """Yield the record as JSON lines in asciicast v3's shape: the header, then `[interval, code, data]`.

        Intervals are seconds since the line before, as exact numbers with nine decimals. Chunks that one step writes
        in one instant are joined. Bytes are text if they are UTF-8, else `{"b64": ...}`; a payload over 64 KiB is
        kept as length, sha256, head and tail.
        """
        yield json.dumps({"version": 3, "format": "agentproc", **self.header}, ensure_ascii=False, default=str)
        before = 0
        for at, code, data in map(encode_event, join_chunks_of_instant(self.events)):
            interval = at - before
            before = at
            sign = "-" if interval < 0 else ""
            seconds, rest = divmod(abs(interval), _NANOSECONDS_PER_SECOND)
            payload = json.dumps({key: _convert_to_json(value) for key, value in data.items()}, ensure_ascii=False)
            yield f'[{sign}{seconds}.{rest:09d}, "{code}", {payload}]'

    def digest(self) -> str:
        """Give the sha256 of the normal form: equal for equal runs, whatever their pids and chunks.

        Bytes that are too many to be kept go in by their length and hash.
        """
        whole = hashlib.sha256()
        for *head, rest in compute_normal_form(self):
            whole.update(repr(head).encode())
            for key, value in rest:
                if isinstance(value, bytes):
                    whole.update(f"{key} {len(value)} ".encode())
                    whole.update(value)
                else:
                    whole.update(repr((key, value)).encode())
        return whole.hexdigest()


def _convert_to_json(value: object) -> object:
    if isinstance(value, Payload):
        head, tail = _encode_payload(value.head), _encode_payload(value.tail)
        return {"length": value.size, "sha256": value.sha256, "head": head, "tail": tail}
    if not isinstance(value, bytes):
        return list(value) if isinstance(value, (set, frozenset, tuple)) else value
    if len(value) <= MAX_WHOLE_OUTPUT_BYTES:
        return _encode_payload(value)
    gathered = PayloadBuffer(MAX_WHOLE_OUTPUT_BYTES)
    gathered.add(value)
    return _convert_to_json(gathered.get_payload())


def _encode_payload(payload: bytes) -> str | dict[str, str]:
    try:
        return payload.decode()
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(payload).decode()}
