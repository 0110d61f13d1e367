"""The artifacts of a run: what they hold, and files that grow under another name and then appear whole (C3).

`result.json` has the fields of `vocabulary.RESULT_FIELD_TEXTS`; it comes last, so who sees it sees the other files
whole. A line of `events.jsonl` is `{"at": seconds since the spawn, "event": NAME, ...}` with what the event says; its
name is that of a meaning, such as message, piece, toolstarted, finished, noise or other. Text is UTF-8; half a
character (a lone surrogate, which JSON can carry and UTF-8 cannot) is written as JSON writes it. A run that its caller
cancels has a result.json too: with the outcome that was there already, or else `stopped`.

While it grows, `stdout.log` is `stdout.log.TOKEN.part`, with a token of its own for each store, so that two runs in one
directory never write into one file. A supervisor that is killed leaves its `.part` files. They hold all bytes that it
had read, and it renames none of them. The owner of the directory may remove them. Nothing is forced to the disk (fsync
could hold the loop for seconds): the promise is to readers, not against a power cut. Writes are made where the loop
runs, one read's bytes at a time; a disk that does not answer at all, such as a dead network mount, holds it.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, get_args

from pytest_agentproc.supervisor._events import OutputRead
from pytest_agentproc.supervisor.dialects import Line, Meaning, Message
from pytest_agentproc.vocabulary import (
    ARTIFACT_TEXTS,
    INCOMPLETE_ARTIFACTS_WARNING,
    NANOSECONDS_PER_SECOND,
    RESULT_FIELD_TEXTS,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from pytest_agentproc.supervisor._events import MachineEvent
    from pytest_agentproc.supervisor._result import Result


_RESULT_FILE_NAME = "result.json"
_LOG_FILE_NAMES = tuple(name for name in ARTIFACT_TEXTS if name != _RESULT_FILE_NAME)
_MAX_JSON_DEPTH = 20
_FIELD_NAMES_BY_EVENT_CLASS = {kind: tuple(field.name for field in fields(kind)) for kind in get_args(Meaning)}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHeader:
    """The facts of a run that are known before it begins.

    Args:
        run_id: what the run is called.
        argv: the agent's command.
        cwd: the folder in which it runs.
        requested_model: the model that was asked for; None if unknown.
        started_at: the wall clock at the instant `started`; it is read this once, and later instants are counted by
            the run's clock.
        started: the instant of the spawn, in nanoseconds of the run's clock.
    """

    run_id: str
    argv: tuple[str, ...]
    cwd: str
    requested_model: str | None
    started_at: datetime
    started: int


class Artifacts:
    """Keep the artifacts of one run: its logs during the run, its result at the end.

    Memory is bounded: every byte goes to the store at once. If the store cannot write a file, `unwritten` notes it, the
    store gives that file up, and the run continues.
    """

    def __init__(self, store: FileStore, headline: RunHeader) -> None:
        self.unwritten: dict[str, str] = {}
        self._store = store
        self._headline = headline
        for name in _LOG_FILE_NAMES:
            self._store_or_note_failure(name, store.begin, name)

    def log_event(self, event: MachineEvent, meanings: list[Meaning], now: int) -> None:
        """Keep what came of one event of the machine, at an instant of the run's clock."""
        if isinstance(event, OutputRead):
            self.write(f"{event.stream}.log", event.data)
        if meanings:
            at = (now - self._headline.started) / NANOSECONDS_PER_SECOND
            self.write(
                "events.jsonl",
                _encode_lines(
                    _encode_json({"at": at, **_describe_meaning(item)}, _ONE_LINE_JSON_ENCODER)
                    for item in _split_joined_line_meanings(meanings)
                ),
            )
            texts = [
                meaning.text
                for meaning in meanings
                if isinstance(meaning, (Message, Line)) and meaning.text is not None
            ]
            if texts:
                self.write("transcript.log", _encode_lines(texts))

    def write(self, name: str, data: bytes) -> None:
        """Write bytes behind those of a log."""
        self._store_or_note_failure(name, self._store.write, name, data)

    def finish(self, result: Result) -> Result:
        """Show the logs, write the result down, and give the result with all that could not be written."""
        for name in _LOG_FILE_NAMES:
            self._store_or_note_failure(name, self._store.finish, name)
        self.write_result(self.warn_of_unwritten(result))
        return self.warn_of_unwritten(result)

    def write_result(self, result: Result) -> None:
        """Write a result down: every one is, also that of an agent that never started."""
        self._store_or_note_failure(_RESULT_FILE_NAME, self._store.begin, _RESULT_FILE_NAME)
        self.write(_RESULT_FILE_NAME, _encode_lines([_encode_json(self.build_fields(result), _INDENTED_JSON_ENCODER)]))
        self._store_or_note_failure(_RESULT_FILE_NAME, self._store.finish, _RESULT_FILE_NAME)

    def warn_of_unwritten(self, result: Result) -> Result:
        """Give a result that warns of what could not be written; nothing else of it changes."""
        if not self.unwritten:
            return result
        return replace(
            result, warnings=(*result.warnings, INCOMPLETE_ARTIFACTS_WARNING), unwritten=dict(self.unwritten)
        )

    def build_fields(self, result: Result) -> dict[str, Any]:
        """Give the fields of result.json."""
        headline = self._headline
        own = {
            "run_id": headline.run_id,
            "argv": headline.argv,
            "cwd": headline.cwd,
            "started_at": _format_date(headline.started_at, 0),
            "ended_at": _format_date(headline.started_at, result.returned),
            "elapsed": result.elapsed / NANOSECONDS_PER_SECOND,
            "returned": result.returned / NANOSECONDS_PER_SECOND,
            "requested_model": headline.requested_model,
            "resolved_model": result.model,
        }
        return {name: own[name] if name in own else getattr(result, name) for name in RESULT_FIELD_TEXTS}

    def _store_or_note_failure(self, name: str, action: Callable[..., None], *args: Any) -> None:
        if name in self.unwritten:
            return
        try:
            action(*args)
        except OSError as error:
            self.unwritten[name] = error.strerror or str(error)
            self._store.drop(name)


