"""Owns times and sizes: numbers with units, expressions over policy names, exact. Knows no place of theirs in a file.

An expression is parsed once and evaluated with any policy. Everything is a Fraction of nanoseconds or bytes until the
end, and the end must be a whole number, but for a time that follows from a limit.
"""

from __future__ import annotations

import math
import operator
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pytest_agentproc.errors import NotApplicable
from pytest_agentproc.scenario._suggestions import describe_unknown_word, find_nearest_option, shorten_text
from pytest_agentproc.vocabulary import LIMITS_IN_BYTES, LIMITS_IN_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


_SPELLINGS_BY_TIME_UNIT = {
    "ms": ("ms", "msec", "msecs", "millis", "millisecond", "milliseconds"),
    "s": ("s", "sec", "secs", "second", "seconds"),
    "m": ("m", "min", "mins", "minute", "minutes"),
    "h": ("h", "hr", "hrs", "hour", "hours"),
}

_TOKEN_PATTERN = re.compile(
    r"\s*(?:(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>[A-Za-z_]+)?|(?P<name>[A-Za-z_]\w*)|(?P<sign>\S))", re.ASCII
)
_MAX_EXPRESSION_CHARACTERS = 200
_MAX_NESTED_PARENTHESES = 20
_OPERATOR_BY_SIGN: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}

