"""Owns the steps of sessions and of some dialects: events, tools, questions, prompts, tasks. Knows no wire format."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_agentproc.scenario._fields import (
    LONG_TEXT_TYPE,
    AnyOfType,
    ChoiceType,
    DurationType,
    EitherType,
    FieldsType,
    FlagType,
    ListOfType,
    PlainDataType,
    RequestIdType,
    TextPattern,
    TextType,
    TimeType,
    WholeNumberType,
    WordsOrMappingType,
)
from pytest_agentproc.scenario._file_check import Key, is_step_supported
from pytest_agentproc.scenario._python_data import DataNodeBuilder
from pytest_agentproc.scenario._script import ScriptStepsType
from pytest_agentproc.scenario._suggestions import describe_unknown_word, join_choices, shorten_text
from pytest_agentproc.scenario._yaml import YamlMapping, YamlNode, YamlScalar
from pytest_agentproc.vocabulary import TROUBLES

if TYPE_CHECKING:
    from pytest_agentproc.scenario._file_check import CompileContext, FileCheck, ProgramStep, WrittenStep


_TOOL_KEYS_OF_SOME_DIALECTS = ("parent", "more", "allowed_by", "kind", "locations")
"""What only some dialects can tell of a tool."""

_TOOL_DEFAULTS: dict[str, Any] = {"input": {}}
_TOOL_DONE_DEFAULTS: dict[str, Any] = {"output": "", "error": None}


def compile_event_step(step: WrittenStep, _scope: CompileContext) -> list[ProgramStep]:
    """Compile to `event`: the kind of word, and its value; a thought of the agent's own is its text alone."""
    if isinstance(step.value, _DialectLine):
        return [(step.line, "event", ("line", step.value.fields))]
    is_own = step.name == "think" and "parent" not in step.value
    return [(step.line, "event", (step.name, step.value["text"] if is_own else step.value))]


@dataclass(frozen=True)
class _StepTextType(TextType):
    """A text, in a dialect that has the step."""

    step: str = ""

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> str:
        """Take the text."""
        return super().read_node(node, what, check) if is_step_supported(self.step, node, check) else ""


@dataclass(frozen=True)
class _BeginWordType(ChoiceType):
    """A turn, in a dialect that has something to print as it begins."""

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> str:
        """Take the word."""
        return super().read_node(node, what, check) if is_step_supported("begin", node, check) else ""


@dataclass(frozen=True)
class _TroubleWordType(ChoiceType):
    """A word for ready-made trouble, which gives way to the steps that it stands for."""

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> Any:
        """Read the word, and the steps of the dialect."""
        word = super().read_node(node, what, check)
        if not word or not check.mode:
            return ()
        known = TROUBLES[word].steps
        given = known.get(check.dialect, known.get(f"{check.dialect} {check.mode}"))
        if given is None:
            about = f"the dialect {check.dialect} has no {what} {word} in mode {check.mode}"
            check.report_at(node, f"{about}: known by {join_choices(tuple(known))}")
            return ()
        able = (*check.language.list_dialect_steps(check.dialect, check.mode), "raw", "result", "answer", "exit")
        steps = [step for step in given if {*step} & {*able, "silence", "say"}]  # `begin` is no step of a session
        builder = DataNodeBuilder(check.report_problem, lambda *_: (node.line, node.column))
        return ScriptStepsType().read_node(builder.build_node(steps, "", node.line), what, check)


@dataclass(frozen=True)
class _PlanEntriesType(ListOfType):
    """A list of entries, in a dialect that has plans."""

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> list[Any]:
        """Read every entry."""
        return super().read_node(node, what, check) if is_step_supported("plan", node, check) else []


@dataclass(frozen=True)
class _DialectLine:
    """A line that the dialect has by name, with the fields of the script."""

    fields: dict[str, Any]


