"""Framings, feeders and keepers of artifacts that get bytes wrong, each in one way. Pure."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor import Artifacts, LineSplitter, StdinFeeder
from pytest_agentproc.vocabulary import Outcome

if TYPE_CHECKING:
    from pytest_agentproc.supervisor import MachineCommand, Result


class ArtifactErrorFailsRunDefect(Artifacts):
    """Fails a run because an artifact could not be written (C3)."""

    def warn_of_unwritten(self, result: Result) -> Result:
        amended = super().warn_of_unwritten(result)
        return replace(amended, outcome=Outcome.FAILED, exit_code=1) if self.unwritten else amended


class ArtifactErrorUnreportedDefect(Artifacts):
    """Does not report an artifact that it could not write (C3)."""

    def warn_of_unwritten(self, result: Result) -> Result:
        return result


class ResultOmitsForcedReportDefect(Artifacts):
    """Leaves out of result.json what a forced agent had reported (C3)."""

    def build_fields(self, result: Result) -> dict[str, Any]:
        lost = replace(result, text=None, stop_reason=None, model=None, usage=None)
        return super().build_fields(lost if result.forced else result)


class UnstartedAgentHasNoResultDefect(Artifacts):
    """Writes no result.json if the agent never started (C3)."""

    def write_result(self, result: Result) -> None:
        if result.outcome is not Outcome.SPAWN_FAILED:
            super().write_result(result)


class LogsDecodedBytesDefect(Artifacts):
    """Decodes the bytes that it writes to the logs (C3)."""

    def write(self, name: str, data: bytes) -> None:
        super().write(name, data.decode(errors="replace").encode())


class DecodesChunksSeparatelyDefect(LineSplitter):
    """Decodes each chunk by itself (F1)."""

    def feed(self, data: bytes) -> list[bytes]:
        return super().feed(data.decode(errors="replace").encode())


class DropsUnfinishedLineDefect(LineSplitter):
    """Drops a last line without an end (F1)."""

    def flush(self) -> list[bytes]:
        super().flush()
        return []


class ReadsOnlyFirstObjectDefect(LineSplitter):
    """Reads only the first object of a line (F1)."""

    def feed(self, data: bytes) -> list[bytes]:
        return [self._cut_first_object(line) for line in super().feed(data)]

    @staticmethod
    def _cut_first_object(line: bytes) -> bytes:
        if not line.startswith(b"{"):
            return line
        text = line.decode(errors="surrogateescape")
        try:
            return text[: json.JSONDecoder().raw_decode(text)[1]].encode(errors="surrogateescape")
        except ValueError:
            return line


class DropsEscapedEventDefect(LineSplitter):
    """Drops an event that follows a terminal escape sequence (F1)."""

    def feed(self, data: bytes) -> list[bytes]:
        return [b"?" * line.startswith(b"\x1b") + line for line in super().feed(data)]


_UNKNOWN_EVENT_TYPE_PATTERN = re.compile(rb'"type": ?"rate_limit_event"')


class UnknownEventStopsReadingDefect(LineSplitter):
    """Stops reading at an event of a new type (F2)."""

    is_dead = False

    def feed(self, data: bytes) -> list[bytes]:
        """Give the lines before the first of such a type."""
        lines = super().feed(data)
        known = [] if self.is_dead else [*takewhile(lambda line: not _UNKNOWN_EVENT_TYPE_PATTERN.search(line), lines)]
        self.is_dead = self.is_dead or len(known) < len(lines)
        return known


class KeepsByteOrderMarkDefect(LineSplitter):
    """Treats a byte order mark as text (F1)."""

    def __init__(self) -> None:
        super().__init__()
        self._begun = True


class KeepsCarriageReturnDefect(LineSplitter):
    """Treats the carriage return at a line's end as text (F1)."""

    def _strip_line(self, line: bytes) -> bytes:
        return super()._strip_line(line) + b"\r" * line.endswith(b"\r")


class CarriageReturnCountsInLimitDefect(LineSplitter):
    """Counts a CRLF as part of the line before it (F3)."""

    def _is_short_enough(self, line: bytes | bytearray) -> bool:
        return not self.is_too_long(len(line))


class SplitsAtAnyLineBreakDefect(LineSplitter):
    """Ends a line at every character that may break a line (F1)."""

    def feed(self, data: bytes) -> list[bytes]:
        lines = [line.decode(errors="surrogateescape").splitlines() or [""] for line in super().feed(data)]
        return [part.encode(errors="surrogateescape") for parts in lines for part in parts]


class LineLengthHasNoLimitDefect(LineSplitter):
    """Waits for the end of a line however long it grows (F3)."""

    def is_too_long(self, size: int) -> bool:
        return False


class LineLimitTooSmallDefect(LineSplitter):
    """Refuses a line of more than 64 KiB (F3)."""

    def is_too_long(self, size: int) -> bool:
        return size > 64 * 1024 or super().is_too_long(size)


class WatchesEndedStreamDefect(StdinFeeder):
    """Keeps watching a stream that has ended (A5)."""

    def note_stream_end(self, stream: str) -> None:
        """Take note of nothing."""


class NeverReadsStderrDefect(StdinFeeder):
    """Never reads stderr (F4)."""

    @property
    def streams(self) -> list[str]:
        return [stream for stream in super().streams if stream == "stdout"]


class WritesPromptBeforeReadingDefect(StdinFeeder):
    """Reads no output until the whole prompt is written (F5)."""

    @property
    def streams(self) -> list[str]:
        return super().streams if self.is_delivered or self.is_broken else []


class NeverClosesStdinDefect(StdinFeeder):
    """Never closes stdin (C1)."""

    def end_input(self) -> list[MachineCommand]:
        super().end_input()
        return []
