"""Owns lists of flat entries in YAML, as files beside the scenarios have them. Knows no file, and no key's meaning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_agentproc.errors import Problem, ScenarioError
from pytest_agentproc.scenario._nodes import Mapping, Node, Scalar, Sequence, describe, parse
from pytest_agentproc.scenario._words import choices, one_line, unknown

if TYPE_CHECKING:
    from collections.abc import Mapping as Map

    from pytest_agentproc.scenario._nodes import Report

__all__ = ["Entry", "entries"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: the line on which it begins, and its values as text."""

    line: int
    values: Map[str, str]


def entries(text: str, name: str, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> tuple[Entry, ...]:
    """Read a list of mappings from keys to texts.

    Args:
        text: the YAML; nothing but comments is an empty list.
        name: what messages call it.
        required: keys that every entry has.
        optional: keys that it may have.

    Raises:
        ScenarioError: every mistake at once.
    """
    if not any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines()):
        return ()
    problems: list[Problem] = []

    def report(line: int, column: int, message: str) -> None:
        problems.append(Problem(name, line, column, one_line(message)))

    root = parse(text, report)
    found: list[Entry] = []
    if isinstance(root, Sequence):
        found = [_entry(item, (*required, *optional), required, report) for item in root.items]
    elif root is not None:
        report(root.line, root.column, f'there must be a list, not {describe(root)}: write "- " before each entry')
    if problems:
        raise ScenarioError(list(dict.fromkeys(problems)))
    return tuple(found)


def _entry(item: Node, keys: tuple[str, ...], required: tuple[str, ...], report: Report) -> Entry:
    values: dict[str, str] = {}
    if not isinstance(item, Mapping):
        report(item.line, item.column, f"an entry must have the keys {choices(required, 'and')}, not {describe(item)}")
        return Entry(item.line, values)
    for key, value in item.pairs:
        if key.text not in keys:
            report(key.line, key.column, unknown("key", key.text, keys))
        elif not isinstance(value, Scalar) or not value.text.strip():
            report(value.line, value.column, f"{key.text} must be text, not {describe(value)}")
        else:
            values[key.text] = value.text.strip()
    missing = [key for key in required if key not in {key.text for key, _ in item.pairs}]
    if missing:
        report(item.line, item.column, f"the entry has no {choices(missing)}: write {missing[0]}: ...")
    return Entry(item.line, values)