@dataclass(frozen=True)
class _EventDataType(PlainDataType):
    """An event, in a dialect of events: a mapping as it stands, or a line of the dialect by its name."""

    label: str = "{NAME: VALUE, ...} / LINE / {LINE: {NAME: VALUE, ...}}"
    shape = AnyOfType((PlainDataType(), TextType("LINE", may_be_empty=False)))

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> Any:
        """Read the mapping, or find the line."""
        if not is_step_supported("event", node, check):
            return {}
        lines = check.dialect_record.lines if check.dialect_record else {}
        if isinstance(node, YamlScalar) and lines:
            if node.text not in lines:
                return check.report_at(node, describe_unknown_word("line", node.text, lines))
            return _DialectLine({**lines[node.text]})
        given = super().read_node(node, what, check)
        name = next(iter(given), "")
        if not isinstance(node, YamlMapping) or len(given) != 1 or name not in lines:
            return given
        if isinstance(given[name], dict):
            return _DialectLine({**lines[name], **given[name]})
        return check.report_wrong_value(node.pairs[0][1], f"{what}.{name}", f"a mapping such as {PlainDataType.label}")


def _validate_tool(values: dict[str, Any], node: YamlNode, what: str, check: FileCheck) -> dict[str, Any]:
    if is_step_supported("tool", node, check):
        number = values["id"]
        if number in check.tools:
            taken = f'{what}.id "{shorten_text(number)}" is taken by the tool in line {check.tools[number]}'
            check.report_at(node, taken)
        check_dialect_keys(values, node, what, check)
        check.tools.setdefault(number, node.line)
    return {**_TOOL_DEFAULTS, **values}


def check_dialect_keys(values: dict[str, Any], node: YamlNode, what: str, check: FileCheck) -> dict[str, Any]:
    """Report what only another dialect has, and a parent that is no tool."""
    for key in [key for key in _TOOL_KEYS_OF_SOME_DIALECTS if key in values and not check.has_dialect_key(key)]:
        check.report_at(node, f"the dialect {check.dialect} has no field for it: leave {key} out of {what}")
    if check.has_dialect_key("parent") and "parent" in values and values["parent"] not in check.tools:
        known = _describe_unknown_id("tool", values["parent"], check.tools)
        check.report_at(node, f"{what}.parent: {known}")
    return values


def _describe_unknown_id(kind: str, number: str, started: dict[str, int]) -> str:
    return describe_unknown_word(kind, number, started) if started else f"no {kind} was started before"


def _make_plan_entry(values: dict[str, Any], node: YamlNode, what: str, check: FileCheck) -> str | dict[str, Any]:
    """Make an entry of a plan: its text, unless it has more fields."""
    if len(values) == 1:
        return str(values["content"])
    if not check.has_dialect_key("status"):
        check.report_at(node, f"the dialect {check.dialect} has no field for it: write the text of {what} alone")
    return values


def _validate_tool_done(values: dict[str, Any], node: YamlNode, what: str, check: FileCheck) -> dict[str, Any]:
    if is_step_supported("tool_done", node, check):
        if values["id"] not in check.tools:
            check.report_at(node, _describe_unknown_id("tool", values["id"], check.tools))
        place = node.line, node.column  # several steps of Python data, or of one YAML line, share the line
        own = check.tools_done.setdefault(values["id"], place)
        if (end := check.tools_done_beside.get(values["id"], own)) != place:
            shown = shorten_text(values["id"])
            check.report_at(node, f'the tool "{shown}" has ended in line {end[0]}: write an event for a second end')
        if "refused" in values and not check.has_dialect_key("refused"):
            check.report_at(node, f"the dialect {check.dialect} has no field for it: leave refused out of {what}")
        elif values.get("refused") and values.get("error") is None:
            check.report_at(node, f"{what} is refused without a word: write error, too")
    return {**_TOOL_DONE_DEFAULTS, **values}


_ID_TYPE = TextType("ID", may_be_empty=False)
_REQUEST_ID_KEY = Key(
    "id",
    RequestIdType("ID", may_be_empty=False),
    "the id of the request; a number is sent as one by acp and codex app-server; one of its own if absent",
)
_PLAN_STATUSES = ("pending", "in_progress", "completed")
_TOOL_KINDS = ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other")
_LOCATION_TYPE = EitherType(
    TextType("PATH", may_be_empty=False),
    FieldsType(
        (
            Key("path", TextType(may_be_empty=False), "the file", required=True),
            Key("line", WholeNumberType(0, 2**31 - 1), "a line in it"),
        )
    ),
    key="path",
)

