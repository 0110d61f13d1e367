"""Owns the table of a file's own keys: the agent, its limits, its scripts, several sessions, the host.

Steps it knows by their names only.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_agentproc.fake_agents.program import MAX_WRITE_BYTES
from pytest_agentproc.scenario._drive_keys import (
    CONTINUES_VALUE_TYPE,
    DRIVE_KEY_BY_NAME,
    DRIVE_VALUE_TYPE,
    HANDLERS_VALUE_TYPE,
    DriveItem,
)
from pytest_agentproc.scenario._expect import EXPECT_KEY_BY_NAME, EXPECT_VALUE_TYPE, EXPECT_VALUE_TYPE_BY_LOWER_LEVEL
from pytest_agentproc.scenario._expressions import Expression, UnusableValue, evaluate_expression, find_limit_names
from pytest_agentproc.scenario._fields import (
    AnyOfType,
    ChoiceType,
    EitherType,
    FieldsType,
    FlagType,
    ListOfType,
    MapOfType,
    NameType,
    SizeType,
    TextPattern,
    TextType,
    TimeType,
    WholeNumberType,
)
from pytest_agentproc.scenario._file_check import Key, WrittenStep, split_dialect_and_mode
from pytest_agentproc.scenario._script import ScriptStepsType, check_child_references, check_inherited_streams
from pytest_agentproc.scenario._steps import STEP_ENTRY_BY_NAME
from pytest_agentproc.scenario._suggestions import (
    describe_unknown_word,
    find_meant_option,
    join_choices,
    map_words_to_remedy,
    shorten_text,
)
from pytest_agentproc.scenario._yaml import YamlMapping, YamlNode, YamlScalar, YamlSequence, is_nothing
from pytest_agentproc.vocabulary import (
    ALL_LIMIT_NAMES,
    CONTAINMENT_NAMES,
    DIALECTS,
    ERRNO_BY_RESOURCE_SHORTAGE,
    ERRNO_BY_SPAWN_ERROR,
    LEVELS,
    LIMITS_IN_BYTES,
    LIMITS_THAT_ARE_LISTS,
    LIMITS_THAT_ARE_WORDS,
    NANOSECONDS_PER_SECOND,
    RULES,
    Policy,
)

if TYPE_CHECKING:
    from pytest_agentproc.scenario._expect_keys import UnboundExpectation
    from pytest_agentproc.scenario._file_check import FileCheck
    from pytest_agentproc.vocabulary import Dialect


class _DialectNameType(ChoiceType):
    """A dialect; the check keeps it, because steps differ."""

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> str:
        """Take the name, of one of the kit's or of one that was added, if that can be used."""
        added = check.language.dialects
        found = split_dialect_and_mode(node, check)
        if found:
            check.report_at(node, f"dialect is one word: write {{dialect: {found[0]}, mode: {found[1]}}}")
            return ""
        check.dialect = ChoiceType((*self.options, *added)).read_node(node, "dialect", check)
        fault = added[check.dialect].unusable_reason if check.dialect in added else ""
        if fault:
            check.report_at(node, fault)
        return check.dialect


class _AgentNameType(_DialectNameType):
    """A dialect, or a dialect and its mode, as in a list of agents."""

    shape = ChoiceType((*DIALECTS, *(f"{name} {mode}" for name, dialect in DIALECTS.items() for mode in dialect.modes)))

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> str:
        """Take the name; the values of the agent are made of both words."""
        words = split_dialect_and_mode(node, check)
        if not words or not isinstance(node, YamlScalar):
            return super().read_node(node, what, check)
        return f"{super().read_node(node._replace(text=words[0]), what, check)} {words[1]}"


class _EachAgentType:
    """The agents that a file runs with; the loader takes one of them in its place before it reads the file."""

    label = "[DIALECT, DIALECT MODE, ...]"
    shape = ListOfType(_AgentNameType(()), unique=True, may_be_empty=False)

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> None:
        """Refuse it: the loader has left it where a file has several agents at a time."""
        check.report_at(node, f"{what} is for a scenario with one agent at a time: leave sessions out")


