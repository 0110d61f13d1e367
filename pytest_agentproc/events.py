"""What can happen in a run: one type for each event of a record, and its form in a file. Knows no record and no run.

An event has its own class, so that a reader asks for a type and a checker knows its values. The classes are no frozen
dataclasses, which cost four times as much to make, and several are made in every step; but no event is changed once it
is made. `repr` and `==` stand once in `Event`, as each generated one costs the start of every process.

A file has a letter and a mapping for each event (see `docs/reference/record-format.md`, which is made from here). The
letter and the mark of a class, which is one of its keys, tell which it is; the fields are the other keys.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    TypeAlias,
    TypedDict,
    TypeVar,
    dataclass_transform,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, slots=True)
class Payload:
    """The kept part of bytes that are too many to be kept whole. Two are equal if length and hash are.

    Args:
        size: how many there were.
        sha256: of all of them, as hexadecimal digits; empty where it cannot be known.
        head: the first 4 KiB.
        tail: the last 4 KiB.
        whole: all that its stream carried in the same instant, if that was more.
    """

    size: int
    sha256: str
    head: bytes = field(compare=False, repr=False)
    tail: bytes = field(compare=False, repr=False)
    whole: Payload | None = field(default=None, compare=False, repr=False)

    def __len__(self) -> int:
        """Give the number of bytes."""
        return self.size


class StartFacts(TypedDict):
    """What an agent was given at its start; `longest` is the number of bytes after which it cuts a word."""

    argv: list[str]
    env: dict[str, str | None]
    cwd: str
    longest: int


KeptBytes = bytes | Payload
_T = TypeVar("_T")


@dataclass_transform(field_specifiers=(field,), eq_default=False)
def _event(cls: type[_T]) -> type[_T]:
    return dataclass(slots=True, repr=False, eq=False)(cls)


@dataclass_transform(field_specifiers=(field,), eq_default=False)
def _kind(letters: str, mark: str, meaning: str, value: str = "") -> Callable[[type[_T]], type[_T]]:
    """Make a class one of the `EVENT_TYPES`.

    Args:
        letters: its letter in a file, or those of its streams.
        mark: the key that tells it from others with that letter; "": it has no such key.
        meaning: what happened, for the documentation.
        value: the mark's, if the mark is no field; "": true.
    """

    def decorate(cls: type[_T]) -> type[_T]:
        cls.__doc__ = meaning  # `dataclass` would make a text of the signature, which costs more than the class
        made: Any = _event(cls)
        made.letters, made.mark, made.meaning, made.mark_value = letters, mark, meaning, value or True
        EVENT_TYPES.append(made)
        return made  # type: ignore[no-any-return]

    return decorate


EVENT_TYPES: list[type[Event]] = []
"""Everything that can happen. Of two types with the same letter, a line means the first one whose mark it has."""


@_event
class Event:
    """One thing that happened.

    Args:
        at: nanoseconds since the first spawn, on the run's clock.
        process: whom it is about.
        line: the line of the step in the scenario; 0: none is known.
        session: whose it is, where there are several.

    `letters` and `mark` are its form in a file. A class with several letters has one for each stream.
    """

    at: int
    process: str
    line: Annotated[int, "the line of the step in the scenario"] = field(default=0, kw_only=True)
    session: Annotated[str, "the session, where there are several"] = field(default="", kw_only=True)

    letters: ClassVar[str] = "m"
    mark: ClassVar[str] = ""
    mark_value: ClassVar[str | bool] = True
    meaning: ClassVar[str] = ""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            getattr(self, part.name) == getattr(other, part.name) for part in fields(self)
        )

    __hash__ = None  # type: ignore[assignment]  # as of every value that compares by its parts

    def __repr__(self) -> str:
        parts = (
            f"{part.name}={value!r}" for part in fields(self) if (value := getattr(self, part.name)) != part.default
        )
        return f"{type(self).__name__}({', '.join(parts)})"


class SupervisorView(Event):
    """What the supervisor did to its agent, or saw of it: `by: supervisor`; all others are the process's own."""

    __slots__ = ()


# Streams.


