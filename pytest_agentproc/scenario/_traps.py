"""Owns the wording for YAML's traps: what is wrong there and what to write instead. Refuses to know any key.

Values in, values out: the text's lines and where YAML stopped go in, a position and a message come out.
"""

from __future__ import annotations

import re
from typing import Any

from pytest_agentproc.scenario._words import shorten

__all__ = [
    "DEEPEST",
    "TOO_DEEP",
    "blank",
    "cut",
    "explain",
    "is_cut",
    "is_typographic",
    "opening",
    "position",
    "question",
    "quote",
    "swallowed",
]

DEEPEST = 40
TOO_DEEP = f"nested deeper than {DEEPEST} levels"

Place = tuple[int, int, str]

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"})
_LINE_END = re.compile("\r\n|[\n\r]")
_KEY_AND_VALUE = re.compile(r"^[\s\-]*[{\[]?\s*([\w.-]+):\s+(\S.*?)\s*$")


def quote(text: str) -> str:
    """Write a text as YAML reads it back: in double quotes, escaped; a long one is cut, for it is for a message."""
    return f'"{shorten(text).translate(_ESCAPES)}"'


def position(text: str, index: int) -> tuple[int, int]:
    """Give line and column, from 1, of a character."""
    before = _LINE_END.split(text[:index])
    return len(before), len(before[-1]) + 1


def opening(sign: str, rest: str) -> str:
    """Say that an unquoted text begins with a character that YAML keeps for itself."""
    return f'unquoted text begins with "{sign}": write {quote(sign + rest)}'


def question(line: int, column: int, text: str, rest: str, *, is_one_line: bool) -> Place:
    """Say that `?` in unquoted text inside brackets is read differently from parser to parser."""
    follower = rest.lstrip()[:1]
    if text.endswith("?") and follower:
        where, message = len(text) - 1, f'unquoted text ends in "?" before "{follower}": write {quote(text)}'
    else:
        where, message = text.index("?"), f'unquoted text has "?" in it: write {quote(text)}'
    return line, column + (where if is_one_line else 0), message


def blank(char: str) -> str:
    """Say that a character only looks like a blank."""
    return f"U+{ord(char):04X} looks like a blank, but is none for YAML: write a plain one"


def is_typographic(text: str) -> bool:
    """Tell whether a text stands in quotes that YAML does not know."""
    return (
        len(text) > 1
        and text[0] in "\u201c\u201d\u201e\u2018\u2019\u00ab"
        and text[-1] in "\u201c\u201d\u2018\u2019\u00bb"
    )


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
    conflict = next((number for number, text in enumerate(lines, 1) if text.startswith("<<<<<<< ")), 0)
    if conflict:
        return conflict, 1, "a merge conflict is left here: keep one side, and delete the three marks"
    if start is not None and start.line < len(lines):
        message = _remedy_at_start(str(error.problem), lines[start.line], start.column)
        if message:
            return start.line + 1, start.column + 1, message
        if _is_open(str(error.problem), lines[start.line], lines[min(line, len(lines) - 1)], line - start.line):
            return _unclosed(lines, start)
    if line >= len(lines) and start is not None:
        return _unclosed(lines, start)
    source = lines[line] if line < len(lines) else ""
    return line + 1, column + 1, _remedy(str(error.problem), source, column)


def _remedy_at_start(problem: str, source: str, column: int) -> str:
    """Say what is wrong where something begins, if the parser only stumbled over its end."""
    if "end of stream" in problem:
        return "this quote is never closed"
    if "comment or line break" in problem:
        return opening(source[column], source[column + 1 :].rstrip())
    if "expected ':'" not in problem:
        return ""
    text = _value_from(source, column)
    found = re.fullmatch(r"([\w.-]+):(\s*)(\S.*)", text)
    if found is None:
        return f'a ":" is missing: a line is "key: value", not {quote(text)}'
    if found[2]:
        return blank(found[2][0])
    return f'a blank is missing after ":": write {quote(f"{found[1]}: {found[3]}")}'


def _is_open(problem: str, first: str, last: str, lines: int) -> bool:
    """Tell whether a bracket is still open where a line begins that is indented as little as the bracket's own."""
    return lines > 0 and "expected ','" in problem and _indent(last) <= _indent(first)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _remedy(problem: str, source: str, column: int) -> str:
    here = source[column : column + 1]
    if here == "\t" and "cannot start any token" in problem:
        return "a tab cannot indent: use spaces"
    if "mapping values are not allowed" in problem or (here == ":" and "expected" in problem):
        return _second_colon(source, column)
    if "cannot start any token" in problem or "mapping keys are not allowed" in problem:
        return opening(here, _value_from(source, column + 1))
    known = {
        "nesting": TOO_DEEP,  # libyaml looks a line ahead at an open bracket, and has a limit of its own from 0.2.6 on
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