def _validate_agent(values: dict[str, Any], node: YamlNode, _what: str, check: FileCheck) -> dict[str, Any]:
    dialect, _, mode = values["dialect"].partition(" ")
    values = {**values, "dialect": dialect, **({"mode": mode} if mode else {})}
    record = check.language.all_dialects[dialect]
    mode = values.get("mode", record.default_mode)
    if mode not in record.modes and mode in check.language.all_dialects:
        check.report_at(node, f'the dialect {record.name} has no mode "{mode}": write agent: {mode}')
        check.dialect = mode  # the rest of the file is meant for it
        record = check.language.all_dialects[mode]
        mode = record.default_mode
    elif mode not in record.modes:
        known = f"known {'is' if len(record.modes) == 1 else 'are'} {join_choices(record.modes)}"
        check.report_at(node, f'the dialect {record.name} has no mode "{shorten_text(mode)}": {known}')
    check.mode = mode
    check.prompt_by = values.get("prompt", "argv")
    values |= values.pop("cannot_spawn", {})
    check.is_spawned = "cannot_spawn" not in values
    check.set_limit_overrides({})
    if record.find_version(values.get("version", "")) is None:
        known = f"known {'is' if len(record.versions) == 1 else 'are'} "
        remedy = known + join_choices(record.versions) if record.versions else "leave version out"
        check.report_at(
            node, f"the fake of {record.name} imitates no version {shorten_text(values['version'])}: {remedy}"
        )
    if "model" in values and mode in record.nameless:
        check.report_at(node, f"the dialect {record.name} names no model in mode {mode}: leave model out")
    if "partials" in values and not record.partials:
        check.report_at(node, f"the dialect {record.name} has no partial messages: leave partials out")
    if "flags" in values and record.command_line is None:
        able = check.language.list_dialect_modes_with(lambda dialect, _: dialect.command_line is not None)
        check.report_at(
            node, f"the fake of {record.name} takes any arguments: leave flags out, it is known by {join_choices(able)}"
        )
    if "states" in values and not (record.states and mode in record.session_modes):
        able = check.language.list_dialect_modes_with(
            lambda dialect, mode: bool(dialect.states) and mode in dialect.session_modes
        )
        check.report_at(
            node, f"the dialect {record.name} reports no states in mode {mode}: known by {join_choices(able)}"
        )
    return {**values, "mode": mode}


def _split_refused_starts(values: dict[str, Any], node: YamlNode, what: str, check: FileCheck) -> dict[str, Any]:
    """Store a reason for every start apart from a reason for one start."""
    if "start" not in values:
        return {"cannot_spawn": values["reason"]}
    if values["reason"] not in ERRNO_BY_RESOURCE_SHORTAGE:
        able = join_choices(tuple(ERRNO_BY_RESOURCE_SHORTAGE))
        check.report_at(node, f"{what}.reason must be {able} for one start: a file is the same at each start")
    return {"refused_start": (values["start"], values["reason"])}


_SPAWN_ERROR_TYPE = ChoiceType(tuple(ERRNO_BY_SPAWN_ERROR), "spawn error")
CANNOT_SPAWN_VALUE_TYPE = EitherType(
    _SPAWN_ERROR_TYPE,
    FieldsType(
        (
            Key("reason", _SPAWN_ERROR_TYPE, "why it cannot be started", required=True),
            Key(
                "start",
                WholeNumberType(1, 64),
                "which start fails, counted from 1; a fork of your process counts, too; every start if absent",
            ),
        ),
        finish=_split_refused_starts,
    ),
    key="reason",
)


def _make_limit_key(name: str) -> Key:
    """Show one limit as a key."""
    default = getattr(Policy(), name)
    kind: Any = TimeType(("none",))
    if name in LIMITS_THAT_ARE_LISTS:
        kind, text = ListOfType(TextType("NAME", may_be_empty=False), unique=True), "[]"
    elif name in LIMITS_THAT_ARE_WORDS:
        kind, text = ChoiceType(CONTAINMENT_NAMES), default
    elif name in LIMITS_IN_BYTES:
        kind, text = AnyOfType((SizeType(low=1), ChoiceType(("none",)))), f"{default} B"
    else:
        text = "none" if default is None else f"{default:g} s"
    return Key(name, kind, f"a limit; of most dialects the reference supervisor's is {text}")


