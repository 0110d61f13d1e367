"""Reads a record as moments: what the agent printed, by lines, and what it was given. Owns the cutting."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_agentproc.record import Event

__all__ = ["NOTICED", "Moment", "moments"]

NOTICED = 50_000_000
"""Nanoseconds: a shorter pause is the machine's own."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One thing that happened.

    Args:
        at: when, in nanoseconds since the start; of bytes, when the last of them came.
        kind: `out` and `err` (bytes), `in` (bytes of stdin), `eof`, `signal` (its name), `close` (a stream), `seen`,
            `exit`.
        data: the bytes, or the event's own data.
        parts: the instants at which pieces of the bytes came, if there were noticeable pauses between them.
    """

    at: int
    kind: str
    data: Any
    parts: tuple[tuple[int, bytes], ...] = ()


def moments(events: Iterable[Event], *, by_line: bool) -> list[Moment]:
    """Give what happened in order.

    Args:
        events: those of a record.
        by_line: whether stdout is cut into lines; else chunks that follow at once are joined.
    """
    found: list[Moment] = []
    parts: list[tuple[int, bytes]] = []
    for at, code, data in events:
        if data.get("process") != "agent" and not (code == "p" and "seen" in data):
            continue
        if code == "o" and "bytes" in data and by_line:
            parts.append((at, data["bytes"]))
            found += _lines(parts)
            continue
        if code == "x":
            found += _rest(parts)
        found += _other(at, code, data)
    found += _rest(parts)
    return found if by_line else list(_joined(found))


def _other(at: int, code: str, data: Any) -> Iterator[Moment]:
    if "bytes" in data:
        yield Moment(at, {"o": "out", "e": "err", "i": "in"}[code], data["bytes"])
    elif code == "i" and "eof" in data:
        yield Moment(at, "eof", None)
    elif code == "s":
        yield Moment(at, "signal", data)
    elif code == "x":
        yield Moment(at, "exit", data)
    elif code == "p" and "seen" in data and data["process"] != "agent":
        yield Moment(data["since"], "seen", data)
    elif "closed" in data:
        yield Moment(at, "close", "stdout" if code == "o" else "stderr")


def _lines(parts: list[tuple[int, bytes]]) -> Iterator[Moment]:
    """Take the lines that are whole out of the pieces."""
    while parts and b"\n" in parts[-1][1]:
        at, last = parts[-1]
        head, _, tail = last.partition(b"\n")
        yield _line([*parts[:-1], (at, head + b"\n")])
        parts[:] = [(at, tail)] if tail else []


def _rest(parts: list[tuple[int, bytes]]) -> list[Moment]:
    made = [_line(parts)] if parts else []
    parts.clear()
    return made


def _line(parts: list[tuple[int, bytes]]) -> Moment:
    paused = any(later[0] - earlier[0] >= NOTICED for earlier, later in itertools.pairwise(parts))
    return Moment(parts[-1][0], "out", b"".join(data for _, data in parts), tuple(parts) if paused else ())


def _joined(found: list[Moment]) -> Iterator[Moment]:
    """Join what one stream carried without a noticeable pause, and nothing of another one between."""
    pieces: list[bytes] = []
    last: Moment | None = None
    for moment in found:
        if last is not None and (moment.kind != last.kind or moment.at - last.at >= NOTICED):
            yield Moment(last.at, last.kind, b"".join(pieces))
            pieces, last = [], None
        if moment.kind in ("out", "err"):
            pieces.append(moment.data)
            last = moment
        else:
            yield moment
    if last is not None:
        yield Moment(last.at, last.kind, b"".join(pieces))
