"""Owns the table of steps: name, value type, doc and compiled form of each, and the bytes of `raw`. Plays none.

Checker, compiler and reference are all made of this table: to add a step is to add an entry.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_agentproc.errors import NotApplicable
from pytest_agentproc.files import read_inside
from pytest_agentproc.scenario._check import Entry, Key, ProgramStep, Scope, Step, Table
from pytest_agentproc.scenario._fields import (
    Choice,
    Data,
    Either,
    Fields,
    Flag,
    ListOf,
    Signal,
    Size,
    Text,
    Time,
    Whole,
)
from pytest_agentproc.scenario._script import ENDING, KILL, SPAWN, Steps, build_kill, build_spawn
from pytest_agentproc.scenario._session_steps import (
    ACKNOWLEDGE,
    ASK,
    AWAITED,
    BACKGROUND_TURN,
    BEGIN,
    DELTA,
    EVENT,
    HANDSHAKE,
    HAPPENS,
    NOTICE,
    PLAN,
    REQUEST,
    TASK,
    TASK_DONE,
    THINK,
    TOOL,
    TOOL_DONE,
    build_acknowledge,
    build_ask,
    build_awaited,
    build_background_turn,
    build_event,
    build_handshake,
    build_request,
    check_dialects,
)
from pytest_agentproc.scenario._words import shorten, unknown
from pytest_agentproc.vocabulary import SIGNALS, signal_number

if TYPE_CHECKING:
    from pytest_agentproc.scenario._check import Check
    from pytest_agentproc.scenario._yaml import Node


_LARGEST = 64 * 1024**2
_MOST = 2 * _LARGEST
"""So many bytes a script may hold where a subject's limits say how many there are."""
_SOURCES = ("text", "hex", "file", "base64")


@dataclass(frozen=True)
class _Pieces:
    """The bytes of a raw step: pieces with a gap between them, on one stream; or one whole piece, up to a size."""

    stream: str
    pieces: tuple[bytes, ...]
    gap: Any
    size: Any = None


