"""The words of the timeline: one cell per event, how times are shown, and whom a stray signal hit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_agentproc.record._normal_form import EventTuple
    from pytest_agentproc.record._payload import Payload


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


def describe_stray_target(data: Mapping[str, Any]) -> str:
    """Say whom a signal was for; `to` of the marker is the kind, `who` the name, `pid` the number."""
    return _STRAY_SIGNAL_TARGET_TEXTS[data["to"]].format(who=data["who"], pid=data.get("pid"))


_SUPERVISOR_SIDE_NAMES = ("supervisor", "caller")
_STREAM_NAMES_BY_CODE = {"o": "stdout", "e": "stderr", "i": "stdin"}
_KEYS_NOT_SHOWN_IN_NOTES = ("process", "by", "line", "session")
_MAX_PREVIEW_CHARS = 32
_MAX_SOURCE_LINE_CHARS = 56


class DescribedEvent(NamedTuple):
    """One event in words.

    Args:
        at: its instant in nanoseconds.
        side: `supervisor`, `agent` (descendants too) or `both` for what concerns everyone.
        words: the shown text.
        likeness: equal for two cells that differ in their instant only.
        subject: (process, code). A supervisor's cell may stand beside the agent's cell with the same subject.
        data: the event's.
        whose: the session or process that the words are about, where they do not say it themselves.
        line: the line of the step that did it. 0 if none is known.
    """

    at: int
    side: str
    words: str
    likeness: tuple[Any, ...]
    subject: tuple[str, str]
    data: Mapping[str, Any]
    whose: str = ""
    line: int = 0

    @property
    def whole(self) -> str:
        """Give the words, with whose they are and the line."""
        whose = f"{self.whose}: " if self.whose else ""
        return f"{whose}{self.words}" + (f"  [line {self.line}]" if self.line else "")


def describe_events(events: Sequence[EventTuple], source: Sequence[str]) -> list[DescribedEvent]:
    """Put events into words.

    A step that shows by what it did gets no cell of its own, nor do the steps of a descendant without a script, nor
    the echo of a death, nor progress without a word.
    """
    result = []
    lent: dict[int, int] = {}
    births: dict[str, int] = {}
    for index, event in enumerate(events):
        at, code, data = event
        process = data["process"]
        if "seen" in data:
            births[process] = data.get("line") or 0
        elif code == "m" and "step" in data:
            if not data["line"]:  # no step of the script: the fake was asked to tell what it was given
                continue
            shown = index if data["line"] == births.get(process) else _find_event_of_step(events, index)
            if shown is not None:
                lent.setdefault(shown, data["line"])
                continue
        elif (data.get("event") == "delta" and not data["text"]) or (
            "gone" in data
            and index
            and events[index - 1][:2] == (at, "x")
            and events[index - 1][2]["process"] == process
        ):
            continue
        result.append(_describe_event(event, data.get("line") or lent.get(index), source))
    return result


def _describe_event(event: EventTuple, line: int | None, source: Sequence[str]) -> DescribedEvent:
    at, code, data = event
    process = data["process"]
    side = "supervisor" if "by" in data or process in _SUPERVISOR_SIDE_NAMES else "agent"
    words = _describe_step(data, source) if "step" in data else _EVENT_DESCRIBERS_BY_CODE[code](at, code, data)
    whose = data.get("session") or (process if side == "agent" and process != "agent" else "")
    due = data.get("armed")
    what = (process, data["timer"], due - at) if due is not None else (code, words, line)
    shown_on = "both" if "fault" in data else side
    return DescribedEvent(at, shown_on, words, (side, whose, *what), (process, code), data, whose, line or 0)


def _find_event_of_step(events: Sequence[EventTuple], index: int) -> int | None:
    """Find the event of the same instant that shows a step: it carries the step's line, or ends its process."""
    at, _, step = events[index]
    is_next = True
    for later in range(index + 1, len(events)):
        when, code, data = events[later]
        if when != at:
            return None
        if "by" in data or step["process"] not in (data["process"], data.get("parent")):
            continue
        if data.get("line") == step["line"] and code != "m":
            return later
        if data["process"] == step["process"]:
            if is_next and (code == "x" or "closed" in data):
                return later
            is_next = False
    return None


def _describe_step(data: Mapping[str, Any], source: Sequence[str]) -> str:
    line = data["line"]
    written = source[line - 1].strip().removeprefix("- ").strip() if 0 < line <= len(source) else ""
    return _clip_words(written or str(data["step"]), _MAX_SOURCE_LINE_CHARS)


def _describe_output(_at: int, code: str, data: Mapping[str, Any]) -> str:
    stream = _STREAM_NAMES_BY_CODE[code]
    if "by" not in data:
        if "closed" in data:
            return f"closes {stream}"
        return f"finds {stream} broken" if "broken" in data else f"{stream}, {_format_payload(data['bytes'])}"
    return f"sees the end of {stream}" if "eof" in data else f"reads {stream}, {_format_size(data['size'])}"


