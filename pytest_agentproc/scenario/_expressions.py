"""Owns times: numbers with units and expressions over policy names, exact. Refuses to know where they stand in a file.

An expression is parsed once and evaluated with any policy; everything is a Fraction of nanoseconds until the end, and
the end must be a whole number.
"""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pytest_agentproc.errors import AgentprocError
from pytest_agentproc.scenario._words import nearest, shorten, unknown
from pytest_agentproc.vocabulary import TIME_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Expression", "ExpressionError", "NotApplicable", "Unfit", "evaluate", "parse_expression", "seconds"]

UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}

_SPOKEN = {
    "ms": ("ms", "msec", "msecs", "millis", "millisecond", "milliseconds"),
    "s": ("s", "sec", "secs", "second", "seconds"),
    "m": ("m", "min", "mins", "minute", "minutes"),
    "h": ("h", "hr", "hrs", "hour", "hours"),
}

_TOKEN = re.compile(
    r"\s*(?:(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>[A-Za-z_]+)?|(?P<name>[A-Za-z_]\w*)|(?P<sign>\S))", re.ASCII
)
_LONGEST = 200
_DEEPEST = 20
_LONGEST_TIME = 100 * 365 * 24 * UNITS["h"]
_OPERATORS: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}

TIME, NUMBER, ZERO = "time", "number", "zero"
Tree = tuple[Any, ...]


class NotApplicable(AgentprocError):
    """A scenario, or one check of it, needs a limit that the subject does not have.

    Args:
        name: the limit's name in the policy.
        line: the line that needs it.
        where: `script` when the whole scenario needs it.
    """

    def __init__(self, name: str, line: int, where: str = "script") -> None:
        super().__init__(f"line {line} needs {name}, which the subject's policy switches off")
        self.name = name
        self.line = line
        self.where = where


class ExpressionError(Exception):
    """A mistake in the text, `offset` characters from its beginning."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset
        self.message = message


class Unfit(Exception):
    """An expression is well formed, but its value under this policy is no time."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed time: its text, where it stands, its tree."""

    text: str
    line: int
    column: int
    tree: Tree
    positive: bool = False


def seconds(nanoseconds: Fraction | int) -> str:
    """Write a time for a message."""
    value = Fraction(nanoseconds) / UNITS["s"]
    return f"{value.numerator}s" if value.denominator == 1 else f"{float(value):.9g}s"


def evaluate(expression: Expression, limits: Mapping[str, int | None]) -> int:
    """Compute whole nanoseconds under a policy.

    Raises:
        NotApplicable: a limit that the expression names is switched off.
        Unfit: the value is negative, not whole, or zero where it must not be.
    """
    try:
        value = _value(expression.tree, limits, expression.line)
    except ZeroDivisionError:
        raise Unfit(f'"{expression.text}" divides by zero') from None
    if value < 0:
        raise Unfit(f'"{expression.text}" is {seconds(value)}: a time cannot be negative')
    if value.denominator != 1:
        raise Unfit(f'"{expression.text}" is {float(value):.9g}ns, not a whole number of nanoseconds')
    if value > _LONGEST_TIME:
        raise Unfit(f'"{expression.text}" is longer than a century')
    if expression.positive and value == 0:
        raise Unfit(f'"{expression.text}" is 0s, but must be longer than that')
    return value.numerator


def _value(tree: Tree, limits: Mapping[str, int | None], line: int) -> Fraction:
    if tree[0] == "name":
        limit = limits[tree[1]]
        if limit is None:
            raise NotApplicable(tree[1], line)
        return Fraction(limit)
    if tree[0] == "value":
        return Fraction(tree[1])
    return _OPERATORS[tree[0]](_value(tree[1], limits, line), _value(tree[2], limits, line))


def names(tree: Tree) -> set[str]:
    """List the policy names that a tree uses."""
    if tree[0] == "name":
        return {tree[1]}
    return set() if tree[0] == "value" else names(tree[1]) | names(tree[2])


def parse_expression(text: str, words: tuple[str, ...] = ()) -> Tree:
    """Parse a time; `words` are what else the field accepts, for the suggestions.

    Raises:
        ExpressionError: what is wrong, and where in the text.
    """
    if len(text) > _LONGEST:
        raise ExpressionError(0, f"a time of {len(text)} characters: at most {_LONGEST} can be read")
    parser = _Parser(text, words)
    tree, dimension = parser.sum()
    kind, _, offset = parser.peek()
    if kind != "end":
        found = shorten(text[offset:].strip())
        if kind == "time":
            raise ExpressionError(offset, f"a sign is missing before {found}: write {text[:offset].strip()} + {found}")
        if re.fullmatch(r"[0-9]+,[0-9]+\s*\w*", text.strip(), re.ASCII):
            raise ExpressionError(offset, f'a decimal point is a ".": write {text.strip().replace(",", ".")}')
        raise ExpressionError(offset, f'"{found}" is not expected here: a time is 10s, or kill_grace + 10s')
    if dimension == NUMBER:
        raise ExpressionError(0, f'"{text.strip()}" has no unit: write {_with_unit(text)}')
    return tree


