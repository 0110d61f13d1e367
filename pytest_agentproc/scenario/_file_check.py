"""Owns the forms of the language's tables, and the check of one file: its problems, and facts of its earlier parts.

Knows no key and no step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from pytest_agentproc.errors import NotApplicable, ScenarioProblem
from pytest_agentproc.scenario._expressions import (
    LONGEST_TIME_NS,
    SIZE_MEASURE,
    TIME_MEASURE,
    Expression,
    ExpressionError,
    UnusableValue,
    ValueMeasure,
    evaluate_expression,
    find_limit_names,
    parse_quantity,
)
from pytest_agentproc.scenario._suggestions import escape_and_shorten, join_choices
from pytest_agentproc.scenario._yaml import StopReading, YamlNode, YamlScalar, describe_node
from pytest_agentproc.vocabulary import DIALECTS, Policy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from fractions import Fraction
    from os import PathLike

    from pytest_agentproc.scenario._python_data import ValuePaths
    from pytest_agentproc.vocabulary import Dialect


class ValueType(Protocol):
    """A type of value: its name in the reference, and how it is read from a node."""

    @property
    def label(self) -> str:
        """Name the type in one or two words."""

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> Any:
        """Turn a node into a value; mistakes go to `check`, and the value is not used after a mistake."""


@dataclass(frozen=True)
class Key:
    """One entry of a table: a key's name, its value's type, its purpose, and the language version that added it.

    A required one need not be there beside the key that `unless` names.
    """

    name: str
    kind: ValueType
    doc: str
    since: str = "1"
    required: bool = False
    unless: str = ""


ProgramStep = tuple[int, str, tuple[Any, ...]]


@dataclass(frozen=True)
class WrittenStep:
    """One step as the file has it: its line, its name, its value, and the value of its second key if it takes one."""

    line: int
    name: str
    value: Any
    also: Any = None


class UsedLimitsRecorder(dict[str, "int | Fraction | None"]):
    """Limits that record which of them are read."""

    def __init__(self, limits: Mapping[str, int | Fraction | None]) -> None:
        super().__init__(limits)
        self.used: set[str] = set()

    def __getitem__(self, name: str) -> int | Fraction | None:
        """Give a limit."""
        self.used.add(name)
        return super().__getitem__(name)


@dataclass(frozen=True)
class CompileContext:
    """The input of the compiler: the limits of the subject, the table of steps, and which limits it does not state."""

    limits: Mapping[str, int | Fraction | None]
    table: StepTable
    unstated: frozenset[str] = frozenset()
    _taken: list[int] = field(default_factory=list)

    def compile_steps(self, steps: tuple[WrittenStep, ...]) -> list[ProgramStep]:
        """Compile a list of steps, in order."""
        return [compiled for step in steps for compiled in self._compile_step(step)]

    def _compile_step(self, step: WrittenStep) -> list[ProgramStep]:
        build = self.table[step.name].build
        assert build is not None, "what stands for other steps gave way to them as it was read"
        return build(step, self)

    def evaluate_time(self, time: Expression | str | None) -> int | None:
        """Give a time in nanoseconds; None for a word that stands for no end.

        Raises:
            NotApplicable: the subject lacks a limit that the time names, or under its limits it is no time.
        """
        return self.evaluate_expression(time) if isinstance(time, Expression) else None

    def evaluate_size(self, size: Expression | int) -> int:
        """Give a size in bytes; raises as `evaluate_time`."""
        return size if isinstance(size, int) else self.evaluate_expression(size)

    def reserve_script_bytes(self, size: int, most: int) -> bool:
        """Count the bytes that a script holds; return whether there are no more than `most`."""
        self._taken.append(size)
        return sum(self._taken) <= most

    def evaluate_expression(self, time: Expression) -> int:
        """Give a time in nanoseconds, or a size in bytes; raises as `evaluate_time`."""
        try:
            return evaluate_expression(time, self.limits)
        except UnusableValue as error:
            raise NotApplicable(f"other limits ({error})", time.line) from None


StepCompiler = Callable[[WrittenStep, CompileContext], list[ProgramStep]]


@dataclass(frozen=True, kw_only=True)
class StepEntry(Key):
    """The table's entry for a step: how it is compiled, and the second key that it takes.

    One that is not compiled stands for others: its value is those.
    """

    build: StepCompiler | None = None
    also: Key | None = None


StepTable = Mapping[str, StepEntry]


class DialectAddition(Protocol):
    """A dialect of another package, and what was found when it was looked at."""

    @property
    def dialect(self) -> Dialect:
        """Give the dialect."""

    @property
    def origin(self) -> str:
        """Name who adds it, as messages say it."""

    @property
    def unusable_reason(self) -> str:
        """Say why it cannot be used; "" if it can."""

    @property
    def steps_by_mode(self) -> Mapping[str, tuple[str, ...]]:
        """List, by mode, the steps that its encoder can write beside text."""


@dataclass(frozen=True, slots=True)
class ScenarioLanguage:
    """The language as the kit has it, or with what other packages add; never changed, only made anew.

    Args:
        steps: every step by its name.
        dialects: those of other packages, by name.
    """

    steps: StepTable
    dialects: Mapping[str, DialectAddition] = field(default_factory=dict)

    @property
    def all_dialects(self) -> Mapping[str, Dialect]:
        """Every dialect by its name: the kit's, and those of other packages."""
        return {**DIALECTS, **{name: added.dialect for name, added in self.dialects.items()}}

    def list_dialect_steps(self, dialect: str, mode: str) -> Sequence[str]:
        """List the steps that agents of a dialect can print beside text, in a mode."""
        added = self.dialects.get(dialect)
        return (self.all_dialects[dialect].steps if added is None else added.steps_by_mode).get(mode, ())

    def list_dialect_modes_with(self, has: Callable[[Dialect, str], bool]) -> list[str]:
        """List the dialects with each mode that has something, as `gemini stream`."""
        pairs = [(record, mode) for record in self.all_dialects.values() for mode in record.modes]
        return [f"{record.name} {mode}" for record, mode in pairs if has(record, mode)]

    @property
    def session_modes(self) -> list[str]:
        """Every dialect with each mode whose agent takes requests while it lives."""
        return self.list_dialect_modes_with(lambda record, mode: mode in record.session_modes)

    def is_session_mode(self, dialect: str, mode: str) -> bool:
        """Say whether agents of a dialect, in a mode, live on from prompt to prompt."""
        record = self.all_dialects.get(dialect)
        return record is not None and mode in record.session_modes


