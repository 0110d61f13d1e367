"""Owns YAML: text in, nodes with line and column out, and what to write where YAML hides a mistake. Knows no key.

The one home of PyYAML. Scalars stay text (the field that reads one decides what it is), duplicate keys, aliases,
anchors and tags are refused, and mistakes that YAML hides get a message that says what to write.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from pytest_agentproc.errors import ScenarioError, ScenarioProblem
from pytest_agentproc.scenario._suggestions import (
    describe_unknown_word,
    escape_and_shorten,
    join_choices,
    shorten_text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


MAX_NESTING_LEVELS = 40
TOO_DEEP_MESSAGE = f"nested deeper than {MAX_NESTING_LEVELS} levels"

_MAX_BYTES_SHOWN = 20

PlaceAndMessage = tuple[int, int, str]

_ESCAPED_CHARACTER_PATTERN = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
"""What a file has as an escape, or not at all."""

_ESCAPE_TRANSLATION = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"})
_LINE_END_PATTERN = re.compile("\r\n|[\n\r]")
_KEY_AND_VALUE_PATTERN = re.compile(r"^[\s\-]*[{\[]?\s*([\w.-]+):\s+(\S.*?)\s*$")


def quote_for_message(text: str) -> str:
    """Write a text as YAML reads it back: in double quotes, escaped; a long one is cut, for it is for a message."""
    return f'"{shorten_text(text).translate(_ESCAPE_TRANSLATION)}"'


def quote_yaml_text(text: str) -> str:
    """Write a text in double quotes, as a file has it, whatever its characters; half of one is U+FFFD."""
    return _ESCAPED_CHARACTER_PATTERN.sub(_escape_character, json.dumps(text, ensure_ascii=False))


def _escape_character(found: re.Match[str]) -> str:
    number = ord(found[0])
    return "\ufffd" if 0xD800 <= number <= 0xDFFF else f"\\u{number:04x}"  # noqa: PLR2004  # half a character


def find_position(text: str, index: int) -> tuple[int, int]:
    """Give line and column, from 1, of a character."""
    before = _LINE_END_PATTERN.split(text[:index])
    return len(before), len(before[-1]) + 1


def find_line_starts(text: str) -> list[int]:
    """Find the index at which each line begins."""
    return [0, *(match.end() for match in _LINE_END_PATTERN.finditer(text))]


def describe_reserved_start(sign: str, rest: str, feature: str = "") -> str:
    """Say that an unquoted text begins with a character that YAML keeps for itself.

    Args:
        sign: the character.
        rest: what follows it.
        feature: what YAML has it for, and a scenario does not; it may be what was meant.
    """
    written = f"write {quote_for_message(sign + rest)}"
    if feature:
        return f'{feature} are not supported: write the value again, or for a text that begins with "{sign}" {written}'
    return f'unquoted text begins with "{sign}": {written}'


def describe_question_mark(line: int, column: int, text: str, rest: str, *, is_one_line: bool) -> PlaceAndMessage:
    """Say that `?` in unquoted text inside brackets is read differently from parser to parser."""
    follower = rest.lstrip()[:1]
    if text.endswith("?") and follower:
        where, message = (
            len(text) - 1,
            f'unquoted text ends in "?" before "{follower}": write {quote_for_message(text)}',
        )
    else:
        where, message = text.index("?"), f'unquoted text has "?" in it: write {quote_for_message(text)}'
    return line, column + (where if is_one_line else 0), message


def describe_lookalike_blank(char: str) -> str:
    """Say that a character only looks like a blank."""
    return f"U+{ord(char):04X} looks like a blank, but is none for YAML: write a plain one"


def has_typographic_quotes(text: str) -> bool:
    """Tell whether a text stands in quotes that YAML does not know."""
    return (
        len(text) > 1
        and text[0] in "\u201c\u201d\u201e\u2018\u2019\u00ab"
        and text[-1] in "\u201c\u201d\u2018\u2019\u00bb"
    )


def is_cut_by_comment(rest: str) -> bool:
    """Tell whether what looks like the rest of a text was taken for a comment."""
    return re.match(r"\s+#\w", rest) is not None  # a sign after it, as in "#?", makes no word of a text


def describe_comment_cut(text: str, rest: str) -> str:
    """Say that " #" ended an unquoted text."""
    whole = quote_for_message(f"{text}{rest.rstrip()}")
    return f'unquoted text ends before " #": write {whole}, or "# " for a comment'


def describe_swallowed_value(rest: str) -> str:
    """Say what became of a value that YAML took for a comment; empty if there is none."""
    found = re.match(r"\s*(#\S.*?)\s*$", rest)
    return f'text that begins with "#" is a comment: write {quote_for_message(found.group(1))}' if found else ""


def describe_comma_cut(rest: str, whole: str) -> str:
    """Say that a comma ended an unquoted text inside braces."""
    return f'{quote_for_message(rest)} has no ":" after it: write {quote_for_message(whole)} if that is one text'


def explain_parse_error(lines: list[str], error: Any) -> PlaceAndMessage:
    """Turn a parser's complaint into what a person can act on."""
    mark, start = error.problem_mark, error.context_mark
    line, column = (mark.line, mark.column) if mark is not None else (0, 0)
    conflict = next((number for number, text in enumerate(lines, 1) if text.startswith("<<<<<<< ")), 0)
    if conflict:
        return conflict, 1, "a merge conflict is left here: keep one side, and delete the three marks"
    if start is not None and start.line < len(lines):
        message = _explain_bad_start(str(error.problem), lines[start.line], start.column)
        if message:
            return start.line + 1, start.column + 1, message
        if _is_bracket_open(str(error.problem), lines[start.line], lines[min(line, len(lines) - 1)], line - start.line):
            return _locate_unclosed_bracket(lines, start)
    if line >= len(lines) and start is not None:
        return _locate_unclosed_bracket(lines, start)
    source = lines[line] if line < len(lines) else ""
    return line + 1, column + 1, _explain_at_error_mark(str(error.problem), source, column)