MEASURED, NUMBER, ZERO = "measured", "number", "zero"
ExpressionTree = tuple[Any, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ValueMeasure:
    """The kind of an expression's value: noun, units, the limits that it can name, two examples, the unit of one."""

    noun: str
    units: Mapping[str, int]
    names: tuple[str, ...]
    sample: str
    longer: str
    one: str

    def __reduce__(self) -> str:
        """Pickle as a name: measures are compared by `is`, so another process must use its own object of that name."""
        return f"{self.noun.upper()}_MEASURE"


TIME_MEASURE = ValueMeasure(
    "time",
    {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9},
    LIMITS_IN_SECONDS,
    "10s",
    "kill_grace + 10s",
    "s",
)
SIZE_MEASURE = ValueMeasure(
    "size",
    {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3},
    LIMITS_IN_BYTES,
    "64 KiB",
    "max_line_bytes + 1 B",
    " B",
)
LONGEST_TIME_NS = 100 * 365 * 24 * TIME_MEASURE.units["h"]


class ExpressionError(Exception):
    """A mistake in the text, `offset` characters from its beginning."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset
        self.message = message


class UnusableValue(Exception):
    """An expression is well formed, but its value under this policy is no time."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed time or size: its text, where it stands, its tree, and the bounds of its value."""

    text: str
    line: int
    column: int
    tree: ExpressionTree
    measure: ValueMeasure = TIME_MEASURE
    low: int = 0
    high: int = LONGEST_TIME_NS


def format_seconds(nanoseconds: Fraction | int) -> str:
    """Write a time for a message."""
    value = Fraction(nanoseconds) / TIME_MEASURE.units["s"]
    return f"{value.numerator}s" if value.denominator == 1 else f"{float(value):.9g}s"


def evaluate_expression(expression: Expression, limits: Mapping[str, int | Fraction | None]) -> int:
    """Compute whole nanoseconds or bytes under a policy; a part of a limit counts as limits do, upwards.

    Raises:
        NotApplicable: a limit that the expression names is switched off.
        UnusableValue: the value is not whole, or out of bounds.
    """
    try:
        value = _evaluate_tree(expression.tree, limits, expression.line)
    except ZeroDivisionError:
        raise UnusableValue(f'"{expression.text}" divides by zero') from None
    if value.denominator != 1 and expression.measure is TIME_MEASURE and find_limit_names(expression.tree):
        value = Fraction(math.ceil(value))
    if value.denominator == 1 and expression.low <= value.numerator <= expression.high:
        return value.numerator
    trouble = (_describe_time_trouble if expression.measure is TIME_MEASURE else _describe_size_trouble)(
        value, expression
    )
    raise UnusableValue(f'"{expression.text}" is {trouble}')


def _describe_time_trouble(value: Fraction, expression: Expression) -> str:
    if value < 0:
        return f"{format_seconds(value)}: a time cannot be negative"
    if value.denominator != 1:
        return f"{float(value):.9g}ns, not a whole number of nanoseconds"
    if value > expression.high:
        return "longer than a century"
    return "0s, but must be longer than that"


def _describe_size_trouble(value: Fraction, expression: Expression) -> str:
    if value.denominator != 1:
        return f"{float(value):.9g} B, not a whole number of bytes"
    return f"{value} bytes: at least {expression.low}, at most {expression.high} are possible"


def _evaluate_tree(tree: ExpressionTree, limits: Mapping[str, int | Fraction | None], line: int) -> Fraction:
    if tree[0] == "name":
        limit = limits[tree[1]]
        if limit is None:
            raise NotApplicable(tree[1], line)
        return Fraction(limit)
    if tree[0] == "value":
        found: Fraction = tree[1]
        return found
    return _OPERATOR_BY_SIGN[tree[0]](_evaluate_tree(tree[1], limits, line), _evaluate_tree(tree[2], limits, line))


def find_limit_names(tree: ExpressionTree) -> set[str]:
    """List the policy names that a tree uses."""
    if tree[0] == "name":
        return {tree[1]}
    return set() if tree[0] == "value" else find_limit_names(tree[1]) | find_limit_names(tree[2])


@lru_cache(maxsize=4096)
def parse_quantity(text: str, words: tuple[str, ...] = (), measure: ValueMeasure = TIME_MEASURE) -> ExpressionTree:
    """Parse a time or a size; `words` are what else the field accepts, for the suggestions.

    Raises:
        ExpressionError: what is wrong, and where in the text.
    """
    if len(text) > _MAX_EXPRESSION_CHARACTERS:
        raise ExpressionError(
            0, f"a {measure.noun} of {len(text)} characters: at most {_MAX_EXPRESSION_CHARACTERS} can be read"
        )
    parser = _ExpressionParser(text, words, measure)
    tree, dimension = parser.parse_sum()
    kind, _, offset = parser.peek_token()
    if kind != "end":
        found = shorten_text(text[offset:].strip())
        if kind == "measured":
            raise ExpressionError(offset, f"a sign is missing before {found}: write {text[:offset].strip()} + {found}")
        if re.fullmatch(r"[0-9]+,[0-9]+\s*\w*", text.strip(), re.ASCII):
            raise ExpressionError(offset, f'a decimal point is a ".": write {text.strip().replace(",", ".")}')
        form = f"a {measure.noun} is {measure.sample}, or {measure.longer}"
        raise ExpressionError(offset, f'"{found}" is not expected here: {form}')
    if dimension == NUMBER:
        raise ExpressionError(0, f'"{text.strip()}" has no unit: write {_suggest_unit(text.strip(), measure.one)}')
    return tree


def _suggest_unit(text: str, unit: str) -> str:
    return f"{text}{unit}" if text.replace(".", "").isdigit() else f"({text}) * 1{unit}"


class _ExpressionParser:
    """Recursive descent: sum of products of atoms; every rule gives a tree and its dimension."""

    def __init__(self, text: str, words: tuple[str, ...], measure: ValueMeasure) -> None:
        self._tokens = list(_split_tokens(text, words, measure))
        self._text = text
        self._noun = measure.noun
        self._at = 0
        self._depth = 0

    def peek_token(self) -> tuple[str, Any, int]:
        return self._tokens[self._at]

    def parse_sum(self) -> tuple[ExpressionTree, str]:
        tree, dimension = self._parse_product()
        while self.peek_token()[:2] in (("sign", "+"), ("sign", "-")):
            sign, offset = self._take_token()
            right, other = self._parse_product()
            if ZERO not in (dimension, other) and dimension != other:
                trouble = f'"{sign}" between a {self._noun} and a plain number: give the number a unit'
                raise ExpressionError(offset, trouble)
            dimension = other if dimension == ZERO else dimension
            tree = (sign, tree, right)
        return tree, dimension

    def _parse_product(self) -> tuple[ExpressionTree, str]:
        tree, dimension = self._parse_atom()
        while self.peek_token()[:2] in (("sign", "*"), ("sign", "/")):
            sign, offset = self._take_token()
            right, other = self._parse_atom()
            noun = self._noun
            if sign == "*" and dimension == MEASURED and other == MEASURED:
                trouble = f"a {noun} times a {noun} is no {noun}: one of them must be a plain number"
                raise ExpressionError(offset, trouble)
            if sign == "/" and other == MEASURED and dimension != MEASURED:
                raise ExpressionError(offset, f"a plain number is divided by a {noun}")
            is_measured = (dimension == MEASURED) != (other == MEASURED)
            dimension = MEASURED if is_measured else NUMBER
            tree = (sign, tree, right)
        return tree, dimension

    def _parse_atom(self) -> tuple[ExpressionTree, str]:
        kind, value, offset = self.peek_token()
        if kind == "measured":
            self._take_token()
            return ("value", value), MEASURED
        if kind == "number":
            self._take_token()
            return ("value", value), ZERO if value == 0 else NUMBER
        if kind == "name":
            self._take_token()
            return ("name", value), MEASURED
        if (kind, value) == ("sign", "("):
            return self._parse_parenthesis(offset)
        if value == "." and self._tokens[self._at + 1][0] in ("measured", "number"):
            raise ExpressionError(
                offset, f"a number begins with a digit: write {self._text[:offset]}0{self._text[offset:].strip()}"
            )
        rest = self._text[offset + 1 :].strip(" =")
        if value in ("-", "+") and self._at == 0 and rest:
            trouble = "cannot be negative" if value == "-" else "has no sign"
            raise ExpressionError(offset, f"a {self._noun} {trouble}: write {shorten_text(rest)}")
        if value in ("<", ">", "=", "~") and self._at == 0:
            raise ExpressionError(offset, f'a {self._noun} is exact and has no "{value}": write {shorten_text(rest)}')
        place = "at the end" if kind == "end" else f'before "{value}"'
        raise ExpressionError(offset, f"a {self._noun} is missing {place}")

    def _parse_parenthesis(self, offset: int) -> tuple[ExpressionTree, str]:
        self._take_token()
        self._depth += 1
        if self._depth > _MAX_NESTED_PARENTHESES:
            raise ExpressionError(offset, f"more than {_MAX_NESTED_PARENTHESES} parentheses inside one another")
        inner = self.parse_sum()
        self._depth -= 1
        if self.peek_token()[:2] != ("sign", ")"):
            raise ExpressionError(offset, '"(" is never closed')
        self._take_token()
        return inner

    def _take_token(self) -> tuple[Any, int]:
        _, value, offset = self.peek_token()
        self._at += 1
        return value, offset


def _split_tokens(text: str, words: tuple[str, ...], measure: ValueMeasure) -> list[tuple[str, Any, int]]:
    found: list[tuple[str, Any, int]] = []
    at = 0
    while match := _TOKEN_PATTERN.match(text, at):
        at = match.end()
        offset = match.start(str(match.lastgroup)) if match["number"] is None else match.start("number")
        if match["number"] is not None:
            found.append((*_read_number(match["number"], match["unit"], match.start("unit"), measure), offset))
        elif match["name"] is not None:
            if match["name"] not in measure.names:
                raise ExpressionError(offset, _describe_unknown_name(match["name"], text, words, measure))
            found.append(("name", match["name"], offset))
        else:
            found.append(("sign", match["sign"], offset))
    return [*found, ("end", "", len(text))]


def _describe_unknown_name(name: str, text: str, words: tuple[str, ...], measure: ValueMeasure) -> str:
    is_word = find_nearest_option(text, words) is not None
    kind = "limit" if measure is TIME_MEASURE and not is_word else ""
    return describe_unknown_word("name", text if is_word else name, words if is_word else measure.names, kind=kind)


def _read_number(number: str, unit: str | None, offset: int, measure: ValueMeasure) -> tuple[str, Fraction]:
    if unit is None:
        return "number", Fraction(number)
    if unit in measure.names:
        raise ExpressionError(offset, f"a sign is missing between {number} and {unit}: write {number} * {unit}")
    if unit not in measure.units:
        short = next((short for short, spoken in _SPELLINGS_BY_TIME_UNIT.items() if unit.lower() in spoken), None)
        is_time = short is not None and short in measure.units
        known = f"write {number}{short}" if is_time else f"the units are {', '.join(measure.units)}"
        raise ExpressionError(offset, f'unknown unit "{shorten_text(unit)}": {known}')
    return "measured", Fraction(number) * measure.units[unit]
