"""Owns YAML: text in, nodes with line and column out. Refuses to know what any key means.

The one home of PyYAML. Scalars stay text (the field that reads one decides what it is), duplicate keys, aliases,
anchors and tags are refused, and mistakes that YAML hides get a message that says what to write.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import yaml

from pytest_agentproc.scenario import _traps

__all__ = ["Enough", "Mapping", "Node", "Report", "Scalar", "Sequence", "describe", "inline", "parse"]

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_HALF = re.compile("[\ud800-\udfff]")

Report = Callable[[int, int, str], None]


class Enough(Exception):
    """Reading on could only cost time, or repeat what was said."""


class Scalar(NamedTuple):
    """A piece of text; `note` is what to say when a reader finds it empty.

    A place inside the text is a place in the file only if it stands on one line there.
    """

    line: int
    column: int
    text: str
    plain: bool
    note: str = ""
    is_one_line: bool = True


class Sequence(NamedTuple):
    """A list; `end` is the place behind its closing bracket, (0, 0) if it has none."""

    line: int
    column: int
    items: tuple[Node, ...]
    end: tuple[int, int] = (0, 0)


class Mapping(NamedTuple):
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
        builder.read()
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
    """Turns the flat stream of YAML events into nodes.

    A session reads thousands of files before its first test, so that what is right is read with few calls; what may
    be wrong is looked at closely only where it can be.
    """

    def __init__(self, text: str, report: Report) -> None:
        self.root: Node | None = None
        self._text = text
        self._lines = text.splitlines()
        self._hashes = {index for index, line in enumerate(self._lines) if "#" in line} if "#" in text else set()
        self._report = report
        self._documents = 0

    def read(self) -> None:
        """Take every event, each with the collections that are open around it."""
        loader = _LOADER(self._text)
        try:
            self._read(loader.get_event)
        finally:
            loader.dispose()

    def _read(self, next_event: Callable[[], Any]) -> None:
        around: list[tuple[Any, list[Node]]] = []
        items: list[Node] = []
        start: Any = None
        while (event := next_event()) is not None:
            kind = type(event)
            if kind is yaml.ScalarEvent:
                items.append(self._scalar(event, start))
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                if event.anchor is not None or event.tag is not None:
                    self._mark(event, "")
                around.append((start, items))
                start, items = event, []
                if len(around) > _traps.DEEPEST:
                    self._say(event, _traps.TOO_DEEP)
                    raise Enough
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                node = self._collect(start, items, event.end_mark)
                start, items = around.pop()
                items.append(node)
            else:
                items += self._others(event)
        self.root = items[0] if items else None

    def _others(self, event: Any) -> list[Node]:
        """Refuse what no scenario has; an alias stands where it is, as text."""
        if type(event) is yaml.DocumentStartEvent:
            self._documents += 1
            if self._documents > 1:
                self._say(event, "a second document begins here: one file is one scenario")
        elif type(event) is yaml.AliasEvent:
            name = str(event.anchor)
            self._say(event, _traps.opening("*", name))
            return [Scalar(*_place(event), name, plain=True)]
        return []

    def _collect(self, start: Any, items: list[Node], end_mark: Any) -> Node:
        line, column = _place(start)
        end = (end_mark.line + 1, end_mark.column + 1) if start.flow_style else (0, 0)
        if type(start) is yaml.SequenceStartEvent:
            return Sequence(line, column, tuple(items), end)
        first: dict[str, int] = {}
        pairs: list[tuple[Scalar, Node]] = []
        each = iter(items)
        for key, value in zip(each, each, strict=True):
            if type(key) is not Scalar:
                self._report(key.line, key.column, f"a key must be a word, not {describe(key)}")
            elif key.text in first:
                message = f"{_traps.quote(key.text)} is given twice (first in line {first[key.text]})"
                self._report(key.line, key.column, message)
            else:
                first[key.text] = key.line
                pairs.append((key, value))
        return Mapping(line, column, tuple(pairs), end)

    def _scalar(self, event: Any, around: Any) -> Scalar:
        line, column = _place(event)
        text = event.value
        if event.anchor is not None or event.tag is not None:
            self._mark(event, text)
            text = text or event.anchor or ""
        style = event.style
        end = event.end_mark
        is_one_line = end.line + 1 == line
        if style:
            if style == '"' and _HALF.search(text):  # it can be written with \\u only
                self._say(event, "half a character (\\ud800 to \\udfff): write the whole one")
                text = ""
            return Scalar(line, column, text, False, "", is_one_line)  # keywords would take twice as long
        if text[:1] > "~":  # what only looks like a blank, or a quote, is not ASCII
            if text[0].isspace():
                self._report(line, column, _traps.blank(text[0]))
                raise Enough
            if _traps.is_typographic(text):
                self._report(line, column, f"typographic quotes quote nothing: write {_traps.quote(text[1:-1])}")
                return Scalar(line, column, text[1:-1], plain=False)
        if not text:
            note = _traps.swallowed(self._rest(end))
            return Scalar(line, column, text, plain=True, note=note, is_one_line=is_one_line)
        if "?" in text and around is not None and around.flow_style:
            self._report(*_traps.question(line, column, text, self._rest(end), is_one_line=is_one_line))
        elif end.line in self._hashes and _traps.is_cut(self._rest(end)):
            self._report(line, column, _traps.cut(text, self._rest(end)))
        return Scalar(line, column, text, True, "", is_one_line)

    def _rest(self, end: Any) -> str:
        """Give what stands behind a scalar on its line."""
        return self._lines[end.line][end.column :] if end.line < len(self._lines) else ""

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
    mark = event.start_mark
    return mark.line + 1, mark.column + 1