@_event
class StreamBytes(Event):
    """Bytes that a process passed through a stream."""

    bytes: Annotated[KeptBytes, "text, `{b64: ...}`, or `length`, `sha256`, `head` and `tail` of a long one"]


@_kind("i", "bytes", "the process reads bytes of its stdin")
class InputRead(StreamBytes):
    pass


@_kind("oe", "bytes", "the process writes bytes")
class OutputWritten(StreamBytes):
    stream: str


@_kind("i", "eof", "the process reads the end of its stdin")
class InputEnded(Event):
    pass


@_kind("oei", "closed", "the process closes the stream")
class StreamClosed(Event):
    stream: str


@_kind("oei", "broken", "the process finds that nobody is at the other end of the stream")
class StreamBroken(Event):
    stream: str


@_event
class StreamSize(SupervisorView):
    """So many bytes that the supervisor passed through a stream."""

    size: Annotated[int, "how many bytes"]


@_kind("i", "size", "the supervisor writes bytes to stdin")
class InputWritten(StreamSize):
    pass


@_kind("i", "closed", "the supervisor closes stdin")
class InputClosed(SupervisorView):
    pass


@_kind("i", "broken", "the supervisor finds that nobody reads stdin")
class InputBroken(SupervisorView):
    pass


@_kind("oe", "size", "the supervisor reads bytes")
class OutputRead(StreamSize):
    stream: str


@_kind("oe", "eof", "the supervisor reads the end of the stream")
class OutputEndRead(SupervisorView):
    stream: str


# Signals and processes.


@_kind("s", "signal", "the process catches a signal")
class SignalCaught(Event):
    signal: Annotated[str, "its name without `SIG`"]
    met: Annotated[str, "in a recording: `caught`, `default` or `ignored`"] = ""


@_kind("s", "signal", "the supervisor sends a signal; `process` is whom it reaches, such as `tree`")
class SignalSent(SupervisorView):
    signal: Annotated[str, "its name without `SIG`"]


@_kind("p", "seen", "the process starts")
class ProcessStarted(Event):
    pid: Annotated[int, "its number; 0: it has none"] = 0
    parent: Annotated[str, "who started it"] = ""
    how: Annotated[str, "in a recording: how it left its parent"] = ""
    since: Annotated[int | None, "in a recording: the instant of its first sight"] = None
    inherits: Annotated[bool | None, "in a recording: whether it holds the program's output"] = None
    argv: Annotated[str, "in a recording: its command"] = ""

    @property
    def is_agent(self) -> bool:
        """Whether the supervisor itself started it."""
        return self.parent == "supervisor"


@_kind("p", "gone", "the process is gone")
class ProcessGone(Event):
    pass


@_kind("x", "", "the process ends")
class ProcessEnded(Event):
    code: Annotated[int | None, "its exit code"] = None
    signal: Annotated[str, "the signal that it died of"] = ""
    unknown: Annotated[bool, "nobody knows how it ended"] = False


@_kind("x", "", "the supervisor sees that the process has ended")
class EndSeen(SupervisorView):
    code: Annotated[int | None, "its exit code"] = None
    signal: Annotated[str, "the signal that it died of"] = ""
    unknown: Annotated[bool, "nobody knows how it ended"] = False


# Timers of the supervisor.


@_event
class TimerEvent(Event):
    """Something about a timer, which is named after its limit."""

    timer: Annotated[str, "the limit that it is for"]


@_kind("t", "armed", "a timer is set")
class TimerArmed(TimerEvent):
    armed: Annotated[int, "the instant at which it is due, in nanoseconds"]


@_kind("t", "fired", "a timer fires")
class TimerFired(TimerEvent):
    pass


@_kind("t", "off", "a timer is taken back")
class TimerStopped(TimerEvent):
    pass


# What a fake says of itself.


@_kind("m", "step", "the process begins a step of its script")
class StepBegun(Event):
    step: Annotated[str, "the step's name"]


@_kind("m", "given", "the agent says what it was given at its start")
class StartReported(Event):
    given: Annotated[StartFacts, "`argv`, `env`, `cwd`, and after how many bytes (`longest`) a word is cut"]


