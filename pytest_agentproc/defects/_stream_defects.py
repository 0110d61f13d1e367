"""Framings, feeders and keepers of artifacts that get bytes wrong, each in one way. Pure."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from pytest_agentproc.defects._defect import breaks, breaks_in_sessions
from pytest_agentproc.supervisor import Artifacts, LineSplitter, Outbox, StdinFeeder
from pytest_agentproc.vocabulary import Outcome

if TYPE_CHECKING:
    from pytest_agentproc.supervisor import MachineCommand, Result


@breaks("artifacts-fatal", "C3", "fails a run because an artifact could not be written")
class ArtifactErrorFailsRunDefect(Artifacts):
    def warn_of_unwritten(self, result: Result) -> Result:
        amended = super().warn_of_unwritten(result)
        return replace(amended, outcome=Outcome.FAILED, exit_code=1) if self.unwritten else amended


@breaks(
    "artifacts-unmentioned",
    "C3",
    "does not report an artifact that it could not write",
    harmless="The answer is whole; only the hint at a missing file is missing.",
)
class ArtifactErrorUnreportedDefect(Artifacts):
    def warn_of_unwritten(self, result: Result) -> Result:
        return result


@breaks(
    "result-lost",
    "C3",
    "leaves out of result.json what a forced agent had reported",
    harmless="The report of the run is whole; only its copy in a file is not.",
)
class ResultOmitsForcedReportDefect(Artifacts):
    def build_fields(self, result: Result) -> dict[str, Any]:
        lost = replace(result, text=None, stop_reason=None, model=None, usage=None)
        return super().build_fields(lost if result.forced else result)


@breaks(
    "no-result-unless-started",
    "C3",
    "writes no result.json if the agent never started",
    harmless="The report of the run is whole; only its copy in a file is missing.",
)
class UnstartedAgentHasNoResultDefect(Artifacts):
    def write_result(self, result: Result) -> None:
        if result.outcome is not Outcome.SPAWN_FAILED:
            super().write_result(result)


@breaks(
    "log-is-text",
    "C3",
    "decodes the bytes that it writes to the logs",
    harmless="A log is for people, who cannot read the bytes that are lost.",
)
class LogsDecodedBytesDefect(Artifacts):
    def write(self, name: str, data: bytes) -> None:
        super().write(name, data.decode(errors="replace").encode())


@breaks("per-chunk-utf8", "F1", "decodes each chunk by itself")
class DecodesChunksSeparatelyDefect(LineSplitter):
    def feed(self, data: bytes) -> list[bytes]:
        return super().feed(data.decode(errors="replace").encode())


@breaks("drops-unfinished-line", "F1", "drops a last line without an end")
class DropsUnfinishedLineDefect(LineSplitter):
    def flush(self) -> list[bytes]:
        super().flush()
        return []


@breaks("first-object-only", "F1", "reads only the first object of a line")
class ReadsOnlyFirstObjectDefect(LineSplitter):
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


@breaks(
    "repeated-line-is-dropped",
    "F1",
    "drops a line that is equal to the one before it",
    sessions_only="In a run a last message has the whole text of the pieces.",
)
class DropsRepeatedLineDefect(LineSplitter):
    last = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Give the lines, each one time only if they repeat."""
        new = []
        for line in super().feed(data):
            new += [line] * (line != self.last)
            self.last = line
        return new


@breaks(
    "escape-costs-the-frame",
    "F1",
    "drops an event that follows a terminal escape sequence",
    harmless="The agent breaks its own format; a supervisor that counts the line as noise keeps the rule.",
)
class DropsEscapedEventDefect(LineSplitter):
    def feed(self, data: bytes) -> list[bytes]:
        return [b"?" * line.startswith(b"\x1b") + line for line in super().feed(data)]


def _read_json(line: bytes) -> Any:
    """Give the value of a line, [None] for null; None: the line is no JSON."""
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return [value] if value is None else value


