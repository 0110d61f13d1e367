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
from pytest_agentproc.files import read_file_inside_folder
from pytest_agentproc.scenario._fields import (
    HEX_DIGITS_PATTERN,
    ChoiceType,
    DurationType,
    EitherType,
    FieldsType,
    FlagType,
    ListOfType,
    OutputType,
    PlainDataType,
    SignalType,
    SizeType,
    TextType,
    TimeType,
    WholeNumberType,
)
from pytest_agentproc.scenario._file_check import CompileContext, Key, ProgramStep, StepEntry, StepTable, WrittenStep
from pytest_agentproc.scenario._python_data import MAX_TEXT_BYTES
from pytest_agentproc.scenario._script import (
    AWAITED_EXIT_VALUE_TYPE,
    KILL_STEP_TYPE,
    SPAWN_STEP_TYPE,
    ScriptStepsType,
    compile_kill_step,
    compile_spawn_step,
)
from pytest_agentproc.scenario._session_steps import (
    ACKNOWLEDGE_STEP_TYPE,
    ASK_STEP_TYPE,
    BACKGROUND_TURN_STEP_TYPE,
    BEGIN_STEP_TYPE,
    DELTA_STEP_TYPE,
    EVENT_STEP_TYPE,
    HANDSHAKE_STEP_TYPE,
    NOTICE_STEP_TYPE,
    PLAN_STEP_TYPE,
    REQUEST_STEP_TYPE,
    TASK_DONE_STEP_TYPE,
    TASK_STEP_TYPE,
    THINK_STEP_TYPE,
    TOOL_DONE_STEP_TYPE,
    TOOL_STEP_TYPE,
    TROUBLE_STEP_TYPE,
    WAIT_FOR_WORD_TYPE,
    WHEN_EVENT_TYPE,
    check_dialect_keys,
    compile_acknowledge_step,
    compile_ask_step,
    compile_background_turn_step,
    compile_event_step,
    compile_handshake_step,
    compile_request_step,
    compile_wait_for_step,
)
from pytest_agentproc.scenario._suggestions import describe_unknown_word, shorten_text
from pytest_agentproc.vocabulary import SIGNAL_NUMBER_BY_NAME, parse_signal_name

if TYPE_CHECKING:
    from pytest_agentproc.scenario._file_check import FileCheck
    from pytest_agentproc.scenario._yaml import YamlNode


_MAX_RAW_BYTES = MAX_TEXT_BYTES
_MAX_RAW_BYTES_OF_SCRIPT = 2 * _MAX_RAW_BYTES
"""So many bytes a script may hold where a subject's limits say how many there are."""
_RAW_SOURCE_KEYS = ("text", "hex", "file", "base64")


@dataclass(frozen=True)
class _RawPieces:
    """The bytes of a raw step: pieces with a gap between them, on one stream; or one whole piece, up to a size."""

    stream: str
    pieces: tuple[bytes, ...]
    gap: Any
    size: Any = None