@_kind("m", "asked", "the agent asks its supervisor")
class QuestionAsked(Event):
    asked: Annotated[str, "the tool or the hook that it is about"]
    kind: Annotated[str, "`permission`, `hook` or `request`"]
    number: Annotated[int, "which question of this process it is"]


@_kind("m", "answered", "the agent gets its answer")
class QuestionAnswered(Event):
    answered: Annotated[str, "the tool or the hook that it is about"]
    answer: Annotated[str, "what the agent was told"]
    number: Annotated[int, "which question of this process it is"]


@_kind("m", "unobeyed", "the agent was given options that the fake takes and does not obey")
class OptionsNotObeyed(Event):
    unobeyed: Annotated[list[str], "the options"]
    dialect: Annotated[str, "whose options they are"]


@_kind("m", "begun_without", "the agent gets a prompt before a handshake")
class HandshakeMissed(Event):
    begun_without: Annotated[str, "what nobody asked for"]


@_kind("m", "kept", "the agent closed a stream that another process holds open")
class StreamKeptOpen(Event):
    kept: Annotated[str, "the stream"]


@_kind("m", "broken", "the fake itself failed")
class FakeBroken(Event):
    broken: Annotated[str, "where and how"]


@_kind("m", "rows", "in a recording: the terminal changed its size")
class TerminalResized(Event):
    rows: Annotated[int, "how many"]
    columns: Annotated[int, "how many"]


# The supervisor and its caller.


@_kind("m", "outcome", "the run has its outcome")
class OutcomeReached(Event):
    outcome: Annotated[str, "the outcome"]


@_kind("m", "returned", "the supervisor returns")
class Returned(Event):
    pass


@_kind("m", "fault", "the run ended without a report")
class FaultFound(Event):
    fault: Annotated[str, "its kind, such as `deadlock`"]
    message: Annotated[str, "its words"] = ""


@_kind("m", "does", "the caller acts")
class CallerActed(Event):
    does: Annotated[str, "what it does"]


@_kind("m", "waits", "the caller begins to wait")
class CallerWaits(Event):
    waits: Annotated[str, "for what"]


@_event
class SessionReport(Event):
    """What a session reports to its viewers; `event` is the kind of it."""

    turn: Annotated[int | None, "its turn; 0: a background turn"] = None
    text: Annotated[str, "its words; of long ones the beginning"] = ""


@_kind("m", "event", "the session has a status, which is the text", "status")
class StatusReported(SessionReport):
    pass


@_kind("m", "event", "a turn has its outcome, which is the text", "outcome")
class TurnEnded(SessionReport):
    pass


@_kind("m", "event", "a background turn is over", "background")
class BackgroundEnded(SessionReport):
    pass


@_kind("m", "event", "the agent makes progress, with words or without", "delta")
class DeltaReported(SessionReport):
    pass


@_kind("m", "event", "the session reports an error", "error")
class ErrorReported(SessionReport):
    message: Annotated[str, "the words of the error"] = ""


@_kind("m", "event", "the session reports something else")
class OtherReport(SessionReport):
    event: Annotated[str, "`prompt`, `message`, `tool`, `question`, `hook`, `warning` and others"] = ""


def make_report(at: int, kind: str, turn: int | None, text: str) -> SessionReport:
    """Make the report of a kind."""
    if kind == "error":
        return ErrorReported(at, "supervisor", turn, message=text)
    known = _REPORT_BY_KIND.get(kind)
    return OtherReport(at, "supervisor", turn, text, kind) if known is None else known(at, "supervisor", turn, text)


_REPORT_BY_KIND: dict[str, type[SessionReport]] = {
    str(kind.mark_value): kind for kind in (StatusReported, TurnEnded, BackgroundEnded, DeltaReported)
}


# What the kit finds beside the run.


@_kind("m", "leaked", "the process outlived its supervisor")
class Leaked(Event):
    leaked: Annotated[str, "`alive`, `stopped` or `zombie`"]
    argv: Annotated[tuple[str, ...], "the command of an agent that lives"] = ()
    pid: Annotated[int, "its number, if it is no fake"] = 0
    facts: Annotated[tuple[str, ...], "what it holds, such as its ports"] = ()