BEGIN_STEP_TYPE = _BeginWordType(("turn", "late"))
TROUBLE_STEP_TYPE = _TroubleWordType(
    tuple(TROUBLES), "", tuple((name, trouble.text) for name, trouble in TROUBLES.items())
)
NOTICE_STEP_TYPE = _StepTextType(step="notice")
DELTA_STEP_TYPE = _StepTextType(step="delta")
_THINK_PARENT_KEY = Key("parent", _ID_TYPE, "the tool whose sub-agent thinks it; the agent itself if absent (claude)")
THINK_STEP_TYPE = EitherType(
    _StepTextType(step="think"),
    FieldsType(
        (Key("text", _StepTextType(step="think"), "the text of the thought", required=True), _THINK_PARENT_KEY),
        finish=check_dialect_keys,
    ),
    key="text",
)
PLAN_STEP_TYPE = _PlanEntriesType(
    EitherType(
        TextType("ENTRY", may_be_empty=False),
        FieldsType(
            (
                Key("content", TextType(may_be_empty=False), "what is to be done", required=True),
                Key("status", ChoiceType(_PLAN_STATUSES), "how far it is; pending if absent (acp)"),
                Key("priority", ChoiceType(("high", "medium", "low")), "how urgent it is; medium if absent (acp)"),
            ),
            finish=_make_plan_entry,
        ),
        key="content",
    )
)
EVENT_STEP_TYPE = _EventDataType()
TOOL_STEP_TYPE = FieldsType(
    (
        Key("id", _ID_TYPE, "the id of the tool, which tool_done names", required=True),
        Key("name", TextType("NAME", may_be_empty=False), "the tool's name", required=True),
        Key("input", PlainDataType(), "its arguments; {} if absent"),
        Key("parent", _ID_TYPE, "the tool whose sub-agent uses it; the agent itself if absent (claude)"),
        Key("allowed_by", ChoiceType(("rule", "subcommands")), "why no question is asked; rule if absent (claude)"),
        Key("more", FlagType(), "whether the next tool is asked for by the same message; false if absent (claude)"),
        Key("kind", ChoiceType(_TOOL_KINDS), "the kind of the tool; other if absent (acp)"),
        Key("locations", ListOfType(_LOCATION_TYPE), "the files that it is about; none if absent (acp)"),
    ),
    finish=_validate_tool,
    example="write {id: t1, name: Bash}",
)
TOOL_DONE_STEP_TYPE = EitherType(
    _ID_TYPE,
    FieldsType(
        (
            Key("id", _ID_TYPE, "the id of the tool", required=True),
            Key("output", LONG_TEXT_TYPE, "the output of the tool"),
            Key("error", TextType(), "the reason why the tool failed"),
            Key("refused", FlagType(), "whether it refused its input, and never ran; false if absent (claude)"),
        ),
        finish=_validate_tool_done,
    ),
    key="id",
)


_ASK_KINDS = ("permission", "hook")
_ASK_KEYS_OF_SOME_DIALECTS = {"offers": "offers no options", "for": "takes no question back"}
_OFFERS_TYPE = ListOfType(
    ChoiceType(("allow_once", "allow_always", "reject_once", "reject_always")), unique=True, may_be_empty=False
)

ANSWERS_BY_KIND = dict.fromkeys(_ASK_KINDS, ("allow", "deny", "cancelled", "none")) | {
    "request": ("answered", "refused", "none")
}
"""What can be asked for, and what can be told; none: nothing."""


def _validate_ask(values: dict[str, Any], node: YamlNode, what: str, check: FileCheck) -> dict[str, Any]:
    if not is_step_supported("ask", node, check):
        return values
    if check.depth:
        check.report_at(node, "a spawned process asks nothing: only the agent does")
    _report_misplaced_hook_fields(values, node, what, check)
    if "request_fields" in values and ("hook" in values or not check.has_dialect_key("request_fields")):
        check.report_at(node, f"only claude's permissions have request_fields: leave request_fields out of {what}")
    for key, lack in _ASK_KEYS_OF_SOME_DIALECTS.items():
        if key in values and not check.has_dialect_key(key):
            check.report_at(node, f"the dialect {check.dialect} {lack}: leave {key} out of {what}")
    if "unanswered" in values and "for" not in values:
        check.report_at(node, f"{what} waits for ever: write how long it does, for: 60s, or leave unanswered out")
    return values


