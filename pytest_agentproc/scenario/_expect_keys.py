"""Owns what all expect keys share, and the keys of turns, viewers, questions and artifacts. Refuses to judge."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_agentproc.scenario._drive_keys import SESSION_STATUSES
from pytest_agentproc.scenario._fields import (
    HEX_DIGITS_PATTERN,
    AnyOfType,
    ChoiceType,
    EitherType,
    EmptyListType,
    FieldsType,
    FlagType,
    ListOfType,
    MapOfType,
    NameType,
    PlainDataType,
    RegexType,
    TextType,
    TimeType,
    WholeNumberType,
)
from pytest_agentproc.scenario._file_check import Key
from pytest_agentproc.scenario._session_steps import ANSWERS_BY_KIND
from pytest_agentproc.scenario._suggestions import join_choices
from pytest_agentproc.scenario._yaml import YamlMapping, YamlNode, YamlScalar, YamlSequence, is_nothing
from pytest_agentproc.vocabulary import ARTIFACT_TEXTS, RESULT_FIELD_TEXTS, VIEWED_KINDS, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytest_agentproc.scenario._expressions import Expression
    from pytest_agentproc.scenario._file_check import CompileContext, FileCheck, ValueType


@dataclass(frozen=True)
class UnboundExpectation:
    """One expected key as the file has it: where it stands, its value with times unevaluated, and its level.

    An empty level is the level of the file.
    """

    key: str
    line: int
    column: int
    value: Any
    level: str = ""


def strip_block_name(path: str) -> str:
    """Give the expect key of a path: all after the name of its block, `expect`, `should` or `info`."""
    return path.partition(".")[2]


def split_session_key(key: str) -> tuple[str, str]:
    """Split a key into the session that it is about ("" where there is one, or it is about all) and the key there."""
    head, _, rest = key.partition(".")
    if head != "sessions":
        return "", key
    session, _, own = rest.partition(".")
    return session, own


def filter_expectations_by_session(
    expected: Iterable[UnboundExpectation], session: str
) -> tuple[UnboundExpectation, ...]:
    """Give what a file expects of one of its sessions, by the keys that a file with one would have."""
    parts = ((expectation, *split_session_key(expectation.key)) for expectation in expected)
    return tuple(replace(expectation, key=key) for expectation, whose, key in parts if whose == session)


def _return_value_unchanged(value: Any, _scope: CompileContext) -> Any:
    return value


@dataclass(frozen=True, kw_only=True)
class ExpectKey(Key):
    """The table's entry for an expect key: how its value gets its normal form under a policy."""

    bind: Callable[[Any, CompileContext], Any] = _return_value_unchanged


def evaluate_time_value(value: Expression, scope: CompileContext) -> int:
    """Give a time its normal form, whole nanoseconds."""
    return scope.evaluate_expression(value)


def evaluate_named_times(value: list[tuple[str, Expression]], scope: CompileContext) -> list[tuple[str, int]]:
    """Give named times their normal form, each whole nanoseconds."""
    return [(name, scope.evaluate_expression(time)) for name, time in value]


@dataclass(frozen=True)
class NamedTimesType:
    """Names with their times, in order.

    Args:
        label: how the reference shows it.
        name: the type of a name.
        item: what an item is, with an example, for messages.
    """

    label: str
    name: ValueType
    item: str

    @property
    def shape(self) -> ListOfType:
        """Show the mappings of one key."""
        return ListOfType(MapOfType(TimeType(), self.name, single=True))  # type: ignore[arg-type]

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> list[tuple[str, Any]]:
        """Read a list of one-key mappings."""
        if not isinstance(node, YamlSequence):
            example = self.item.partition("such as ")[2]
            check.report_wrong_value(node, what, f"a list such as [{example}]", "write [] for none")
            return []
        found: list[tuple[str, Any]] = []
        for item in node.items:
            if not isinstance(item, YamlMapping) or len(item.pairs) != 1:
                check.report_wrong_value(item, f"an item of {what}", self.item)
                continue
            [(name, time)] = item.pairs
            found.append(
                (self.name.read_node(name, what, check), TimeType().read_node(time, f"{what}.{name.text}", check))
            )
        return found


