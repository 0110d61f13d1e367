"""Owns the wording for YAML's traps: what is wrong there and what to write instead. Refuses to know any key.

Values in, values out: the text's lines and where YAML stopped go in, a position and a message come out.
"""

from __future__ import annotations

import re
from typing import Any

from pytest_agentproc.scenario._words import shorten

__all__ = ["cut", "explain", "is_cut", "opening", "position", "question", "quote", "swallowed"]

Place = tuple[int, int, str]

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"})
_KEY_AND_VALUE = re.compile(r"^[\s\-]*[{\[]?\s*([\w.-]+):\s+(\S.*?)\s*$")


def quote(text: str) -> str:
    """Write a text as YAML reads it back: in double quotes, escaped."""
    return f'"{text.translate(_ESCAPES)}"'


def position(text: str, index: int) -> tuple[int, int]:
    """Give line and column, from 1, of a character."""
    before = text[:index]
    return before.count("\n") + 1, index - (before.rfind("\n") + 1) + 1


def opening(sign: str, rest: str) -> str:
    """Say that an unquoted text begins with a character that YAML keeps for itself."""
    return f'unquoted text begins with "{sign}": write {quote(sign + rest)}'


def question(line: int, column: int, text: str, rest: str) -> Place:
    """Say that `?` in unquoted text inside brackets is read differently from parser to parser."""
    follower = rest.lstrip()[:1]
    if text.endswith("?") and follower:
        where = column + len(text) - 1 if "\n" not in text else column
        return line, where, f'unquoted text ends in "?" before "{follower}": write {quote(text)}'
    return line, column + text.index("?"), f'unquoted text has "?" in it: write {quote(text)}'


def is_cut(rest: str) -> bool:
    """Tell whether what looks like the rest of a text was taken for a comment."""
    return re.match(r"\s+#[^\s#]", rest) is not None


def cut(text: str, rest: str) -> str:
    """Say that " #" ended an unquoted text."""
    whole = quote(f"{text}{rest.rstrip()}")
    return f'unquoted text ends before " #": write {whole}, or "# " for a comment'


def swallowed(rest: str) -> str:
    """Say what became of a value that YAML took for a comment; empty if there is none."""
    found = re.match(r"\s*(#\S.*?)\s*$", rest)
    return f'text that begins with "#" is a comment: write {quote(found.group(1))}' if found else ""


def explain(lines: list[str], error: Any) -> Place:
    """Turn a parser's complaint into what a person can act on."""
    mark, start = error.problem_mark, error.context_mark
    line, column = (mark.line, mark.column) if mark is not None else (0, 0)
    if start is not None and "end of stream" in str(error.problem):
        return start.line + 1, start.column + 1, "this quote is never closed"
    if start is not None and "expected ':'" in str(error.problem) and start.line < len(lines):
        text = _value_from(lines[start.line], start.column)
        return start.line + 1, start.column + 1, f'a ":" is missing: a line is "key: value", not {quote(shorten(text))}'
    if line >= len(lines) and start is not None:
        return _unclosed(lines, start)
    source = lines[line] if line < len(lines) else ""
    return line + 1, column + 1, _remedy(str(error.problem), source, column)


def _remedy(problem: str, source: str, column: int) -> str:
    here = source[column : column + 1]
    if here == "\t" and "cannot start any token" in problem:
        return "a tab cannot indent: use spaces"
    if "mapping values are not allowed" in problem or (here == ":" and "expected" in problem):
        return _second_colon(source, column)
    if "cannot start any token" in problem or "mapping keys are not allowed" in problem:
        return opening(here, _value_from(source, column + 1))
    known = {
        "sequence entries": f"a list begins on a line of its own; a text is quoted: {quote(source[column:].strip())}",
        "escape": "unknown escape in a \"...\" text: write \\\\ for a backslash, or use '...'",
        "'-' indicator": "the indentation does not fit the lines above",
        "document": "one file is one scenario: no directives, no second document",
    }
    for part, message in known.items():
        if part in problem:
            return message
    return _interrupted(source, column) or _fallback(problem)


def _fallback(problem: str) -> str:
    if "expected key" in problem or "<block end>" in problem:
        return "the indentation does not fit the lines above"
    return f"not YAML: {problem}"


def _unclosed(lines: list[str], start: Any) -> Place:
    sign = lines[start.line][start.column : start.column + 1] if start.line < len(lines) else ""
    if sign in ("{", "["):
        return start.line + 1, start.column + 1, f'"{sign}" is never closed'
    return max(len(lines), 1), 1, 'the file ends inside "{" or "["'


def _value_from(source: str, column: int) -> str:
    return re.split(r"\s+#|[,}\]]", source[column:])[0].rstrip()


def _second_colon(source: str, column: int) -> str:
    found = _KEY_AND_VALUE.match(source)
    if found and found.start(2) <= column:
        start = max(source.rfind(mark, 0, column) for mark in (": ", ", ", "{")) + 1
        text = source[start:].strip()
        if "{" in source[:column]:
            text = re.split(r"[,}\]]", text)[0].rstrip()
        return f'unquoted text has ":" in it: write {quote(text)}'
    return "a key stands where none can: look at the indentation of this line and the one before"


def _interrupted(source: str, column: int) -> str:
    """Say why a value seems to be over before its text is."""
    before, here = source[:column].rstrip(), source[column : column + 1]
    if here in ("}", "]", ",", ""):
        return f'"{here}" closes nothing here, or what stands before it is incomplete' if here else ""
    if before.endswith(("'", '"')):
        double = "''" if before.endswith("'") else '\\"'
        return f"text goes on after its closing {before[-1]}: quote all of it, with {double} for a quote inside"
    if before.endswith(("]", "}")):
        return f'text goes on after "{before[-1]}": a text that begins with a bracket must be quoted'
    if here in ("{", "[", "?"):
        return f'unquoted text has "{here}" in it: put it in double quotes'
    return ""
