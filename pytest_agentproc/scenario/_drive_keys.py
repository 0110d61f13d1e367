"""Owns what the caller does: a run's one prompt, or the actions of a session's caller, read and bound to limits."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_agentproc.scenario._fields import (
    LONG_TEXT_TYPE,
    AnyOfType,
    ChoiceType,
    EitherType,
    FieldsType,
    FlagType,
    ListOfType,
    NameType,
    TextPattern,
    TextType,
    TimeType,
    WholeNumberType,
    read_text_value,
)
from pytest_agentproc.scenario._file_check import Key, describe_session_remedy
from pytest_agentproc.scenario._suggestions import describe_unknown_word, join_choices, shorten_text
from pytest_agentproc.scenario._yaml import YamlMapping, YamlNode, YamlScalar, YamlSequence, format_node_inline
from pytest_agentproc.vocabulary import (
    REPORTED_EVENT_TEXTS,
    SWITCH_BY_ACTION,
    WAYS_TO_END_A_PROGRAM,
    CallerAction,
    ContinuedSession,
    Handler,
    HookReaction,
)

if TYPE_CHECKING:
    from pytest_agentproc.scenario._expressions import Expression
    from pytest_agentproc.scenario._file_check import CompileContext, FileCheck, WrittenStep


SESSION_STATUSES = ("starting", "ready", "prompting", "restarting", "failed", "closed")
"""Where a session can stand."""

_AWAITED_EVENT_PATTERN = re.compile(r"(turn|background) ([1-9][0-9]{0,8})|status (.*)", re.ASCII | re.DOTALL)
_AWAITED_EVENT_FORMS = f"turn N, background N, status S, {join_choices([*REPORTED_EVENT_TEXTS], 'or')}"


@dataclass(frozen=True)
class DriveItem:
    """One action of the caller, or of its program, as the file has it: its times are not evaluated yet."""

    line: int
    kind: str
    value: Any
    at: Expression | None = None
    after: Expression | None = None
    column: int = 0
    session: str = ""


def _make_prompt(values: dict[str, Any], node: YamlNode, what: str, check: FileCheck) -> str:
    prompt = read_text_value(values)
    if "\0" in prompt and check.prompt_by == "argv" and not check.is_session:
        check.report_at(node, f"{what} has a NUL in it, which no argument can carry: write prompt: stdin under agent")
    return prompt


PROMPT_VALUE_TYPE = EitherType(TextType(), FieldsType(LONG_TEXT_TYPE.mapping.keys, finish=_make_prompt), key="text")


@dataclass(frozen=True)
class _AwaitedEventType:
    """The event that the caller waits for."""

    label: str = "turn N / background N / status S / question / tool / message"
    shape = TextPattern(
        f"(turn|background) [1-9][0-9]*|status ({'|'.join(SESSION_STATUSES)})|{'|'.join(REPORTED_EVENT_TEXTS)}",
        ("turn 1", "background 1", "status ready", *REPORTED_EVENT_TEXTS),
    )

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> tuple[str, Any]:
        """Take the words apart."""
        if isinstance(node, YamlScalar) and node.text in REPORTED_EVENT_TEXTS:
            return node.text, None
        found = _AWAITED_EVENT_PATTERN.fullmatch(node.text) if isinstance(node, YamlScalar) else None
        if found is None:
            check.report_wrong_value(
                node, what, _AWAITED_EVENT_FORMS, 'count from 1: "turn 1"' if _lacks_turn_number(node) else ""
            )
            return "status", ""
        if found[3] is None:
            return found[1], int(found[2])
        if found[3] not in SESSION_STATUSES:
            check.report_at(node, describe_unknown_word("status", found[3], SESSION_STATUSES))
        return "status", found[3]


def _lacks_turn_number(node: YamlNode) -> bool:
    return isinstance(node, YamlScalar) and node.text.split(" ")[0] in ("turn", "turns", "background")


@dataclass(frozen=True)
class _EmptyValueType:
    """A word of the caller's, which needs no value."""

    label: str = "{}"
    shape = FieldsType(())

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> None:
        """See that nothing is said beside it."""
        if not isinstance(node, YamlMapping) or node.pairs:
            check.report_wrong_value(node, what, "{}", f"write {what.rpartition('.')[2]}: {{}}")


class _SwitchType(TextType):
    """The agent's name for a mode or a model, in a dialect whose protocol can switch it."""

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> str:
        """Read the name."""
        action = what.rpartition(".")[2]
        if check.is_session and not check.has_dialect_key(action):
            able = check.language.list_dialect_modes_with(
                lambda record, mode: action in record.keys and mode in record.session_modes
            )
            words = f"switches no {SWITCH_BY_ACTION[action]}: {what} is for {join_choices(able)}"
            check.report_at(node, f"the dialect {check.dialect} {words}")
        return super().read_node(node, what, check)