def compile_raw_step(step: WrittenStep, scope: CompileContext) -> list[ProgramStep]:
    """Compile to `bytes`, with a `sleep` between the pieces if there is a gap."""
    value: _RawPieces = step.value
    if value.size is not None:
        [piece] = value.pieces
        times = -(-scope.evaluate_size(value.size) // len(piece))
        if not scope.reserve_script_bytes(len(piece) * times, _MAX_RAW_BYTES_OF_SCRIPT):
            raise NotApplicable(
                f"smaller limits (the raw steps would have more than {_MAX_RAW_BYTES_OF_SCRIPT} bytes)", step.line
            )
        return [(step.line, "bytes", (value.stream, piece * times))]
    gap = scope.evaluate_time(value.gap)
    steps: list[ProgramStep] = []
    for piece in value.pieces:
        if steps and gap is not None:
            steps.append((step.line, "sleep", (gap,)))
        steps.append((step.line, "bytes", (value.stream, piece)))
    return steps


def _make_raw_pieces(values: dict[str, Any], node: YamlNode, what: str, check: FileCheck) -> _RawPieces | None:
    data = _decode_data(values, node, what, check)
    if data is None:
        return None
    if "size" in values:
        return _repeat_data_to_size(data, values, node, what, check)
    repeat = values.get("repeat", 1)
    if len(data) * repeat > _MAX_RAW_BYTES:
        check.report_at(
            node,
            f"{what} would be {len(data) * repeat} bytes: at most {_MAX_RAW_BYTES} are possible, use flood for more",
        )
        return None
    if not _reserve_raw_bytes(len(data) * repeat, node, check):
        return None
    data *= repeat
    cuts: list[int] = values.get("cut", [])
    if cuts != sorted(set(cuts)) or (cuts and cuts[-1] >= len(data)):
        check.report_at(
            node, f"{what}.cut must rise and end before the last byte: {what} has {len(data)} bytes, cut is {cuts}"
        )
    if "gap" in values and not cuts:
        check.report_at(node, f"{what}.gap is the time between pieces: say with cut where they begin")
    edges = [0, *cuts, len(data)]
    pieces = tuple(data[start:end] for start, end in pairwise(edges))
    return _RawPieces(values.get("to", "stdout"), pieces, values.get("gap"))


def _repeat_data_to_size(
    data: bytes, values: dict[str, Any], node: YamlNode, what: str, check: FileCheck
) -> _RawPieces:
    for other in ("repeat", "cut", "gap"):
        if other in values:
            check.report_at(node, f"{what} has both size and {other}: a size repeats the bytes until there are as many")
    if not data:
        check.report_at(node, f"{what}.size repeats the bytes, and there are none")
    if isinstance(values["size"], int):
        _reserve_raw_bytes(values["size"], node, check)
    return _RawPieces(values.get("to", "stdout"), (data,), None, values["size"])


def _reserve_raw_bytes(size: int, node: YamlNode, check: FileCheck) -> bool:
    """Count what the raw steps of a file have together; return whether that is possible."""
    check.raw_bytes += size
    if check.raw_bytes > _MAX_RAW_BYTES:
        check.report_at(
            node, f"the raw steps of this scenario have more than {_MAX_RAW_BYTES} bytes together: use flood for more"
        )
    return check.raw_bytes <= _MAX_RAW_BYTES


def _decode_data(values: dict[str, Any], node: YamlNode, what: str, check: FileCheck) -> bytes | None:
    source = next(name for name in _RAW_SOURCE_KEYS if name in values)
    if source == "text":
        return bytes(values[source])
    text: str = values[source]
    try:
        if source == "hex":
            return bytes.fromhex(text)
        if source == "base64":
            return base64.b64decode("".join(text.split()), validate=True)
    except (ValueError, binascii.Error):
        sample = "e2 82 ac" if source == "hex" else "4oKs"
        check.report_at(node, f"{what}.{source} cannot be decoded: it looks like {sample}")
        return None
    return _read_data_file(text, node, what, check)


def _read_data_file(name: str, node: YamlNode, what: str, check: FileCheck) -> bytes | None:
    if check.folder is None:
        check.report_at(
            node, f"{what}.file needs a scenario that is a file itself: its folder is where the named file stands"
        )
        return None
    try:
        folder = Path(check.folder).resolve()
        path = Path(folder, name).resolve()
        if not path.is_relative_to(folder):
            check.report_at(
                node,
                f'{what}.file "{shorten_text(name)}" leaves the folder of the scenario: copy the file into it',
            )
            return None
        if not path.is_file():
            check.report_at(node, f'{what}.file "{shorten_text(name)}" is no file in the folder of the scenario')
            return None
        if path.stat().st_size > _MAX_RAW_BYTES:
            check.report_at(
                node,
                f'{what}.file "{shorten_text(name)}" has {path.stat().st_size} bytes: '
                f"at most {_MAX_RAW_BYTES} are possible",
            )
            return None
        return read_file_inside_folder(folder, path, _MAX_RAW_BYTES)
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        check.report_at(node, f'{what}.file "{shorten_text(name)}" cannot be read: {reason}')
        return None


_RAW_FIELDS = FieldsType(
    (
        Key("text", OutputType(), "the bytes, as text in UTF-8"),
        Key(
            "hex",
            TextType("HEX", pattern=HEX_DIGITS_PATTERN),
            "the bytes, as pairs of hexadecimal digits; blanks do not count",
        ),
        Key(
            "file", TextType("FILE", may_be_empty=False), "the bytes are a file's, which stays in the scenario's folder"
        ),
        Key("base64", TextType("BASE64"), "the bytes, in base64"),
        Key("repeat", WholeNumberType(1, _MAX_RAW_BYTES), "this many times"),
        Key("size", SizeType(1, _MAX_RAW_BYTES, bindable=True), "repeated, whole, up to at least this size"),
        Key(
            "cut",
            ListOfType(WholeNumberType(1, _MAX_RAW_BYTES)),
            "offsets in bytes at which one write ends and the next begins",
        ),
        Key("gap", TimeType(), "the time between the pieces"),
        Key("to", ChoiceType(("stdout", "stderr")), "the stream; stdout if absent"),
    ),
    one_of=_RAW_SOURCE_KEYS,
    finish=_make_raw_pieces,
)


RAW_STEP_TYPE = EitherType(OutputType(), _RAW_FIELDS, key="text")


def _validate_write_file(values: dict[str, Any], node: YamlNode, what: str, check: FileCheck) -> dict[str, Any]:
    path = values.get("path", "")
    parts = path.split("/")
    if "\0" in path or not all(parts) or {".", ".."} & set(parts):
        remedy = "write a path below the folder of the agent, such as out/notes.txt"
        check.report_at(node, f'{what}.path "{shorten_text(path)}" is no file in the folder of the agent: {remedy}')
    _reserve_raw_bytes(len(values.get("text", b"")), node, check)
    if check.is_session:
        check.files_of_sessions.append(node)
    return values


def _compile_write_file_step(step: WrittenStep, _scope: CompileContext) -> list[ProgramStep]:
    return [(step.line, step.name, (step.value["path"], step.value["text"]))]


_WRITE_FILE_FIELDS = FieldsType(
    (
        Key("path", TextType("PATH", may_be_empty=False), "its place below the folder of the agent", required=True),
        Key("text", OutputType(), "all that is in it", required=True),
    ),
    finish=_validate_write_file,
    example="write {path: notes.txt, text: done}",
)

_OUTPUT_STREAMS = ("stdout", "stderr")
_DRIP_OUTPUT_KEYS = (*_OUTPUT_STREAMS, "say")
_CATCHABLE_SIGNALS = tuple(name for name in SIGNAL_NUMBER_BY_NAME if name not in ("KILL", "SEGV", "ABRT"))


def _validate_say(values: dict[str, Any], node: YamlNode, what: str, check: FileCheck) -> dict[str, Any]:
    reasons = None if check.dialect_record is None else check.dialect_record.stop_reasons
    if "stop" in values and reasons is not None and values["stop"] not in reasons:
        known = describe_unknown_word("stop reason", values["stop"], reasons) if reasons else ""
        check.report_at(node, known or f"the dialect {check.dialect} has no stop reasons: leave stop out of {what}")
    return check_dialect_keys(values, node, what, check)


def _validate_result(values: dict[str, Any], node: YamlNode, what: str, check: FileCheck) -> dict[str, Any]:
    subtype, known = values.get("subtype"), () if check.dialect_record is None else check.dialect_record.subtypes
    if subtype is not None and not known:
        check.report_at(node, f"the dialect {check.dialect} has no subtypes of a result: leave subtype out of {what}")
    elif subtype is not None and subtype not in known:
        check.report_at(node, describe_unknown_word("subtype", subtype, known))
    if "http_status" in values and not check.has_dialect_key("http_status"):
        check.report_at(node, f"the dialect {check.dialect} has no field for it: leave http_status out of {what}")
    return {"is_error": subtype not in (None, "success"), **values}


def _compile_say_step(step: WrittenStep, _scope: CompileContext) -> list[ProgramStep]:
    if "parent" in step.value:
        return [(step.line, "event", ("nested", step.value))]
    return [(step.line, "say", (step.value["text"], step.value.get("stop")))]


def _compile_answer_step(step: WrittenStep, _scope: CompileContext) -> list[ProgramStep]:
    return [(step.line, "answer", (step.value,))]


def _compile_result_step(step: WrittenStep, _scope: CompileContext) -> list[ProgramStep]:
    value = step.value
    result = {"text": value.get("text"), "is_error": value["is_error"], "usage": value.get("usage")}
    result |= {name: value[name] for name in ("subtype", "http_status") if name in value}
    return [(step.line, "result", (result,))]


def _compile_drip_step(step: WrittenStep, scope: CompileContext) -> list[ProgramStep]:
    value = step.value
    every, until = scope.evaluate_time(value["every"]), scope.evaluate_time(value.get("for"))
    if "say" in value:
        return [(step.line, "drip", ("stdout", None, value["say"], every, until))]
    stream = next(name for name in _OUTPUT_STREAMS if name in value)
    return [(step.line, "drip", (stream, value[stream], None, every, until))]


def _compile_flood_step(step: WrittenStep, scope: CompileContext) -> list[ProgramStep]:
    [(stream, size)] = step.value.items()
    return [(step.line, "flood", (stream, scope.evaluate_size(size)))]


def _compile_silence_step(step: WrittenStep, scope: CompileContext) -> list[ProgramStep]:
    return [(step.line, "sleep", (scope.evaluate_time(step.value),))]


def _compile_burn_cpu_step(step: WrittenStep, scope: CompileContext) -> list[ProgramStep]:
    return [(step.line, "burn_cpu", (scope.evaluate_time(step.value),))]


def _compile_when_step(step: WrittenStep, scope: CompileContext) -> list[ProgramStep]:
    reaction = scope.compile_steps(step.also)
    if "event" in step.value:
        return [(step.line, "when", (step.value["event"], None, reaction))]
    return [(step.line, "when", ("signal", parse_signal_name(step.value["signal"]), reaction))]


def _compile_nested_steps(step: WrittenStep, scope: CompileContext) -> list[ProgramStep]:
    return [(step.line, step.name, (scope.compile_steps(step.value),))]


_STEPS_OF_ONE_WRITE = ("say", "delta", "think", "plan", "tool", "tool_done", "event", "answer", "raw")
"""Steps that print on stdout and take no time."""


class _OneWriteStepsType(ScriptStepsType):
    """A list of steps whose output is written at once."""

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> tuple[WrittenStep, ...]:
        """Read every step; one that waits, or prints elsewhere, is a mistake."""
        steps = super().read_node(node, what, check)
        for step in steps:
            if step.name not in _STEPS_OF_ONE_WRITE:
                place = f"write {step.name} before or after {what}"
                check.report_at(node, f"{what} prints, and {step.name} does something else: {place}")
            elif step.name == "raw" and isinstance(step.value, _RawPieces) and _is_apart(step.value):
                check.report_at(node, f"{what} is one write on stdout: leave cut, gap and to out of raw")
        return steps


def _is_apart(value: _RawPieces) -> bool:
    return len(value.pieces) > 1 or value.stream != "stdout"


def _compile_one_word_step(step: WrittenStep, _scope: CompileContext) -> list[ProgramStep]:
    return [(step.line, step.name, (step.value,))]


def _compile_die_step(step: WrittenStep, _scope: CompileContext) -> list[ProgramStep]:
    return [(step.line, "die", (SIGNAL_NUMBER_BY_NAME[step.value],))]


_SAY_FIELDS = FieldsType(
    (
        Key("text", TextType(), "the text of the message", required=True),
        Key(
            "stop",
            TextType("REASON", may_be_empty=False),
            "the stop reason of the message, in the words of the dialect",
        ),
        Key("parent", TextType("ID", may_be_empty=False), "the tool whose sub-agent says it (claude)"),
    ),
    finish=_validate_say,
)
_RESULT_STEP_FIELDS = FieldsType(
    (
        Key("text", TextType(), "the text of the result"),
        Key("is_error", FlagType(), "whether it reports an error; if absent only if the subtype is one"),
        Key("subtype", TextType("SUBTYPE", may_be_empty=False), "its subtype, in claude's words; success if absent"),
        Key("usage", PlainDataType(), "the token counts, in the words of the dialect"),
        Key("http_status", WholeNumberType(400, 599), "the status of an API error; 400 if absent (claude, gemini)"),
    ),
    finish=_validate_result,
)
_DRIP_FIELDS = FieldsType(
    (
        Key("stdout", OutputType(may_be_empty=False), "the bytes, if they are for stdout"),
        Key("stderr", OutputType(may_be_empty=False), "the bytes, if they are for stderr"),
        Key("say", TextType(), "the text, if it is a message of the dialect"),
        Key("every", TimeType(positive=True), "the time before each, the first one too", required=True),
        Key("for", DurationType(), "how long it prints, the last instant included; for ever if absent"),
    ),
    one_of=_DRIP_OUTPUT_KEYS,
    example="write {say: TEXT, every: 1s}",
)
_FLOOD_FIELDS = FieldsType(
    tuple(Key(name, SizeType(low=1, bindable=True), f"this many bytes on {name}") for name in _OUTPUT_STREAMS),
    one_of=_OUTPUT_STREAMS,
    example="write {stdout: 1 MiB}",
)
_WAIT_FOR_FIELDS = FieldsType(
    (
        Key("stdin", TextType("PATTERN", may_be_empty=False), "a line on stdin that fits"),
        Key("exit", AWAITED_EXIT_VALUE_TYPE, "the end of a child; in a spawned process also of its `parent`"),
    ),
    one_of=("stdin", "exit"),
)
_WHEN_FIELDS = FieldsType(
    (
        Key(
            "signal",
            SignalType((*_CATCHABLE_SIGNALS, "WINCH"), "no program can catch it"),
            "the signal that the reaction is for",
            required=True,
        ),
    ),
    elsewhere={"do": "it belongs beside when, not in it"},
)

_STEP_ENTRIES = (
    StepEntry(
        "say",
        EitherType(TextType(), _SAY_FIELDS, "text"),
        "prints a text of the agent; the turn goes on, unless `stop` says otherwise",
        build=_compile_say_step,
    ),
    StepEntry("answer", TextType(), "prints a text, and completes the turn", build=_compile_answer_step),
    StepEntry(
        "result",
        EitherType(TextType(), _RESULT_STEP_FIELDS, "text"),
        "completes the turn without another text",
        build=_compile_result_step,
    ),
    StepEntry(
        "begin",
        BEGIN_STEP_TYPE,
        "prints the first events of a turn, before its first word (`turn`), or keeps them back until then (`late`), as "
        "a CLI does that hangs at its start; if absent as soon as the agent waits, if the real CLI does so",
        build=compile_event_step,
    ),
    StepEntry(
        "notice",
        NOTICE_STEP_TYPE,
        "reports a problem that ends nothing, and does not begin the turn (codex)",
        build=compile_event_step,
    ),
    StepEntry(
        "delta",
        DELTA_STEP_TYPE,
        "prints a piece of a text; the next `say` or `answer` ends the text",
        build=compile_event_step,
    ),
    StepEntry("think", THINK_STEP_TYPE, "prints a thought of the agent", build=compile_event_step),
    StepEntry(
        "plan",
        PLAN_STEP_TYPE,
        "prints the whole plan of the agent, in place of an earlier plan",
        build=compile_event_step,
    ),
    StepEntry("tool", TOOL_STEP_TYPE, "starts a tool that the agent runs itself", build=compile_event_step),
    StepEntry("tool_done", TOOL_DONE_STEP_TYPE, "ends a tool that the agent runs itself", build=compile_event_step),
    StepEntry(
        "event",
        EVENT_STEP_TYPE,
        "prints one event of the dialect as it stands, or a line of claude by its name",
        build=compile_event_step,
    ),
    StepEntry(
        "trouble",
        TROUBLE_STEP_TYPE,
        "plays ready-made trouble with the words and delays of the real CLI, in place of the steps that say the same",
    ),
    StepEntry(
        "task", TASK_STEP_TYPE, "starts a background task, by a tool of its own (claude)", build=compile_event_step
    ),
    StepEntry("task_done", TASK_DONE_STEP_TYPE, "ends a background task (claude)", build=compile_event_step),
    StepEntry(
        "background_turn",
        BACKGROUND_TURN_STEP_TYPE,
        "begins a turn that no prompt asked for (claude)",
        build=compile_background_turn_step,
    ),
    StepEntry(
        "ask",
        ASK_STEP_TYPE,
        "asks the client for a permission, or calls a hook, and waits for the answer",
        build=compile_ask_step,
    ),
    StepEntry(
        "request",
        REQUEST_STEP_TYPE,
        "calls a method of the client (acp, codex app-server), or a tool of an MCP server (claude), "
        "and waits for the answer",
        build=compile_request_step,
    ),
    StepEntry(
        "raw",
        RAW_STEP_TYPE,
        "prints bytes as they stand, on stdout unless `to` names another stream",
        build=compile_raw_step,
    ),
    StepEntry(
        "drip",
        _DRIP_FIELDS,
        "prints the same output again and again, each time after `every`",
        build=_compile_drip_step,
    ),
    StepEntry("flood", _FLOOD_FIELDS, "prints this many bytes at once", build=_compile_flood_step),
    StepEntry("silence", TimeType(("for ever",)), "does nothing for this time", build=_compile_silence_step),
    StepEntry(
        "burn_cpu",
        TimeType(("for ever",)),
        "does nothing for this time, and keeps one core busy in real time",
        build=_compile_burn_cpu_step,
    ),
    StepEntry(
        "wait_for",
        EitherType(WAIT_FOR_WORD_TYPE, _WAIT_FOR_FIELDS, "eof"),
        "waits for the end of stdin, a signal (TERM, INT or HUP), a line of stdin that fits a glob, or the end of a "
        "child; in a session also for prompt N or a cancel",
        build=compile_wait_for_step,
    ),
    StepEntry(
        "handshake",
        HANDSHAKE_STEP_TYPE,
        "sets how the agent answers a handshake, from this line on",
        build=compile_handshake_step,
    ),
    StepEntry(
        "acknowledge",
        ACKNOWLEDGE_STEP_TYPE,
        "ends the turn that was cancelled, or that a signal interrupts (claude session); `receipt` comes before and "
        "reports that the cancel was read, and it ends nothing (claude session)",
        build=compile_acknowledge_step,
    ),
    StepEntry(
        "when",
        EitherType(WHEN_EVENT_TYPE, _WHEN_FIELDS, "event"),
        "sets what the agent does if an event happens, from this line on (epipe: its reader has closed; cancel: of the "
        "turn in work); `do: []` ignores the event",
        build=_compile_when_step,
        also=Key("do", ScriptStepsType(), "the steps of the reaction", required=True),
    ),
    StepEntry(
        "meanwhile",
        ScriptStepsType(),
        "plays a second track of steps, which is cut when the script ends",
        build=_compile_nested_steps,
    ),
    StepEntry(
        "one_write",
        _OneWriteStepsType(),
        "prints what these steps print with one write, so that it is read at once; up to 4 KiB",
        build=_compile_nested_steps,
    ),
    StepEntry(
        "stdin",
        ChoiceType(("stop", "read")),
        "stops reading stdin, or reads on; a fake reads from its start",
        build=_compile_one_word_step,
    ),
    StepEntry(
        "close", ChoiceType((*_OUTPUT_STREAMS, "stdin")), "closes one stream of the agent", build=_compile_one_word_step
    ),
    StepEntry(
        "write_file",
        _WRITE_FILE_FIELDS,
        "writes a file below the folder in which the agent runs; an earlier file of that name is lost, and folders on "
        "the way are made",
        build=_compile_write_file_step,
    ),
    StepEntry("spawn", SPAWN_STEP_TYPE, "starts a child process", build=compile_spawn_step),
    StepEntry(
        "kill",
        KILL_STEP_TYPE,
        "sends a signal to a child, and to its whole group if it leads one; STOP suspends it until CONT",
        build=compile_kill_step,
    ),
    StepEntry(
        "exit",
        WholeNumberType(0, 255, "CODE", of_signal="die: {}"),
        "exits with this code; a script that ends exits with 0",
        build=_compile_one_word_step,
    ),
    StepEntry("die", SignalType(), "dies of this signal", build=_compile_die_step),
)

STEP_ENTRY_BY_NAME: StepTable = {entry.name: entry for entry in _STEP_ENTRIES}