def _report_misplaced_hook_fields(values: dict[str, Any], node: YamlNode, what: str, check: FileCheck) -> None:
    if "hook" in values and not check.has_dialect_key("hook"):
        check.report_at(node, f"the dialect {check.dialect} has no hooks: ask for a permission")
    for key in ("event", "output"):
        if key in values and "permission" in values:
            check.report_at(node, f"only a hook has an {key}: leave {key} out of {what}")
    if "output" in values and "hook" in values and values.get("event") != "PostToolUse":
        check.report_at(node, f"only PostToolUse has the output of a tool: leave output out of {what}")


def _validate_request(values: dict[str, Any], node: YamlNode, _what: str, check: FileCheck) -> dict[str, Any]:
    if not is_step_supported("request", node, check):
        return values
    if check.depth:
        check.report_at(node, "a spawned process asks nothing: only the agent does")
    key, other = ("tool", "method") if check.has_dialect_key("host_tools") else ("method", "tool")
    if other in values and check.mode:
        check.report_at(node, f"the dialect {check.dialect} calls no {other} of its client: write {key}")
    elif key == "tool" and values.get("tool", "") not in check.tools:
        known = _describe_unknown_id("tool", values.get("tool", ""), check.tools)
        check.report_at(node, known)
    return {**values, "is_of_run": bool(check.mode) and not check.is_session}


def compile_ask_step(step: WrittenStep, scope: CompileContext) -> list[ProgramStep]:
    """Compile to the question and what follows each answer."""
    value = step.value
    kind = next(kind for kind in _ASK_KINDS if kind in value)
    fields = {"kind": kind, "name": value[kind], "id": value.get("id"), "event": value.get("event", "PreToolUse")}
    if "output" in value:
        fields["output"] = value["output"]
    if "request_fields" in value:
        fields["request_fields"] = value["request_fields"]
    if "offers" in value:
        fields["offers"] = value["offers"]
    if "for" in value:
        fields["for"] = scope.evaluate_time(value["for"])
    branches = (scope.compile_steps(value.get(name, ())) for name in ("allowed", "denied", "unanswered"))
    return [(step.line, step.name, (fields, *branches))]


def compile_request_step(step: WrittenStep, scope: CompileContext) -> list[ProgramStep]:
    """Compile to a question, too: only the name of its answer differs. An agent of a run calls its own servers."""
    value = step.value
    fields = {"kind": "request", "id": value.get("id")}
    if "tool" in value:
        fields["tool"] = value["tool"]
    else:
        fields |= {"name": value["method"], "params": value.get("params", {})}
    branches = (scope.compile_steps(value.get("answered", ())), scope.compile_steps(value.get("refused", ())))
    if value["is_of_run"]:
        return [(step.line, "call", (value["tool"], *branches))]
    return [(step.line, "ask", (fields, *branches, []))]


ASK_STEP_TYPE = FieldsType(
    (
        Key("permission", TextType("TOOL", may_be_empty=False), "the tool that the agent wants to use"),
        Key("hook", TextType("NAME", may_be_empty=False), "the id of the hook that the agent calls (claude)"),
        Key("event", ChoiceType(("PreToolUse", "PostToolUse", "Stop")), "the event of the hook; PreToolUse if absent"),
        Key("output", TextType(), "the output of the tool, for PostToolUse"),
        Key("request_fields", PlainDataType(), "more fields of the request for a permission (claude)"),
        Key("offers", _OFFERS_TYPE, "the kinds of the options that it offers, in their order (acp, codex)"),
        _REQUEST_ID_KEY,
        Key("allowed", ScriptStepsType(), "the steps after an answer that allows it; none if absent"),
        Key("denied", ScriptStepsType(), "the steps after an answer that denies it; none if absent"),
        Key("for", DurationType(), "how long it waits, then it takes the question back; for ever if absent (claude)"),
        Key("unanswered", ScriptStepsType(), "the steps after it has taken the question back; none if absent"),
    ),
    one_of=_ASK_KINDS,
    finish=_validate_ask,
)
REQUEST_STEP_TYPE = FieldsType(
    (
        Key("method", TextType("METHOD", may_be_empty=False), "the method, in the protocol's words (acp, codex)"),
        Key("tool", _ID_TYPE, "the running tool, named mcp__SERVER__TOOL, of an MCP server (claude)"),
        Key("params", PlainDataType(), "the parameters; the id of the session is added"),
        _REQUEST_ID_KEY,
        Key("answered", ScriptStepsType(), "the steps after a result; none if absent"),
        Key("refused", ScriptStepsType(), "the steps after an error; none if absent"),
    ),
    one_of=("method", "tool"),
    finish=_validate_request,
)


