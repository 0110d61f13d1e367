"""Framings, feeders and keepers of artifacts that get bytes wrong, each in one way. Pure."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor import Artifacts, Feeder, Framing
from pytest_agentproc.vocabulary import Outcome

if TYPE_CHECKING:
    from pytest_agentproc.supervisor import Command, Result


class FatalArtifacts(Artifacts):
    """Fails a run whose artifacts could not be written (C3)."""

    def amend(self, result: Result) -> Result:
        """Take the disk's error for the run's."""
        amended = super().amend(result)
        return replace(amended, outcome=Outcome.FAILED, exit_code=1) if self.unwritten else amended


class SilentArtifacts(Artifacts):
    """Does not report that an artifact could not be written (C3)."""

    def amend(self, result: Result) -> Result:
        """Warn of nothing."""
        return result


class ForgetfulArtifacts(Artifacts):
    """Writes what an agent reported only if it exited by itself (C3)."""

    def fields(self, result: Result) -> dict[str, Any]:
        """Know nothing of an agent that was forced to exit."""
        lost = replace(result, text=None, stop_reason=None, model=None, usage=None)
        return super().fields(lost if result.forced else result)


class StartedArtifacts(Artifacts):
    """Writes a result for an agent that was started, and for no other (C3)."""

    def tell(self, result: Result) -> None:
        """Skip what never ran."""
        if result.outcome is not Outcome.SPAWN_FAILED:
            super().tell(result)


class DecodingArtifacts(Artifacts):
    """Keeps text where bytes came (C3)."""

    def write(self, name: str, data: bytes) -> None:
        """Replace what is no UTF-8."""
        super().write(name, data.decode(errors="replace").encode())


class ChunkFraming(Framing):
    """Decodes every chunk by itself (F1)."""

    def feed(self, data: bytes) -> list[bytes]:
        """Replace what a cut has torn."""
        return super().feed(data.decode(errors="replace").encode())


class UnfinishedFraming(Framing):
    """Drops a last line that has no end (F1)."""

    def flush(self) -> list[bytes]:
        """Hold nothing."""
        super().flush()
        return []


class FirstObjectFraming(Framing):
    """Takes one object from a line, and drops the rest of it (F1)."""

    def feed(self, data: bytes) -> list[bytes]:
        """Cut after the first object."""
        return [self._cut(line) for line in super().feed(data)]

    @staticmethod
    def _cut(line: bytes) -> bytes:
        if not line.startswith(b"{"):
            return line
        text = line.decode(errors="surrogateescape")
        try:
            return text[: json.JSONDecoder().raw_decode(text)[1]].encode(errors="surrogateescape")
        except ValueError:
            return line


class EscapeFraming(Framing):
    """Drops a line on which an escape sequence for a terminal stands before the frame (F1)."""

    def feed(self, data: bytes) -> list[bytes]:
        """Make of such a line what no decoder reads."""
        return [b"?" * line.startswith(b"\x1b") + line for line in super().feed(data)]


_LATER_TYPE = re.compile(rb'"type": ?"rate_limit_event"')


class StrictFraming(Framing):
    """Reads no further when a line is of a type that came with a later version of the CLI (F2)."""

    is_dead = False

    def feed(self, data: bytes) -> list[bytes]:
        """Give the lines before the first of such a type."""
        lines = super().feed(data)
        known = [] if self.is_dead else [*takewhile(lambda line: not _LATER_TYPE.search(line), lines)]
        self.is_dead = self.is_dead or len(known) < len(lines)
        return known


class BomFraming(Framing):
    """Takes a byte order mark for a part of the first line (F1)."""

    def __init__(self) -> None:
        super().__init__()
        self._begun = True


class CarriageFraming(Framing):
    """Takes the carriage return at the end of a line for text (F1)."""

    def _clean(self, line: bytes) -> bytes:
        """Give back what is cut off."""
        return super()._clean(line) + b"\r" * line.endswith(b"\r")


class WholeLineFraming(Framing):
    """Counts a CRLF to the line before it (F3)."""

    def _fits(self, line: bytes | bytearray) -> bool:
        return not self.is_too_long(len(line))


class BreakFraming(Framing):
    """Ends a line wherever Python's `splitlines` would (F1)."""

    def feed(self, data: bytes) -> list[bytes]:
        """Split what is a line once more."""
        lines = [line.decode(errors="surrogateescape").splitlines() or [""] for line in super().feed(data)]
        return [part.encode(errors="surrogateescape") for parts in lines for part in parts]


class EndlessLineFraming(Framing):
    """Waits for the end of a line however long it grows (F3)."""

    def is_too_long(self, size: int) -> bool:
        """Take any length."""
        return False


class ShortLineFraming(Framing):
    """Takes a line for too long that is longer than a reader's first buffer (F3)."""

    def is_too_long(self, size: int) -> bool:
        """Take 64 KiB, as asyncio's reader of lines does."""
        return size > 64 * 1024 or super().is_too_long(size)


class EndlessFeeder(Feeder):
    """Goes on watching a stream that has ended (A5)."""

    def ended(self, stream: str) -> None:
        """Take note of nothing."""


class StdoutFeeder(Feeder):
    """Never reads stderr (F4)."""

    @property
    def streams(self) -> list[str]:
        """Give stdout alone."""
        return [stream for stream in super().streams if stream == "stdout"]


class WriteFirstFeeder(Feeder):
    """Reads nothing before the prompt is through (F5)."""

    @property
    def streams(self) -> list[str]:
        """Give none while there is something to write."""
        return super().streams if self.is_delivered or self.is_broken else []


class OpenFeeder(Feeder):
    """Never closes stdin (C1)."""

    def end(self) -> list[Command]:
        """Write no more, and leave it at that."""
        super().end()
        return []
