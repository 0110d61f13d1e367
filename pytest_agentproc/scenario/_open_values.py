"""Owns open values: their places in a file, their options, and the text with each option chosen.

Four words stand where a value or a step could stand: `between` for one of a range, `one_of` for one of several,
`any_order` for steps in any order and `some_of` for any of several steps. A choice replaces text of the file: a closed
file is an ordinary scenario. Only the loader knows of open values.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_agentproc.errors import NotApplicable
from pytest_agentproc.scenario._expressions import (
    SIZE_MEASURE,
    TIME_MEASURE,
    Expression,
    ExpressionError,
    UnusableValue,
    evaluate_expression,
    parse_quantity,
)
from pytest_agentproc.scenario._yaml import YamlMapping, YamlNode, YamlScalar, YamlSequence, find_line_starts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


_FORM_BY_OPEN_WORD = {
    "between": "{between: [LOW, HIGH]}",
    "one_of": "{one_of: [A, B, ...]}",
    "any_order": "- any_order: [{STEP}, {STEP}, ...]",
    "some_of": "- some_of: [{STEP}, ...]",
}
"""How each is written, for messages."""
DOC_BY_OPEN_WORD = {
    "between": "any time, size or number from the one to the other; a plain run takes the lower bound",
    "one_of": "any one of these; a plain run takes the first",
    "any_order": "all of these steps, in any order; a plain run takes that of the file",
    "some_of": "any of these steps, in their order; a plain run takes all",
}
_PLAIN_DATA_KEYS = frozenset({"event", "input", "request_fields", "params", "usage"})
"""Keys whose values are data as it stands: a mapping with such a word in it is no open value there."""

MAX_OPEN_VALUE_OPTIONS = 20

OpenValueChoice = str | int | tuple[int, ...]
"""What is chosen of an opening: the text of a value (`between`), an index (`one_of`), indices (the other two)."""


@dataclass(frozen=True, slots=True)
class OpenValue:
    """One value that a file leaves open.

    Args:
        word: `between`, `one_of`, `any_order` or `some_of`.
        kind: of `between`: `time`, `size` or `number`; else "".
        options: the text of each option; of `between` the two bounds.
        start: where it begins in the file's text, and `stop` where it ends.
        line: its line in the file.
        column: its column there.
        spans: where each option stands in the file's text.
    """

    word: str
    kind: str
    options: tuple[str, ...]
    start: int
    stop: int
    line: int
    column: int
    spans: tuple[tuple[int, int], ...] = ()

    @property
    def default_choice(self) -> OpenValueChoice:
        """Give what a plain run plays: the lower bound, the first option, all steps as they are declared."""
        if self.word == "between":
            return self.options[0]
        return 0 if self.word == "one_of" else tuple(range(len(self.options)))

    def evaluate_bounds(self, limits: Mapping[str, int | None]) -> tuple[int, int] | None:
        """Give the range of a `between` in nanoseconds, bytes or units; None: it has none under these limits.

        Args:
            limits: every limit as a whole number, None where it is off; see `Policy.to_whole_limits`.
        """
        low, high = (_evaluate_choice_text(text, self.kind, limits) for text in self.options)
        return None if low is None or high is None or low > high else (low, high)

    def evaluate_choice_text(self, text: str, limits: Mapping[str, int | None]) -> int | None:
        """Evaluate the text of a choice of a `between`; None: it is no value under these limits."""
        return _evaluate_choice_text(text, self.kind, limits)

    def list_other_choices(self) -> list[OpenValueChoice]:
        """Give choices that, with the default, have every option read once: what the loader tries."""
        if self.word == "between":
            return [self.options[1]]
        return list(range(1, len(self.options))) if self.word == "one_of" else []


def _evaluate_choice_text(text: str, kind: str, limits: Mapping[str, int | None]) -> int | None:
    if kind == "number":
        return int(text)
    measure = TIME_MEASURE if kind == "time" else SIZE_MEASURE
    try:
        return evaluate_expression(Expression(text, 0, 0, parse_quantity(text, (), measure), measure), limits)
    except (NotApplicable, UnusableValue, ExpressionError):
        return None


def _get_open_word(node: YamlNode) -> str:
    """Name the word of an open value; "" if a node is none."""
    if isinstance(node, YamlMapping) and len(node.pairs) == 1 and node.pairs[0][0].text in _FORM_BY_OPEN_WORD:
        return node.pairs[0][0].text
    return ""


def _walk_open_values(node: YamlNode) -> Iterator[YamlMapping]:
    """Yield every open value below a node, the outer value before the inner."""
    if _get_open_word(node):
        assert isinstance(node, YamlMapping)
        yield node
    if isinstance(node, YamlMapping):
        for key, value in node.pairs:
            if key.text not in _PLAIN_DATA_KEYS:
                yield from _walk_open_values(value)
    elif isinstance(node, YamlSequence):
        for item in node.items:
            yield from _walk_open_values(item)


def find_open_values(
    root: YamlNode, text: str | None, report: Callable[[int, int, str], None]
) -> tuple[OpenValue, ...]:
    """List what a file leaves open, in the order of the file.

    Args:
        root: the file.
        text: its text, in which the openings have their places; None: it is Python data, which has none.
        report: gets each problem of an open value, with line and column.
    """
    if text is not None and "\\" not in text and not any(word in text for word in _FORM_BY_OPEN_WORD):
        return ()
    nodes = [*_walk_open_values(root)]
    starts = find_line_starts(text) if nodes and text is not None else []
    found = []
    for node in nodes:
        opening = _read_open_value(node, text, starts)
        if isinstance(opening, str):
            report(node.line, node.column, opening)
        else:
            found.append(opening)
    return tuple(found)


def _read_open_value(node: YamlMapping, text: str | None, starts: list[int]) -> OpenValue | str:
    """Read an open value, or say what is wrong with it."""
    word, options = node.pairs[0][0].text, node.pairs[0][1]
    if not isinstance(options, YamlSequence):
        return f"{word} must have a list: write {_FORM_BY_OPEN_WORD[word]}"
    if not options.items or len(options.items) > MAX_OPEN_VALUE_OPTIONS:
        return f"{word} has {len(options.items)} items: from 1 to {MAX_OPEN_VALUE_OPTIONS} are possible"
    kind = _detect_range_kind(options) if word == "between" else ""
    if word == "between" and not kind:
        return "between takes two times, two sizes or two whole numbers: write {between: [0s, 700s]}"
    plain = tuple(item.text for item in options.items if isinstance(item, YamlScalar)) if kind else ()
    if text is None:
        return OpenValue(word, kind, plain or ("",) * len(options.items), 0, 0, node.line, node.column)
    start = _compute_offset(node.line, node.column, starts)
    if options.end[0]:
        spans = _locate_list_items(options, text, starts)
        stop = _compute_offset(*(node.end if node.end[0] else options.end), starts)
    else:
        spans = _locate_block_items(options, text, starts)
        stop = spans[-1][1]
    if word not in ("between", "one_of") and not re.search(r"(^|\n|\r)[ ]*- $", text[:start]):
        return f"{word} stands for steps, on a line of its own: write {_FORM_BY_OPEN_WORD[word]}"
    texts = plain or tuple(text[first:last] for first, last in spans)
    return OpenValue(word, kind, texts, start, stop, node.line, node.column, spans)


def _detect_range_kind(options: YamlSequence) -> str:
    """Say of what a range is; "" if it is none."""
    texts = [item.text.strip() for item in options.items if isinstance(item, YamlScalar)]
    if len(texts) != 2 or len(options.items) != 2:  # noqa: PLR2004  # its two bounds
        return ""
    if all(re.fullmatch("[0-9]{1,9}", text) for text in texts):
        return "number"
    for kind, measure in (("time", TIME_MEASURE), ("size", SIZE_MEASURE)):
        try:
            for text in texts:
                parse_quantity(text, (), measure)
        except ExpressionError:
            continue
        return kind
    return ""


def _compute_offset(line: int, column: int, starts: list[int]) -> int:
    return starts[line - 1] + column - 1


def _locate_list_items(options: YamlSequence, text: str, starts: list[int]) -> tuple[tuple[int, int], ...]:
    """Find where each item of a list in brackets stands: up to the comma before the next one, or the bracket."""
    begins = [_compute_offset(item.line, item.column, starts) for item in options.items]
    ends = [_compute_offset(*options.end, starts) - 1]
    found: list[tuple[int, int]] = []
    for begin, after in zip(begins, [*begins[1:], ends[0]], strict=True):
        item = text[begin:after].rstrip()
        item = item.removesuffix(",").rstrip()
        found.append((begin, begin + len(item)))
    return tuple(found)


def _locate_block_items(options: YamlSequence, text: str, starts: list[int]) -> tuple[tuple[int, int], ...]:
    """Find where each item of a list without brackets stands: up to the last of its lines, which are indented more."""
    found: list[tuple[int, int]] = []
    for item in options.items:
        begin = _compute_offset(item.line, item.column, starts)
        indent = text.rindex("-", 0, begin) - starts[item.line - 1]
        stop = begin
        for line in range(item.line - 1, len(starts)):
            whole = text[starts[line] : starts[line + 1] if line + 1 < len(starts) else len(text)].rstrip()
            own = whole.lstrip(" ")
            if line >= item.line and own and len(whole) - len(own) <= indent:
                if own.startswith("#"):
                    continue
                break
            stop = starts[line] + len(whole) if own else stop
        found.append((begin, stop))
    return tuple(found)


def close_open_values(node: YamlNode, chosen: Mapping[tuple[int, int], tuple[OpenValue, OpenValueChoice]]) -> YamlNode:
    """Give a node with every open value below it chosen; what is chosen keeps its place in the file.

    Args:
        node: the file, or a part of it.
        chosen: by line and column of the opening.
    """
    if isinstance(node, YamlScalar):
        return node
    if isinstance(node, YamlSequence):
        items: list[YamlNode] = []
        for item in node.items:
            items += (
                _close_open_steps(item, chosen)
                if _get_open_word(item) in ("any_order", "some_of")
                else [close_open_values(item, chosen)]
            )
        return YamlSequence(node.line, node.column, tuple(items))
    word = _get_open_word(node)
    place = node.line, node.column
    if word and place in chosen:
        options = node.pairs[0][1]
        assert isinstance(options, YamlSequence)
        _, choice = chosen[place]
        if word == "between":
            same = next((item for item in options.items if isinstance(item, YamlScalar) and item.text == choice), None)
            return same or YamlScalar(*place, str(choice), plain=True)
        if word == "one_of":
            assert isinstance(choice, int)
            return close_open_values(options.items[choice], chosen)
    pairs = (
        (key, value if key.text in _PLAIN_DATA_KEYS else close_open_values(value, chosen)) for key, value in node.pairs
    )
    return YamlMapping(node.line, node.column, tuple(pairs), node.end)


def _close_open_steps(
    node: YamlNode, chosen: Mapping[tuple[int, int], tuple[OpenValue, OpenValueChoice]]
) -> list[YamlNode]:
    assert isinstance(node, YamlMapping)
    options = node.pairs[0][1]
    if (node.line, node.column) not in chosen:
        return []
    _, choice = chosen[node.line, node.column]
    assert isinstance(options, YamlSequence)
    assert isinstance(choice, tuple)
    return [close_open_values(options.items[index], chosen) for index in choice]


def fill_open_values(text: str, found: tuple[OpenValue, ...], choices: tuple[OpenValueChoice, ...]) -> str:
    """Give a file's text with every open value chosen.

    Args:
        text: the text.
        found: its openings.
        choices: what is chosen of each.
    """
    choice_by_place = dict(
        zip(((opening.start, opening.stop) for opening in found), zip(found, choices, strict=True), strict=True)
    )
    return _render_span(text, 0, len(text), choice_by_place)


def _render_span(
    text: str, start: int, stop: int, choices: dict[tuple[int, int], tuple[OpenValue, OpenValueChoice]]
) -> str:
    """Render a piece of the text, with the openings in it chosen."""
    parts: list[str] = []
    at = start
    for (first, last), (opening, choice) in choices.items():
        if first < at or last > stop:
            continue
        before, rendered = text[at:first], _render_choice(text, opening, choice, choices)
        if opening.word in ("any_order", "some_of"):
            head = re.search(r"[ ]*- $", before)
            assert head is not None, "the loader saw to it"
            before = before[: head.start()]
            lines = [f"{head[0]}{line}" for line in rendered] or [f"{head[0][:-2]}# nothing here"]
            parts += [before, _detect_newline(text).join(lines)]
        else:
            parts += [before, *rendered]
        at = last
    return "".join([*parts, text[at:stop]])


def _render_choice(text: str, opening: OpenValue, choice: OpenValueChoice, choices: dict[Any, Any]) -> list[str]:
    if isinstance(choice, str):
        return [choice]
    indices = (choice,) if isinstance(choice, int) else choice
    inside = {place: value for place, value in choices.items() if place != (opening.start, opening.stop)}
    return [
        _move_lines(_render_span(text, *opening.spans[index], inside), text, opening.spans[index][0], opening.start)
        for index in indices
    ]


def _move_lines(rendered: str, text: str, begin: int, start: int) -> str:
    """Indent the further lines of an item as its first one is, which moves from `begin` to `start`."""
    columns = [place - max(text.rfind("\n", 0, place), text.rfind("\r", 0, place)) for place in (begin, start)]
    by = columns[0] - columns[1]
    if by <= 0 or "\n" not in rendered:
        return rendered
    return re.sub(rf"(?<=\n) {{1,{by}}}", "", rendered)


def _detect_newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
