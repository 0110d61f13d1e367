"""Owns what all expect keys share: the entry of their table, the leaf in a file, the matcher. Refuses to know a key."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_agentproc.scenario._fields import Either, Fields, Key
from pytest_agentproc.scenario._kinds import Regex, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytest_agentproc.scenario._expressions import Expression
    from pytest_agentproc.scenario._script import Scope

__all__ = ["MATCHER", "TEXT_FORMS", "Expected", "Wanted", "exact_time", "of_session", "split"]


@dataclass(frozen=True)
class Expected:
    """One key of `expect` as the file has it: where it stands, and its value, times unevaluated."""

    key: str
    line: int
    column: int
    value: Any


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


TEXT_FORMS = (
    Key("exact", Text(), "all of it; the short form"),
    Key("contains", Text(may_be_empty=False), "a part of it"),
    Key("matches", Regex(), "a regular expression that fits somewhere in it"),
)
MATCHER = Either(Text(), Fields(TEXT_FORMS, one_of=("exact", "contains", "matches")), key="exact")