class PolicyLimitsType:
    """Limits for the supervisor, in seconds or bytes, `none` switches one off; names of tools; how a tree is held."""

    label = "{NAME: T / SIZE / [NAME, ...] / WORD / none}"
    shape = FieldsType(tuple(_make_limit_key(name) for name in ALL_LIMIT_NAMES))

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> dict[str, Any]:
        """Read the limits; the check keeps them, because expressions are tried with them."""
        if not isinstance(node, YamlMapping):
            check.report_wrong_value(node, what, f"a mapping such as {self.label}")
            return {}
        limits: dict[str, Any] = {}
        for name, given in node.pairs:
            if name.text not in ALL_LIMIT_NAMES:
                check.report_at(name, describe_unknown_word("limit", name.text, ALL_LIMIT_NAMES, kind="limit"))
                continue
            before = len(check.problems)
            limit = self._read_limit(name.text, given, f"{what}.{name.text}", check)
            if len(check.problems) == before:
                limits[name.text] = limit
        check.set_limit_overrides(limits)
        return limits

    def _read_limit(self, name: str, node: YamlNode, what: str, check: FileCheck) -> Any:
        check.told_lines.setdefault(name, node.line)
        if name in LIMITS_THAT_ARE_LISTS:
            return tuple(ListOfType(TextType("NAME", may_be_empty=False), unique=True).read_node(node, what, check))
        if name in LIMITS_THAT_ARE_WORDS:
            return ChoiceType(CONTAINMENT_NAMES).read_node(node, what, check)
        if is_nothing(node, "none"):
            return None
        if isinstance(node, YamlScalar) and node.text == "off":
            check.report_wrong_value(node, what, "a limit, or none", "write none for no limit")
            return None
        if name in LIMITS_IN_BYTES:
            return SizeType(low=1).read_node(node, what, check)
        time = TimeType(("none",)).read_node(node, what, check)
        return self._convert_to_seconds(time, node, what, check) if isinstance(time, Expression) else None

    def _convert_to_seconds(self, time: Expression, node: YamlNode, what: str, check: FileCheck) -> float | None:
        if find_limit_names(time.tree):
            check.report_at(node, f"{what} must be a plain time: limits do not depend on one another")
            return None
        try:
            return evaluate_expression(time, {}) / NANOSECONDS_PER_SECOND
        except UnusableValue:  # as the time was read, this was told
            return None


class AgentScriptType(ScriptStepsType):
    """The agent's own script; whether it is sound decides whether names of processes can be checked."""

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> tuple[WrittenStep, ...]:
        """Read the steps."""
        before = len(check.problems)
        steps = super().read_node(node, what, check)
        check_child_references(check)
        check_inherited_streams(check)
        check.is_script_sound = len(check.problems) == before
        return steps


class AgentScriptsType:
    """A list of scripts; a tool's id is free again in the next one, a process's is not."""

    label = "[steps, ...]"
    script = AgentScriptType()
    shape = ListOfType(script)

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> tuple[tuple[WrittenStep, ...], ...]:
        """Read every script."""
        if not isinstance(node, YamlSequence):
            check.report_wrong_value(node, what, "a list of scripts, one for each invocation")
            return ()
        if not node.items:
            check.report_at(node, f"{what} must have one script at least")
        found, are_sound = [], True
        for item in node.items:
            check.tools.clear()
            check.tasks.clear()
            found.append(self.script.read_node(item, f"each item of {what}", check))
            are_sound = are_sound and check.is_script_sound
        check.is_script_sound = are_sound
        return tuple(found)


def _describe_versions() -> str:
    described = [f"{join_choices(record.versions)} for {name}" for name, record in DIALECTS.items() if record.older]
    return "; ".join(described)


def _describe_modes(dialect: Dialect) -> str:
    first, *others = dialect.modes
    return f"{join_choices([f'{first} (if absent)', *others] if others else [first])} for {dialect.name}"


AGENT_VALUE_TYPE = EitherType(
    _AgentNameType(tuple(DIALECTS)),
    FieldsType(
        (
            Key(
                "dialect", _DialectNameType(tuple(DIALECTS)), "the wire format it speaks", required=True, unless="each"
            ),
            Key("each", _EachAgentType(), "instead of a dialect: the scenario runs once for each of these"),
            Key(
                "mode",
                TextType("MODE"),
                f"its variant: {'; '.join(map(_describe_modes, DIALECTS.values()))}",
            ),
            Key(
                "version",
                TextType("VERSION", may_be_empty=False),
                f"the version of its CLI that the fake imitates, the first if absent: {_describe_versions()}",
            ),
            Key("prompt", ChoiceType(("argv", "stdin")), "how the prompt reaches it; argv if absent"),
            Key(
                "model",
                TextType("NAME", may_be_empty=False),
                "the name of its model; a name of the fake's own if absent",
            ),
            Key("newline", ChoiceType(("lf", "crlf", "none")), "how its lines end; none: not the last; lf if absent"),
            Key("bom", FlagType(), "whether a byte order mark comes first"),
            Key(
                "chunk",
                SizeType(low=1, high=MAX_WRITE_BYTES),
                "the most that it writes at a time, each piece once the one before can be read; "
                f"if absent {MAX_WRITE_BYTES} B, and 64 KiB of more than that",
            ),
            Key("partials", FlagType(), "whether claude is asked for partial messages; true if absent"),
            Key("states", FlagType(), "whether claude is asked to report its session's state; false if absent"),
            Key(
                "flags",
                ChoiceType(("any",)),
                "any: its fake takes all arguments and obeys none; if absent it does with them what the real CLI does",
            ),
            Key("terminal", FlagType(), "whether it ends with an error without a terminal; false if absent"),
            Key(
                "cannot_spawn",
                CANNOT_SPAWN_VALUE_TYPE,
                "why it cannot even be started: its file is missing, may not be executed, is a script of a missing "
                "program, or is of another kind of machine; or the machine has no memory or no descriptor left",
            ),
        ),
        finish=_validate_agent,
        synonyms="agent key",
    ),
    key="dialect",
)


