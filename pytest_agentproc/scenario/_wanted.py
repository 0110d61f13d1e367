"""Owns what all expect keys share: the entry of their table, the leaf in a file, the matcher. Refuses to know a key."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_agentproc.scenario._fields import Either, Fields, Key
from pytest_agentproc.scenario._kinds import Choice, ListOf, Regex, Text, Time
from pytest_agentproc.scenario._nodes import Mapping, Node, Sequence
from pytest_agentproc.scenario._shapes import MapOf
from pytest_agentproc.vocabulary import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytest_agentproc.scenario._check import Check, Kind
    from pytest_agentproc.scenario._expressions import Expression
    from pytest_agentproc.scenario._script import Scope

__all__ = [
    "MATCHER",
    "OUTCOME",
    "TEXT_FORMS",
    "ByName",
    "Expected",
    "Instants",
    "Wanted",
    "exact_time",
    "exact_times",
    "key_of",
    "of_session",
    "split",
]


@dataclass(frozen=True)
class Expected:
    """One expected key as the file has it: where it stands, its value with times unevaluated, and its level.

    An empty level is the level of the file.
    """

    key: str
    line: int
    column: int
    value: Any
    level: str = ""


def key_of(path: str) -> str:
    """Give the expect key of a path: all after the name of its block, `expect`, `should` or `info`."""
    return path.partition(".")[2]


def split(key: str) -> tuple[str, str]:
    """Split a key into the session that it is about ("" where there is one, or it is about all) and the key there."""
    head, _, rest = key.partition(".")
    if head != "sessions":
        return "", key
    session, _, own = rest.partition(".")
    return session, own


def of_session(expected: Iterable[Expected], session: str) -> tuple[Expected, ...]:
    """Give what a file expects of one of its sessions, by the keys that a file with one would have."""
    pairs = ((one, *split(one.key)) for one in expected)
    return tuple(replace(one, key=key) for one, whose, key in pairs if whose == session)


def _as_it_stands(value: Any, _scope: Scope) -> Any:
    return value


@dataclass(frozen=True, kw_only=True)
class Wanted(Key):
    """The table's entry for an expect key: how its value gets its normal form under a policy."""

    bind: Callable[[Any, Scope], Any] = _as_it_stands


def exact_time(value: Expression, scope: Scope) -> int:
    """Give a time its normal form, whole nanoseconds."""
    return scope.exact(value)


def exact_times(value: list[tuple[str, Expression]], scope: Scope) -> list[tuple[str, int]]:
    """Give named times their normal form, each whole nanoseconds."""
    return [(name, scope.exact(time)) for name, time in value]


@dataclass(frozen=True)
class Instants:
    """Names with their times, in order.

    Args:
        label: how the reference shows it.
        name: the type of a name.
        item: what an item is, with an example, for messages.
    """

    label: str
    name: Kind
    item: str

    @property
    def shape(self) -> ListOf:
        """Show the mappings of one key."""
        return ListOf(MapOf(Time(), self.name, single=True))  # type: ignore[arg-type]

    def read(self, node: Node, what: str, check: Check) -> list[tuple[str, Any]]:
        """Read a list of one-key mappings."""
        if not isinstance(node, Sequence):
            example = self.item.partition("such as ")[2]
            check.wrong(node, what, f"a list such as [{example}]", "write [] for none")
            return []
        found: list[tuple[str, Any]] = []
        for item in node.items:
            if not isinstance(item, Mapping) or len(item.pairs) != 1:
                check.wrong(item, f"an item of {what}", self.item)
                continue
            [(name, time)] = item.pairs
            found.append((self.name.read(name, what, check), Time().read(time, f"{what}.{name.text}", check)))
        return found


@dataclass(frozen=True)
class ByName:
    """The same checks on each of several things, by its name.

    Args:
        label: how the reference shows it.
        name: the type of a name.
        form: the checks on one of them.
    """

    label: str
    name: Kind
    form: Fields

    @property
    def shape(self) -> MapOf:
        """Show the checks by name."""
        return MapOf(self.form, self.name)

    def read(self, node: Node, what: str, check: Check) -> list[Expected]:
        """Read into one expectation per leaf."""
        if not isinstance(node, Mapping):
            check.wrong(node, what, f"a mapping such as {self.label}")
            return []
        found: list[Expected] = []
        for name, value in node.pairs:
            self.name.read(name, what, check)
            path = f"{what}.{name.text}"
            for key, place, leaf in self.form.pairs(value, key_of(path), check):
                dotted = key_of(f"{path}.{key.name}")
                found.append(Expected(dotted, place.line, place.column, key.kind.read(leaf, dotted, check)))
        return found


TEXT_FORMS = (
    Key("exact", Text(), "all of it; the short form"),
    Key("contains", Text(may_be_empty=False), "a part of it"),
    Key("matches", Regex(), "a regular expression that fits somewhere in it"),
)
_OUTCOMES = Choice(tuple(str(outcome) for outcome in Outcome))


def _outcome(values: dict[str, Any], _node: Node, _what: str, _check: Check) -> Any:
    return values.get("is", values)


OUTCOME = Either(
    _OUTCOMES,
    Fields(
        (
            Key("not", _OUTCOMES, "any outcome but this one"),
            Key("any_of", ListOf(_OUTCOMES, unique=True, may_be_empty=False), "one of these outcomes: each is right"),
        ),
        one_of=("not", "any_of"),
        finish=_outcome,
    ),
    key="is",
)
"""The name of an outcome, or `{not: NAME}` or `{any_of: [NAME, ...]}` where more than one is right."""
MATCHER = Either(Text(), Fields(TEXT_FORMS, one_of=("exact", "contains", "matches")), key="exact")