def _make_abandon_mode(values: dict[str, Any], _node: YamlNode, _what: str, _check: FileCheck) -> str:
    return str(values.get("by", "task"))


_ABANDON_VALUE_TYPE = FieldsType(
    (
        Key(
            "by",
            ChoiceType(("task", "scope", *WAYS_TO_END_A_PROGRAM)),
            "how: its task is cancelled once, or an anyio scope at every await; hangup: the terminal of its program "
            "closes: its process group gets HUP, and its stdin ends; kill: its program is killed; task if absent",
        ),
    ),
    finish=_make_abandon_mode,
)


_DRIVE_ITEM_KEYS = (
    Key("prompt", PROMPT_VALUE_TYPE, "sends a prompt, which is queued at once"),
    Key(
        "wait_for",
        _AwaitedEventType(),
        "waits until the turn has its outcome, this many background turns are over, the session has this status, or "
        "the agent asks, begins a tool or says something, counted from the item before; the end of the turn ends a "
        "wait for these three",
    ),
    Key("wait", TimeType(), "waits for this time"),
    Key(
        "cancel",
        FieldsType(
            (Key("turn", WholeNumberType(1, 10**6), "which turn; the turn in work if absent"),),
            example="write cancel: {}",
        ),
        "cancels a turn, and the agent lives on",
    ),
    Key("stop", _EmptyValueType(), "forces the agent to stop; a new agent follows"),
    Key("close", _EmptyValueType(), "ends the session"),
    Key(
        "abandon",
        _ABANDON_VALUE_TYPE,
        "cancels the supervisor of a run or a session, or ends its program, as a caller does that goes away",
    ),
    Key("attach", NameType("VIEWER"), "attaches a viewer, which sees everything from the beginning"),
    Key("detach", NameType("VIEWER"), "detaches a viewer"),
    Key(
        "set_mode",
        _SwitchType("MODE", may_be_empty=False),
        "switches the agent to this mode, by the agent's name for it, and the agent lives on (claude, codex, acp)",
    ),
    Key(
        "set_model",
        _SwitchType("MODEL", may_be_empty=False),
        "switches the agent to this model, by the agent's name for it, and the agent lives on (claude, codex)",
    ),
    Key("at", TimeType(), "beside another key: not before this instant"),
    Key("after", TimeType(), "beside another key: at least this long after the item before it"),
    Key(
        "session",
        NameType("NAME"),
        "beside another key: in which session; needed where there are several, and only there",
    ),
)
DRIVE_KEY_BY_NAME = {key.name: key for key in _DRIVE_ITEM_KEYS}
_DRIVE_ACTION_NAMES = tuple(name for name in DRIVE_KEY_BY_NAME if name not in ("at", "after", "session"))
_RUN_DRIVE_EXAMPLE = "[{prompt: TEXT or {repeat, size}}]"
_ABANDONED_RUN_DRIVE_EXAMPLE = "[{prompt: TEXT}, {abandon: {}, at: T}]"