class _RewritesItems(LineSplitter, ABC):
    """Takes an item of codex for something else."""

    def feed(self, data: bytes) -> list[bytes]:
        """Give the lines, with other events in the place of some items."""
        return [self._rewrite_line(line) for line in super().feed(data)]

    def _rewrite_line(self, line: bytes) -> bytes:
        event = _read_json(line)
        item = event.get("item") if isinstance(event, dict) else None
        other = self.rewrite_item(event["type"], item) if isinstance(item, dict) else None
        return line if other is None else json.dumps(other).encode()

    @abstractmethod
    def rewrite_item(self, kind: str, item: dict[str, Any]) -> dict[str, Any] | None:
        """Give the event that it is taken for; None: it is read as it is."""


@breaks(
    "error-item-is-fatal",
    "C1",
    "fails a run of codex at an item of the type error, which is a warning",
    runs_only="codex app-server writes an item of the type error in another event.",
)
class ErrorItemIsFatalDefect(_RewritesItems):
    def rewrite_item(self, kind: str, item: dict[str, Any]) -> dict[str, Any] | None:
        is_error = item.get("type") == "error"
        return {"type": "turn.failed", "error": {"message": item.get("message")}} if is_error else None


@breaks(
    "any-item-is-the-answer",
    "C3",
    "takes the words of any item of codex for its answer, also a thought or the output of a command",
    runs_only="The thoughts of codex app-server have no text of their own.",
)
class AnyItemIsAnswerDefect(_RewritesItems):
    def rewrite_item(self, kind: str, item: dict[str, Any]) -> dict[str, Any] | None:
        text = item.get("text") or item.get("aggregated_output")
        return {"type": kind, "item": {"type": "agent_message", "text": text}} if text else None


_UNKNOWN_EVENT_TYPE_PATTERN = re.compile(rb'"type": ?"rate_limit_event"')


class _StopsReading(LineSplitter, ABC):
    """Reads nothing more from a fatal line on."""

    is_dead = False

    def feed(self, data: bytes) -> list[bytes]:
        """Give the lines before the first fatal one."""
        lines = super().feed(data)
        known = [] if self.is_dead else [*takewhile(lambda line: not self.is_fatal(line), lines)]
        self.is_dead = self.is_dead or len(known) < len(lines)
        return known

    @abstractmethod
    def is_fatal(self, line: bytes) -> bool:
        """Say whether a line ends the reading."""


@breaks("unknown-type-ends-the-reading", "F2", "stops reading at an event of a new type")
class UnknownEventStopsReadingDefect(_StopsReading):
    def is_fatal(self, line: bytes) -> bool:
        return bool(_UNKNOWN_EVENT_TYPE_PATTERN.search(line))


@breaks("noise-ends-the-reading", "F2", "stops reading at a line that is no JSON")
class NoiseStopsReadingDefect(_StopsReading):
    def is_fatal(self, line: bytes) -> bool:
        return _read_json(line) is None


@breaks("other-json-ends-the-reading", "F2", "stops reading at a line that is JSON but no object")
class OtherJsonStopsReadingDefect(_StopsReading):
    def is_fatal(self, line: bytes) -> bool:
        return not isinstance(_read_json(line), dict | None)


_FAILED_TOOL_PATTERN = re.compile(rb'"(is_error|isError)": ?true|"status": ?"(failed|error)"')


@breaks("failed-tool-ends-the-reading", "C1", "gives up at a tool that failed, and reads nothing more")
class FailedToolStopsReadingDefect(_StopsReading):
    def is_fatal(self, line: bytes) -> bool:
        return bool(_FAILED_TOOL_PATTERN.search(line))


@breaks("noise-costs-the-read", "F2", "drops every line that it read together with a line that is no object")
class NoiseCostsReadDefect(LineSplitter):
    def feed(self, data: bytes) -> list[bytes]:
        lines = super().feed(data)
        return lines if all(isinstance(_read_json(line), dict) for line in lines if line) else []


@breaks("bom-is-data", "F1", "treats a byte order mark as text")
class KeepsByteOrderMarkDefect(LineSplitter):
    def __init__(self) -> None:
        super().__init__()
        self._begun = True