_PROMPT_NUMBER_PATTERN = re.compile(r"prompt ([1-9][0-9]{0,8})", re.ASCII)
_AWAITED_SIGNALS = ("TERM", "INT", "HUP")
_WAIT_FOR_FORMS = "eof, signal, prompt N, cancel, {stdin: PATTERN} or {exit: ID}"
_WHEN_EVENT_FORMS = "eof, epipe, cancel or {signal: TERM}"


def _report_unreceivable_event(node: YamlNode, what: str, check: FileCheck) -> None:
    """Report an event that only the agent of a session receives; if the mode itself is wrong, report nothing."""
    if check.depth:
        check.report_at(node, f"a spawned process receives no {what}: only the agent does")
    elif check.mode and not check.is_session:
        known = join_choices(check.language.session_modes)
        check.report_at(node, f"the dialect {check.dialect} receives no {what} in mode {check.mode}: known by {known}")


@dataclass(frozen=True)
class _AwaitedEventWordType:
    """A word for an event that a script can wait for: the end of stdin, a signal, a prompt by its number, a cancel."""

    label: str = "eof / signal / prompt N / cancel"
    shape = TextPattern("eof|signal|cancel|prompt [1-9][0-9]*", ("prompt 1", "cancel", "eof", "signal"))

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> str | int:
        """Take the word, or the prompt's number."""
        text = node.text if isinstance(node, YamlScalar) else ""
        found = _PROMPT_NUMBER_PATTERN.fullmatch(text)
        if found is None and text not in ("eof", "signal", "cancel"):
            remedy = 'count them from 1: "prompt 1"' if text.partition(" ")[0] in ("prompt", "prompts") else ""
            if text.upper().removeprefix("SIG") in _AWAITED_SIGNALS:
                remedy = "write signal, which is TERM, INT or HUP"
            check.report_wrong_value(node, what, _WAIT_FOR_FORMS, remedy)
        elif text not in ("eof", "signal"):
            _report_unreceivable_event(node, text.partition(" ")[0], check)
        return text if found is None else int(found[1])


@dataclass(frozen=True)
class _ReactionEventWordType(WordsOrMappingType):
    """A word for an event that a script can react to."""

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> str:
        """Take the word."""
        word = super().read_node(node, what, check)
        if word == "cancel":
            _report_unreceivable_event(node, word, check)
        return word


@dataclass(frozen=True)
class _AcknowledgedEventWordType(ChoiceType):
    """An event that a script can acknowledge."""

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> str:
        """Take the word."""
        word = super().read_node(node, what, check)
        if word == "cancel":
            _report_unreceivable_event(node, word, check)
        elif word and check.mode and (check.depth or not (check.is_session and check.has_dialect_key(word))):
            who = "a spawned process" if check.depth else f"the dialect {check.dialect} in mode {check.mode}"
            text = "nothing of a signal" if word == "signal" else "no receipt of a cancel"
            able = check.language.list_dialect_modes_with(
                lambda record, mode: word in record.keys and mode in record.session_modes
            )
            check.report_at(node, f"{who} reports {text}: known by {join_choices(able)}")
        return word


_MEANING_BY_HANDSHAKE_KEY = {
    "version": "version of a protocol",
    "history": "history of a session",
    "modes": "modes of a session",
    "options": "options of a session",
}
"""The keys of a handshake that only some dialects can tell, each with its meaning."""


def _validate_handshake(values: dict[str, Any], node: YamlNode, _what: str, check: FileCheck) -> dict[str, Any]:
    if check.depth:
        check.report_at(node, "a spawned process has no handshake: only the agent has")
    elif check.mode and not (check.dialect_record and check.dialect_record.has_handshake(check.mode)):
        known = join_choices(check.language.list_dialect_modes_with(lambda record, mode: record.has_handshake(mode)))
        check.report_at(node, f"the dialect {check.dialect} has no handshake in mode {check.mode}: known by {known}")
    elif check.mode:
        for key, what in _MEANING_BY_HANDSHAKE_KEY.items():
            if key in values and not check.has_dialect_key(key):
                able = join_choices(name for name, record in check.language.all_dialects.items() if key in record.keys)
                check.report_at(node, f"the dialect {check.dialect} reports no {what}: only {able} does")
    return values