_MAX_PROBLEMS_PER_FILE = 100
_AGENT_FACT_NAMES = ("dialect", "mode", "prompt_by", "overrides", "limits", "is_spawned")
"""What is told of one agent, and of each session's by itself."""


@lru_cache(maxsize=256)
def _resolve_limits(dialect: str | Dialect, *overrides: tuple[str, Any]) -> Mapping[str, int | None]:
    """Give the limits of a supervisor with these overrides; many files have the same ones."""
    return MappingProxyType(Policy.for_dialect(dialect, **dict(overrides)).to_whole_limits())


@dataclass
class FileCheck:
    """One scenario under check.

    Args:
        file: the name that messages carry.
        folder: where the files that the scenario names must stay; None if it has none.
        language: the steps and the dialects that it may speak of.
        paths: of Python data the path of each value; None: it is a file or a text.
        expanding: the steps of other packages that are being read in place of one another.
        depth: in how many descendants' scripts the check is.
        process: whose script it reads; "" is the agent's.
        parents: who spawns whom; `orphans`: those who lose their parent at once, and how.
        inherits: the streams that each spawned process inherits, and where the file says so.
        meant: the children that steps name, and of which process they must be.
        tools_done: the tools that have ended where the check is, with the places of their ends; `tools_done_beside`:
            those that a branch before it has ended, such as a reaction. Other branches may end them, too.
        sessions: the sessions that the file has, by name, with their lines.
        session: the one that is spoken of.
    """

    file: str
    folder: str | PathLike[str] | None
    language: ScenarioLanguage
    paths: ValuePaths | None = None
    problems: list[ScenarioProblem] = field(default_factory=list)
    dialect: str = ""
    mode: str = ""
    prompt_by: str = "argv"
    overrides: dict[str, Any] = field(default_factory=dict)
    limits: Mapping[str, int | None] = field(default_factory=lambda: _resolve_limits(""))
    spawned: dict[str, int] = field(default_factory=dict)
    parents: dict[str, str] = field(default_factory=dict)
    orphans: dict[str, str] = field(default_factory=dict)
    inherits: dict[str, tuple[YamlNode, tuple[str, ...]]] = field(default_factory=dict)
    process: str = ""
    meant: list[tuple[YamlNode, str, str]] = field(default_factory=list)
    nameless: int = 0
    expanding: tuple[str, ...] = ()
    depth: int = 0
    raw_bytes: int = 0
    files_of_sessions: list[YamlNode] = field(default_factory=list)
    tools: dict[str, int] = field(default_factory=dict)
    tasks: dict[str, int] = field(default_factory=dict)
    tools_done: dict[str, tuple[int, int]] = field(default_factory=dict)
    tools_done_beside: dict[str, tuple[int, int]] = field(default_factory=dict)
    in_same_turn: dict[str, int] = field(default_factory=dict)
    foreground: dict[str, int] = field(default_factory=dict)
    expected: list[str] = field(default_factory=list)
    is_spawned: bool = True
    is_script_sound: bool = True
    is_expect_sound: bool = True
    sessions: dict[str, int] = field(default_factory=dict)
    session: str = ""
    told_lines: dict[str, int] = field(default_factory=dict)
    _kept: dict[str, dict[str, Any]] = field(default_factory=dict)

    def report_problem(self, line: int, column: int, message: str) -> None:
        """Report a problem of the file.

        Raises:
            StopReading: the file has too many problems to be a scenario.
        """
        if len(self.problems) == _MAX_PROBLEMS_PER_FILE:
            message = f"there are more than {_MAX_PROBLEMS_PER_FILE} problems: mend these first"
        path = None if self.paths is None else self.paths.get((line, column), "")
        self.problems.append(ScenarioProblem(self.file, line, column, escape_and_shorten(message), path))
        if len(self.problems) > _MAX_PROBLEMS_PER_FILE:
            raise StopReading

    def report_at(self, node: YamlNode, message: str) -> None:
        """Report a problem at the place of a node."""
        self.report_problem(node.line, node.column, message)

    def report_wrong_value(self, node: YamlNode, what: str, wanted: str, remedy: str = "") -> None:
        """Report that a value is not what its field wants."""
        if isinstance(node, YamlScalar) and node.note:
            remedy = node.note
        self.report_at(node, f"{what} must be {wanted}, not {describe_node(node)}" + (f": {remedy}" if remedy else ""))

    def set_limit_overrides(self, overrides: dict[str, Any]) -> None:
        """Take the limits that the file gives: expressions are tried with them, all others as they are by default."""
        self.overrides = overrides
        self.limits = _resolve_limits(self.dialect_record or "", *overrides.items())

    @property
    def steps(self) -> StepTable:
        """The table of steps."""
        return self.language.steps

    @property
    def dialect_record(self) -> Dialect | None:
        """The record of the dialect of the agent; None: no dialect is known yet."""
        return self.language.all_dialects.get(self.dialect)

    def has_dialect_key(self, name: str) -> bool:
        """Say whether the dialect of the agent has a key that only some dialects have."""
        return self.dialect_record is not None and name in self.dialect_record.keys

    @property
    def is_session(self) -> bool:
        """Whether the agent takes requests while it lives."""
        return self.language.is_session_mode(self.dialect, self.mode)

    @contextmanager
    def enter_session(self, session: str) -> Iterator[None]:
        """Read the following as one session's agent; the facts about that agent are there again the next time.

        Args:
            session: its name; "" changes nothing.
        """
        if not session:
            yield
            return
        outside = {name: getattr(self, name) for name in _AGENT_FACT_NAMES}
        self.session = session
        self._set_agent_facts(self._kept.get(session) or _make_unknown_agent_facts())
        yield
        self._kept[session] = {name: getattr(self, name) for name in _AGENT_FACT_NAMES}
        self.session = ""
        self._set_agent_facts(outside)

    def _set_agent_facts(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            setattr(self, name, value)

    def read_time(self, node: YamlScalar, words: tuple[str, ...], *, positive: bool) -> Expression | None:
        """Read a time, and try it with the default limits."""
        return self._read_expression(node, words, TIME_MEASURE, (int(positive), LONGEST_TIME_NS))

    def read_size(self, node: YamlScalar, low: int, high: int) -> Expression | None:
        """Read a size that may name limits, and try it with the default ones."""
        return self._read_expression(node, (), SIZE_MEASURE, (low, high))

    def _read_expression(
        self, node: YamlScalar, words: tuple[str, ...], measure: ValueMeasure, bounds: tuple[int, int]
    ) -> Expression | None:
        column = node.column if node.plain or not node.is_one_line else node.column + 1
        try:
            tree = parse_quantity(node.text, words, measure)
        except ExpressionError as error:
            self.report_problem(node.line, column + (error.offset if node.is_one_line else 0), error.message)
            return None
        return self._check_expression(Expression(node.text.strip(), node.line, column, tree, measure, *bounds))

    def _check_expression(self, expression: Expression) -> Expression | None:
        line, column, tree = expression.line, expression.column, expression.tree
        for name in sorted(find_limit_names(tree)):
            if self.sessions and not self.session:
                self.report_problem(
                    line, column, f"{name} is a limit of each session, and this time is no session's: write a plain one"
                )
                return None
            if name in self.overrides and self.overrides[name] is None:
                self.report_problem(line, column, f"{name} is switched off by this scenario's policy")
                return None
        try:
            evaluate_expression(expression, self.limits)
        except NotApplicable:
            pass
        except UnusableValue as error:
            self.report_problem(line, column, str(error))
        return expression


def _make_unknown_agent_facts() -> dict[str, Any]:
    """Describe an agent of which the file says nothing yet."""
    blank = FileCheck("", None, ScenarioLanguage({}))
    return {name: getattr(blank, name) for name in _AGENT_FACT_NAMES}


def is_step_supported(name: str, node: YamlNode, check: FileCheck) -> bool:
    """Say whether the dialect has the step; report it if not, unless the dialect itself is wrong."""
    language = check.language
    if not check.mode or name in language.list_dialect_steps(check.dialect, check.mode):
        return True
    able = language.list_dialect_modes_with(lambda record, mode: name in language.list_dialect_steps(record.name, mode))
    known = f"known by {join_choices(able)}" if able else "no dialect here has it"
    check.report_at(node, f"the dialect {check.dialect} has no {name} in mode {check.mode}: {known}")
    return False


def describe_session_remedy(check: FileCheck) -> str:
    """Say how the agent of the file becomes a session, or which agents are sessions."""
    record = check.language.all_dialects.get(check.dialect)
    modes = list(record.session_protocols) if record is not None else []
    if modes:
        return f"write agent: {{dialect: {check.dialect}, mode: {modes[0]}}}"
    return f"the dialect {check.dialect} has none, write agent: {{dialect: acp}}, for example"


def split_dialect_and_mode(node: YamlNode, check: FileCheck) -> list[str]:
    """Give the two words of `claude session`; [] for anything else."""
    words = node.text.split() if isinstance(node, YamlScalar) else []
    return words if len(words) == 2 and words[0] in check.language.all_dialects else []  # noqa: PLR2004  # as said