class _DriveItemsType:
    """The caller's actions: gives the items of a session, or a run's prompt and whether it is abandoned."""

    label = "[{prompt: TEXT or {repeat, size}}, ...]"
    form = FieldsType(_DRIVE_ITEM_KEYS, one_of=_DRIVE_ACTION_NAMES, synonyms="drive item")
    shape = ListOfType(form, may_be_empty=False)

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> tuple[DriveItem, ...]:
        """Read the items; a run has its prompt, and after it nothing, or the caller's leaving."""
        is_session = bool(check.sessions) or check.is_session
        if not isinstance(node, YamlSequence):
            remedy = (
                f"write [{{prompt: {format_node_inline(node)}}}]"
                if isinstance(node, YamlScalar)
                else 'write "- " before prompt'
            )
            check.report_wrong_value(
                node, what, f"a list such as {self.label if is_session else _RUN_DRIVE_EXAMPLE}", remedy
            )
            return ()
        is_left = [_has_mapping_key(item, "abandon") for item in node.items[1:]] == [True]
        if not is_session and (misplaced := _find_session_action(node)) is not None:
            check.report_at(misplaced, f"{what}: {misplaced.text} is for a session: {describe_session_remedy(check)}")
            return ()
        if not is_session and len(node.items) != 1 + is_left:
            few = f"one item, the prompt, or that and abandon, not a list of {len(node.items)} items"
            check.report_at(node, f"{what} must have {few}")
            return ()
        if not node.items:
            check.report_at(node, f"{what} must have an item: write [{{wait: 1s}}] for a session that is asked nothing")
        before = len(check.problems)
        items = []
        for given in node.items:
            with check.enter_session(_find_item_session(given, what, check)):
                items += [item for item in [self._read_drive_item(given, what, check)] if item is not None]
        if not is_session and items and (items[0].kind != "prompt" or items[0].at or items[0].after):
            about = f"the dialect {check.dialect} in mode {check.mode} is one run"
            check.report_at(node, f"{what} must be {_RUN_DRIVE_EXAMPLE}: {about}")
        for left in (item for item in items if item.kind == "abandon"):
            if problem := _describe_wrong_abandon(left, items[-1], check, is_session=is_session):
                check.report_problem(left.line, left.column, f"{what}{problem}")
        if len(check.problems) == before:
            _check_drive_order(items, check)
        return tuple(items)

    def _read_drive_item(self, node: YamlNode, what: str, check: FileCheck) -> DriveItem | None:
        if (inner := _find_time_inside_action(node)) is not None:
            check.report_at(inner[0], f"{what}: {inner[0].text} stands beside the action, not in it: write {inner[1]}")
            return None
        values = self.form.read_node(node, what, check)
        if values is None:
            return None
        kind = next(name for name in _DRIVE_ACTION_NAMES if name in values)
        value = values[kind]
        if "at" in values and "after" in values:
            check.report_at(node, f"{what} has both at and after: at is an instant, after counts from the item before")
        if kind in ("wait", "wait_for") and ("at" in values or "after" in values):
            check.report_at(node, f"{what}.{kind} takes neither at nor after: it waits as it is")
        if kind == "wait_for":
            kind, value = value
        elif kind == "cancel":
            value = value.get("turn")
        return DriveItem(
            node.line, kind, value, values.get("at"), values.get("after"), node.column, values.get("session", "")
        )


def _describe_wrong_abandon(left: DriveItem, last: DriveItem, check: FileCheck, *, is_session: bool) -> str:
    """Say what is wrong with the item by which the caller leaves; nothing if it is right."""
    if check.sessions:
        return " of several sessions has no abandon: write it for one session"
    if is_session and left is not last:
        return ".abandon must be the last item: nothing follows a caller that has left"
    if is_session and left.after:
        return ".abandon of a session needs an instant, not after: write at: T, counted from the start"
    return "" if left.at or left.after else f".abandon needs its instant: write {_ABANDONED_RUN_DRIVE_EXAMPLE}"


_ACTIONS_THAT_TAKE_NO_TIME = ("cancel", "stop", "close", "abandon")
_ACTIONS_OF_SESSIONS = ("wait_for", "wait", "cancel", "stop", "close", "attach", "detach", *SWITCH_BY_ACTION)


def _find_session_action(node: YamlSequence) -> YamlScalar | None:
    """Find the key of the first item that only the caller of a session can do."""
    pairs = [pair for item in node.items if isinstance(item, YamlMapping) for pair in item.pairs]
    return next((key for key, _ in pairs if key.text in _ACTIONS_OF_SESSIONS), None)


def _find_time_inside_action(node: YamlNode) -> tuple[YamlScalar, str] | None:
    """Find a time that stands within an action: its key, and the item as it must be written."""
    for action, value in node.pairs if isinstance(node, YamlMapping) else []:
        if action.text not in _ACTIONS_THAT_TAKE_NO_TIME or not isinstance(value, YamlMapping):
            continue
        times = [(key, format_node_inline(time)) for key, time in value.pairs if key.text in ("at", "after")]
        if times:
            rest = [
                f"{key.text}: {format_node_inline(it)}" for key, it in value.pairs if key.text not in ("at", "after")
            ]
            beside = ", ".join(f"{key.text}: {time}" for key, time in times)
            return times[0][0], f"{{{action.text}: {{{', '.join(rest)}}}, {beside}}}"
    return None


def _has_mapping_key(node: YamlNode, name: str) -> bool:
    return isinstance(node, YamlMapping) and any(key.text == name for key, _ in node.pairs)


