"""Owns Python data: values in, the nodes of a file out, each with the path of its value. Knows no key.

All checks read nodes, so they serve files and data alike. The line of a node is the line of its value in the test's own
file if the value stands in the call itself, and the line of the call otherwise. The column only tells values apart.
"""

from __future__ import annotations

import ast
import math
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from enum import Enum
from typing import Any, NamedTuple

from pytest_agentproc.scenario._yaml import (
    MAX_NESTING_LEVELS,
    TOO_DEEP_MESSAGE,
    ProblemReporter,
    StopReading,
    YamlMapping,
    YamlNode,
    YamlScalar,
    YamlSequence,
    describe_value,
    quote_for_message,
)

MAX_TEXT_BYTES = 64 * 1024**2
_MAX_VALUES = 200_000
_MAX_NUMBER_BITS = 1024
_CHARS_SHOWN_BEFORE_MISTAKE = 20
_MICROSECOND = timedelta(microseconds=1)
_UNITS = (("s", 10**6), ("ms", 10**3), ("us", 1))

ValueLocator = Callable[[str, int], tuple[int, int]]


class DataCall(NamedTuple):
    """The call by which a test gives data.

    Args:
        file: the test's file, as messages name it.
        line: the line of the call.
        text: the lines of the call, at their places in that file; all other lines are empty.
        literal: the syntax of the data, where it is written in the call; None: it is made elsewhere.
    """

    file: str
    line: int = 1
    text: str = ""
    literal: ast.expr | None = None

    def name_value(self, key: str) -> DataCall:
        """Say that the data stands under a key of the scenario, which the call does not write."""
        literal = (
            None
            if self.literal is None
            else ast.Dict([ast.Constant(key, lineno=self.line)], [self.literal], lineno=self.line)
        )
        return self._replace(literal=literal)


class ValuePaths(dict[tuple[int, int], str]):
    """The path of each value, by the line and column of its node."""

    def locate_value(self, path: str, line: int) -> tuple[int, int]:
        """Give the next value its place."""
        place = line, len(self) + 1
        self[place] = path
        return place


class DataNodeBuilder:
    """Turns Python values into nodes.

    Args:
        report: takes each mistake.
        locate: gives the value of a path its line and column.
    """

    def __init__(self, report: ProblemReporter, locate: ValueLocator) -> None:
        self._report = report
        self._locate = locate
        self._around: list[int] = []
        self._count = 0

    def build_node(self, value: Any, path: str, line: int, literal: ast.expr | None = None) -> YamlNode:
        """Give the node of a value.

        Args:
            value: the value.
            path: its path, for messages.
            line: the line of the value that it stands in.
            literal: its syntax, if that is known.

        Raises:
            StopReading: there are too many values.
        """
        line = line if literal is None else literal.lineno
        place = self._locate(path, line)
        self._count += 1
        if self._count > _MAX_VALUES:
            self._report(*place, f"there are more than {_MAX_VALUES} values: use fewer")
            raise StopReading
        value = value.value if isinstance(value, Enum) else value
        if not isinstance(value, Mapping | list | tuple):
            return self._build_scalar(value, place)
        trouble = (
            "the value contains itself: write it without the cycle"
            if id(value) in self._around
            else TOO_DEEP_MESSAGE
            if len(self._around) > MAX_NESTING_LEVELS
            else ""
        )
        if trouble:
            self._report(*place, trouble)
            raise StopReading
        self._around.append(id(value))
        node = (
            self._build_mapping(value, path, place, literal)
            if isinstance(value, Mapping)
            else self._build_sequence(value, path, place, literal)
        )
        self._around.pop()
        return node

    def _build_sequence(
        self, values: list[Any] | tuple[Any, ...], path: str, place: tuple[int, int], literal: ast.expr | None
    ) -> YamlSequence:
        parts = _split_list_literal(literal, len(values))
        items = (
            self.build_node(value, f"{path}[{index}]", place[0], part)
            for index, (value, part) in enumerate(zip(values, parts, strict=True))
        )
        return YamlSequence(*place, tuple(items), place)

    def _build_mapping(
        self, values: Mapping[Any, Any], path: str, place: tuple[int, int], literal: ast.expr | None
    ) -> YamlMapping:
        pairs: dict[str, tuple[YamlScalar, YamlNode]] = {}
        for key, value in values.items():
            key_literal, value_literal = find_pair_literal(literal, key)
            line = place[0] if key_literal is None else key_literal.lineno
            word = self._read_key(key, path, line)
            below = _extend_path(path, word)
            name = YamlScalar(*self._locate(below, line), word, plain=False, is_one_line=False)
            if word in pairs:
                self._report(name.line, name.column, f"{quote_for_message(word)} is given twice")
            pairs[word] = name, self.build_node(value, below, line, value_literal)
        return YamlMapping(*place, tuple(pairs.values()), place)

    def _read_key(self, key: Any, path: str, line: int) -> str:
        key = key.value if isinstance(key, Enum) else key
        if isinstance(key, int) and not isinstance(key, bool):
            return str(int(key))
        place = self._locate(path, line)
        if isinstance(key, str):
            return self._read_text(key, place)
        self._report(*place, f"a key must be text, not {describe_value(key)}: write {describe_value(str(key))}")
        return ""

    def _build_scalar(self, value: Any, place: tuple[int, int]) -> YamlScalar:
        value = _simplify_scalar(value)
        if isinstance(value, str):
            return YamlScalar(*place, self._read_text(value, place), plain=False, is_one_line=False)
        if isinstance(value, bytes) and len(value) > MAX_TEXT_BYTES:
            self._report(*place, f"{len(value)} bytes are given: at most {MAX_TEXT_BYTES} are possible")
        elif isinstance(value, float) and not math.isfinite(value):
            self._report(*place, f"{value} is no number that can be written: use a finite one")
        elif isinstance(value, timedelta) and value < timedelta(0):
            self._report(*place, f"{value!r} is negative: a time is 0s at least")
        elif isinstance(value, int) and value.bit_length() > _MAX_NUMBER_BITS:
            self._report(
                *place, f"a number of {value.bit_length()} bits is given: at most {_MAX_NUMBER_BITS} are possible"
            )
            value = 0
        elif value is not None and not isinstance(value, bool | int | float | bytes | timedelta):
            self._report(*place, _describe_foreign_value(value))
            value = None
        return YamlScalar(*place, _write_plain_value(value), plain=True, is_one_line=False, value=value)

    def _read_text(self, value: str, place: tuple[int, int]) -> str:
        text = str.__str__(value)  # marshal takes no subclass
        try:
            size = len(text) if text.isascii() else len(text.encode())
        except UnicodeEncodeError as error:
            self._report(*place, _describe_half_character(text, error.start))
            return ""
        if size > MAX_TEXT_BYTES:
            self._report(*place, f"the text has {size} bytes: at most {MAX_TEXT_BYTES} are possible")
        return text