def _explain_bad_start(problem: str, source: str, column: int) -> str:
    """Say what is wrong where something begins, if the parser only stumbled over its end."""
    if "end of stream" in problem:
        return "this quote is never closed"
    if "comment or line break" in problem:
        return describe_reserved_start(source[column], source[column + 1 :].rstrip())
    if "expected ':'" not in problem:
        return ""
    text = _read_value_text(source, column)
    found = re.fullmatch(r"([\w.-]+):(\s*)(\S.*)", text)
    if found is None:
        return f'a ":" is missing: a line is "key: value", not {quote_for_message(text)}'
    if found[2]:
        return describe_lookalike_blank(found[2][0])
    return f'a blank is missing after ":": write {quote_for_message(f"{found[1]}: {found[3]}")}'


def _is_bracket_open(problem: str, first: str, last: str, lines: int) -> bool:
    """Tell whether a bracket is still open where a line begins that is indented as little as the bracket's own."""
    return lines > 0 and "expected ','" in problem and _measure_indent(last) <= _measure_indent(first)


def _measure_indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _explain_at_error_mark(problem: str, source: str, column: int) -> str:
    here = source[column : column + 1]
    if here == "\t" and "cannot start any token" in problem:
        return "a tab cannot indent: use spaces"
    if "mapping values are not allowed" in problem or (here == ":" and "expected" in problem):
        return _explain_second_colon(source, column)
    if "cannot start any token" in problem or "mapping keys are not allowed" in problem:
        return describe_reserved_start(here, _read_value_text(source, column + 1))
    known = {
        # libyaml looks a line ahead at an open bracket, and has a limit of its own from 0.2.6 on
        "nesting": TOO_DEEP_MESSAGE,
        "sequence entries": "a list begins on a line of its own; a text is quoted: "
        + quote_for_message(source[column:].strip()),
        "escape": "unknown escape in a \"...\" text: write \\\\ for a backslash, or use '...'",
        "'-' indicator": "the indentation does not fit the lines above",
        "document": "one file is one scenario: no directives, no second document",
    }
    for part, message in known.items():
        if part in problem:
            return message
    return _explain_early_value_end(source, column) or _explain_by_parser_message(problem)


def _explain_by_parser_message(problem: str) -> str:
    if "expected key" in problem or "<block end>" in problem:
        return "the indentation does not fit the lines above"
    return f"not YAML: {problem}"


def _locate_unclosed_bracket(lines: list[str], start: Any) -> PlaceAndMessage:
    sign = lines[start.line][start.column : start.column + 1] if start.line < len(lines) else ""
    if sign in ("{", "["):
        return start.line + 1, start.column + 1, f'"{sign}" is never closed'
    return max(len(lines), 1), 1, 'the file ends inside "{" or "["'