@_kind("m", "stray", "a signal was not meant for the run")
class SignalStrayed(Event):
    stray: Annotated[str, "its name without `SIG`"]
    to: Annotated[str, "the kind of the target, such as `own group`"]
    who: Annotated[str, "the target's name"]
    pid: Annotated[int | None, "the target's number"] = None
    place: Annotated[str, "the line that sent it"] = ""
    origin: Annotated[str, "`unknown`: nobody knows who sent it"] = ""


@_kind("m", "origin", "there is a new process, and nobody knows who started it")
class StrangerFound(Event):
    origin: Annotated[str, "`unknown`"]
    pid: Annotated[int, "its number"]


@_kind("m", "program", "the program under test has ended, or was given up")
class ProgramEnded(Event):
    program: Annotated[str, "how it ended, in words"]
    status: Annotated[int, "its exit code, or minus the number of a signal; 0 if it was given up"]
    stderr: Annotated[str, "the end of what it printed there"]


@_kind("m", "unsaid", "the program does not report something")
class FieldMissing(Event):
    unsaid: Annotated[str, "the field of the report"]
    why: Annotated[str, "why it has no value"]


@_kind("m", "untold", "the client of a driven supervisor is in `start`, and is not told of an action")
class ClientNotTold(Event):
    untold: Annotated[str, "`close` or `cancel`"]


@_kind("m", "told", "the client is told of it after all")
class ClientTold(Event):
    told: Annotated[str, "`close`"]


@_kind("m", "unscaled", "the supervisor never asked for the scale of the run")
class ScaleIgnored(Event):
    unscaled: Annotated[str, "how it could have asked"]


Trace: TypeAlias = "Callable[[Event], None]"
"""Where a supervisor's side of the record goes."""

LETTER_BY_STREAM = {"stdout": "o", "stderr": "e", "stdin": "i"}
_STREAM_BY_LETTER = {letter: stream for stream, letter in LETTER_BY_STREAM.items()}


class EventLine(NamedTuple):
    """An event as a file has it: the instant, a code, and the rest in plain values."""

    at: int
    code: str
    data: Mapping[str, Any]


def list_keys(kind: type[Event]) -> dict[str, Any]:
    """Give the keys of a type in a file, beside `process` and `by`, each with the value that is left out."""
    own = {part.name: part for part in fields(kind) if part.name not in ("at", "process", "stream")}
    keys = {kind.mark: MISSING} if kind.mark and kind.mark not in own else {}
    return keys | {name: own[name].default for name in sorted(own, key=("line", "session").__contains__)}


_KEYS_BY_TYPE = {kind: list_keys(kind) for kind in EVENT_TYPES}


def get_letter(event: Event) -> str:
    """Give the letter of an event."""
    many: Any = event
    return event.letters if len(event.letters) == 1 else LETTER_BY_STREAM[many.stream]


def encode_event(event: Event) -> EventLine:
    """Give an event as a file has it; a key whose value says nothing is left out."""
    data: dict[str, Any] = {"process": event.process}
    if isinstance(event, SupervisorView):
        data["by"] = "supervisor"
    for key, default in _KEYS_BY_TYPE[type(event)].items():
        value = getattr(event, key, event.mark_value)
        if value != default:
            data[key] = value
    return EventLine(event.at, get_letter(event), data)


def decode_event(at: int, code: str, data: Mapping[str, Any]) -> Event:
    """Make an event of what `encode_event` gave.

    Raises:
        ValueError: there is no such event.
    """
    values = dict(data)
    process, is_view = values.pop("process"), values.pop("by", "") != ""
    for kind in EVENT_TYPES:
        if issubclass(kind, SupervisorView) is not is_view or code not in kind.letters:
            continue
        is_fixed = kind.mark not in kind.__dataclass_fields__
        if not kind.mark or (kind.mark in values and (not is_fixed or values[kind.mark] == kind.mark_value)):
            own = {key: value for key, value in values.items() if key != kind.mark or not is_fixed}
            if len(kind.letters) > 1:
                own["stream"] = _STREAM_BY_LETTER[code]
            return kind(at, process, **own)
    raise ValueError(f"no event has the code {code!r} and the keys {sorted(data)}")