_HISTORY_ITEM_TYPE = FieldsType(
    (
        Key("prompt", TextType(), "what was asked"),
        Key("think", TextType(), "what the agent thought"),
        Key("answer", TextType(), "what it said"),
        Key("event", PlainDataType(), "any other update of the session, such as a tool call"),
    ),
    one_of=("prompt", "think", "answer", "event"),
)
_OPTION_VALUES_TYPE = ListOfType(TextType("VALUE", may_be_empty=False), unique=True, may_be_empty=False)
_SESSION_OPTION_TYPE = FieldsType(
    (
        Key("id", TextType(may_be_empty=False), "the id of the option, such as model", required=True),
        Key("values", _OPTION_VALUES_TYPE, "the values that it can have; the first is set", required=True),
    )
)
WAIT_FOR_WORD_TYPE = _AwaitedEventWordType()
HANDSHAKE_STEP_TYPE = EitherType(
    WordsOrMappingType(
        ("never",),
        "never, {after: T}, {error: TEXT}, {version: N}, {history: [...]}, {modes: [...]} or {options: [...]}",
    ),
    FieldsType(
        (
            Key("after", TimeType(positive=True), "how long its answer takes"),
            Key("error", TextType(may_be_empty=False), "why it is refused"),
            Key("version", WholeNumberType(0, 65535), "the version of the protocol that it reports; 1 if absent (acp)"),
            Key(
                "history",
                ListOfType(_HISTORY_ITEM_TYPE),
                "the past of a session that is loaded, in order; none if absent (acp)",
            ),
            Key(
                "modes",
                _OPTION_VALUES_TYPE,
                "the modes of a session, the first is set; if absent none (acp), those of the CLI (claude)",
            ),
            Key("options", ListOfType(_SESSION_OPTION_TYPE), "the options of a session; none if absent (acp)"),
        ),
        one_of=("after", "error", *_MEANING_BY_HANDSHAKE_KEY),
        finish=_validate_handshake,
    ),
    key="word",
)
WHEN_EVENT_TYPE = _ReactionEventWordType(("eof", "epipe", "cancel"), _WHEN_EVENT_FORMS)
ACKNOWLEDGE_STEP_TYPE = _AcknowledgedEventWordType(("cancel", "receipt", "signal"))


def compile_wait_for_step(step: WrittenStep, _scope: CompileContext) -> list[ProgramStep]:
    """Compile to what is waited for."""
    value: Any = step.value.get("eof")
    if value is None:
        kind = next(kind for kind in ("stdin", "exit") if kind in step.value)
        return [(step.line, f"await_{kind}", (step.value[kind],))]
    if isinstance(value, int):
        return [(step.line, "await_prompt", (value,))]
    return [(step.line, f"await_{value}", ())]


def compile_handshake_step(step: WrittenStep, scope: CompileContext) -> list[ProgramStep]:
    """Compile to how handshakes go from here on."""
    value = step.value
    if "history" in value:
        return [(step.line, step.name, ("history", [said for past in value["history"] for said in past.items()]))]
    if "options" in value:
        return [(step.line, step.name, ("options", {option["id"]: option["values"] for option in value["options"]}))]
    if "after" in value:
        return [(step.line, step.name, ("after", scope.evaluate_time(value["after"])))]
    kind = next((kind for kind in ("error", "version", "modes") if kind in value), "never")
    return [(step.line, step.name, (kind, value.get(kind)))]


def compile_acknowledge_step(step: WrittenStep, _scope: CompileContext) -> list[ProgramStep]:
    """Compile to `acknowledge`, to the receipt that goes before it, or to what a signal does."""
    return [(step.line, {"cancel": "acknowledge", "signal": "interrupted"}.get(step.value, step.value), ())]


