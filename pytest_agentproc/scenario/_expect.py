"""Owns the table of what a scenario expects: keys, value types, and the normal form of each. Refuses to judge."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_agentproc.scenario._expect_keys import (
    ARTIFACT_EXPECT_KEY_BY_NAME,
    ASKED_VALUE_TYPE,
    OUTCOME_MATCHER_TYPE,
    RESULT_EXPECT_KEY_BY_FIELD,
    RUN_ONLY_EXPECT_KEYS,
    SESSION_ONLY_EXPECT_KEYS,
    TEXT_MATCHER_TYPE,
    TURN_EXPECT_KEY_BY_NAME,
    VIEWER_EXPECT_KEY_BY_NAME,
    ArtifactChecksType,
    ChecksByNameType,
    EnvironmentMappingType,
    ExpectKey,
    NamedTimesType,
    UnboundExpectation,
    evaluate_named_times,
    evaluate_questions,
    evaluate_time_value,
    strip_block_name,
)
from pytest_agentproc.scenario._fields import (
    AnyOfType,
    ChoiceType,
    EitherType,
    FieldsType,
    FlagType,
    ListOfType,
    MapOfType,
    NameType,
    PlainDataType,
    SignalType,
    TextPattern,
    TextType,
    TimeType,
    WholeNumberType,
)
from pytest_agentproc.scenario._file_check import Key, describe_session_remedy
from pytest_agentproc.scenario._suggestions import describe_unknown_word, map_words_to_remedy
from pytest_agentproc.scenario._yaml import YamlMapping, YamlNode, YamlScalar, YamlSequence
from pytest_agentproc.vocabulary import LEVELS

if TYPE_CHECKING:
    from pytest_agentproc.scenario._expressions import Expression
    from pytest_agentproc.scenario._file_check import CompileContext, FileCheck


def bind_expected_value(expected: UnboundExpectation, scope: CompileContext) -> Any:
    """Give the normal form; raises as `evaluate_expression`. The key is one of a file with one session."""
    head, _, rest = expected.key.partition(".")
    if head == "artifacts":
        wanted = ARTIFACT_EXPECT_KEY_BY_NAME.get(rest) or RESULT_EXPECT_KEY_BY_FIELD.get(rest.rpartition(".")[2])
        return expected.value if wanted is None else wanted.bind(expected.value, scope)
    table = _EXPECT_KEYS_BY_PARENT_KEY.get(head, EXPECT_KEY_BY_NAME) if rest else EXPECT_KEY_BY_NAME
    return table[rest.rpartition(".")[2] or head].bind(expected.value, scope)


def _evaluate_times(value: list[Expression], scope: CompileContext) -> list[int]:
    return [scope.evaluate_expression(time) for time in value]


def _make_end_status(values: dict[str, Any], node: YamlNode, what: str, check: FileCheck) -> dict[str, Any]:
    if "code" in values and "signal" in values:
        check.report_at(node, f"{what} has both code and signal: an agent exits or dies of a signal")
    elif not values:
        check.report_at(node, f"{what} says nothing: give code, signal or forced")
    code, signal, forced = values.get("code"), values.get("signal"), values.get("forced")
    return {"code": code, "signal": signal, "forced": forced}


class _ProcessNameType(NameType):
    """The name of a process that the script spawns; from the second of that name on its number follows."""

    shape = TextPattern("[A-Za-z][A-Za-z0-9_-]*( [1-9][0-9]*)?")

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> str:
        """Take the name, and look it up."""
        found = _NUMBERED_PROCESS_PATTERN.fullmatch(node.text) if isinstance(node, YamlScalar) else None
        if found is None or not isinstance(node, YamlScalar):
            return super().read_node(node, what, check)
        known = (*(check.sessions or ("agent",)), *check.spawned)
        if found[1] not in known and check.is_script_sound:
            check.report_at(node, describe_unknown_word("process", found[1], known))
        elif found[2] == "1":
            check.report_at(node, f"the first process of a name has no number: write {found[1]}")
        return node.text


_NUMBERED_PROCESS_PATTERN = re.compile(r"([A-Za-z][A-Za-z0-9_-]*)(?: ([1-9][0-9]{0,5}))?", re.ASCII)


_END_STATUS_VALUE_TYPE = EitherType(
    WholeNumberType(0, 255, "CODE", of_signal="{{signal: {}}}"),
    FieldsType(
        (
            Key("code", WholeNumberType(0, 255, "CODE"), "its exit code"),
            Key("signal", SignalType(), "the signal that ended it"),
            Key("forced", FlagType(), "whether the supervisor's own signal ended it"),
        ),
        finish=_make_end_status,
    ),
    key="code",
)
_SIGNAL_TIMES_VALUE_TYPE = NamedTimesType(
    "[{SIGNAL: T}, ...]", SignalType(), "a signal with its time, such as {TERM: 10s}"
)


class _ArgumentsType:
    """All arguments as a list, or some of them in a mapping."""

    label = "[TEXT, ...] or {contains: [TEXT, ...]}"
    _all = ListOfType(TextType())
    _some = FieldsType(
        (
            Key(
                "contains",
                ListOfType(TextType(), may_be_empty=False),
                "arguments that stand one after the other",
                required=True,
            ),
        )
    )
    shape = AnyOfType((_all, _some))

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> Any:
        """Read the form that is there."""
        return (self._some if isinstance(node, YamlMapping) else self._all).read_node(node, what, check)


_PROCESS_EXPECT_KEYS = (
    ExpectKey(
        "signals",
        _SIGNAL_TIMES_VALUE_TYPE,
        "the signals that the process got, the one that ended it included",
        bind=evaluate_named_times,
    ),
    ExpectKey("status", _END_STATUS_VALUE_TYPE, "how the process ended, in the form of agent_status"),
    ExpectKey("gone_at", TimeType(), "the instant at which the process was gone", bind=evaluate_time_value),
    ExpectKey("alive_at", TimeType(), "an instant at which the process was alive", bind=evaluate_time_value),
    ExpectKey("argv", _ArgumentsType(), "the arguments of this start of the agent, without the command itself"),
    ExpectKey("env", EnvironmentMappingType(), "variables of the environment of this start; others are not checked"),
)
PROCESS_EXPECT_KEY_BY_NAME = {key.name: key for key in _PROCESS_EXPECT_KEYS}


class _ProcessChecksType(ChecksByNameType):
    """Checks on single processes; those of arguments are for starts of the agent."""

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> list[UnboundExpectation]:
        """Read them, and refuse what only an agent is given."""
        for name, value in node.pairs if isinstance(node, YamlMapping) else []:
            for key, _ in value.pairs if isinstance(value, YamlMapping) else []:
                if key.text not in ("argv", "env"):
                    continue
                if check.sessions:
                    remedy = f"write sessions: {{NAME: {{received: {{{key.text}: ...}}}}}}"
                    check.report_at(key, f"{what} of several sessions has no {key.text}: {remedy}")
                elif name.text.partition(" ")[0] != "agent":
                    check.report_at(key, f"{key.text} is for agents, and {name.text} is a process of the script")
        return super().read_node(node, what, check)


_PROCESSES_VALUE_TYPE = _ProcessChecksType(
    "{ID: {signals, status, gone_at, alive_at, argv, env}}",
    _ProcessNameType(),
    FieldsType(_PROCESS_EXPECT_KEYS, synonyms="process check"),
)

_RECEIVED_EXPECT_KEYS = (
    ExpectKey("argv", _ArgumentsType(), "the arguments of the agent, without the command itself"),
    ExpectKey("env", EnvironmentMappingType(), "variables of its environment; other variables are not checked"),
    ExpectKey("cwd", TEXT_MATCHER_TYPE, "the folder in which the agent was started"),
    ExpectKey("stdin", TEXT_MATCHER_TYPE, "all that the agent read from stdin"),
    ExpectKey("prompt", TextType(), "the prompt of a run, within an argument or on stdin: either way is right"),
)
RECEIVED_EXPECT_KEY_BY_NAME = {key.name: key for key in _RECEIVED_EXPECT_KEYS}


class _ReceivedChecksType:
    """Checks on what the agent was given."""

    form = shape = FieldsType(_RECEIVED_EXPECT_KEYS, synonyms="received check")
    label = form.label

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> list[UnboundExpectation]:
        """Read into one expectation per leaf."""
        found: list[UnboundExpectation] = []
        for key, place, leaf in self.form.match_keys(node, what, check):
            path = f"{what}.{key.name}"
            if key.name == "prompt" and check.is_session:
                check.report_at(place, f"{path} is for runs: in a session write {what}: {{stdin: {{contains: TEXT}}}}")
            read = key.kind.read_node(leaf, path, check)
            found.append(UnboundExpectation(strip_block_name(path), place.line, place.column, read))
        return found


_EXPECT_KEYS_WITHOUT_SESSIONS = (
    ExpectKey(
        "outcome",
        OUTCOME_MATCHER_TYPE,
        "how the run ended; {not: completed} accepts every other outcome, {any_of: [...]} one of several",
    ),
    ExpectKey("exit_code", WholeNumberType(0, 255, "CODE"), "the exit code of the supervisor"),
    ExpectKey("text", TEXT_MATCHER_TYPE, "the final message; in plain output, the end of its last line may be missing"),
    ExpectKey("transcript", TEXT_MATCHER_TYPE, "all messages, each on its own line"),
    ExpectKey("stop_reason", TextType("REASON"), "the stop reason of the last message, in the words of the dialect"),
    ExpectKey("model", TextType(), "the model that answered"),
    ExpectKey("usage", PlainDataType(), "the token counts, in the words of the dialect"),
    ExpectKey(
        "elapsed",
        TimeType(),
        "the time from the start of the agent to the event that decides the outcome, before any grace",
        bind=evaluate_time_value,
    ),
    ExpectKey(
        "returned",
        TimeType(),
        "the time from the start of the agent until the caller has the answer and no process is left",
        bind=evaluate_time_value,
    ),
    ExpectKey(
        "agent_status",
        _END_STATUS_VALUE_TYPE,
        "how the agent ended, or the last of several agents",
    ),
    ExpectKey(
        "signals",
        _SIGNAL_TIMES_VALUE_TYPE,
        "the signals that the agent got, or all agents of a session, each with its instant; [] for none",
        bind=evaluate_named_times,
    ),
    ExpectKey(
        "spawns",
        ListOfType(TimeType()),
        "the instants at which the agent was started; [] for never",
        bind=_evaluate_times,
    ),
    ExpectKey("alive_at_once", WholeNumberType(0, 10**6), "the largest number of agents that were alive at one time"),
    ExpectKey(
        "asked",
        ASKED_VALUE_TYPE,
        "the questions of the agents with their answers, in order; [] for none",
        bind=evaluate_questions,
    ),
    ExpectKey("processes", _PROCESSES_VALUE_TYPE, "checks on single processes, each by its name"),
    ExpectKey(
        "received",
        _ReceivedChecksType(),
        "the arguments, the environment, the folder and the stdin that the agent was given",
    ),
    ExpectKey("error", TEXT_MATCHER_TYPE, "the message of the supervisor about a bad end"),
    ExpectKey(
        "warnings",
        ListOfType(TEXT_MATCHER_TYPE),
        "all warnings of the supervisor, each as a text or a part of it; [] for none",
    ),
    ExpectKey("noise", WholeNumberType(0, 10**9), "the number of lines on stdout that were no events"),
    ExpectKey("stderr_tail", TEXT_MATCHER_TYPE, "the end of what the agent printed on stderr"),
    *SESSION_ONLY_EXPECT_KEYS,
    ExpectKey("artifacts", ArtifactChecksType(), "the files that the supervisor kept; [] for no file at all"),
    ExpectKey(
        "leaks",
        ListOfType(_ProcessNameType(), unique=True),
        "the processes that outlived the run; [] if absent. After the end of its agent, a child in a session of its "
        "own is found with containment subreaper or keeper only",
    ),
    ExpectKey(
        "pipes_left",
        WholeNumberType(0, 10**6),
        "the number of pipes to ended processes that the supervisor has not closed",
    ),
    ExpectKey(
        "unrelated_processes",
        ChoiceType(("unharmed",)),
        "no process outside the run got a signal; this is checked without the key, too",
    ),
)
_EXPECT_KEYS_OF_EACH_SESSION = (
    *("turns", "background", "status", "viewers", "asked", "called", "signals", "spawns", "alive_at_once"),
    *("agent_status", "received", "error", "warnings", "noise", "stderr_tail"),
)
_EXPECT_KEYS_OF_ALL_SESSIONS = ("processes", "returned", "leaks", "pipes_left", "unrelated_processes")
TIME_EXPECT_KEYS = frozenset(
    key.name for key in (*_EXPECT_KEYS_WITHOUT_SESSIONS, *_PROCESS_EXPECT_KEYS) if isinstance(key.kind, TimeType)
)
"""The keys whose value is an instant or a duration."""
SESSION_EXPECT_KEY_BY_NAME = {
    key.name: key for name in _EXPECT_KEYS_OF_EACH_SESSION for key in _EXPECT_KEYS_WITHOUT_SESSIONS if key.name == name
}


class _SessionChecksType:
    """The expectations of each of several sessions."""

    label = "{NAME: {turns: ..., status: ..., ...}}"
    form = FieldsType(
        tuple(SESSION_EXPECT_KEY_BY_NAME.values()),
        elsewhere={
            **map_words_to_remedy(
                "it is about all sessions, and belongs under expect itself", _EXPECT_KEYS_OF_ALL_SESSIONS
            ),
            **map_words_to_remedy(
                "it is about one turn: write turns: [{...}]",
                (name for name in RUN_ONLY_EXPECT_KEYS if name != "artifacts"),
            ),
        },
        synonyms="expect key",
    )
    shape = MapOfType(form)

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> list[UnboundExpectation]:
        """Read into one expectation per leaf; times are tried with the session's limits."""
        if not isinstance(node, YamlMapping):
            check.report_wrong_value(node, what, f"a mapping such as {self.label}")
            return []
        found: list[UnboundExpectation] = []
        for name, value in node.pairs:
            if name.text not in check.sessions:
                if check.sessions:
                    check.report_at(name, describe_unknown_word("session", name.text, check.sessions))
                continue
            with check.enter_session(name.text):
                found += _read_expected_keys(self.form, value, f"{what}.{name.text}", check)
        return found