def _extend_path(path: str, key: str) -> str:
    if not key.isidentifier():
        return f"{path}[{quote_for_message(key)}]"
    return f"{path}.{key}" if path else key


def _simplify_scalar(value: Any) -> Any:
    """Give the plain type of a value that stands for one: a path, an array of bytes, a number of a library."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if value is None or isinstance(value, str | bytes | bool | timedelta):
        return value
    if isinstance(value, float):
        return float(value)
    return int(value) if hasattr(type(value), "__index__") else value


def _write_plain_value(value: object) -> str:
    """Write a value as a file would have it; "" for what no file can have."""
    if value is None or isinstance(value, bytes):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, timedelta):
        count = value // _MICROSECOND
        return next(f"{count // size}{unit}" for unit, size in _UNITS if count % size == 0)
    return str(value)


def _describe_half_character(text: str, index: int) -> str:
    """Say that a text has half of a surrogate pair, and what to write for it."""
    near = text[max(0, index - _CHARS_SHOWN_BEFORE_MISTAKE) : index + 1]
    code = text[index].encode("utf-8", "surrogatepass")
    return (
        f"{quote_for_message(near)} ends in half a character (U+{ord(text[index]):04X} at index {index}), which UTF-8 "
        f'cannot carry: write the whole character, or the step {{"raw": {code!r}}} for such bytes'
    )


def _describe_foreign_value(value: object) -> str:
    if isinstance(value, Iterable):
        return f"a {type(value).__name__} is no list: write list(...) around it"
    return (
        f"no script can have {describe_value(value)}: write text, bytes, a whole number, a float, True, False, None, a "
        "timedelta, a list or a mapping"
    )


def _split_list_literal(literal: ast.expr | None, count: int) -> list[ast.expr | None]:
    """Give the syntax of each item of a list, None where it is not known."""
    if isinstance(literal, ast.List | ast.Tuple) and len(literal.elts) == count:
        return [None if isinstance(item, ast.Starred) else item for item in literal.elts]
    return [None] * count


def find_pair_literal(literal: ast.expr | None, key: Any) -> tuple[ast.expr | None, ast.expr | None]:
    """Give the syntax of a key and of its value; None where it is not known."""
    if isinstance(literal, ast.Dict):
        for word, value in zip(literal.keys, literal.values, strict=True):
            if isinstance(word, ast.Constant) and word.value == key:
                return word, value
    return None, None