@dataclass(frozen=True)
class ChecksByNameType:
    """The same checks on each of several things, by its name.

    Args:
        label: how the reference shows it.
        name: the type of a name.
        form: the checks on one of them.
    """

    label: str
    name: ValueType
    form: FieldsType

    @property
    def shape(self) -> MapOfType:
        """Show the checks by name."""
        return MapOfType(self.form, self.name)

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> list[UnboundExpectation]:
        """Read into one expectation per leaf."""
        if not isinstance(node, YamlMapping):
            check.report_wrong_value(node, what, f"a mapping such as {self.label}")
            return []
        found: list[UnboundExpectation] = []
        for name, value in node.pairs:
            self.name.read_node(name, what, check)
            path = f"{what}.{name.text}"
            for key, place, leaf in self.form.match_keys(value, strip_block_name(path), check):
                dotted = strip_block_name(f"{path}.{key.name}")
                found.append(
                    UnboundExpectation(dotted, place.line, place.column, key.kind.read_node(leaf, dotted, check))
                )
        return found


TEXT_MATCHER_KEYS = (
    Key("contains", TextType(may_be_empty=False), "a part of it"),
    Key("matches", RegexType(), "a regular expression that fits somewhere in it"),
)
_OUTCOME_NAME_TYPE = ChoiceType(tuple(str(outcome) for outcome in Outcome), "outcome")


def _make_wanted_outcome(values: dict[str, Any], _node: YamlNode, _what: str, _check: FileCheck) -> Any:
    return values.get("is", values)


OUTCOME_MATCHER_TYPE = EitherType(
    _OUTCOME_NAME_TYPE,
    FieldsType(
        (
            Key("not", _OUTCOME_NAME_TYPE, "any outcome but this one"),
            Key(
                "any_of",
                ListOfType(_OUTCOME_NAME_TYPE, unique=True, may_be_empty=False),
                "one of these outcomes: each is right",
            ),
        ),
        one_of=("not", "any_of"),
        finish=_make_wanted_outcome,
    ),
    key="is",
)
"""The name of an outcome, or `{not: NAME}` or `{any_of: [NAME, ...]}` where more than one is right."""
TEXT_MATCHER_TYPE = EitherType(
    TextType(),
    FieldsType(TEXT_MATCHER_KEYS, one_of=("contains", "matches"), synonyms="text check"),
    key="exact",
)


class EnvironmentMappingType:
    """Names of environment variables with their values; `unset` for one that must not be there."""

    label = "{NAME: TEXT / unset}"
    shape = MapOfType(TextType())

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> dict[str, str | None]:
        """Read the pairs."""
        if not isinstance(node, YamlMapping):
            check.report_wrong_value(node, what, f"a mapping such as {self.label}")
            return {}
        found: dict[str, Any] = {}
        for name, value in node.pairs:
            if not name.text or "=" in name.text or "\0" in name.text:
                check.report_at(name, f'{what} has no variable "{name.text}": a name is text without "="')
            is_unset = is_nothing(value, "unset")
            found[name.text] = None if is_unset else TextType().read_node(value, f"{what}.{name.text}", check)
        return found


def _validate_question(values: dict[str, Any], node: YamlNode, what: str, check: FileCheck) -> dict[str, Any]:
    kind = next(kind for kind in ANSWERS_BY_KIND if kind in values)
    if values.get("answer", "none") not in ANSWERS_BY_KIND[kind]:
        known = join_choices(ANSWERS_BY_KIND[kind])
        check.report_at(node, f"{what}: a {kind} never gets the answer {values['answer']}: known are {known}")
    if values.get("answer") == "none" and "after" in values:
        check.report_at(node, f"what was never answered has no time: leave after out of {what}")
    return values