def _format_date(start: datetime, after: int) -> str | None:
    """Write the date that is this number of nanoseconds after a start. Virtual time may pass the last possible date."""
    try:
        moment = start + timedelta(microseconds=after // 1000)
    except OverflowError:
        return None
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _encode_lines(texts: Iterable[str]) -> bytes:
    return "".join(f"{text}\n" for text in texts).encode(errors="backslashreplace")


def _split_joined_line_meanings(meanings: list[Meaning]) -> Iterator[Meaning]:
    """Part lines that came together: each is an event of its own."""
    for meaning in meanings:
        if type(meaning) is Line:
            yield from map(Line, meaning.text.split("\n"))
        else:
            yield meaning


def _describe_meaning(meaning: Meaning) -> dict[str, Any]:
    """Name an event and its fields. Leave out the fields that the event does not set."""
    kind = type(meaning)
    words: dict[str, Any] = {"event": kind.__name__.lower()}
    for name in _FIELD_NAMES_BY_EVENT_CLASS[kind]:
        value = getattr(meaning, name)
        if value is not None and value != _DEFAULTS_LEFT_OUT_OF_LOG.get(name):
            words[name] = _describe_meaning(value) if type(value) in _FIELD_NAMES_BY_EVENT_CLASS else value
    return words


_DEFAULTS_LEFT_OUT_OF_LOG: dict[str, Any] = {
    **dict.fromkeys(("ends_message", "is_over", "is_torn", "was_stopped"), False),
    "lines": 1,
    "is_progress": True,
    "marks": (),
    "id": "",
    "name": "",
}


def _encode_json(value: Any, encoder: json.JSONEncoder) -> str:
    try:
        return encoder.encode(value)
    except (ValueError, RecursionError):
        return encoder.encode(_make_json_writable(value))


def _convert_to_text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


_ONE_LINE_JSON_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_convert_to_text)
_INDENTED_JSON_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_convert_to_text, indent=2)


def _make_json_writable(value: Any, depth: int = 0) -> Any:
    """Make agent's data writable that Python's JSON reads and JSON has not: NaN, infinity, nesting without an end."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if not isinstance(value, (dict, list, tuple)):
        return value
    if depth == _MAX_JSON_DEPTH:
        return "..."
    if isinstance(value, dict):
        return {key: _make_json_writable(item, depth + 1) for key, item in value.items()}
    return [_make_json_writable(item, depth + 1) for item in value]


class FileStore(Protocol):
    """Files by name. A method that cannot do its work raises OSError, and then the file is dropped."""

    def begin(self, name: str) -> None:
        """Make an empty file under a name that no reader looks at yet."""

    def write(self, name: str, data: bytes) -> None:
        """Append all of these bytes; they are kept nowhere else."""

    def finish(self, name: str) -> None:
        """Show the file, whole, in place of an older one."""

    def drop(self, name: str) -> None:
        """Leave nothing of a file that was not finished; this never raises."""


class FolderStore:
    """A store in a directory.

    Args:
        path: the directory; it is made with the first file if it is not there, for its owner alone.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        with contextlib.suppress(OSError):  # it is relative, and here is gone: the first file will tell
            self.path = self.path.absolute()
        self._suffix = f".{secrets.token_hex(4)}.part"
        self._open: dict[str, int] = {}

    def begin(self, name: str) -> None:
        """See `FileStore`."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._open[name] = self.create_file(self._find_part_path(name))

    def create_file(self, path: Path) -> int:
        """Make a file that was not there, for its owner alone, and give a descriptor to write to."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)

    def write(self, name: str, data: bytes) -> None:
        """See `FileStore`."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._open[name], rest) :]

    def finish(self, name: str) -> None:
        """See `FileStore`."""
        os.close(self._open.pop(name))
        self._find_part_path(name).replace(self.path / name)

    def drop(self, name: str) -> None:
        """See `FileStore`."""
        with contextlib.suppress(OSError):
            if name in self._open:
                os.close(self._open.pop(name))
        with contextlib.suppress(OSError):
            self._find_part_path(name).unlink()

    def _find_part_path(self, name: str) -> Path:
        return self.path / f"{name}{self._suffix}"
