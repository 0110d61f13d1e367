"""Owns mappings with known keys: the table entry, the long form and the short one. Refuses to know any entry."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping as Words
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pytest_agentproc.scenario._check import Check, Kind
from pytest_agentproc.scenario._nodes import Mapping, Node, Scalar, Sequence
from pytest_agentproc.scenario._words import choices, nearest, unknown

__all__ = ["WHOLE_FILE", "Either", "Fields", "Finish", "Key"]

WHOLE_FILE = "the file"

Finish = Callable[[dict[str, Any], Node, str, Check], Any]


@dataclass(frozen=True)
class Key:
    """One entry of a table: a key's name, its value's type, what it is for, and since which version of the language.

    A required one need not be there beside the key that `unless` names.
    """

    name: str
    kind: Kind
    doc: str
    since: str = "1"
    required: bool = False
    unless: str = ""


@dataclass(frozen=True)
class Fields:
    """A mapping with the keys of a table.

    Args:
        keys: the table; values are read in its order.
        one_of: of these keys exactly one must be there.
        finish: looks at the values together, and makes the result of them; not called if one of them is wrong.
        elsewhere: keys that are none here, with what to do instead.
    """

    keys: tuple[Key, ...]
    one_of: tuple[str, ...] = ()
    finish: Finish | None = None
    elsewhere: Words[str, str] = field(default_factory=dict)

    @cached_property
    def _table(self) -> dict[str, Key]:
        return {key.name: key for key in self.keys}

    @cached_property
    def _required(self) -> tuple[Key, ...]:
        return tuple(key for key in self.keys if key.required)

    @property
    def label(self) -> str:
        """Show the keys."""
        return "{" + ", ".join(key.name for key in self.keys) + "}"

    def read(self, node: Node, what: str, check: Check) -> Any:
        """Read a mapping into a dict of the values that are there."""
        before = len(check.problems)
        pairs = self.pairs(node, what, check)
        path = "" if what == WHOLE_FILE else f"{what}."
        values = {key.name: key.kind.read(value, f"{path}{key.name}", check) for key, _, value in pairs}
        if len(check.problems) > before:
            return None
        return self.finish(values, node, what, check) if self.finish else values

    def pairs(self, node: Node, what: str, check: Check) -> list[tuple[Key, Scalar, Node]]:
        """Find the table's entry for every key; in the table's order."""
        if not isinstance(node, Mapping):
            check.wrong(node, what, f"a mapping such as {self.label}")
            return []
        table = self._table
        misspelt: list[str | None] = []
        given: dict[str, tuple[Key, Scalar, Node]] = {}
        for name, value in node.pairs:
            entry = table.get(name.text)
            if entry is not None:
                given[name.text] = entry, name, value
            else:
                check.at(name, unknown(f"key in {what}", name.text, table, self.elsewhere))
                misspelt.append(nearest(name.text, table))
        for key in self._required:
            stands_in = key.unless and (key.unless in given or key.unless in misspelt)
            if key.name not in given and key.name not in misspelt and not stands_in:
                check.at(node, f"{what} needs the key {key.name}: {key.doc}")
        if self.one_of and not misspelt:
            chosen = [name for name in given if name in self.one_of]
            if len(chosen) != 1:
                found = f", not {choices(chosen, 'and')}" if chosen else ""
                check.at(node, f"{what} needs exactly one of {choices(self.one_of)}{found}")
        return [given[name] for name in table if name in given] if len(given) > 1 else [*given.values()]


@dataclass(frozen=True)
class Either:
    """A short form, a scalar, which is the long form, a mapping, with nothing but `key`."""

    scalar: Kind
    mapping: Fields
    key: str

    @property
    def label(self) -> str:
        """Show both forms."""
        return f"{self.scalar.label} or {self.mapping.label}"

    def read(self, node: Node, what: str, check: Check) -> Any:
        """Read the form that is there; both give the same kind of value."""
        if isinstance(node, Mapping):
            return self.mapping.read(node, what, check)
        if isinstance(node, Sequence):
            check.wrong(node, what, self.label)
            return None
        before = len(check.problems)
        values = {self.key: self.scalar.read(node, what, check)}
        if len(check.problems) > before:
            return None
        return self.mapping.finish(values, node, what, check) if self.mapping.finish else values
