"""The words of the timeline: one cell per event, how times are shown, and whom a stray signal hit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_agentproc import events

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_agentproc.events import Event, Payload


_NANOSECONDS_AND_UNIT_NAMES = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"))


def format_instant(ns: int) -> str:
    """Show nanoseconds as exact seconds: `120 s`, `0.25 s`, `120.000000001 s`."""
    return f"{_format_decimal(ns, 1_000_000_000)} s"


def format_duration(ns: int) -> str:
    """Show nanoseconds exactly in the largest unit that they fill: `120 s`, `250 ms`, `1 ns`."""
    for size, unit in _NANOSECONDS_AND_UNIT_NAMES:
        if abs(ns) >= size:
            return f"{_format_decimal(ns, size)} {unit}"
    return f"{ns} ns" if ns else "0 s"


def _format_decimal(ns: int, size: int) -> str:
    whole, rest = divmod(abs(ns), size)
    fraction = str(rest).zfill(len(str(size)) - 1).rstrip("0")
    return ("-" if ns < 0 else "") + str(whole) + (f".{fraction}" if fraction else "")


_STRAY_SIGNAL_TARGET_TEXTS = {
    "everything": "every process there is",
    "own group": "the process group of pytest",
    "itself": "pytest itself",
    "process": "process {pid} ({who})",
    "reused": "process {pid} ({who})",
    "group": "process group {pid} ({who})",
    "freed": "{pid}, the pid that {who} had",
    "decoy": "a decoy process {who}",
}


def describe_stray_target(stray: events.SignalStrayed) -> str:
    """Say whom a signal was for."""
    return _STRAY_SIGNAL_TARGET_TEXTS[stray.to].format(who=stray.who, pid=stray.pid)


_SUPERVISOR_SIDE_NAMES = ("supervisor", "caller")
_MAX_PREVIEW_CHARS = 32
_MAX_SOURCE_LINE_CHARS = 56


class DescribedEvent(NamedTuple):
    """One event in words.

    Args:
        at: its instant in nanoseconds.
        side: `supervisor`, `agent` (descendants too) or `both` for what concerns everyone.
        words: the shown text.
        likeness: equal for two cells that differ in their instant only.
        event: the event itself.
        whose: the session or process that the words are about, where they do not say it themselves.
        line: the line of the step that did it. 0 if none is known.
    """

    at: int
    side: str
    words: str
    likeness: tuple[Any, ...]
    event: events.Event
    whose: str = ""
    line: int = 0

    @property
    def whole(self) -> str:
        """Give the words, with whose they are and the line."""
        whose = f"{self.whose}: " if self.whose else ""
        return f"{whose}{self.words}" + (f"  [line {self.line}]" if self.line else "")


def describe_events(shown: Sequence[Event], source: Sequence[str]) -> list[DescribedEvent]:
    """Put events into words.

    A step that shows by what it did gets no cell of its own, nor do the steps of a descendant without a script, nor
    the echo of a death, nor progress without a word.
    """
    result = []
    lent: dict[int, int] = {}
    births: dict[str, int] = {}
    for index, event in enumerate(shown):
        match event:
            case events.ProcessStarted():
                births[event.process] = event.line
            case events.StepBegun():
                if not event.line:  # no step of the script: the fake was asked to tell what it was given
                    continue
                place = index if event.line == births.get(event.process) else _find_event_of_step(shown, index)
                if place is not None:
                    lent.setdefault(place, event.line)
                    continue
            case events.DeltaReported(text=""):
                continue
            case events.ProcessGone() if index and _is_end_of(shown[index - 1], event):
                continue
        result.append(_describe_event(event, event.line or lent.get(index, 0), source))
    return result


def _is_end_of(before: Event, gone: Event) -> bool:
    is_end = isinstance(before, events.ProcessEnded | events.EndSeen)
    return is_end and (before.at, before.process) == (gone.at, gone.process)


def _describe_event(event: Event, line: int, source: Sequence[str]) -> DescribedEvent:
    process = event.process
    is_supervisors = isinstance(event, events.SupervisorView) or process in _SUPERVISOR_SIDE_NAMES
    side = "supervisor" if is_supervisors else "agent"
    words = _describe_step(event, source) if isinstance(event, events.StepBegun) else _DESCRIBERS[type(event)](event)
    whose = event.session or (process if side == "agent" and process != "agent" else "")
    what: tuple[Any, ...] = events.get_letter(event), words, line
    if isinstance(event, events.TimerArmed):
        what = process, event.timer, event.armed - event.at
    shown_on = "both" if isinstance(event, events.FaultFound) else side
    return DescribedEvent(event.at, shown_on, words, (side, whose, *what), event, whose, line)


def _find_event_of_step(shown: Sequence[Event], index: int) -> int | None:
    """Find the event of the same instant that shows a step: it carries the step's line, or ends its process."""
    step = shown[index]
    is_next = True
    for later in range(index + 1, len(shown)):
        event = shown[later]
        if event.at != step.at:
            return None
        parent = event.parent if isinstance(event, events.ProcessStarted) else ""
        if isinstance(event, events.SupervisorView) or step.process not in (event.process, parent):
            continue
        if event.line == step.line and event.letters != events.StepBegun.letters:
            return later
        if event.process == step.process:
            if is_next and isinstance(event, events.ProcessEnded | events.StreamClosed):
                return later
            is_next = False
    return None