def evaluate_questions(value: list[dict[str, Any]], scope: CompileContext) -> list[dict[str, Any]]:
    """Give the normal form: kind and name, the answer and its time in nanoseconds, None where the file has none."""
    return [
        {
            "kind": kind,
            "name": item[kind],
            "answer": item.get("answer"),
            "after": scope.evaluate_expression(item["after"]) if "after" in item else None,
        }
        for item in value
        for kind in ANSWERS_BY_KIND
        if kind in item
    ]


_ALL_ANSWER_WORDS = tuple(dict.fromkeys(word for words in ANSWERS_BY_KIND.values() for word in words))

ASKED_QUESTION_KEYS = (
    Key("permission", TextType("TOOL", may_be_empty=False), "the tool that it wanted to use"),
    Key("hook", TextType("NAME", may_be_empty=False), "the callback that it wanted called"),
    Key("request", TextType("METHOD", may_be_empty=False), "the method that it called"),
    Key("answer", ChoiceType(_ALL_ANSWER_WORDS), "its answer; not checked if absent"),
    Key("after", TimeType(), "from the question to the answer; not checked if absent"),
)
ASKED_VALUE_TYPE = ListOfType(FieldsType(ASKED_QUESTION_KEYS, one_of=tuple(ANSWERS_BY_KIND), finish=_validate_question))


_TURN_ELAPSED_DOC = "from the delivery of its prompt to its outcome; a background turn: from its first event to its end"
_TURN_EXPECT_KEYS = (
    ExpectKey(
        "outcome", OUTCOME_MATCHER_TYPE, "how it ended; {not: completed} is any other, {any_of: [...]} one of several"
    ),
    ExpectKey("exit_code", WholeNumberType(0, 255, "CODE"), "the supervisor's exit code for it"),
    ExpectKey("text", TEXT_MATCHER_TYPE, "the final message"),
    ExpectKey("transcript", TEXT_MATCHER_TYPE, "all messages, each on a line of its own"),
    ExpectKey("stop_reason", TextType("REASON"), "the last message's, in the dialect's words"),
    ExpectKey("model", TextType(), "the model that answered"),
    ExpectKey("usage", PlainDataType(), "token counts, in the dialect's words"),
    ExpectKey("elapsed", TimeType(), _TURN_ELAPSED_DOC, bind=evaluate_time_value),
    ExpectKey("error", TEXT_MATCHER_TYPE, "the message of a bad end"),
)
TURN_EXPECT_KEY_BY_NAME = {key.name: key for key in _TURN_EXPECT_KEYS}

_VIEWER_EXPECT_KEYS = (
    ExpectKey("status", ChoiceType(SESSION_STATUSES), "the last status that it saw"),
    ExpectKey("transcript", TEXT_MATCHER_TYPE, "the messages and errors that it saw, each on a line of its own"),
    ExpectKey(
        "saw",
        ListOfType(ChoiceType(VIEWED_KINDS)),
        "the kinds of events in the order in which it saw them; several of one kind in a row count as one",
    ),
)
VIEWER_EXPECT_KEY_BY_NAME = {key.name: key for key in _VIEWER_EXPECT_KEYS}

RUN_ONLY_EXPECT_KEYS = (
    "outcome",
    "exit_code",
    "text",
    "transcript",
    "stop_reason",
    "model",
    "usage",
    "elapsed",
    "artifacts",
)
"""Keys that are about a run, and say nothing of a session."""