def _describe_input(_at: int, _code: str, data: Mapping[str, Any]) -> str:
    if "by" not in data:
        if "closed" in data:
            return "closes stdin"
        return "reads the end of stdin" if "eof" in data else f"reads stdin, {_format_payload(data['bytes'])}"
    if "broken" in data:
        return "finds stdin broken"
    return "closes stdin" if "closed" in data else f"writes stdin, {_format_size(data['size'])}"


def _describe_signal(_at: int, _code: str, data: Mapping[str, Any]) -> str:
    return f"{data['signal']} ==> {data['process']}" if "by" in data else f"catches {data['signal']}"


def _describe_process(_at: int, _code: str, data: Mapping[str, Any]) -> str:
    if "by" in data:
        return f"sees {data['process']} {'gone' if 'gone' in data else 'start'}"
    return "is gone" if "gone" in data else "starts"


def _describe_exit(_at: int, _code: str, data: Mapping[str, Any]) -> str:
    seen = f"sees {data['process']}: " if "by" in data else ""
    if "unknown" in data:
        return f"{seen}ends, nobody knows how"
    if "signal" in data:
        return f"{seen}dies of {data['signal']}"
    return f"{seen}exits with code {data['code']}"


def _describe_timer(_at: int, _code: str, data: Mapping[str, Any]) -> str:
    name = data["timer"]
    if "armed" in data:
        return f"timer {name} due at {format_instant(data['armed'])}"
    return f"timer {name} FIRES" if "fired" in data else f"timer {name} off"


def _describe_note(_at: int, _code: str, data: Mapping[str, Any]) -> str:
    for key, words in _NOTE_DESCRIBERS.items():
        if key in data:
            return words(data)
    return ", ".join(f"{key}: {value}" for key, value in data.items() if key not in _KEYS_NOT_SHOWN_IN_NOTES)


def _describe_leak(data: Mapping[str, Any]) -> str:
    return "LEAKED: still alive" if data["leaked"] == "alive" else f"LEAKED: {data['leaked']}"


def _describe_stray_signal(data: Mapping[str, Any]) -> str:
    held = "" if data["to"] in ("freed", "decoy") else ", held back"
    place = f" ({data['place']})" if "place" in data else ""
    return f"{data['stray']} ==> {describe_stray_target(data)}{held}{place}"


def _describe_question(data: Mapping[str, Any]) -> str:
    return f"{_VERBS_BY_QUESTION_KIND[data['kind']]} {data['asked']}"


def _describe_viewer_event(data: Mapping[str, Any]) -> str:
    """Say what a session told its viewers."""
    turn = {None: "", 0: " of the background turn"}.get(data["turn"], f" of turn {data['turn']}")
    words = str(data.get("text", data.get("message", "")))
    if data["event"] == "status":
        return f"is {words}"
    if data["event"] == "outcome":
        return f"OUTCOME{turn}: {words}"
    if data["event"] == "background":
        return f'BACKGROUND TURN over, "{_clip_words(words, _MAX_PREVIEW_CHARS)}"'
    return f"{data['event']}{turn}" + (f' "{_clip_words(words, _MAX_PREVIEW_CHARS)}"' if words else "")


_VERBS_BY_QUESTION_KIND = {"permission": "ASKS to use", "hook": "ASKS the hook", "request": "CALLS"}
_NOTE_DESCRIBERS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "outcome": lambda data: f"OUTCOME {data['outcome']}",
    "returned": lambda _: "RETURNS",
    "leaked": _describe_leak,
    "stray": _describe_stray_signal,
    "kept": lambda data: f"its {data['kept']} is closed, and no process sees that",
    "unobeyed": lambda data: f"does not obey {', '.join(data['unobeyed'])}, as its CLI would",
    "begun_without": lambda data: f"gets a prompt, and was asked for no {data['begun_without']}",
    "given": lambda data: f"was given {' '.join(data['given']['argv']) or 'no arguments'}",
    "fault": lambda data: f"{str(data['fault']).upper()}: {data.get('message', '')}".rstrip(": "),
    "asked": _describe_question,
    "answered": lambda data: f"GETS ITS ANSWER for {data['answered']}: {data['answer']}",
    "does": lambda data: f"caller: {data['does']}",
    "event": _describe_viewer_event,
    "program": lambda data: f"the program {data['program']}",
    "unsaid": lambda data: f"does not say {data['unsaid']}: {data['why']}",
    "untold": lambda data: f"its client is in `start`, and is not told of the {data['untold']}",
    "told": lambda data: f"its client is told of the {data['told']}",
    "unscaled": lambda data: f"NEVER ASKED for {data['unscaled']}",
}
_EVENT_DESCRIBERS_BY_CODE: dict[str, Callable[[int, str, Mapping[str, Any]], str]] = {
    "o": _describe_output,
    "e": _describe_output,
    "i": _describe_input,
    "s": _describe_signal,
    "p": _describe_process,
    "x": _describe_exit,
    "t": _describe_timer,
    "m": _describe_note,
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