def _find_item_session(node: YamlNode, what: str, check: FileCheck) -> str:
    """Say in which session an item of a drive is; "" where there is one, and after a mistake."""
    pairs = node.pairs if isinstance(node, YamlMapping) else []
    own = next((value for key, value in pairs if key.text == "session"), None)
    if check.sessions and own is None and isinstance(node, YamlMapping):
        check.report_at(node, f"{what} needs the key session in each item: {join_choices(list(check.sessions))}")
    if own is None or not isinstance(own, YamlScalar):
        return ""
    if not check.sessions and check.mode:
        check.report_at(own, f"{what} has one session: leave session out")
    elif check.sessions and own.text not in check.sessions:
        check.report_at(own, describe_unknown_word("session", own.text, check.sessions))
    return own.text if own.text in check.sessions else ""


def _check_drive_order(items: list[DriveItem], check: FileCheck) -> None:
    """Report a turn without a prompt, and a viewer that is detached before it was attached."""
    asked: Counter[str] = Counter()
    attached: dict[str, set[str]] = {}
    for item in items:
        asked[item.session] += item.kind == "prompt"
        prompts, viewers = asked[item.session], attached.setdefault(item.session, set())
        if item.kind in ("turn", "cancel") and (item.value or 0) > prompts:
            check.report_problem(
                item.line, item.column, f"there is no turn {item.value} yet: {_describe_prompt_count(prompts)}"
            )
        if item.kind == "attach":
            viewers.add(item.value)
        elif item.kind == "detach" and item.value not in viewers:
            problem = (
                describe_unknown_word("viewer", item.value, sorted(viewers))
                if viewers
                else "no viewer was attached before"
            )
            check.report_problem(item.line, item.column, problem)
        viewers -= {item.value} if item.kind == "detach" else set()


def _describe_prompt_count(prompts: int) -> str:
    return {0: "nothing was prompted before", 1: "one prompt was given before"}.get(
        prompts, f"{prompts} prompts were given before"
    )


def find_unawaited_turn(drive: tuple[DriveItem, ...], script: tuple[WrittenStep, ...], session: str = "") -> str:
    """Describe a background turn at the end of a script that the caller does not wait for; "" if there is none."""
    turns = [step for step in script if step.name == "background_turn"]
    names = [step.name for step in script]
    items = [item for item in drive if item.session == session]
    after = max((index for index, name in enumerate(names) if name in ("answer", "result")), default=-1)
    awaited = max((item.value for item in items if item.kind == "background"), default=0)
    is_late = "background_turn" in names[after + 1 :]
    is_timed = any(item.kind == "wait" for item in drive) or any(item.kind == "close" for item in items)
    if not is_late or awaited >= len(turns) or is_timed:
        return ""
    last = f"turn {sum(item.kind == 'prompt' for item in items)}" + (f" of {session}" if session else "")
    whose = f"session: {session}, " if session else ""
    remedy = f"add {{{whose}wait_for: background {len(turns)}}}"
    return f"drive ends after {last}, but the script has a background turn (line {turns[-1].line}): {remedy}"


DRIVE_VALUE_TYPE = _DriveItemsType()


def find_history_without_load(script: tuple[WrittenStep, ...]) -> int:
    """Give the line of a history that no session of the file is loaded for; 0: there is none."""
    return next((step.line for step in script if step.name == "handshake" and "history" in step.value), 0)


def _make_continued_session(values: dict[str, Any], node: YamlNode, what: str, check: FileCheck) -> dict[str, Any]:
    is_missing = values.pop("missing", False)
    [(how, name)] = values.items() or [("resume", "")]
    record = check.dialect_record
    if record is not None and check.mode:
        if not check.has_dialect_key("continues"):
            able = check.language.list_dialect_modes_with(lambda record, _mode: "continues" in record.keys)
            check.report_at(
                node, f"the dialect {check.dialect} continues no session: {what} is for {join_choices(able)}"
            )
        elif how == "load" and not check.has_dialect_key("history"):
            check.report_at(
                node, f"{what}.load is for acp, which replays the history: write {what}: {{resume: {name}}}"
            )
        elif record.command_line is not None and name and not _UUID_PATTERN.fullmatch(name):
            given = f'{what}.resume must be a UUID, not "{shorten_text(name)}"'
            check.report_at(node, f"{given}: {check.dialect} names its sessions so: write {_EXAMPLE_OF_A_UUID}")
    return {"continues": ContinuedSession(how, name), "lacks_session": is_missing}


_UUID_PATTERN = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_EXAMPLE_OF_A_UUID = "7f6b1c1e-0000-4000-8000-000000000001"


CONTINUES_VALUE_TYPE = FieldsType(
    (
        Key(
            "load",
            TextType("ID", may_be_empty=False),
            "the session that the agent loads, and whose history it replays (acp)",
        ),
        Key("resume", TextType("ID", may_be_empty=False), "the session that the agent resumes, without its history"),
        Key("missing", FlagType(), "whether the agent has no such session, and refuses it as the real CLI does"),
    ),
    one_of=("load", "resume"),
    finish=_make_continued_session,
)