@dataclass(frozen=True)
class _TurnChecksType:
    """Checks on turns, in their order; of background turns also how many there are."""

    is_counted: bool = False
    form = FieldsType(_TURN_EXPECT_KEYS, synonyms="expect key")
    label: str = "[{outcome, text, ...}, ...]"
    shape = ListOfType(form)

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> list[UnboundExpectation]:
        """Read into one expectation per leaf."""
        if not isinstance(node, YamlSequence):
            check.report_wrong_value(
                node, what, f"a list such as {self.label}", "write [] for none" if self.is_counted else ""
            )
            return []
        head = strip_block_name(what)
        found: list[UnboundExpectation] = []
        if self.is_counted:
            found.append(UnboundExpectation(head, node.line, node.column, len(node.items)))
        for number, item in enumerate(node.items, 1):
            for key, place, leaf in self.form.match_keys(item, f"{what}.{number}", check):
                dotted = f"{head}.{number}.{key.name}"
                value = key.kind.read_node(leaf, f"{what}.{number}.{key.name}", check)
                found.append(UnboundExpectation(dotted, place.line, place.column, value))
        return found


_VIEWERS_VALUE_TYPE = ChecksByNameType(
    "{VIEWER: {status, transcript}}", NameType("VIEWER"), FieldsType(_VIEWER_EXPECT_KEYS)
)
_HOOK_TIMES_VALUE_TYPE = NamedTimesType(
    "[{HOOK: T}, ...]", TextType("HOOK"), "a hook with its time, such as {lint: 10s}"
)

SESSION_ONLY_EXPECT_KEYS = (
    ExpectKey("turns", _TurnChecksType(), "the turns of a session, one for each prompt, from the first on"),
    ExpectKey(
        "background", _TurnChecksType(is_counted=True), "the background turns of a session, except those without a text"
    ),
    ExpectKey(
        "status",
        ListOfType(ChoiceType(SESSION_STATUSES)),
        "the whole history of the status of the session, starting first",
    ),
    ExpectKey("viewers", _VIEWERS_VALUE_TYPE, "the last status and the transcript that each viewer saw"),
    ExpectKey(
        "called",
        _HOOK_TIMES_VALUE_TYPE,
        "the hooks that were called, each with its instant; [] for none",
        bind=evaluate_named_times,
    ),
)
"""Keys that are about a session, and say nothing of a run."""


_RESULT_FILE_NAME = "result.json"


@dataclass(frozen=True)
class _ValueOrNoneType:
    """A value of some kind, or the bare word `none` if the value is absent."""

    kind: ValueType

    @property
    def shape(self) -> AnyOfType:
        """Show both."""
        return AnyOfType((ChoiceType(("none",)), self.kind))

    @property
    def label(self) -> str:
        """Name both."""
        return f"{self.kind.label} / none"

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> Any:
        """Take None for the word; in quotes it is a value."""
        return None if is_nothing(node, "none") else self.kind.read_node(node, what, check)


class _HexDigitsType(TextType):
    """Bytes as hexadecimal digits."""

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> str:
        """Take the digits without blanks, in small letters."""
        if isinstance(node, YamlScalar) and isinstance(node.value, bytes):
            return node.value.hex()
        text = super().read_node(node, what, check)
        try:
            return bytes.fromhex(text).hex()
        except ValueError:
            check.report_at(node, f"{what} cannot be decoded: it looks like e2 82 ac")
            return ""


class _OutcomeNameType(ChoiceType):
    """One of the outcomes, which the reference lists with the run's own key."""

    label = "OUTCOME"