_SCRIPT_KEY_NAMES = ("script", "scripts")
_RESERVED_SESSION_NAMES = ("agent", "caller", "supervisor", "tree")


class _SessionAgentType:
    """The agent of a session: it lives on from prompt to prompt."""

    label = AGENT_VALUE_TYPE.label
    shape = AGENT_VALUE_TYPE

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> Any:
        """Read it as any agent."""
        values = AGENT_VALUE_TYPE.read_node(node, what, check)
        if values is not None and not check.is_session:
            about = f"the dialect {check.dialect} in mode {check.mode} is one run"
            living = join_choices(check.language.session_modes)
            check.report_at(node, f"{what} must be a session's: {about}, sessions are {living}")
            check.mode = ""
        return values


_SESSION_KEYS = (
    Key("agent", _SessionAgentType(), "the name of a dialect, or a mapping with more", required=True),
    Key("policy", PolicyLimitsType(), "the limits of its supervisor"),
    Key("handler", HANDLERS_VALUE_TYPE, "how its caller answers questions; it denies all if absent"),
    Key("continues", CONTINUES_VALUE_TYPE, "the session that its caller continues; a new one if absent"),
    Key("script", AgentScriptType(), "the steps of its fake agent"),
    Key(
        "scripts", AgentScriptsType(), "the steps of each start of the agent; the last ones are for all further starts"
    ),
)
SESSION_KEY_BY_NAME = {key.name: key for key in _SESSION_KEYS}
"""What each session has for itself."""

_REMEDY_BY_MISPLACED_SESSION_KEY = {
    **map_words_to_remedy("it is a step, and belongs under script", STEP_ENTRY_BY_NAME),
    **map_words_to_remedy("it belongs under agent", (key.name for key in AGENT_VALUE_TYPE.mapping.keys)),
    "drive": "the drive of all sessions is the scenario's own, each item with session: NAME",
    "expect": "it is the scenario's own: expect: {sessions: {NAME: ...}}",
}


class _SessionsType:
    """Sessions by name."""

    label = "{NAME: {agent, policy, handler, continues, script or scripts}, ...}"
    form = FieldsType(_SESSION_KEYS, elsewhere=_REMEDY_BY_MISPLACED_SESSION_KEY, synonyms="file key")
    shape = MapOfType(form, NameType("NAME"))

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> dict[str, Any]:
        """Read every session; the check keeps what later parts must know of each."""
        if not isinstance(node, YamlMapping):
            check.report_wrong_value(node, what, f"a mapping such as {self.label}")
            return {}
        if len(node.pairs) <= 1:
            count = "one" if node.pairs else "none"
            check.report_at(
                node, f"{what} must have two at least, not {count}: a single one's keys are the scenario's own"
            )
        for name, _ in node.pairs:
            self._register_name(name, what, check)
        found: dict[str, Any] = {}
        are_sound = True
        for name, value in node.pairs:
            for ids in (check.tools, check.tasks, check.in_same_turn):
                ids.clear()
            check.is_script_sound = True
            with check.enter_session(name.text):
                found[name.text] = self.form.read_node(value, f"{what}.{name.text}", check)
                require_script(value, f"{what}.{name.text}", check)
            are_sound = are_sound and check.is_script_sound
        check.is_script_sound = are_sound
        check.dialect = check.mode = ""
        return found

    def _register_name(self, name: YamlScalar, what: str, check: FileCheck) -> None:
        word = NameType("NAME").read_node(name, f"a name in {what}", check)
        if word in _RESERVED_SESSION_NAMES:
            check.report_at(name, f'a name in {what} cannot be "{word}": records call another by that name')
        check.sessions[name.text] = name.line


