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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pytest_agentproc.record import Event


MIN_NOTICEABLE_PAUSE_NS = 50_000_000
"""Nanoseconds: a shorter pause is the machine's own."""


@dataclass(frozen=True, slots=True)
class RecordedMoment:
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


def list_recorded_moments(events: Iterable[Event], *, by_line: bool) -> list[RecordedMoment]:
    """Give what happened in order.

    Args:
        events: those of a record.
        by_line: whether stdout is cut into lines; else chunks that follow at once are joined.
    """
    found: list[RecordedMoment] = []
    parts: list[tuple[int, bytes]] = []
    for at, code, data in events:
        if data.get("process") != "agent" and not (code == "p" and "seen" in data):
            continue
        if code == "o" and "bytes" in data and by_line:
            parts.append((at, data["bytes"]))
            found += _take_complete_lines(parts)
            continue
        if code == "x":
            found += _take_unfinished_line(parts)
        found += _convert_event_to_moments(at, code, data)
    found += _take_unfinished_line(parts)
    return found if by_line else list(_join_unpaused_chunks(found))


def _convert_event_to_moments(at: int, code: str, data: Any) -> Iterator[RecordedMoment]:
    if "bytes" in data:
        yield RecordedMoment(at, {"o": "out", "e": "err", "i": "in"}[code], data["bytes"])
    elif code == "i" and "eof" in data:
        yield RecordedMoment(at, "eof", None)
    elif code == "s":
        yield RecordedMoment(at, "signal", data)
    elif code == "x":
        yield RecordedMoment(at, "exit", data)
    elif code == "p" and "seen" in data and data["process"] != "agent":
        yield RecordedMoment(data["since"], "seen", data)
    elif "closed" in data:
        yield RecordedMoment(at, "close", "stdout" if code == "o" else "stderr")


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
