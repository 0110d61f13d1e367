"""A record as moments, and the script that is made of them. Knows no dialect's steps.

Pauses are rounded to two digits that count, and those under 50 ms are dropped; what is lost goes into the next, so that
a step is never far from where it was.
"""

from __future__ import annotations

import base64
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_agentproc.capture._wording import format_inline_yaml, format_time, format_yaml_text, round_to_two_digits
from pytest_agentproc.events import (
    InputEnded,
    InputRead,
    OutputWritten,
    ProcessEnded,
    ProcessStarted,
    SignalCaught,
    StreamBytes,
    StreamClosed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pytest_agentproc.events import Event


MIN_NOTICEABLE_PAUSE_NS = 50_000_000
"""Nanoseconds: a shorter pause is the machine's own."""


@dataclass(frozen=True, slots=True)
class RecordedMoment:
    """One thing that happened.

    Args:
        at: when, in nanoseconds since the start; of bytes, when the last of them came.
        kind: `out` and `err` (bytes), `in` (bytes of stdin), `eof`, `signal` (its name), `close` (a stream), `seen`,
            `exit`.
        data: the bytes, a stream, or the event.
        parts: the instants at which pieces of the bytes came, if there were noticeable pauses between them.
    """

    at: int
    kind: str
    data: Any
    parts: tuple[tuple[int, bytes], ...] = ()


def list_recorded_moments(events: Iterable[Event], *, by_line: bool) -> list[RecordedMoment]:
    """Give what happened in order.

    Args:
        events: those of a record.
        by_line: whether stdout is cut into lines; else chunks that follow at once are joined.
    """
    found: list[RecordedMoment] = []
    parts: list[tuple[int, bytes]] = []
    for event in events:
        if event.process != "agent" and not isinstance(event, ProcessStarted):
            continue
        if isinstance(event, OutputWritten) and event.stream == "stdout" and by_line:
            parts.append((event.at, require_all_bytes(event)))
            found += _take_complete_lines(parts)
            continue
        if isinstance(event, ProcessEnded):
            found += _take_unfinished_line(parts)
        found += _convert_event_to_moments(event)
    found += _take_unfinished_line(parts)
    return found if by_line else list(_join_unpaused_chunks(found))


def join_stream_bytes(events: Iterable[Event], stream: str) -> bytes:
    """Give all that went through a stream."""
    return b"".join(require_all_bytes(event) for event in events if get_stream_of_bytes(event) == stream)


def get_stream_of_bytes(event: Event) -> str | None:
    """Give the stream that an event of bytes is about; None: it is no such event."""
    return "stdin" if isinstance(event, InputRead) else event.stream if isinstance(event, OutputWritten) else None


def require_all_bytes(event: Event) -> bytes:
    """Give the bytes of an event."""
    assert isinstance(event, StreamBytes)
    assert isinstance(event.bytes, bytes), "a recording keeps all bytes"
    return event.bytes


def _convert_event_to_moments(event: Event) -> Iterator[RecordedMoment]:
    match event:
        case OutputWritten():
            yield RecordedMoment(event.at, "out" if event.stream == "stdout" else "err", require_all_bytes(event))
        case InputRead():
            yield RecordedMoment(event.at, "in", require_all_bytes(event))
        case InputEnded():
            yield RecordedMoment(event.at, "eof", None)
        case SignalCaught():
            yield RecordedMoment(event.at, "signal", event)
        case ProcessEnded():
            yield RecordedMoment(event.at, "exit", event)
        case ProcessStarted() if event.process != "agent":
            yield RecordedMoment(event.at if event.since is None else event.since, "seen", event)
        case StreamClosed():
            yield RecordedMoment(event.at, "close", event.stream)


def _take_complete_lines(parts: list[tuple[int, bytes]]) -> Iterator[RecordedMoment]:
    """Take the lines that are whole out of the pieces."""
    while parts and b"\n" in parts[-1][1]:
        at, last = parts[-1]
        head, _, tail = last.partition(b"\n")
        yield _join_pieces_of_line([*parts[:-1], (at, head + b"\n")])
        parts[:] = [(at, tail)] if tail else []


def _take_unfinished_line(parts: list[tuple[int, bytes]]) -> list[RecordedMoment]:
    joined = [_join_pieces_of_line(parts)] if parts else []
    parts.clear()
    return joined


def _join_pieces_of_line(parts: list[tuple[int, bytes]]) -> RecordedMoment:
    paused = any(later[0] - earlier[0] >= MIN_NOTICEABLE_PAUSE_NS for earlier, later in itertools.pairwise(parts))
    return RecordedMoment(parts[-1][0], "out", b"".join(data for _, data in parts), tuple(parts) if paused else ())


def _join_unpaused_chunks(found: list[RecordedMoment]) -> Iterator[RecordedMoment]:
    """Join what one stream carried without a noticeable pause, and nothing of another one between."""
    pieces: list[bytes] = []
    last: RecordedMoment | None = None
    for moment in found:
        if last is not None and (moment.kind != last.kind or moment.at - last.at >= MIN_NOTICEABLE_PAUSE_NS):
            yield RecordedMoment(last.at, last.kind, b"".join(pieces))
            pieces, last = [], None
        if moment.kind in ("out", "err"):
            pieces.append(moment.data)
            last = moment
        else:
            yield moment
    if last is not None:
        yield RecordedMoment(last.at, last.kind, b"".join(pieces))


_MAX_INLINE_BYTES = 4096
_MAX_LINES_WRITTEN_AS_SAY = 12


class ScriptBuilder:
    """Collects the steps of a script as text, with the silences between them.

    Args:
        keep: takes bytes that are too many to stand in the file, and gives the name of a file beside it.
        says: whether plain lines are said; else they are raw.
    """

    def __init__(self, keep: Callable[[bytes], str], *, says: bool) -> None:
        self.steps: list[str] = []
        self.now = 0
        self._keep = keep
        self._says = says

    def add_silence_until(self, at: int) -> None:
        """Be silent until an instant, if that is a noticeable time."""
        gap = round_to_two_digits(at - self.now) if at > self.now else 0
        if gap >= MIN_NOTICEABLE_PAUSE_NS:
            self.steps.append(f"silence: {format_time(gap)}")
            self.now += gap

    def add_step(self, step: str, at: int) -> None:
        """Add a step at its instant."""
        self.add_silence_until(at)
        self.steps.append(step)

    def add_output_bytes(self, data: bytes, at: int, stream: str = "stdout") -> None:
        """Add bytes as they stand."""
        self.add_silence_until(at)
        lines = data.split(b"\n")
        is_plain = _is_printable_text(data)
        if self._says and stream == "stdout" and is_plain and not lines[-1] and len(lines) <= _MAX_LINES_WRITTEN_AS_SAY:
            self.steps += [f"say: {format_yaml_text(line.decode())}" for line in lines[:-1]]
            return
        to = {"to": stream} if stream != "stdout" else {}
        if len(data) > _MAX_INLINE_BYTES:
            form = {"file": self._keep(data)}
        elif is_plain:
            form = {"text": data.decode()}
        else:
            form = {"base64": base64.b64encode(data).decode()}
        self.steps.append(
            f"raw: {format_inline_yaml(form['text'] if [*form] == ['text'] and not to else {**form, **to})}"
        )


def _is_printable_text(data: bytes) -> bool:
    try:
        shown = data.decode()
    except UnicodeDecodeError:
        return False
    return all(letter.isprintable() or letter in "\n\t\r\x1b" for letter in shown)
