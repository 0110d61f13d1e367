"""Owns how the language grows by what other packages add: a dialect, a step. Asks no plugin, and changes no table."""

from __future__ import annotations

from collections.abc import Mapping as Map
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_agentproc.errors import UsageError
from pytest_agentproc.scenario._added import AddedDialect
from pytest_agentproc.scenario._agent import MODES
from pytest_agentproc.scenario._events import is_told
from pytest_agentproc.scenario._expressions import Expression
from pytest_agentproc.scenario._fields import Fields, Key
from pytest_agentproc.scenario._kinds import Choice, Data, Flag, Size, Text, Time, Whole
from pytest_agentproc.scenario._language import Language
from pytest_agentproc.scenario._nodes import Mapping, Node, Scalar, Sequence
from pytest_agentproc.scenario._script import Entry, ProgramStep, Scope, Step, Steps
from pytest_agentproc.scenario._steps import STEPS

if TYPE_CHECKING:
    from pytest_agentproc.scenario._check import Check, Kind
    from pytest_agentproc.vocabulary import Dialect, ScriptStep

__all__ = ["BUNDLED", "with_dialect", "with_step"]

BUNDLED = Language(STEPS)
"""The language as the kit has it."""

_KINDS: dict[str, Kind] = {
    "text": Text(),
    "time": Time(),
    "size": Size(),
    "number": Whole(0, 2**31 - 1),
    "flag": Flag(),
    "data": Data(),
}


def with_dialect(language: Language, dialect: Dialect, origin: str) -> Language:
    """Give the language with one dialect more.

    Args:
        language: the one to begin with.
        dialect: what it is to know, too.
        origin: who adds it, as messages say it.

    Raises:
        UsageError: the name is taken.
    """
    _require_free("dialect", dialect.name, MODES, {name: one.origin for name, one in language.dialects.items()})
    return replace(language, dialects={**language.dialects, dialect.name: AddedDialect(dialect, origin)})


def with_step(language: Language, step: ScriptStep, origin: str) -> Language:
    """Give the language with one step more; arguments and errors as `with_dialect`."""
    others = {name: entry.kind.origin for name, entry in language.steps.items() if isinstance(entry.kind, _Added)}
    _require_free("step", step.name, STEPS, others)
    kind = _Told(step, origin) if step.expand is None else _Expanded(step, origin)
    build = kind.build if isinstance(kind, _Told) else None
    entry = Entry(step.name, kind, f"{step.doc} ({origin})", build=build)
    return replace(language, steps={**language.steps, step.name: entry})


def _require_free(what: str, name: str, own: Map[str, Any], others: Map[str, str]) -> None:
    if name in own or name in others:
        whose = f"{others[name]} adds one, too" if name in others else "it is one of the kit's"
        raise UsageError(f"{what} {name}: the name is taken, {whose}", "choose another name")


@dataclass(frozen=True)
class _Added:
    """A step of another package: the type of its value."""

    step: ScriptStep
    origin: str

    @property
    def kind(self) -> Kind:
        """The type that its value has by itself."""
        value = self.step.value
        if isinstance(value, str):
            return _KINDS[value]
        if isinstance(value, Map):
            return Fields(tuple(Key(name, _KINDS[kind], kind, required=True) for name, kind in value.items()))
        return Choice(tuple(value))

    @property
    def label(self) -> str:
        """Show that type."""
        return self.kind.label


@dataclass(frozen=True)
class _Told(_Added):
    """A step that the encoder of a dialect tells."""

    def read(self, node: Node, what: str, check: Check) -> Any:
        """Read the value, in a dialect whose encoder knows the step."""
        return self.kind.read(node, what, check) if is_told(self.step.name, node, check) else None

    def build(self, step: Step, scope: Scope) -> list[ProgramStep]:
        """Compile to `event`; times in nanoseconds, sizes in bytes."""
        return [(step.line, "event", (step.name, _bound(step.value, scope)))]


@dataclass(frozen=True)
class _Expanded(_Added):
    """A step that stands for others, and gives way to them."""

    def read(self, node: Node, what: str, check: Check) -> tuple[Step, ...]:
        """Read the value, and the steps that it stands for, whose mistakes are those of whoever adds the step."""
        before = len(check.problems)
        value = self.kind.read(node, what, check)
        if len(check.problems) > before:
            return ()
        about = f"the step {what}, which {self.origin} adds, "
        if what in check.expanding:
            check.at(node, f"{about}stands for itself")
            return ()
        assert self.step.expand is not None
        try:
            made = _node(list(self.step.expand(self._plain(value))), node)
        except Exception as error:  # noqa: BLE001  # it is theirs, whatever it is
            check.at(node, f"{about}raised {type(error).__name__}: {error}")
            return ()
        outside, check.expanding = check.expanding, (*check.expanding, what)
        steps = Steps().read(made, what, check)
        check.expanding = outside
        for index, problem in enumerate(check.problems[before:], before):
            told = f"{about}is wrong: {problem.message}"
            check.problems[index] = replace(problem, line=node.line, column=node.column, message=told)
        return steps

    def _plain(self, value: Any) -> Any:
        """Give a value as `expand` takes it: times and sizes as a step would have them."""
        types = self.step.value
        if isinstance(types, Map):
            return {name: _text(given, types[name]) for name, given in value.items()}
        return _text(value, types if isinstance(types, str) else "text")


def _text(value: Any, kind: str) -> Any:
    if isinstance(value, Expression):
        return value.text
    return f"{value} B" if kind == "size" else value


def _bound(value: Any, scope: Scope) -> Any:
    if isinstance(value, dict):
        return {name: _bound(given, scope) for name, given in value.items()}
    return scope.exact(value) if isinstance(value, Expression) else value


def _node(data: Any, place: Node) -> Node:
    """Make the node that a file would have for some data, at the place of another."""
    if isinstance(data, Map):
        pairs = tuple((_scalar(str(key), place), _node(value, place)) for key, value in data.items())
        return Mapping(place.line, place.column, pairs)
    if isinstance(data, list | tuple):
        return Sequence(place.line, place.column, tuple(_node(item, place) for item in data))
    if isinstance(data, bool):
        return _scalar(str(data).lower(), place, is_plain=True)
    if isinstance(data, int | float):
        return _scalar(str(data), place, is_plain=True)
    if isinstance(data, str):
        return _scalar(data, place)
    raise TypeError(f"{data!r} can stand in no scenario")


def _scalar(text: str, place: Node, *, is_plain: bool = False) -> Scalar:
    return Scalar(place.line, place.column, text, is_plain, is_one_line=False)