def _read_value_text(source: str, column: int) -> str:
    return re.split(r"\s+#|[,}\]]", source[column:])[0].rstrip()


def _explain_second_colon(source: str, column: int) -> str:
    found = _KEY_AND_VALUE_PATTERN.match(source)
    if found and found.start(2) <= column:
        start = max(source.rfind(mark, 0, column) for mark in (": ", ", ", "{")) + 1
        text = source[start:].strip()
        if "{" in source[:column]:
            text = re.split(r"[,}\]]", text)[0].rstrip()
        return f'unquoted text has ":" in it: write {quote_for_message(text)}'
    return "a key stands where none can: look at the indentation of this line and the one before"


def _explain_early_value_end(source: str, column: int) -> str:
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


_YAML_LOADER_CLASS: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_SURROGATE_PATTERN = re.compile("[\ud800-\udfff]")

ProblemReporter = Callable[[int, int, str], None]


class StopReading(Exception):
    """Reading on could only cost time, or repeat what was said."""


AS_WRITTEN: Any = object()
"""The value of a scalar that is its text."""


class YamlScalar(NamedTuple):
    """A piece of text; `note` is what to say when a reader finds it empty.

    A place inside the text is a place in the file only if it stands on one line there. `value` is the Python value that
    stands there if that is no text: None, a truth value, a number, bytes or a timedelta.
    """

    line: int
    column: int
    text: str
    plain: bool
    note: str = ""
    is_one_line: bool = True
    value: Any = AS_WRITTEN


class YamlSequence(NamedTuple):
    """A list; `end` is the place after its closing bracket, (0, 0) if it has none."""

    line: int
    column: int
    items: tuple[YamlNode, ...]
    end: tuple[int, int] = (0, 0)


class YamlMapping(NamedTuple):
    """Keys with values, in the order of the file; `end` is the place after its closing brace, (0, 0) if none."""

    line: int
    column: int
    pairs: tuple[tuple[YamlScalar, YamlNode], ...]
    end: tuple[int, int] = (0, 0)


YamlNode = YamlScalar | YamlSequence | YamlMapping


def describe_node(node: YamlNode) -> str:
    """Say what stands there, short enough for a message."""
    if isinstance(node, YamlSequence):
        return "a list"
    if isinstance(node, YamlMapping):
        return "a mapping"
    if node.value is not AS_WRITTEN:
        return describe_value(node.value)
    if node.plain and not node.text:
        return "nothing"
    return quote_for_message(node.text)


def describe_value(value: object) -> str:
    """Show a Python value, short enough for a message."""
    if isinstance(value, str):
        return quote_for_message(value)
    try:
        shown = repr(value[:_MAX_BYTES_SHOWN]) if isinstance(value, bytes) else repr(value)
    except Exception:  # noqa: BLE001  # it is theirs, whatever it is
        return f"an object of {type(value).__name__}"
    is_cut = isinstance(value, bytes) and len(value) > _MAX_BYTES_SHOWN
    return f"{shown}..." if is_cut else shorten_text(shown)


def is_nothing(node: YamlNode, word: str) -> bool:
    """Say whether a node is the bare word for nothing, or in Python data None; in quotes the word is a text."""
    return isinstance(node, YamlScalar) and node.plain and (node.text == word or node.value is None)


def format_node_inline(node: YamlNode) -> str:
    """Write a node as it may stand inside brackets, in YAML and in Python if it is a text in quotes."""
    if not isinstance(node, YamlScalar):
        return "..."
    if node.value is not AS_WRITTEN:
        return describe_value(node.value)
    is_plain = node.plain and re.fullmatch(r"[\w.]([\w .-]*[\w.-])?", node.text)
    return node.text if is_plain else quote_for_message(node.text)


def parse_yaml(text: str, report: ProblemReporter) -> YamlNode | None:
    """Read one YAML document; every mistake goes to `report` with its line and column, both from 1."""
    builder = _NodeBuilder(text, report)
    try:
        builder.build_root_node()
    except yaml.MarkedYAMLError as error:
        report(*explain_parse_error(text.splitlines(), error))
        return None
    except (yaml.reader.ReaderError, UnicodeEncodeError) as error:  # the latter: half of a surrogate pair
        place = error.start if isinstance(error, UnicodeEncodeError) else error.position
        line, column = find_position(text, place)
        report(line, column, "a character that YAML does not allow: write it in a quoted text, as \\x07 for example")
        return None
    except StopReading:
        return None
    if builder.root is None:
        report(1, 1, "the file is empty")
    return builder.root