SESSIONS_VALUE_TYPE = _SessionsType()


def require_script(node: YamlNode, what: str, check: FileCheck) -> None:
    """Report an agent without a script, and an agent with both a script and scripts."""
    keys = {key.text: key for key, _ in node.pairs} if isinstance(node, YamlMapping) else {"script": node}
    is_meant = any(find_meant_option(key, _SCRIPT_KEY_NAMES, "file key") for key in keys)
    if check.is_spawned and not is_meant:
        check.report_at(node, f"{what} needs the key script: the steps of the fake agent")
    if "script" in keys and "scripts" in keys:
        both = f"script (line {keys['script'].line}) and scripts: a script is what every invocation plays"
        check.report_at(keys["scripts"], f"{what} has both {both}")


class _RuleIdType(TextType):
    """The id of a rule."""

    shape = ChoiceType(tuple(RULES))

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> str:
        """Take the id."""
        name = super().read_node(node, what, check)
        is_empty_text = isinstance(node, YamlScalar) and not node.text
        if name not in RULES and (name or is_empty_text):  # what is no text was reported
            check.report_at(node, describe_unknown_word("rule", name, RULES))
        return name


class _CaughtDefectsType:
    """Defects, each with the key that it must turn red."""

    label = "{DEFECT: KEY, ...}"
    shape = MapOfType(TextType(), TextPattern("[a-z0-9]+(-[a-z0-9]+)*"))

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> dict[str, str]:
        """Read the pairs; a key must be one that this file expects, or leaks."""
        if not isinstance(node, YamlMapping):
            check.report_wrong_value(node, what, f"a mapping such as {self.label}")
            return {}
        found: dict[str, str] = {}
        known = dict.fromkeys((*check.expected, "leaks"))
        for name, value in node.pairs:
            if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name.text):
                check.report_at(
                    name,
                    f'a defect is named in small letters with "-" between the words, not "{shorten_text(name.text)}"',
                )
            key = TextType().read_node(value, f"{what}.{name.text}", check)
            if isinstance(value, YamlScalar) and key and key not in known and check.is_expect_sound:
                check.report_at(value, describe_unknown_word("key of this scenario's expect", key, known))
            found[name.text] = key
        return found


_REMEDY_BY_MISPLACED_FILE_KEY = {
    **map_words_to_remedy("it is a step, and belongs under script", STEP_ENTRY_BY_NAME),
    **map_words_to_remedy("it belongs under agent", (key.name for key in AGENT_VALUE_TYPE.mapping.keys)),
    **map_words_to_remedy(
        "it belongs under drive", (name for name in DRIVE_KEY_BY_NAME if name not in (*STEP_ENTRY_BY_NAME, "session"))
    ),
    **map_words_to_remedy("it belongs under policy", ALL_LIMIT_NAMES),
    **map_words_to_remedy("it belongs under expect", EXPECT_KEY_BY_NAME),
}


def _make_host_actions(values: dict[str, Any], node: YamlNode, what: str, check: FileCheck) -> dict[str, Any]:
    if not values:
        check.report_at(node, f"{what} says nothing: write artifacts, loop_blocked or sleeps")
    if "loop_blocked" in values and "sleeps" in values:
        check.report_at(node, f"{what} has both loop_blocked and sleeps: write two scenarios")
    disk = {"disk": values["artifacts"]} if "artifacts" in values else {}
    return {**disk, "host_line": node.line, "blockage": values.get("loop_blocked") or values.get("sleeps")}


def _make_block_action(values: dict[str, Any], node: YamlNode, _what: str, _check: FileCheck) -> DriveItem:
    return DriveItem(node.line, "block", values["for"], at=values["at"])


LOOP_BLOCKED_VALUE_TYPE = FieldsType(
    (
        Key("at", TimeType(), "the instant at which it begins", required=True),
        Key("for", TimeType(), "how long it takes", required=True),
    ),
    finish=_make_block_action,
)


def _make_sleep_action(values: dict[str, Any], node: YamlNode, _what: str, _check: FileCheck) -> DriveItem:
    return DriveItem(node.line, "sleep", values["for"], at=values["at"])


