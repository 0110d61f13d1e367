"""Owns the events of one run in their order, and their JSON lines; refuses to know who records or judges them."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_agentproc.record._normal import joined, normal_form

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["MAX_PAYLOAD_BYTES", "Event", "Record"]

MAX_PAYLOAD_BYTES = 64 * 1024
_EDGE_BYTES = 4 * 1024
_NANOSECONDS = 1_000_000_000


class Event(NamedTuple):
    """One thing that happened.

    Args:
        at: nanoseconds since the first spawn, on the run's clock.
        code: `o` stdout, `e` stderr, `i` stdin, `s` signal, `p` process, `x` exit, `t` timer, `m` marker.
        data: always names the `process` it is about; `by` is there when the supervisor's side did or saw it.
    """

    at: int
    code: str
    data: Mapping[str, Any]


_new_event = partial(tuple.__new__, Event)
"""What `Event` itself calls, without its frame: there are several events in every step."""


class Record:
    """Keep what happened in one run, both sides, in order.

    Args:
        header: the kit's version, the corpus hash, clock, policy and subject: whatever tells what was run.
    """

    __slots__ = ("events", "header")

    def __init__(self, header: Mapping[str, Any] | None = None) -> None:
        self.header: dict[str, Any] = dict(header or {})
        self.events: list[Event] = []

    def add(self, at_ns: int, code: str, data: Mapping[str, Any]) -> None:
        """Append one event. It is called for every chunk of a flood: joining and encoding happen in the renderers."""
        self.events.append(_new_event((at_ns, code, data)))

    def lines(self) -> Iterator[str]:
        """Yield the record as JSON lines in asciicast v3's shape: the header, then `[interval, code, data]`.

        Intervals are seconds since the line before, as exact numbers with nine decimals. Chunks that one step writes
        in one instant are joined. Bytes are text if they are UTF-8, else `{"b64": ...}`; a payload over 64 KiB is
        kept as length, sha256, head and tail.
        """
        yield json.dumps({"version": 3, "format": "agentproc", **self.header}, ensure_ascii=False, default=str)
        before = 0
        for at, code, data in joined(self.events, by_line=True):
            interval = at - before
            before = at
            sign = "-" if interval < 0 else ""
            seconds, rest = divmod(abs(interval), _NANOSECONDS)
            payload = json.dumps({key: _readable(value) for key, value in data.items()}, ensure_ascii=False)
            yield f'[{sign}{seconds}.{rest:09d}, "{code}", {payload}]'

    def digest(self) -> str:
        """Give the sha256 of the normal form: equal for equal runs, whatever their pids and chunks."""
        whole = hashlib.sha256()
        for *head, rest in normal_form(self):
            whole.update(repr(head).encode())
            for key, value in rest:
                if isinstance(value, bytes):
                    whole.update(f"{key} {len(value)} ".encode())
                    whole.update(value)
                else:
                    whole.update(repr((key, value)).encode())
        return whole.hexdigest()


def _readable(value: object) -> object:
    if not isinstance(value, bytes):
        return list(value) if isinstance(value, (set, frozenset, tuple)) else value
    if len(value) <= MAX_PAYLOAD_BYTES:
        return _encoded(value)
    return {
        "length": len(value),
        "sha256": hashlib.sha256(value).hexdigest(),
        "head": _encoded(value[:_EDGE_BYTES]),
        "tail": _encoded(value[-_EDGE_BYTES:]),
    }


def _encoded(payload: bytes) -> str | dict[str, str]:
    try:
        return payload.decode()
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(payload).decode()}