class _NodeBuilder:
    """Turns the flat stream of YAML events into nodes.

    A session reads thousands of files before its first test, so right lines are read with few calls. Only a line that
    may be wrong is inspected closely.
    """

    def __init__(self, text: str, report: ProblemReporter) -> None:
        self.root: YamlNode | None = None
        self._text = text
        self._lines = text.splitlines()
        self._hashes = {index for index, line in enumerate(self._lines) if "#" in line} if "#" in text else set()
        self._report = report
        self._documents = 0

    def build_root_node(self) -> None:
        """Take every event, each with the collections that are open around it."""
        loader = _YAML_LOADER_CLASS(self._text)
        try:
            self._build_nodes(loader.get_event)
        finally:
            loader.dispose()

    def _build_nodes(self, next_event: Callable[[], Any]) -> None:
        around: list[tuple[Any, list[YamlNode]]] = []
        items: list[YamlNode] = []
        start: Any = None
        while (event := next_event()) is not None:
            kind = type(event)
            if kind is yaml.ScalarEvent:
                items.append(self._build_scalar(event, start))
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                if event.anchor is not None or event.tag is not None:
                    self._report_anchor_or_tag(event, "")
                around.append((start, items))
                start, items = event, []
                if len(around) > MAX_NESTING_LEVELS:
                    self._report_at_event(event, TOO_DEEP_MESSAGE)
                    raise StopReading
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                node = self._build_collection(start, items, event.end_mark)
                start, items = around.pop()
                items.append(node)
            else:
                items += self._report_unsupported_event(event)
        self.root = items[0] if items else None

    def _report_unsupported_event(self, event: Any) -> list[YamlNode]:
        """Refuse what no scenario has; an alias stands where it is, as text."""
        if type(event) is yaml.DocumentStartEvent:
            self._documents += 1
            if self._documents > 1:
                self._report_at_event(event, "a second document begins here: one file is one scenario")
        elif type(event) is yaml.AliasEvent:
            name = str(event.anchor)
            self._report_at_event(event, describe_reserved_start("*", name, "aliases"))
            return [YamlScalar(*_locate_event(event), name, plain=True)]
        return []

    def _build_collection(self, start: Any, items: list[YamlNode], end_mark: Any) -> YamlNode:
        line, column = _locate_event(start)
        end = (end_mark.line + 1, end_mark.column + 1) if start.flow_style else (0, 0)
        if type(start) is yaml.SequenceStartEvent:
            return YamlSequence(line, column, tuple(items), end)
        first: dict[str, int] = {}
        pairs: list[tuple[YamlScalar, YamlNode]] = []
        whole = ""
        each = iter(items)
        for key, value in zip(each, each, strict=True):
            if type(key) is not YamlScalar:
                self._report(key.line, key.column, f"a key must be a word, not {describe_node(key)}")
            elif (
                pairs and type(before := pairs[-1][1]) is YamlScalar and before.plain and self._has_no_colon(key, value)
            ):
                whole = f"{whole or before.text}, {key.text}"
                self._report(key.line, key.column, describe_comma_cut(key.text, whole))
            elif key.text in first:
                message = f"{quote_for_message(key.text)} is given twice (first in line {first[key.text]})"
                self._report(key.line, key.column, message)
            else:
                first[key.text], whole = key.line, ""
                pairs.append((key, value))
        return YamlMapping(line, column, tuple(pairs), end)

    def _has_no_colon(self, key: YamlScalar, value: YamlNode) -> bool:
        """Say whether a key inside braces has no value because there is no colon after it."""
        if type(value) is not YamlScalar or value.text or not key.plain or not key.is_one_line:
            return False
        return not self._lines[key.line - 1][key.column - 1 + len(key.text) :].lstrip().startswith(":")

    def _build_scalar(self, event: Any, around: Any) -> YamlScalar:
        line, column = _locate_event(event)
        text = event.value
        if event.anchor is not None or event.tag is not None:
            self._report_anchor_or_tag(event, text)
            text = text or event.anchor or ""
        style = event.style
        end = event.end_mark
        is_one_line = end.line + 1 == line
        if style:
            if style == '"' and _SURROGATE_PATTERN.search(text):  # it can be written with \\u only
                self._report_at_event(event, "half a character (\\ud800 to \\udfff): write the whole one")
                text = ""
            return YamlScalar(line, column, text, False, "", is_one_line)  # keywords would take twice as long
        if text[:1] > "~":  # what only looks like a blank, or a quote, is not ASCII
            if text[0].isspace():
                self._report(line, column, describe_lookalike_blank(text[0]))
                raise StopReading
            if has_typographic_quotes(text):
                self._report(line, column, f"typographic quotes quote nothing: write {quote_for_message(text[1:-1])}")
                return YamlScalar(line, column, text[1:-1], plain=False)
        if not text:
            note = describe_swallowed_value(self._read_line_rest(end))
            return YamlScalar(line, column, text, plain=True, note=note, is_one_line=is_one_line)
        if "?" in text and around is not None and around.flow_style:
            self._report(
                *describe_question_mark(line, column, text, self._read_line_rest(end), is_one_line=is_one_line)
            )
        elif end.line in self._hashes and is_cut_by_comment(self._read_line_rest(end)):
            self._report(line, column, describe_comment_cut(text, self._read_line_rest(end)))
        return YamlScalar(line, column, text, True, "", is_one_line)

    def _read_line_rest(self, end: Any) -> str:
        """Give the text after a scalar on its line."""
        return self._lines[end.line][end.column :] if end.line < len(self._lines) else ""

    def _report_anchor_or_tag(self, event: Any, text: str) -> None:
        """Refuse anchors and tags: in a scenario they are text without the quotes that it needs."""
        if event.anchor is not None:
            self._report_at_event(event, describe_reserved_start("&", f"{event.anchor} {text}".rstrip(), "anchors"))
        elif event.tag is not None:
            tag = str(event.tag).removeprefix("!").replace("tag:yaml.org,2002:", "!")
            self._report_at_event(event, describe_reserved_start("!", f"{tag} {text}".rstrip()))

    def _report_at_event(self, event: Any, message: str) -> None:
        self._report(*_locate_event(event), message)