def build_raw(step: Step, scope: Scope) -> list[ProgramStep]:
    """Compile to `bytes`, with a `sleep` between the pieces if there is a gap."""
    value: _Pieces = step.value
    if value.size is not None:
        [piece] = value.pieces
        times = -(-scope.size(value.size) // len(piece))
        if not scope.takes(len(piece) * times, _MOST):
            raise NotApplicable(f"smaller limits (the raw steps would have more than {_MOST} bytes)", step.line)
        return [(step.line, "bytes", (value.stream, piece * times))]
    gap = scope.ns(value.gap)
    steps: list[ProgramStep] = []
    for piece in value.pieces:
        if steps and gap is not None:
            steps.append((step.line, "sleep", (gap,)))
        steps.append((step.line, "bytes", (value.stream, piece)))
    return steps


def _finish(values: dict[str, Any], node: Node, what: str, check: Check) -> _Pieces | None:
    data = _data(values, node, what, check)
    if data is None:
        return None
    if "size" in values:
        return _repeat_to_size(data, values, node, what, check)
    repeat = values.get("repeat", 1)
    if len(data) * repeat > _LARGEST:
        check.at(
            node, f"{what} would be {len(data) * repeat} bytes: at most {_LARGEST} are possible, use flood for more"
        )
        return None
    if not _counted(len(data) * repeat, node, check):
        return None
    data *= repeat
    cuts: list[int] = values.get("cut", [])
    if cuts != sorted(set(cuts)) or (cuts and cuts[-1] >= len(data)):
        check.at(
            node, f"{what}.cut must rise and end before the last byte: {what} has {len(data)} bytes, cut is {cuts}"
        )
    if "gap" in values and not cuts:
        check.at(node, f"{what}.gap is the time between pieces: say with cut where they begin")
    edges = [0, *cuts, len(data)]
    pieces = tuple(data[start:end] for start, end in pairwise(edges))
    return _Pieces(values.get("to", "stdout"), pieces, values.get("gap"))


def _repeat_to_size(data: bytes, values: dict[str, Any], node: Node, what: str, check: Check) -> _Pieces:
    for other in ("repeat", "cut", "gap"):
        if other in values:
            check.at(node, f"{what} has both size and {other}: a size repeats the bytes until there are as many")
    if not data:
        check.at(node, f"{what}.size repeats the bytes, and there are none")
    if isinstance(values["size"], int):
        _counted(values["size"], node, check)
    return _Pieces(values.get("to", "stdout"), (data,), None, values["size"])


def _counted(size: int, node: Node, check: Check) -> bool:
    """Count what the raw steps of a file have together; return whether that is possible."""
    check.raw_bytes += size
    if check.raw_bytes > _LARGEST:
        check.at(node, f"the raw steps of this file have more than {_LARGEST} bytes together: use flood for more")
    return check.raw_bytes <= _LARGEST


def _data(values: dict[str, Any], node: Node, what: str, check: Check) -> bytes | None:
    source = next(name for name in _SOURCES if name in values)
    text: str = values[source]
    try:
        if source == "hex":
            return bytes.fromhex(text)
        if source == "base64":
            return base64.b64decode("".join(text.split()), validate=True)
    except (ValueError, binascii.Error):
        sample = "e2 82 ac" if source == "hex" else "4oKs"
        check.at(node, f"{what}.{source} cannot be decoded: it looks like {sample}")
        return None
    return text.encode() if source == "text" else _file(text, node, what, check)


def _file(name: str, node: Node, what: str, check: Check) -> bytes | None:
    if check.folder is None:
        check.at(node, f"{what}.file needs a scenario that is a file itself: its folder is where the named file stands")
        return None
    try:
        folder = Path(check.folder).resolve()
        path = Path(folder, name).resolve()
        if not path.is_relative_to(folder):
            check.at(node, f'{what}.file "{shorten(name)}" leaves the folder of the scenario: copy the file into it')
            return None
        if not path.is_file():
            check.at(node, f'{what}.file "{shorten(name)}" is no file in the folder of the scenario')
            return None
        if path.stat().st_size > _LARGEST:
            check.at(
                node, f'{what}.file "{shorten(name)}" has {path.stat().st_size} bytes: at most {_LARGEST} are possible'
            )
            return None
        return read_inside(folder, path, _LARGEST)
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        check.at(node, f'{what}.file "{shorten(name)}" cannot be read: {reason}')
        return None


_FORMS = Fields(
    (
        Key("text", Text(), "the bytes, as text in UTF-8"),
        Key("hex", Text("HEX"), "the bytes, as pairs of hexadecimal digits; blanks do not count"),
        Key("file", Text("FILE", may_be_empty=False), "the bytes are a file's, which stays in the scenario's folder"),
        Key("base64", Text("BASE64"), "the bytes, in base64"),
        Key("repeat", Whole(1, _LARGEST), "this many times"),
        Key("size", Size(1, _LARGEST, bindable=True), "repeated, whole, up to at least this size"),
        Key("cut", ListOf(Whole(1, _LARGEST)), "offsets in bytes at which one write ends and the next begins"),
        Key("gap", Time(), "the time between the pieces"),
        Key("to", Choice(("stdout", "stderr")), "the stream; stdout if absent"),
    ),
    one_of=_SOURCES,
    finish=_finish,
)


RAW = Either(Text(), _FORMS, key="text")


_STREAMS = ("stdout", "stderr")
_OUTPUTS = (*_STREAMS, "say")
_CATCHABLE = tuple(name for name in SIGNALS if name not in ("KILL", "SEGV", "ABRT"))


def _say_finish(values: dict[str, Any], node: Node, what: str, check: Check) -> dict[str, Any]:
    reasons = None if check.record is None else check.record.stop_reasons
    if "stop" in values and reasons is not None and values["stop"] not in reasons:
        known = unknown("stop reason", values["stop"], reasons) if reasons else ""
        check.at(node, known or f"the dialect {check.dialect} has no stop reasons: leave stop out of {what}")
    return check_dialects(values, node, what, check)


def _result_finish(values: dict[str, Any], node: Node, what: str, check: Check) -> dict[str, Any]:
    subtype, known = values.get("subtype"), () if check.record is None else check.record.subtypes
    if subtype is not None and not known:
        check.at(node, f"the dialect {check.dialect} has no subtypes of a result: leave subtype out of {what}")
    elif subtype is not None and subtype not in known:
        check.at(node, unknown("subtype", subtype, known))
    return {"is_error": subtype not in (None, "success"), **values}


def _say(step: Step, _scope: Scope) -> list[ProgramStep]:
    if "parent" in step.value:
        return [(step.line, "event", ("nested", step.value))]
    return [(step.line, "say", (step.value["text"], step.value.get("stop")))]


def _answer(step: Step, _scope: Scope) -> list[ProgramStep]:
    return [(step.line, "answer", (step.value,))]


def _result(step: Step, _scope: Scope) -> list[ProgramStep]:
    value = step.value
    result = {"text": value.get("text"), "is_error": value["is_error"], "usage": value.get("usage")}
    if "subtype" in value:
        result["subtype"] = value["subtype"]
    return [(step.line, "result", (result,))]


def _drip(step: Step, scope: Scope) -> list[ProgramStep]:
    value = step.value
    every, until = scope.ns(value["every"]), scope.ns(value.get("for"))
    if "say" in value:
        return [(step.line, "drip", ("stdout", None, value["say"], every, until))]
    stream = next(name for name in _STREAMS if name in value)
    return [(step.line, "drip", (stream, value[stream].encode(), None, every, until))]


def _flood(step: Step, scope: Scope) -> list[ProgramStep]:
    [(stream, size)] = step.value.items()
    return [(step.line, "flood", (stream, scope.size(size)))]


def _silence(step: Step, scope: Scope) -> list[ProgramStep]:
    return [(step.line, "sleep", (scope.ns(step.value),))]


def _busy(step: Step, scope: Scope) -> list[ProgramStep]:
    return [(step.line, "burn_cpu", (scope.ns(step.value),))]


def _linger(step: Step, scope: Scope) -> list[ProgramStep]:
    waits = {"until signal": "await_signal", "until eof": "await_eof"}
    if isinstance(step.value, str) and step.value in waits:
        return [(step.line, waits[step.value], ())]
    return _silence(step, scope)


def _when(step: Step, scope: Scope) -> list[ProgramStep]:
    reaction = scope.steps(step.also)
    if "event" in step.value:
        return [(step.line, "when", (step.value["event"], None, reaction))]
    return [(step.line, "when", ("signal", signal_number(step.value["signal"]), reaction))]


def _meanwhile(step: Step, scope: Scope) -> list[ProgramStep]:
    return [(step.line, "meanwhile", (scope.steps(step.value),))]


def _word(step: Step, _scope: Scope) -> list[ProgramStep]:
    return [(step.line, step.name, (step.value,))]


def _die(step: Step, _scope: Scope) -> list[ProgramStep]:
    return [(step.line, "die", (SIGNALS[step.value],))]


_SAY = Fields(
    (
        Key("text", Text(), "the text of the message", required=True),
        Key("stop", Text("REASON", may_be_empty=False), "the stop reason of the message, in the words of the dialect"),
        Key("parent", Text("ID", may_be_empty=False), "the tool whose sub-agent says it (claude)"),
    ),
    finish=_say_finish,
)
_RESULT = Fields(
    (
        Key("text", Text(), "the text of the result"),
        Key("is_error", Flag(), "whether it reports an error; if absent only if the subtype is one"),
        Key("subtype", Text("SUBTYPE", may_be_empty=False), "its subtype, in claude's words; success if absent"),
        Key("usage", Data(), "the token counts, in the words of the dialect"),
    ),
    finish=_result_finish,
)
_DRIP = Fields(
    (
        Key("stdout", Text(may_be_empty=False), "the bytes, if they are for stdout"),
        Key("stderr", Text(may_be_empty=False), "the bytes, if they are for stderr"),
        Key("say", Text(), "the text, if it is a message of the dialect"),
        Key("every", Time(positive=True), "the time before each, the first one too", required=True),
        Key("for", Time(("ever",)), "how long it prints, the last instant included; for ever if absent"),
    ),
    one_of=_OUTPUTS,
)
_FLOOD = Fields(
    tuple(Key(name, Size(low=1, bindable=True), f"this many bytes on {name}") for name in _STREAMS),
    one_of=_STREAMS,
)
_AWAITED = Fields(
    (
        Key("stdin", Text("PATTERN", may_be_empty=False), "a line on stdin that fits"),
        Key("exit", ENDING, "the end of a child; in a spawned process also of its `parent`"),
    ),
    one_of=("stdin", "exit"),
)
_EVENT = Fields(
    (
        Key(
            "signal",
            Signal((*_CATCHABLE, "WINCH"), "no program can catch it"),
            "the signal that the reaction is for",
            required=True,
        ),
    ),
    elsewhere={"do": "it belongs beside when, not in it"},
)

_ENTRIES = (
    Entry(
        "say",
        Either(Text(), _SAY, "text"),
        "prints a text of the agent; the turn goes on, unless `stop` says otherwise",
        build=_say,
    ),
    Entry("answer", Text(), "prints a text, and completes the turn", build=_answer),
    Entry("result", Either(Text(), _RESULT, "text"), "completes the turn without another text", build=_result),
    Entry("begin", BEGIN, "prints the first events of a turn, before its first word", build=build_event),
    Entry(
        "notice", NOTICE, "reports a problem that ends nothing, and does not begin the turn (codex)", build=build_event
    ),
    Entry("delta", DELTA, "prints a piece of a text; the next `say` or `answer` ends the text", build=build_event),
    Entry("think", THINK, "prints a thought of the agent", build=build_event),
    Entry("plan", PLAN, "prints the whole plan of the agent, in place of an earlier plan", build=build_event),
    Entry("tool", TOOL, "starts a tool that the agent runs itself", build=build_event),
    Entry("tool_done", TOOL_DONE, "ends a tool that the agent runs itself", build=build_event),
    Entry(
        "event",
        EVENT,
        "prints one event of the dialect as it stands, or a line of claude by its name",
        build=build_event,
    ),
    Entry("task", TASK, "starts a background task, by a tool of its own (claude)", build=build_event),
    Entry("task_done", TASK_DONE, "ends a background task (claude)", build=build_event),
    Entry(
        "background_turn",
        BACKGROUND_TURN,
        "begins a turn that no prompt asked for (claude)",
        build=build_background_turn,
    ),
    Entry("ask", ASK, "asks the client for a permission, or calls a hook, and waits for the answer", build=build_ask),
    Entry(
        "request",
        REQUEST,
        "calls a method of the client (acp, codex app-server), or a tool of its MCP server (claude session), "
        "and waits for the answer",
        build=build_request,
    ),
    Entry("raw", RAW, "prints bytes as they stand, on stdout unless `to` names another stream", build=build_raw),
    Entry("drip", _DRIP, "prints the same output again and again, each time after `every`", build=_drip),
    Entry("flood", _FLOOD, "prints this many bytes at once", build=_flood),
    Entry("silence", Time(("for ever",)), "does nothing for this time", build=_silence),
    Entry(
        "burn_cpu", Time(("for ever",)), "does nothing for this time, and keeps one core busy in real time", build=_busy
    ),
    Entry(
        "linger",
        Time(("for ever", "until eof", "until signal")),
        "lives on after the work is done; `until signal` means until TERM, INT or HUP",
        build=_linger,
    ),
    Entry(
        "wait_for",
        Either(AWAITED, _AWAITED, "eof"),
        "waits for the end of stdin, a line of stdin that fits a glob, or the end of a child; in a session also "
        "for prompt N or a cancel",
        build=build_awaited,
    ),
    Entry("handshake", HANDSHAKE, "sets how the agent answers a handshake, from this line on", build=build_handshake),
    Entry(
        "acknowledge",
        ACKNOWLEDGE,
        "ends the turn that was cancelled, or that a signal interrupts (claude session); `receipt` comes before and "
        "reports that the cancel was read, and it ends nothing (claude session)",
        build=build_acknowledge,
    ),
    Entry(
        "when",
        Either(HAPPENS, _EVENT, "event"),
        "sets what the agent does if an event happens, from this line on (epipe: its reader has closed; cancel: of the "
        "turn in work); `do: []` ignores the event",
        build=_when,
        also=Key("do", Steps(), "the steps of the reaction", required=True),
    ),
    Entry("meanwhile", Steps(), "plays a second track of steps, which is cut when the script ends", build=_meanwhile),
    Entry(
        "stdin", Choice(("stop", "read")), "stops reading stdin, or reads on; a fake reads from its start", build=_word
    ),
    Entry("close", Choice((*_STREAMS, "stdin")), "closes one stream of the agent", build=_word),
    Entry("spawn", SPAWN, "starts a child process", build=build_spawn),
    Entry(
        "kill",
        KILL,
        "sends a signal to a child, and to its whole group if it leads one; STOP suspends it until CONT",
        build=build_kill,
    ),
    Entry(
        "exit",
        Whole(0, 255, "CODE", of_signal="die: {}"),
        "exits with this code; a script that ends exits with 0",
        build=_word,
    ),
    Entry("die", Signal(), "dies of this signal", build=_die),
)

STEPS: Table = {entry.name: entry for entry in _ENTRIES}
