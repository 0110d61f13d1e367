"""Owns where Python data stands in the user's code: the call that gives it, and the literal that it was written as."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from pytest_agentproc.files import shorten_path
from pytest_agentproc.foreign import find_globals_name
from pytest_agentproc.scenario import DataCall, find_pair_literal

if TYPE_CHECKING:
    from types import FrameType

_LINE_ENDS_OF_NO_EDITOR = str.maketrans({char: ascii(char)[1:-1] for char in "\v\f\x1c\x1d\x1e\x85\u2028\u2029"})
"""What `str.splitlines` would end a line at, and Python's own lines go on."""


def find_calling_frame() -> FrameType:
    """Give the nearest frame outside this package."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_back and find_globals_name(frame.f_globals).startswith("pytest_agentproc."):
        frame = frame.f_back
    assert frame is not None, "CPython has frames"
    return frame


def find_data_call(data: Any, argument: tuple[str, ...]) -> DataCall:
    """Find the call outside this package that gives data, and the literal of the data if the file has it.

    The literal is in the call itself, or it is the nearest one in the file, above if there is one, that says the same.

    Args:
        data: the data.
        argument: the name of the call's argument, which is its only positional one; then the keys below it.
    """
    frame = find_calling_frame()
    file, line = frame.f_code.co_filename, frame.f_lineno
    linecache.checkcache(file)
    lines = linecache.getlines(file, frame.f_globals)
    calls, literals = _index_source("".join(lines))
    call = calls.get(next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None)))
    literal = None if call is None else _find_argument(call, argument)
    shown: ast.expr | None = call
    if not isinstance(literal, ast.List | ast.Tuple | ast.Dict):
        same = [found for found in literals if data and _says(found, data)]
        literal = min(same, key=lambda found: (found.lineno > line, abs(found.lineno - line)), default=None)
        shown = literal or call
    first, last = (line, line) if shown is None else (shown.lineno, shown.end_lineno)
    text = textwrap.dedent("".join(lines[first - 1 : last]).translate(_LINE_ENDS_OF_NO_EDITOR))
    return DataCall(shorten_path(file), line, "\n" * (first - 1) + text, literal)


@lru_cache(maxsize=4)
def _index_source(source: str) -> tuple[dict[tuple[int | None, ...], ast.Call], tuple[ast.expr, ...]]:
    """Give the calls of a file by their place as code objects have it, and its lists and mappings."""
    try:
        nodes = [*ast.walk(ast.parse(source))]
    except (SyntaxError, ValueError, RecursionError):  # it is no file of Python
        return {}, ()
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    return (
        {(call.lineno, call.end_lineno, call.col_offset, call.end_col_offset): call for call in calls},
        tuple(node for node in nodes if isinstance(node, ast.List | ast.Tuple | ast.Dict)),
    )


def _says(literal: ast.expr | None, data: Any) -> bool:
    """Say whether a literal without names and calls in it is this data."""
    if isinstance(literal, ast.Constant):
        return type(literal.value) is type(data) and literal.value == data
    if isinstance(literal, ast.List | ast.Tuple):
        return isinstance(data, list | tuple) and len(literal.elts) == len(data) and all(map(_says, literal.elts, data))
    return (
        isinstance(literal, ast.Dict)
        and isinstance(data, dict)
        and len(literal.keys) == len(data)
        and all(map(_says, literal.keys, data))
        and all(map(_says, literal.values, data.values()))
    )


def _find_argument(call: ast.Call, argument: tuple[str, ...]) -> ast.expr | None:
    name, *keys = argument
    named = [keyword.value for keyword in call.keywords if keyword.arg == name]
    found = next(iter([*named, *call.args]), None)
    for key in keys:
        found = find_pair_literal(found, key)[1]
    return found