def _read_expected_keys(form: FieldsType, node: YamlNode, what: str, check: FileCheck) -> list[UnboundExpectation]:
    """Read the keys that are there, into one expectation for each leaf."""
    found: list[UnboundExpectation] = []
    for key, place, value in form.match_keys(node, what, check):
        _check_key_applies(place, check)
        path = f"{what}.{key.name}"
        read = key.kind.read_node(value, path, check)
        is_nested = key.name in _EXPECT_KEYS_WITH_NESTED_CHECKS and read is not None
        leaf = UnboundExpectation(strip_block_name(path), place.line, place.column, read)
        found.extend(read if is_nested else [leaf])
    return found


_TOP_LEVEL_EXPECT_KEYS = (
    *_EXPECT_KEYS_WITHOUT_SESSIONS,
    ExpectKey("sessions", _SessionChecksType(), "checks on each of several sessions, by its name"),
)
EXPECT_KEY_BY_NAME = {key.name: key for key in _TOP_LEVEL_EXPECT_KEYS}
_EXPECT_KEYS_BY_PARENT_KEY = {
    "processes": PROCESS_EXPECT_KEY_BY_NAME,
    "received": RECEIVED_EXPECT_KEY_BY_NAME,
    "turns": TURN_EXPECT_KEY_BY_NAME,
    "background": TURN_EXPECT_KEY_BY_NAME,
    "viewers": VIEWER_EXPECT_KEY_BY_NAME,
}
_EXPECT_KEYS_WITH_NESTED_CHECKS = ("artifacts", "processes", "received", "sessions", "turns", "background", "viewers")
_SESSION_ONLY_EXPECT_KEYS = tuple(key.name for key in SESSION_ONLY_EXPECT_KEYS)
_EXPECT_KEYS_BESIDE_SESSIONS = ("sessions", *_EXPECT_KEYS_OF_ALL_SESSIONS)
"""What is expected of several sessions together."""