def _validate_handler(values: dict[str, Any], node: YamlNode, what: str, check: FileCheck) -> dict[str, Any]:
    of_hook = ("event", "registers_at", "raises", "allowed")
    stray = [name for name in (of_hook if "permission" in values else ("after",)) if name in values]
    if stray:
        kind = "permission" if "permission" in values else "hook"
        check.report_at(node, f"{what} of a {kind} has no {join_choices(stray, 'or')}: leave it out")
    elif values.get("permission") == "never" and "after" in values:
        check.report_at(node, f"{what} never answers: leave after out")
    elif values.get("registers_at") == "never" and ("raises" in values or "allowed" in values):
        check.report_at(node, f"{what} never calls back: leave raises and allowed out")
    elif "hook" in values and not check.has_dialect_key("hook"):
        able = check.language.list_dialect_modes_with(
            lambda record, mode: "hook" in record.keys and mode in record.session_modes
        )
        check.report_at(node, f"the dialect {check.dialect} has no hooks: known by {join_choices(able)}")
    return values


HANDLER_VALUE_TYPE = FieldsType(
    (
        Key("permission", ChoiceType(("allow", "deny", "never")), "the answer to every question"),
        Key("after", TimeType(), "how long the answer takes; no time if absent"),
        Key("hook", TextType("NAME", may_be_empty=False), "or the name of a hook, as the script asks it (claude)"),
        Key("event", ChoiceType(("PreToolUse", "PostToolUse")), "the event of the hook; PostToolUse if absent"),
        Key(
            "registers_at",
            TimeType(("never",)),
            "the instant at which its callback is registered; at the start if absent",
        ),
        Key("raises", FlagType(), "whether the callback breaks; false if absent"),
        Key("allowed", FlagType(), "whether the callback allows the tool; true if absent"),
    ),
    one_of=("permission", "hook"),
    finish=_validate_handler,
)


class _HandlersType:
    """The caller's answers and the results of its hooks: one of these, or a list of them."""

    label = "{permission, after} or {hook, event, registers_at, raises, allowed}, or a list of them"
    shape = AnyOfType((HANDLER_VALUE_TYPE, ListOfType(HANDLER_VALUE_TYPE)))

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> tuple[dict[str, Any], ...]:
        """Read each; there is one answer to all questions, and one callback of a hook."""
        if not check.is_session and check.mode:
            check.report_at(node, f"{what} answers a session's agent, and this one is a run's")
            return ()
        given = node.items if isinstance(node, YamlSequence) else [node]
        found = [values for node in given if (values := HANDLER_VALUE_TYPE.read_node(node, what, check)) is not None]
        names = [values.get("hook", "permission") for values in found]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            check.report_at(node, f'"{shorten_text(twice)}" is given twice in {what}')
        return tuple(found)


HANDLERS_VALUE_TYPE = _HandlersType()


def bind_caller_action(item: DriveItem, scope: CompileContext) -> CallerAction:
    """Give an action of a caller, or of other code in its program; raises as `CompileContext.evaluate_expression`."""
    return CallerAction(
        item.line,
        item.kind,
        scope.evaluate_expression(item.value) if item.kind in ("wait", "block", "sleep") else item.value,
        None if item.at is None else scope.evaluate_expression(item.at),
        None if item.after is None else scope.evaluate_expression(item.after),
        item.session,
    )


def bind_permission_handler(handlers: tuple[dict[str, Any], ...], scope: CompileContext) -> Handler | None:
    """Give how the caller answers questions; raises as `CompileContext.evaluate_expression`."""
    for handler in handlers:
        if "permission" in handler:
            after = handler.get("after")
            allowed = {"allow": True, "deny": False}.get(handler["permission"])
            return Handler(allowed, 0 if after is None else scope.evaluate_expression(after))
    return None


def bind_hooks(handlers: tuple[dict[str, Any], ...], scope: CompileContext) -> tuple[HookReaction, ...]:
    """Give what the caller has hooks do; raises as `CompileContext.evaluate_expression`."""
    return tuple(
        HookReaction(
            handler["hook"],
            handler.get("event", "PostToolUse"),
            scope.evaluate_time(handler["registers_at"]) if "registers_at" in handler else 0,
            handler.get("raises", False),
            handler.get("allowed", True),
        )
        for handler in handlers
        if "hook" in handler
    )