def _locate_event(event: Any) -> tuple[int, int]:
    mark = event.start_mark
    return mark.line + 1, mark.column + 1


@dataclass(frozen=True, slots=True)
class ListEntry:
    """One entry: the line on which it begins, and its values as text."""

    line: int
    values: Mapping[str, str]


def read_list_entries(
    text: str, name: str, required: tuple[str, ...], optional: tuple[str, ...] = ()
) -> tuple[ListEntry, ...]:
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
    problems: list[ScenarioProblem] = []

    def report(line: int, column: int, message: str) -> None:
        problems.append(ScenarioProblem(name, line, column, escape_and_shorten(message)))

    root = parse_yaml(text, report)
    found: list[ListEntry] = []
    if isinstance(root, YamlSequence):
        found = [_read_list_entry(item, (*required, *optional), required, report) for item in root.items]
    elif root is not None:
        report(root.line, root.column, f'there must be a list, not {describe_node(root)}: write "- " before each entry')
    if problems:
        raise ScenarioError(list(dict.fromkeys(problems)))
    return tuple(found)


def _read_list_entry(
    item: YamlNode, keys: tuple[str, ...], required: tuple[str, ...], report: ProblemReporter
) -> ListEntry:
    values: dict[str, str] = {}
    if not isinstance(item, YamlMapping):
        report(
            item.line,
            item.column,
            f"an entry must have the keys {join_choices(required, 'and')}, not {describe_node(item)}",
        )
        return ListEntry(item.line, values)
    for key, value in item.pairs:
        if key.text not in keys:
            report(key.line, key.column, describe_unknown_word("key", key.text, keys))
        elif not isinstance(value, YamlScalar) or not value.text.strip():
            report(value.line, value.column, f"{key.text} must be text, not {describe_node(value)}")
        else:
            values[key.text] = value.text.strip()
    missing = [key for key in required if key not in {key.text for key, _ in item.pairs}]
    if missing:
        report(item.line, item.column, f"the entry has no {join_choices(missing)}: write {missing[0]}: ...")
    return ListEntry(item.line, values)