def _check_key_applies(name: YamlScalar, check: FileCheck) -> None:
    """Report a key that is not about what the file has: a run, a session, or several of them."""
    key = name.text
    if check.sessions and not check.session:
        if key not in _EXPECT_KEYS_BESIDE_SESSIONS:
            check.report_at(
                name, f"expect.{key} is about one agent, and this scenario has several: {_suggest_session_key(key)}"
            )
    elif not check.mode:
        return
    elif key == "sessions":
        remedy = "write its keys themselves"
        check.report_at(name, f"expect.sessions is about several sessions, and this scenario has one agent: {remedy}")
    elif not check.is_session:
        if key in _SESSION_ONLY_EXPECT_KEYS:
            check.report_at(
                name, f"expect.{key} is about a session, and this agent is a run's: {describe_session_remedy(check)}"
            )
    elif key in RUN_ONLY_EXPECT_KEYS:
        remedy = "leave it out" if key == "artifacts" else f"write turns: [{{{key}: ...}}]"
        check.report_at(name, f"expect.{key} is about a run, and this agent is a session's: {remedy}")


def _suggest_session_key(key: str) -> str:
    if key == "artifacts":
        return "leave it out"
    inner = f"{key}: ..." if key in SESSION_EXPECT_KEY_BY_NAME else f"turns: [{{{key}: ...}}]"
    return f"write sessions: {{NAME: {{{inner}}}}}"