@breaks(
    "carriage-return-is-text",
    "F1",
    "treats the carriage return at a line's end as text",
    harmless="The text has an invisible character at its end.",
    runs_only="The agent of a session prints JSON, where a carriage return is blank.",
)
class KeepsCarriageReturnDefect(LineSplitter):
    def _strip_line(self, line: bytes) -> bytes:
        return super()._strip_line(line) + b"\r" * line.endswith(b"\r")


@breaks(
    "line-end-counts",
    "F3",
    "counts a CRLF as part of the line before it",
    harmless="It refuses only a line that has the longest length to the byte.",
    runs_only="A session reads its lines in the same way, so one run shows it.",
)
class CarriageReturnCountsInLimitDefect(LineSplitter):
    def _is_short_enough(self, line: bytes | bytearray) -> bool:
        return not self.is_too_long(len(line))


@breaks("any-break-ends-a-line", "F1", "ends a line at every character that may break a line")
class SplitsAtAnyLineBreakDefect(LineSplitter):
    def feed(self, data: bytes) -> list[bytes]:
        lines = [line.decode(errors="surrogateescape").splitlines() or [""] for line in super().feed(data)]
        return [part.encode(errors="surrogateescape") for parts in lines for part in parts]


@breaks(
    "endless-line",
    "F3",
    "waits for the end of a line however long it grows",
    harmless="The line fills memory only if it has gigabytes, and no scenario can show that.",
)
class LineLengthHasNoLimitDefect(LineSplitter):
    def is_too_long(self, size: int) -> bool:
        return False


@breaks("lines-are-short", "F3", "refuses a line of more than 64 KiB")
class LineLimitTooSmallDefect(LineSplitter):
    def is_too_long(self, size: int) -> bool:
        return size > 64 * 1024 or super().is_too_long(size)


@breaks("closed-output-spins", "A5", "keeps watching a stream that has ended")
class WatchesEndedStreamDefect(StdinFeeder):
    def note_stream_end(self, stream: str) -> None:
        """Take note of nothing."""


@breaks("stderr-unread", "F4", "never reads stderr")
class NeverReadsStderrDefect(StdinFeeder):
    @property
    def streams(self) -> list[str]:
        return [stream for stream in super().streams if stream == "stdout"]


@breaks_in_sessions("stderr-unread")
class SessionNeverReadsStderrDefect(Outbox):
    """Never reads stderr of a session's agent (F4)."""

    @property
    def streams(self) -> list[str]:
        return [stream for stream in super().streams if stream == "stdout"]


@breaks("other-bytes-on-stdin", "F5", "writes bytes of its own on the agent's stdin, between two requests")
class WritesForeignBytesDefect(Outbox):
    def put(self, data: bytes) -> list[MachineCommand]:
        return super().put(b"Welcome back\n" + data if data else data)


@breaks("writes-before-reading", "F5", "reads no output until the whole prompt is written")
class WritesPromptBeforeReadingDefect(StdinFeeder):
    @property
    def streams(self) -> list[str]:
        return super().streams if self.is_delivered or self.is_broken else []


@breaks("prompt-is-stripped", "F5", "removes white space at the end of a prompt")
class StripsPromptDefect(StdinFeeder):
    def __init__(self, prompt: bytes) -> None:
        super().__init__(prompt.rstrip())


@breaks("stdin-left-open", "C1", "never closes stdin")
class NeverClosesStdinDefect(StdinFeeder):
    def end_input(self) -> list[MachineCommand]:
        super().end_input()
        return []


@breaks("stdin-inherited", "C1", "lets an agent inherit stdin if its prompt is an argument")
class InheritsStdinDefect(StdinFeeder):
    # The agent sees the same: an open pipe without data.

    def __init__(self, prompt: bytes) -> None:
        super().__init__(prompt)
        self._is_prompt_on_stdin = bool(prompt)

    def end_input(self) -> list[MachineCommand]:
        commands = super().end_input()
        return commands if self._is_prompt_on_stdin else []
