"""Owns YAML: text in, nodes with line and column out. Refuses to know what any key means.

The one home of PyYAML. Scalars stay text (the field that reads one decides what it is), duplicate keys, aliases,
anchors and tags are refused, and mistakes that YAML hides get a message that says what to write.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import yaml

from pytest_agentproc.scenario import _traps

__all__ = ["Enough", "Mapping", "Node", "Report", "Scalar", "Sequence", "describe", "inline", "parse"]

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DEEPEST = 40
_HALF = re.compile("[\ud800-\udfff]")

Report = Callable[[int, int, str], None]


class Enough(Exception):
    """Reading on could only cost time, or repeat what was said."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A piece of text; `note` is what to say when a reader finds it empty.

    A place inside the text is a place in the file only if it stands on one line there.
    """

    line: int
    column: int
    text: str
    plain: bool
    note: str = ""
    is_one_line: bool = True


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list; `end` is the place behind its closing bracket, (0, 0) if it has none."""

    line: int
    column: int
    items: tuple[Node, ...]
    end: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Mapping:
    """Keys with values, in the order of the file; `end` is the place behind its closing brace, (0, 0) if none."""

    line: int
    column: int
    pairs: tuple[tuple[Scalar, Node], ...]
    end: tuple[int, int] = (0, 0)


Node = Scalar | Sequence | Mapping


def describe(node: Node) -> str:
    """Say what stands there, short enough for a message."""
    if isinstance(node, Sequence):
        return "a list"
    if isinstance(node, Mapping):
        return "a mapping"
    if node.plain and not node.text:
        return "nothing"
    return _traps.quote(node.text)


def inline(node: Node) -> str:
    """Write a node as it may stand inside brackets."""
    if not isinstance(node, Scalar):
        return "..."
    is_plain = re.fullmatch(r"[\w.]([\w .-]*[\w.-])?", node.text)
    return node.text if is_plain else _traps.quote(node.text)


def parse(text: str, report: Report) -> Node | None:
    """Read one YAML document; every mistake goes to `report` with its line and column, both from 1."""
    builder = _Builder(text, report)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.feed(event)
    except yaml.MarkedYAMLError as error:
        report(*_traps.explain(text.splitlines(), error))
        return None
    except (yaml.reader.ReaderError, UnicodeEncodeError) as error:  # the latter: half of a surrogate pair
        place = error.start if isinstance(error, UnicodeEncodeError) else error.position
        line, column = _traps.position(text, place)
        report(line, column, "a character that YAML does not allow: write it in a quoted text, as \\x07 for example")
        return None
    except Enough:
        return None
    if builder.root is None:
        report(1, 1, "the file is empty")
    return builder.root


class _Builder:
    """Turns the flat stream of YAML events into nodes."""

    def __init__(self, text: str, report: Report) -> None:
        self.root: Node | None = None
        self._lines = text.splitlines()
        self._report = report
        self._open: list[tuple[Any, list[Node]]] = []
        self._documents = 0

    def feed(self, event: Any) -> None:
        if isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                self._say(event, "a second document begins here: one file is one scenario")
        elif isinstance(event, yaml.AliasEvent):
            name = str(event.anchor)
            self._say(event, _traps.opening("*", name))
            self._put(Scalar(*_place(event), name, plain=True))
        elif isinstance(event, yaml.ScalarEvent):
            self._put(self._scalar(event))
        elif isinstance(event, (yaml.SequenceStartEvent, yaml.MappingStartEvent)):
            self._mark(event, "")
            self._open.append((event, []))
            if len(self._open) > _DEEPEST:
                self._say(event, f"nested deeper than {_DEEPEST} levels")
                raise Enough
        elif isinstance(event, (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
            start, items = self._open.pop()
            end: Any = event.end_mark
            place = (end.line + 1, end.column + 1) if start.flow_style else (0, 0)
            self._put(self._collect(start, items, place))

    def _put(self, node: Node) -> None:
        if self._open:
            self._open[-1][1].append(node)
        elif self.root is None:
            self.root = node

    def _collect(self, start: Any, items: list[Node], end: tuple[int, int]) -> Node:
        line, column = _place(start)
        if isinstance(start, yaml.SequenceStartEvent):
            return Sequence(line, column, tuple(items), end)
        first: dict[str, int] = {}
        pairs: list[tuple[Scalar, Node]] = []
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, Scalar):
                self._report(key.line, key.column, f"a key must be a word, not {describe(key)}")
            elif key.text in first:
                message = f"{_traps.quote(key.text)} is given twice (first in line {first[key.text]})"
                self._report(key.line, key.column, message)
            else:
                first[key.text] = key.line
                pairs.append((key, value))
        return Mapping(line, column, tuple(pairs), end)

    def _scalar(self, event: Any) -> Scalar:
        line, column = _place(event)
        plain = event.style in (None, "")
        self._mark(event, event.value)
        text = event.value or event.anchor or ""
        if _HALF.search(text):
            self._say(event, "half a character (\\ud800 to \\udfff): write the whole one")
            text = ""
        end = event.end_mark
        is_one_line = end.line + 1 == line
        if not plain:
            return Scalar(line, column, text, plain=False, is_one_line=is_one_line)
        if text[:1].isspace():
            self._report(line, column, _traps.blank(text[0]))
            raise Enough
        if _traps.is_typographic(text):
            self._report(line, column, f"typographic quotes quote nothing: write {_traps.quote(text[1:-1])}")
            return Scalar(line, column, text[1:-1], plain=False)
        rest = self._lines[end.line][end.column :] if end.line < len(self._lines) else ""
        if text and self._open and self._open[-1][0].flow_style and "?" in text:
            self._report(*_traps.question(line, column, text, rest, is_one_line=is_one_line))
        elif text and _traps.is_cut(rest):
            self._report(line, column, _traps.cut(text, rest))
        note = "" if text else _traps.swallowed(rest)
        return Scalar(line, column, text, plain=True, note=note, is_one_line=is_one_line)

    def _mark(self, event: Any, text: str) -> None:
        """Refuse anchors and tags: in a scenario they are text that somebody forgot to quote."""
        if event.anchor is not None:
            self._say(event, _traps.opening("&", f"{event.anchor} {text}".rstrip()))
        elif event.tag is not None:
            tag = str(event.tag).removeprefix("!").replace("tag:yaml.org,2002:", "!")
            self._say(event, _traps.opening("!", f"{tag} {text}".rstrip()))

    def _say(self, event: Any, message: str) -> None:
        self._report(*_place(event), message)


def _place(event: Any) -> tuple[int, int]:
    return event.start_mark.line + 1, event.start_mark.column + 1