def _describe_step(event: events.StepBegun, source: Sequence[str]) -> str:
    written = source[event.line - 1].strip().removeprefix("- ").strip() if 0 < event.line <= len(source) else ""
    return _clip_words(written or event.step, _MAX_SOURCE_LINE_CHARS)


def _describe_exit(event: events.ProcessEnded | events.EndSeen) -> str:
    seen = f"sees {event.process}: " if isinstance(event, events.EndSeen) else ""
    if event.unknown:
        return f"{seen}ends, nobody knows how"
    return f"{seen}dies of {event.signal}" if event.signal else f"{seen}exits with code {event.code}"


def _describe_stray_signal(stray: events.SignalStrayed) -> str:
    held = "" if stray.to in ("freed", "decoy") else ", held back"
    place = f" ({stray.place})" if stray.place else ""
    return f"{stray.stray} ==> {describe_stray_target(stray)}{held}{place}"


def _describe_report(report: events.SessionReport) -> str:
    """Say what a session told its viewers."""
    turn = {None: "", 0: " of the background turn"}.get(report.turn, f" of turn {report.turn}")
    words = report.message if isinstance(report, events.ErrorReported) else report.text
    quoted = f' "{_clip_words(words, _MAX_PREVIEW_CHARS)}"' if words else ""
    match report:
        case events.StatusReported():
            return f"is {words}"
        case events.TurnEnded():
            return f"OUTCOME{turn}: {words}"
        case events.BackgroundEnded():
            return f'BACKGROUND TURN over, "{_clip_words(words, _MAX_PREVIEW_CHARS)}"'
        case events.OtherReport():
            return f"{report.event}{turn}{quoted}"
    return f"{report.mark_value}{turn}{quoted}"


