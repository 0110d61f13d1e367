"""Owns how other packages extend the language: a dialect, a step. Asks no plugin, and changes no table.

It is looked at when the first scenario names it: a session that plays none loads nothing of it.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_agentproc.errors import UsageError
from pytest_agentproc.foreign import is_exit_of_pytest
from pytest_agentproc.scenario._expressions import Expression
from pytest_agentproc.scenario._fields import (
    ChoiceType,
    FieldsType,
    FlagType,
    PlainDataType,
    SizeType,
    TextType,
    TimeType,
    WholeNumberType,
)
from pytest_agentproc.scenario._file_check import (
    CompileContext,
    Key,
    ProgramStep,
    ScenarioLanguage,
    StepEntry,
    WrittenStep,
    is_step_supported,
)
from pytest_agentproc.scenario._python_data import DataNodeBuilder
from pytest_agentproc.scenario._script import ScriptStepsType
from pytest_agentproc.scenario._steps import STEP_ENTRY_BY_NAME
from pytest_agentproc.scenario._yaml import StopReading
from pytest_agentproc.vocabulary import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_agentproc.scenario._file_check import FileCheck, ValueType
    from pytest_agentproc.scenario._yaml import YamlNode
    from pytest_agentproc.vocabulary import Dialect, ScriptStep


_FAKE_AGENTS_PACKAGE = "pytest_agentproc.fake_agents"
_KIT_MODULES_FOR_ENCODERS = tuple(
    f"{_FAKE_AGENTS_PACKAGE}.{name}" for name in ("lines", "objects", "program", "questions", "requests")
)
"""What an encoder of another package may import beside the standard library and its own parts."""
_REQUIRED_ENCODER_METHODS = ("encode_text", "encode_answer", "encode_result")
_REQUIRED_SESSION_ENCODER_METHODS = (
    *("handle_request", "take_late_answers", "note_stdin_end", "encode_handshake_refusal"),
    *("has_received_prompt", "begin_prompt_turn", "end_cancelled_turn"),
)


class _ConversationForInspection:
    """The beginning of a conversation that is only inspected."""

    cwd = "/"
    key = ""
    hooks = ()
    session = ""
    continues = None


class AddedDialect:
    """A dialect and who adds it.

    Args:
        dialect: the dialect.
        origin: who adds it, as messages say it.
    """

    def __init__(self, dialect: Dialect, origin: str) -> None:
        self.dialect = dialect
        self.origin = origin

    @property
    def unusable_reason(self) -> str:
        """Why it cannot be used, as one sentence; "" if it can."""
        return self._inspection_result[0]

    @property
    def steps_by_mode(self) -> Mapping[str, tuple[str, ...]]:
        """By mode, the steps that its encoder can write beside text; none if it cannot be used."""
        return self._inspection_result[1]

    @cached_property
    def _inspection_result(self) -> tuple[str, Mapping[str, tuple[str, ...]]]:
        about = f"the dialect {self.dialect.name}, which {self.origin} adds, cannot be used"
        try:
            for module in self._encoder_modules:
                self._require_allowed_imports(module)
            events = {
                mode: tuple(self.dialect.steps.get(mode, self._list_encoder_steps(mode))) for mode in self.dialect.modes
            }
            for mode in self.dialect.decoders:
                self.dialect.make_decoder(mode)
            for mode in self.dialect.session_protocols:
                self.dialect.make_session_protocol(mode, _ConversationForInspection())
        except UsageError as error:
            return f"{about}: {error.message.removeprefix(f'dialect {self.dialect.name}: ')}: {error.remedy}", {}
        return "", events

    @property
    def _encoder_modules(self) -> tuple[str, ...]:
        """Every module that one of its encoders is made of."""
        modes = [(mode, has_tasks) for mode in self.dialect.modes for has_tasks in (False, True)]
        found = [
            name for mode, has_tasks in modes for name in self.dialect.list_encoder_modules(mode, has_tasks=has_tasks)
        ]
        return tuple(dict.fromkeys(found))

    def _list_encoder_steps(self, mode: str) -> tuple[str, ...]:
        """Make the encoder once, and list the steps that it can write."""
        place = self.dialect.list_encoder_modules(mode)[-1]
        program = {"dialect": self.dialect.name, "mode": mode, "name": "agent", "code": 0, "argv": ()}
        try:
            encoder: Any = importlib.import_module(place).Encoder(
                {**program, "newline": "lf", "bom": False, "prompt": ""}
            )
        except Exception as error:  # it is theirs, whatever it is
            raise UsageError(
                f"its encoder {place} raised {type(error).__name__}: {error}", "it needs a class Encoder of a program"
            ) from error
        is_host = mode in self.dialect.session_modes
        wanted = (*_REQUIRED_ENCODER_METHODS, *(_REQUIRED_SESSION_ENCODER_METHODS if is_host else ()))
        lacks = [name for name in wanted if not callable(getattr(encoder, name, None))]
        lacks += [name for name in ("code", "questions") if is_host and not hasattr(encoder, name)]
        if not isinstance(getattr(encoder, "error_is_exit", None), bool):
            lacks.append("error_is_exit (true or false)")
        if getattr(encoder, "error_stream", None) not in ("stdout", "stderr"):
            lacks.append("error_stream (stdout or stderr)")
        events = getattr(encoder, "events", None)
        if not isinstance(events, dict) or not all(callable(encode) for encode in events.values()):
            lacks.append("events (functions by the names of steps)")
        if lacks or not isinstance(events, dict):
            raise UsageError(
                f"its encoder {place} lacks {', '.join(lacks)} in mode {mode}",
                f"{_FAKE_AGENTS_PACKAGE}.contracts.{'SessionEncoder' if is_host else 'Encoder'} says what it must have",
            )
        return (*events, "ask") if is_host and callable(getattr(encoder, "ask_client", None)) else tuple(events)

    def _require_allowed_imports(self, module: str) -> None:
        """Refuse an import that no fake could follow."""
        try:
            spec = importlib.util.find_spec(module)
        except ImportError as error:
            raise UsageError(f"there is no module {module} ({error})", "name it as an import would") from error
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            raise UsageError(f"there is no Python file of a module {module}", "name it as an import would")
        allowed = (*_KIT_MODULES_FOR_ENCODERS, *self._encoder_modules)
        tree = ast.parse(Path(spec.origin).read_text("utf-8"))
        for name, line in _find_imports(tree.body):
            if name not in allowed and name.partition(".")[0] not in sys.stdlib_module_names:
                raise UsageError(
                    f"{spec.origin}:{line} imports {name}, which a fake does not have",
                    f"it has the standard library, {', '.join(_KIT_MODULES_FOR_ENCODERS)} and encoder_parts",
                )


def _find_imports(body: list[ast.stmt]) -> Iterator[tuple[str, int]]:
    """Give every module that is imported, with its line; leave out imports for type checkers only."""
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        for inner in ast.walk(node):
            if isinstance(inner, ast.Import):
                yield from ((alias.name, inner.lineno) for alias in inner.names)
            elif isinstance(inner, ast.ImportFrom):
                base = "." * inner.level + (inner.module or "")
                is_package = base == _FAKE_AGENTS_PACKAGE or inner.module is None
                yield from ((f"{base}.{alias.name}" if is_package else base, inner.lineno) for alias in inner.names)


BUNDLED_LANGUAGE = ScenarioLanguage(STEP_ENTRY_BY_NAME)
"""The language as the kit has it."""

_VALUE_TYPE_BY_NAME: dict[str, ValueType] = {
    "text": TextType(),
    "time": TimeType(),
    "size": SizeType(),
    "number": WholeNumberType(0, 2**31 - 1),
    "flag": FlagType(),
    "data": PlainDataType(),
}


def add_dialect(language: ScenarioLanguage, dialect: Dialect, origin: str) -> ScenarioLanguage:
    """Give the language with one dialect more.

    Args:
        language: the one to begin with.
        dialect: what it is to know, too.
        origin: who adds it, as messages say it.

    Raises:
        UsageError: the name is taken.
    """
    _require_free_name(
        "dialect", dialect.name, DIALECTS, {name: added.origin for name, added in language.dialects.items()}
    )
    return replace(language, dialects={**language.dialects, dialect.name: AddedDialect(dialect, origin)})


def add_step(language: ScenarioLanguage, step: ScriptStep, origin: str) -> ScenarioLanguage:
    """Give the language with one step more; arguments and errors as `add_dialect`."""
    others = {name: entry.kind.origin for name, entry in language.steps.items() if isinstance(entry.kind, _AddedStep)}
    _require_free_name("step", step.name, STEP_ENTRY_BY_NAME, others)
    kind = _EncodedStepType(step, origin) if step.expand is None else _ShorthandStepType(step, origin)
    build = kind.build if isinstance(kind, _EncodedStepType) else None
    entry = StepEntry(step.name, kind, f"{step.doc} ({origin})", build=build)
    return replace(language, steps={**language.steps, step.name: entry})


def _require_free_name(what: str, name: str, own: Mapping[str, Any], others: Mapping[str, str]) -> None:
    if name in own or name in others:
        whose = f"{others[name]} adds one, too" if name in others else "the kit has it"
        raise UsageError(f"{what} {name}: the name is taken, {whose}", "choose another name")


@dataclass(frozen=True)
class _AddedStep:
    """A step of another package: the type of its value."""

    step: ScriptStep
    origin: str

    @property
    def kind(self) -> ValueType:
        """The type that its value has by itself."""
        value = self.step.value
        if isinstance(value, str):
            return _VALUE_TYPE_BY_NAME[value]
        if isinstance(value, Mapping):
            return FieldsType(
                tuple(Key(name, _VALUE_TYPE_BY_NAME[kind], kind, required=True) for name, kind in value.items())
            )
        return ChoiceType(tuple(value))

    @property
    def label(self) -> str:
        """Show that type."""
        return self.kind.label


@dataclass(frozen=True)
class _EncodedStepType(_AddedStep):
    """A step that the encoder of a dialect writes."""

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> Any:
        """Read the value, in a dialect whose encoder knows the step."""
        return self.kind.read_node(node, what, check) if is_step_supported(self.step.name, node, check) else None

    def build(self, step: WrittenStep, scope: CompileContext) -> list[ProgramStep]:
        """Compile to `event`; times in nanoseconds, sizes in bytes."""
        return [(step.line, "event", (step.name, _evaluate_times_in_value(step.value, scope)))]


@dataclass(frozen=True)
class _ShorthandStepType(_AddedStep):
    """A step that stands for others, and gives way to them."""

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> tuple[WrittenStep, ...]:
        """Read the value, and the steps that it stands for, whose mistakes belong to the package that adds the step."""
        before = len(check.problems)
        value = self.kind.read_node(node, what, check)
        if len(check.problems) > before:
            return ()
        about = f"the step {what}, which {self.origin} adds, "
        if what in check.expanding:
            check.report_at(node, f"{about}stands for itself")
            return ()
        assert self.step.expand is not None
        try:
            given = [*self.step.expand(self._prepare_for_expand(value))]
        except Exception as error:  # it is theirs, whatever it is
            if is_exit_of_pytest(error):
                raise
            check.report_at(node, f"{about}raised {type(error).__name__}: {error}")
            return ()
        builder = DataNodeBuilder(check.report_problem, lambda *_: (node.line, node.column))
        outside, check.expanding = check.expanding, (*check.expanding, what)
        steps: tuple[WrittenStep, ...] = ()
        with suppress(StopReading):
            expanded = builder.build_node(given, "", node.line)
            steps = () if len(check.problems) > before else ScriptStepsType().read_node(expanded, what, check)
        check.expanding = outside
        wrong, check.problems[before:] = check.problems[before:], []
        for problem in wrong:
            check.report_at(node, f"{about}is wrong: {problem.message}")
        return steps

    def _prepare_for_expand(self, value: Any) -> Any:
        """Give a value as `expand` takes it: times and sizes as a step would have them."""
        types = self.step.value
        if isinstance(types, Mapping):
            return {name: _format_step_value(given, types[name]) for name, given in value.items()}
        return _format_step_value(value, types if isinstance(types, str) else "text")


def _format_step_value(value: Any, kind: str) -> Any:
    if isinstance(value, Expression):
        return value.text
    return f"{value} B" if kind == "size" else value


def _evaluate_times_in_value(value: Any, scope: CompileContext) -> Any:
    if isinstance(value, dict):
        return {name: _evaluate_times_in_value(given, scope) for name, given in value.items()}
    return scope.evaluate_expression(value) if isinstance(value, Expression) else value
