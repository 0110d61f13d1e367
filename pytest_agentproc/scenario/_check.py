"""Owns the check of one file: what was found wrong, and what later parts must know of earlier ones. Knows no key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from pytest_agentproc.errors import Problem
from pytest_agentproc.scenario._expressions import (
    Expression,
    ExpressionError,
    NotApplicable,
    Unfit,
    evaluate,
    names,
    parse_expression,
)
from pytest_agentproc.scenario._nodes import Node, Scalar, describe
from pytest_agentproc.vocabulary import Policy

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_agentproc.scenario._script import Table

__all__ = ["Check", "Kind"]


class Kind(Protocol):
    """A type of value: its name in the reference, and how it is read from a node."""

    @property
    def label(self) -> str:
        """Name the type in one or two words."""

    def read(self, node: Node, what: str, check: Check) -> Any:
        """Turn a node into a value; mistakes go to `check`, and what comes back then is never used."""


@dataclass
class Check:
    """One file under check.

    Args:
        file: the name that messages carry.
        folder: where the files that the scenario names must stay; None if it has none.
        steps: the table of steps.
    """

    file: str
    folder: Path | None
    steps: Table
    problems: list[Problem] = field(default_factory=list)
    dialect: str = ""
    mode: str = ""
    prompt_by: str = "argv"
    overrides: dict[str, Any] = field(default_factory=dict)
    limits: dict[str, int | None] = field(default_factory=Policy().nanoseconds)
    spawned: dict[str, int] = field(default_factory=dict)
    tools: dict[str, int] = field(default_factory=dict)
    expected: list[str] = field(default_factory=list)
    is_spawned: bool = True
    is_script_sound: bool = True
    is_expect_sound: bool = True

    def report(self, line: int, column: int, message: str) -> None:
        """Keep a problem."""
        self.problems.append(Problem(self.file, line, column, message))

    def at(self, node: Node, message: str) -> None:
        """Keep a problem that a node has."""
        self.report(node.line, node.column, message)

    def wrong(self, node: Node, what: str, wanted: str, remedy: str = "") -> None:
        """Say that a value is not what its field wants."""
        if isinstance(node, Scalar) and node.note:
            remedy = node.note
        self.at(node, f"{what} must be {wanted}, not {describe(node)}" + (f": {remedy}" if remedy else ""))

    def tell(self, overrides: dict[str, Any]) -> None:
        """Take the limits that the file gives: times are tried with them, all others as they are by default."""
        self.overrides = overrides
        self.limits = Policy.for_dialect(self.dialect, **overrides).nanoseconds()

    def time(self, node: Scalar, words: tuple[str, ...], *, positive: bool) -> Expression | None:
        """Read a time, and try it with the default limits."""
        column = node.column if node.plain else node.column + 1
        try:
            tree = parse_expression(node.text, words)
        except ExpressionError as error:
            self.report(node.line, column + error.offset, error.message)
            return None
        expression = Expression(node.text.strip(), node.line, column, tree, positive)
        for name in sorted(names(tree)):
            if name in self.overrides and self.overrides[name] is None:
                self.report(node.line, column, f"{name} is switched off by this file's policy")
                return None
        try:
            evaluate(expression, self.limits)
        except NotApplicable:
            pass
        except Unfit as error:
            self.report(node.line, column, str(error))
        return expression