_VERBS_BY_QUESTION_KIND = {"permission": "ASKS to use", "hook": "ASKS the hook", "request": "CALLS"}
_DESCRIBERS: dict[type[Event], Callable[[Any], str]] = {
    events.OutputWritten: lambda event: f"{event.stream}, {_format_payload(event.bytes)}",
    events.InputRead: lambda event: f"reads stdin, {_format_payload(event.bytes)}",
    events.InputEnded: lambda _: "reads the end of stdin",
    events.StreamClosed: lambda event: f"closes {event.stream}",
    events.StreamBroken: lambda event: f"finds {event.stream} broken",
    events.OutputRead: lambda event: f"reads {event.stream}, {_format_size(event.size)}",
    events.OutputEndRead: lambda event: f"sees the end of {event.stream}",
    events.InputWritten: lambda event: f"writes stdin, {_format_size(event.size)}",
    events.InputClosed: lambda _: "closes stdin",
    events.InputBroken: lambda _: "finds stdin broken",
    events.SignalCaught: lambda event: f"catches {event.signal}",
    events.SignalSent: lambda event: f"{event.signal} ==> {event.process}",
    events.ProcessStarted: lambda _: "starts",
    events.ProcessGone: lambda _: "is gone",
    events.ProcessEnded: _describe_exit,
    events.EndSeen: _describe_exit,
    events.TimerArmed: lambda event: f"timer {event.timer} due at {format_instant(event.armed)}",
    events.TimerFired: lambda event: f"timer {event.timer} FIRES",
    events.TimerStopped: lambda event: f"timer {event.timer} off",
    events.StartReported: lambda event: f"was given {' '.join(event.given['argv']) or 'no arguments'}",
    events.QuestionAsked: lambda event: f"{_VERBS_BY_QUESTION_KIND[event.kind]} {event.asked}",
    events.QuestionAnswered: lambda event: f"GETS ITS ANSWER for {event.answered}: {event.answer}",
    events.HandshakeMissed: lambda event: f"gets a prompt, and was asked for no {event.begun_without}",
    events.OptionsNotObeyed: lambda event: f"does not obey {', '.join(event.unobeyed)}, as its CLI would",
    events.StreamKeptOpen: lambda event: f"its {event.kept} is closed, and no process sees that",
    events.FakeBroken: lambda event: f"broken: {event.broken}",
    events.TerminalResized: lambda event: f"rows: {event.rows}, columns: {event.columns}",
    events.OutcomeReached: lambda event: f"OUTCOME {event.outcome}",
    events.Returned: lambda _: "RETURNS",
    events.FaultFound: lambda event: f"{event.fault.upper()}: {event.message}".rstrip(": "),
    events.CallerActed: lambda event: f"caller: {event.does}",
    events.CallerWaits: lambda event: f"caller: waits {event.waits}".rstrip(),
    **{kind: _describe_report for kind in events.EVENT_TYPES if issubclass(kind, events.SessionReport)},
    events.Leaked: lambda event: f"LEAKED: {'still alive' if event.leaked == 'alive' else event.leaked}",
    events.SignalStrayed: _describe_stray_signal,
    events.StrangerFound: lambda event: f"origin: {event.origin}, pid: {event.pid}",
    events.ProgramEnded: lambda event: f"the program {event.program}",
    events.FieldMissing: lambda event: f"does not say {event.unsaid}: {event.why}",
    events.ClientNotTold: lambda event: f"its client is in `start`, and is not told of the {event.untold}",
    events.ClientTold: lambda event: f"its client is told of the {event.told}",
    events.ScaleIgnored: lambda event: f"NEVER ASKED for {event.unscaled}",
}


def _format_payload(payload: bytes | Payload) -> str:
    known = payload if isinstance(payload, bytes) else payload.head
    start = known[: 4 * _MAX_PREVIEW_CHARS].decode(errors="replace")
    quoted = repr(start)[1:-1].replace("\\'", "'").replace('"', '\\"')
    if len(payload) > 4 * _MAX_PREVIEW_CHARS:
        quoted = quoted[: _MAX_PREVIEW_CHARS - 3] + "..."
    return f'{_format_size(len(payload))} "{_clip_words(quoted, _MAX_PREVIEW_CHARS)}"'


def _format_size(count: int) -> str:
    for size, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= size and count % size == 0:
            return f"{count // size} {unit}"
    return f"{count} B"


def _clip_words(words: str, width: int) -> str:
    return words if len(words) <= width else words[: width - 3] + "..."