@dataclass(frozen=True)
class _ExpectBlockType:
    """The expectations at one level; gives a list of Expected in the order of the file.

    Args:
        level: the level of these checks; empty: the level of the file.
    """

    level: str = ""
    label = "{outcome: ..., elapsed: ..., ...}"
    form = shape = FieldsType(_TOP_LEVEL_EXPECT_KEYS, synonyms="expect key")

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> tuple[UnboundExpectation, ...]:
        """Read every key that is there."""
        before = len(check.problems)
        if not isinstance(node, YamlMapping):
            remedy = 'leave out the "- "' if isinstance(node, YamlSequence) else ""
            check.report_wrong_value(node, what, f"a mapping such as {self.label}", remedy)
            check.is_expect_sound = False
            return ()
        found = [replace(expected, level=self.level) for expected in _read_expected_keys(self.form, node, what, check)]
        check.is_expect_sound = check.is_expect_sound and len(check.problems) == before
        check.expected.extend(expected.key for expected in found)
        return tuple(sorted(found, key=lambda expected: (expected.line, expected.column)))


EXPECT_VALUE_TYPE = _ExpectBlockType()
EXPECT_VALUE_TYPE_BY_LOWER_LEVEL = {level: _ExpectBlockType(level) for level in LEVELS[1:]}
"""The blocks beside `expect` for checks below the level of the file, by level."""