def _validate_task(values: dict[str, Any], node: YamlNode, what: str, check: FileCheck) -> dict[str, Any]:
    if is_step_supported("task", node, check):
        number = values["id"]
        if number in check.tasks:
            taken = f'{what}.id "{shorten_text(number)}" is taken by the task in line {check.tasks[number]}'
            check.report_at(node, taken)
        check.tasks.setdefault(number, node.line)
        if "tool" in values and values["tool"] not in check.tools:
            known = _describe_unknown_id("tool", values["tool"], check.tools)
            check.report_at(node, f"{what}.tool: {known}")
        if values.get("foreground"):
            check.foreground.setdefault(number, node.line)
            if "tool" not in values:
                check.report_at(node, "a task in the foreground is a tool that takes long: write which, tool: ID")
    return {"kind": "local_bash", **values}


def _check_task_known(number: str, node: YamlNode, check: FileCheck) -> None:
    if number not in check.tasks:
        check.report_at(node, _describe_unknown_id("task", number, check.tasks))


def _validate_task_done(values: dict[str, Any], node: YamlNode, _what: str, check: FileCheck) -> dict[str, Any]:
    if is_step_supported("task_done", node, check):
        _check_task_known(values["id"], node, check)
        if values.get("in_same_turn"):
            _check_same_turn_allowed(values["id"], node, check)
        if "exit_code" in values and values.get("status") == "stopped":
            check.report_at(node, "a task that was stopped has no exit code: leave exit_code out")
    return {"status": "completed", "in_same_turn": False, **values}


def _check_same_turn_allowed(number: str, node: YamlNode, check: FileCheck) -> None:
    if not check.tools:
        check.report_at(node, "in_same_turn needs a turn with a tool: no tool was started before")
    check.in_same_turn.setdefault(number, node.line)


def _validate_background_turn(values: dict[str, Any], node: YamlNode, _what: str, check: FileCheck) -> dict[str, Any]:
    if is_step_supported("background_turn", node, check):
        number, shown = values["task"], shorten_text(values["task"])
        _check_task_known(number, node, check)
        if number in check.in_same_turn:
            line = check.in_same_turn[number]
            check.report_at(node, f'no turn follows the task "{shown}": line {line} ends it in_same_turn')
        if number in check.foreground:
            line = check.foreground[number]
            check.report_at(node, f'no turn follows the task "{shown}": line {line} has it in the foreground')
    return {"empty_result_first": False, **values}


def compile_background_turn_step(step: WrittenStep, scope: CompileContext) -> list[ProgramStep]:
    """Compile to the turn's beginning and the words in it."""
    value = step.value
    begin = {"task": value["task"], "empty_result_first": value["empty_result_first"]}
    steps = [(step.line, "answer", (value["answer"],))] if "answer" in value else scope.compile_steps(value["do"])
    return [(step.line, "event", (step.name, begin)), *steps]


TASK_STEP_TYPE = EitherType(
    _ID_TYPE,
    FieldsType(
        (
            Key("id", _ID_TYPE, "the id of the task, which task_done and background_turn name", required=True),
            Key("kind", ChoiceType(("local_bash", "local_agent")), "a command or a sub-agent; local_bash if absent"),
            Key("tool", _ID_TYPE, "the tool that starts it; another step ends it; one of its own if absent"),
            Key("foreground", FlagType(), "whether it is that tool itself, which takes long; false if absent"),
        ),
        finish=_validate_task,
    ),
    key="id",
)
TASK_DONE_STEP_TYPE = EitherType(
    _ID_TYPE,
    FieldsType(
        (
            Key("id", _ID_TYPE, "the id of the task", required=True),
            Key("status", ChoiceType(("completed", "failed", "stopped")), "how it ended; completed if absent"),
            Key(
                "exit_code",
                WholeNumberType(0, 255, "CODE"),
                "the command's; 0 if it completed, 1 if it failed, if absent",
            ),
            Key("signalled", FlagType(), "whether a signal to the agent ended it, too; false if absent"),
            Key(
                "in_same_turn",
                FlagType(),
                "whether the turn in which a tool runs takes it up: no background turn follows",
            ),
        ),
        finish=_validate_task_done,
    ),
    key="id",
)
BACKGROUND_TURN_STEP_TYPE = FieldsType(
    (
        Key("task", _ID_TYPE, "the task that it is about", required=True),
        Key("answer", TextType(), "the text of the turn, which it completes"),
        Key("do", ScriptStepsType(), "the steps of the turn in place of answer, a completion among them"),
        Key("empty_result_first", FlagType(), "whether a turn with an empty result comes first; false if absent"),
    ),
    one_of=("answer", "do"),
    finish=_validate_background_turn,
)