_TEXT_OR_NONE_TYPE = _ValueOrNoneType(TextType())
_VALUE_TYPE_BY_RESULT_FIELD: dict[str, ValueType] = {
    "run_id": TEXT_MATCHER_TYPE,
    "argv": ListOfType(TextType()),
    "cwd": TEXT_MATCHER_TYPE,
    "started_at": TEXT_MATCHER_TYPE,
    "ended_at": TEXT_MATCHER_TYPE,
    "elapsed": TimeType(),
    "returned": TimeType(),
    "outcome": _OutcomeNameType(tuple(str(outcome) for outcome in Outcome), "outcome"),
    "exit_code": WholeNumberType(0, 255, "CODE"),
    "agent_status": _ValueOrNoneType(WholeNumberType(-64, 255, "CODE")),
    "forced": FlagType(),
    "text": _ValueOrNoneType(TEXT_MATCHER_TYPE),
    "stop_reason": _ValueOrNoneType(TextType("REASON")),
    "requested_model": _TEXT_OR_NONE_TYPE,
    "resolved_model": _TEXT_OR_NONE_TYPE,
    "usage": _ValueOrNoneType(PlainDataType()),
    "error": TEXT_MATCHER_TYPE,
    "warnings": ListOfType(TextType()),
    "leaks": ListOfType(WholeNumberType(1, 2**22)),
    "containment": _TEXT_OR_NONE_TYPE,
    "unwritten": PlainDataType("{FILE: REASON, ...}"),
}
_TIME_RESULT_FIELDS = ("elapsed", "returned")
_DOC_BY_RESULT_FIELD = RESULT_FIELD_TEXTS | {"argv": "the agent's arguments, without the command itself"}
RESULT_EXPECT_KEY_BY_FIELD = {
    name: ExpectKey(name, kind, _DOC_BY_RESULT_FIELD[name], bind=evaluate_time_value)
    if name in _TIME_RESULT_FIELDS
    else ExpectKey(name, kind, _DOC_BY_RESULT_FIELD[name])
    for name, kind in _VALUE_TYPE_BY_RESULT_FIELD.items()
}

_FILE_CONTENT_VALUE_TYPE = EitherType(
    TextType(),
    FieldsType(
        (
            *TEXT_MATCHER_KEYS,
            Key(
                "hex",
                _HexDigitsType("HEX", pattern=HEX_DIGITS_PATTERN),
                "all of its bytes, as pairs of hexadecimal digits",
            ),
        ),
        one_of=("contains", "matches", "hex"),
        synonyms="text check",
    ),
    key="exact",
)


class _ResultChecksType:
    """Checks on the fields of result.json."""

    form = shape = FieldsType(tuple(RESULT_EXPECT_KEY_BY_FIELD.values()))
    label = "{FIELD: ...}"

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> list[UnboundExpectation]:
        """Read into one expectation per leaf."""
        return _read_nested_keys(self.form, node, what, check)


_ARTIFACT_EXPECT_KEYS = tuple(
    ExpectKey(
        name, _ValueOrNoneType(_ResultChecksType() if name == _RESULT_FILE_NAME else _FILE_CONTENT_VALUE_TYPE), doc
    )
    for name, doc in ARTIFACT_TEXTS.items()
)
ARTIFACT_EXPECT_KEY_BY_NAME = {key.name: key for key in _ARTIFACT_EXPECT_KEYS}


class ArtifactChecksType:
    """Checks on the files of a run; `[]` for no file at all."""

    form = FieldsType(_ARTIFACT_EXPECT_KEYS)
    shape = AnyOfType((EmptyListType(), form))
    label = "[] or {FILE: ...}"

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> list[UnboundExpectation] | None:
        """Read into one expectation per leaf; None for no file."""
        if not isinstance(node, YamlMapping):
            if not isinstance(node, YamlSequence) or node.items:
                remedy = "write [] for none" if isinstance(node, YamlScalar) and node.text == "none" else ""
                check.report_wrong_value(
                    node, what, "[], or a mapping such as {result.json: {outcome: completed}}", remedy
                )
            return None
        found: list[UnboundExpectation] = []
        for leaf in _read_nested_keys(self.form, node, what, check):
            found += leaf.value if isinstance(leaf.value, list) else [leaf]
        return found


def _read_nested_keys(form: FieldsType, node: YamlNode, what: str, check: FileCheck) -> list[UnboundExpectation]:
    found: list[UnboundExpectation] = []
    if isinstance(node, YamlMapping) and not node.pairs:
        check.report_at(node, f"{what} says nothing: give a key of it")
    for key, place, leaf in form.match_keys(node, what, check):
        path = f"{what}.{key.name}"
        value = key.kind.read_node(leaf, path, check)
        found.append(UnboundExpectation(strip_block_name(path), place.line, place.column, value))
    return found