SLEEPS_VALUE_TYPE = FieldsType(
    (
        Key(
            "at",
            TimeType(),
            "the instant at which it falls asleep and wakes: processes see no time pass",
            required=True,
        ),
        Key("for", TimeType(positive=True), "how far the wall clock jumps", required=True),
    ),
    finish=_make_sleep_action,
)
HOST_VALUE_TYPE = FieldsType(
    (
        Key(
            "artifacts",
            ChoiceType(("read_only", "full")),
            "the state of their disk: no file can be made there, or no byte can be written to a file",
        ),
        Key(
            "loop_blocked",
            LOOP_BLOCKED_VALUE_TYPE,
            "when other code keeps the event loop from running; then it finds all input and due timers at once",
        ),
        Key(
            "sleeps",
            SLEEPS_VALUE_TYPE,
            "when the machine sleeps: the wall clock jumps, and clocks such as time.monotonic() stand still",
        ),
    ),
    finish=_make_host_actions,
)


def _merge_expect_levels(values: dict[str, Any], node: YamlNode, _what: str, check: FileCheck) -> dict[str, Any]:
    """Put the checks of all levels together, in the order of the file; each key stands once."""
    level = values.get("level", LEVELS[0])
    lines = {key.text: key for key, _ in node.pairs} if isinstance(node, YamlMapping) else {}
    found: dict[str, UnboundExpectation] = {expected.key: expected for expected in values.get("expect", ())}
    for block in EXPECT_VALUE_TYPE_BY_LOWER_LEVEL:
        if block in values and LEVELS.index(block) <= LEVELS.index(level):
            check.report_at(lines[block], f"the level of this scenario is {level}: write these checks under expect")
        for expected in values.pop(block, ()):
            first = found.setdefault(expected.key, expected)
            if (
                first is not expected and expected.key.rpartition(".")[2] != "background"
            ):  # that one counts, in every block
                message = f"{expected.key} stands in line {first.line} already: write it at one level only"
                check.report_problem(expected.line, expected.column, message)
    if found:
        values["expect"] = tuple(sorted(found.values(), key=lambda expected: (expected.line, expected.column)))
    return values


SCENARIO_FILE_TYPE = FieldsType(
    (
        Key("scenario", TextType(may_be_empty=False), "the claim, in one sentence", required=True),
        Key("source", TextType(may_be_empty=False), "the address of a bug report"),
        Key("covers", ListOfType(_RuleIdType("RULE"), unique=True), "the rules that the scenario covers"),
        Key("level", ChoiceType(LEVELS, "level"), "how much the checks under expect count; must if absent"),
        Key("harm", TextType(may_be_empty=False), "the harm to the user if the supervisor breaks it, in one sentence"),
        Key(
            "agent", AGENT_VALUE_TYPE, "the name of a dialect, or a mapping with more", required=True, unless="sessions"
        ),
        Key("policy", PolicyLimitsType(), "the limits of the supervisor in this run"),
        Key("host", HOST_VALUE_TYPE, "the surroundings of the supervisor: its disk and its event loop"),
        Key("sessions", SESSIONS_VALUE_TYPE, "several agents at a time; each session has these keys for itself"),
        Key(
            "handler", HANDLERS_VALUE_TYPE, "how the caller answers the questions of the agent; it denies all if absent"
        ),
        Key("continues", CONTINUES_VALUE_TYPE, "the session that the caller continues; a new one if absent"),
        Key("drive", DRIVE_VALUE_TYPE, "the actions of the caller, one after the other; one prompt, hi, if absent"),
        Key("script", AgentScriptType(), "the steps of the fake agent"),
        Key(
            "scripts",
            AgentScriptsType(),
            "the steps of each start of the agent; the last ones are for all further starts",
        ),
        Key("expect", EXPECT_VALUE_TYPE, "the checks at the level of the scenario"),
        Key(
            "should",
            EXPECT_VALUE_TYPE_BY_LOWER_LEVEL["should"],
            "checks at level should, in a scenario whose level is must",
        ),
        Key(
            "info",
            EXPECT_VALUE_TYPE_BY_LOWER_LEVEL["info"],
            "checks at level info, in a scenario whose level is must or should",
        ),
        Key(
            "catches",
            _CaughtDefectsType(),
            "the defects that the scenario catches, each with the check that fails (the kit tests itself by it)",
        ),
    ),
    finish=_merge_expect_levels,
    elsewhere=_REMEDY_BY_MISPLACED_FILE_KEY,
    synonyms="file key",
    example="begin with the lines scenario: CLAIM, agent: raw and script:, and write the steps below script",
)