def _with_unit(text: str) -> str:
    return f"{text.strip()}s" if text.strip().replace(".", "").isdigit() else f"({text.strip()}) * 1s"


class _Parser:
    """Recursive descent: sum of products of atoms; every rule gives a tree and its dimension."""

    def __init__(self, text: str, words: tuple[str, ...]) -> None:
        self._tokens = list(_tokens(text, words))
        self._text = text
        self._at = 0
        self._depth = 0

    def peek(self) -> tuple[str, Any, int]:
        return self._tokens[self._at]

    def sum(self) -> tuple[Tree, str]:
        tree, dimension = self._product()
        while self.peek()[:2] in (("sign", "+"), ("sign", "-")):
            sign, offset = self._take()
            right, other = self._product()
            if ZERO not in (dimension, other) and dimension != other:
                raise ExpressionError(offset, f'"{sign}" between a time and a plain number: give the number a unit')
            dimension = other if dimension == ZERO else dimension
            tree = (sign, tree, right)
        return tree, dimension

    def _product(self) -> tuple[Tree, str]:
        tree, dimension = self._atom()
        while self.peek()[:2] in (("sign", "*"), ("sign", "/")):
            sign, offset = self._take()
            right, other = self._atom()
            if sign == "*" and dimension == TIME and other == TIME:
                raise ExpressionError(offset, "a time times a time is no time: one of them must be a plain number")
            if sign == "/" and other == TIME and dimension != TIME:
                raise ExpressionError(offset, "a plain number is divided by a time")
            is_time = (dimension == TIME) != (other == TIME)
            dimension = TIME if is_time else NUMBER
            tree = (sign, tree, right)
        return tree, dimension

    def _atom(self) -> tuple[Tree, str]:
        kind, value, offset = self.peek()
        if kind == "time":
            self._take()
            return ("value", value), TIME
        if kind == "number":
            self._take()
            return ("value", value), ZERO if value == 0 else NUMBER
        if kind == "name":
            self._take()
            return ("name", value), TIME
        if (kind, value) == ("sign", "("):
            return self._parenthesis(offset)
        if value == "." and self._tokens[self._at + 1][0] in ("time", "number"):
            raise ExpressionError(
                offset, f"a number begins with a digit: write {self._text[:offset]}0{self._text[offset:].strip()}"
            )
        missing = "a time is missing at the end" if kind == "end" else f'a time is missing before "{value}"'
        raise ExpressionError(offset, missing)

    def _parenthesis(self, offset: int) -> tuple[Tree, str]:
        self._take()
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ExpressionError(offset, f"more than {_DEEPEST} parentheses inside one another")
        inner = self.sum()
        self._depth -= 1
        if self.peek()[:2] != ("sign", ")"):
            raise ExpressionError(offset, '"(" is never closed')
        self._take()
        return inner

    def _take(self) -> tuple[Any, int]:
        _, value, offset = self.peek()
        self._at += 1
        return value, offset


def _tokens(text: str, words: tuple[str, ...]) -> list[tuple[str, Any, int]]:
    found: list[tuple[str, Any, int]] = []
    at = 0
    while match := _TOKEN.match(text, at):
        at = match.end()
        offset = match.start(str(match.lastgroup)) if match["number"] is None else match.start("number")
        if match["number"] is not None:
            found.append((*_number(match["number"], match["unit"], match.start("unit")), offset))
        elif match["name"] is not None:
            if match["name"] not in TIME_NAMES:
                raise ExpressionError(offset, _unknown(match["name"], text, words))
            found.append(("name", match["name"], offset))
        else:
            found.append(("sign", match["sign"], offset))
    return [*found, ("end", "", len(text))]


def _unknown(name: str, text: str, words: tuple[str, ...]) -> str:
    is_word = nearest(text, words) is not None
    return unknown("name", text if is_word else name, words if is_word else TIME_NAMES)


def _number(number: str, unit: str | None, offset: int) -> tuple[str, Fraction]:
    if unit is None:
        return "number", Fraction(number)
    if unit in TIME_NAMES:
        raise ExpressionError(offset, f"a sign is missing between {number} and {unit}: write {number} * {unit}")
    if unit not in UNITS:
        short = next((short for short, spoken in _SPOKEN.items() if unit.lower() in spoken), None)
        known = f"write {number}{short}" if short else f"the units are {', '.join(UNITS)}"
        raise ExpressionError(offset, f'unknown unit "{shorten(unit)}": {known}')
    return "time", Fraction(number) * UNITS[unit]
