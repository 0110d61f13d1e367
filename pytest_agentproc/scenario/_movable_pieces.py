"""Owns the parts of a file that a search can move: times, pauses, cuts of bytes, the order of two steps.

A move replaces text of the file, so a moved file is an ordinary scenario. Whether it still means the same is not known
here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from pytest_agentproc.errors import NotApplicable
from pytest_agentproc.scenario._expressions import (
    TIME_MEASURE,
    Expression,
    ExpressionError,
    UnusableValue,
    evaluate_expression,
    find_limit_names,
    parse_quantity,
)
from pytest_agentproc.scenario._yaml import (
    YamlMapping,
    YamlNode,
    YamlScalar,
    YamlSequence,
    find_line_starts,
    parse_yaml,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_agentproc.scenario._scenario import Scenario


@dataclass(frozen=True, slots=True)
class MovablePiece:
    """One piece of a file that can be moved.

    Args:
        kind: `time`, `pause` (between two steps, or two actions of a caller: no time), `cut`, `chunk` (all that an
            agent writes, in pieces) or `order`.
        line: its line in the file.
        text: what stands there.
        start: where that begins in the file's text, and `stop` where it ends.
        options: other texts for its place; of a pause one with a gap for the time; of a time none.
        expression: the time; None for the other kinds.
        repeats: whether it says how often something happens, so that a much shorter or longer one has no end.
    """

    kind: str
    line: int
    text: str
    start: int
    stop: int
    options: tuple[str, ...] = ()
    expression: Expression | None = None
    repeats: bool = False

    def evaluate_time(self, limits: Mapping[str, int | None]) -> int | None:
        """Evaluate the time that stands there; None: it is none under these limits.

        Args:
            limits: every limit as a whole number, None where it is off; see `Policy.to_whole_limits`.
        """
        if self.expression is None:
            return 0 if self.kind == "pause" else None
        try:
            return evaluate_expression(self.expression, limits)
        except (NotApplicable, UnusableValue):
            return None

    def evaluate_replacement_time(self, text: str, limits: Mapping[str, int | None]) -> int | None:
        """Evaluate another time for this place, as `format_replacement_time` writes it; None: it is none."""
        if self.kind == "pause":
            before, after = self.options[0].format("\0").split("\0")
            text = text.removeprefix(before).removesuffix(after) or "0s"
        try:
            return evaluate_expression(Expression(text, 0, 0, parse_quantity(text), TIME_MEASURE), limits)
        except (NotApplicable, UnusableValue, ExpressionError):
            return None

    def format_replacement_time(self, worth: int, limits: Mapping[str, int | None]) -> str:
        """Write another time for this place; a time that names limits still names them.

        Args:
            worth: the time, in nanoseconds.
            limits: as in `evaluate_time`.
        """
        now = self.evaluate_time(limits)
        assert now is not None, "it is a time"
        if worth == now:
            return self.text
        if self.expression is None:
            return self.options[0].format(format_time(worth))
        if not find_limit_names(self.expression.tree):
            return format_time(worth)
        sign = "+" if worth > now else "-"
        return f"{self.text} {sign} {format_time(abs(worth - now))}"


def walk_nodes(node: YamlNode) -> Iterator[YamlNode]:
    """Yield a node and all below it, but for keys."""
    yield node
    below = [value for _, value in node.pairs] if isinstance(node, YamlMapping) else ()
    for inner in node.items if isinstance(node, YamlSequence) else below:
        yield from walk_nodes(inner)


def format_time(worth: int) -> str:
    """Write a time in the longest unit that is exact, up to seconds."""
    unit = next(unit for unit in ("s", "ms", "us", "ns") if worth % TIME_MEASURE.units[unit] == 0)
    return f"{worth // TIME_MEASURE.units[unit]}{unit}"


_QUOTED_TEXT_PATTERN = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^']|'')*'""")
_RAW_SOURCE_KEYS = ("text", "hex", "base64")
_MAX_BYTE_CUTS = 6
_CHUNK_SIZES_BYTES = (509, 61, 7)
"""Bytes of the pieces in which all is written: they end at ever other places of lines and characters."""
_LONG_OUTPUT_WORDS = {"flood", "size", "repeat"}
"""Words of a script that may write so much that small pieces of it would take for ever."""


def find_byte_cuts(root: YamlNode, text: str, starts: list[int]) -> Iterator[MovablePiece]:
    """Yield what can be cut, or be cut at other places.

    Args:
        root: the file's node.
        text: its text.
        starts: where each line of that begins.
    """
    words = {key.text for node in walk_nodes(root) for key, _ in (node.pairs if isinstance(node, YamlMapping) else ())}
    whole_writes = [node for writes in walk_nodes(root) for node in _find_values_of_key(writes, "one_write")]
    uncut = {id(node) for whole in whole_writes for node in walk_nodes(whole)}
    for node in walk_nodes(root):
        for value in () if id(node) in uncut else _find_values_of_key(node, "raw"):
            yield from _find_raw_step_cuts(value, text, starts)
    wholes = [
        root,
        *(
            own
            for named in _find_values_of_key(root, "sessions")
            if isinstance(named, YamlMapping)
            for _, own in named.pairs
        ),
    ]
    for node in () if words & _LONG_OUTPUT_WORDS else wholes:
        for value in _find_values_of_key(node, "agent"):
            yield from _find_chunk_sizes(value, text, starts)


def _find_values_of_key(node: YamlNode, name: str) -> list[YamlNode]:
    """Give what stands under a key of a node; a process may be called as a key is."""
    return [value for key, value in node.pairs if key.text == name] if isinstance(node, YamlMapping) else []


def _find_chunk_sizes(agent: YamlNode, text: str, starts: list[int]) -> Iterator[MovablePiece]:
    """Yield the writes of an agent: each of them in small pieces."""
    start = starts[agent.line - 1] + agent.column - 1
    if isinstance(agent, YamlScalar):
        whole, before, after = agent.text, f"{{dialect: {', mode: '.join(agent.text.split())}, ", "}"
    elif not isinstance(agent, YamlMapping) or any(key.text == "chunk" for key, _ in agent.pairs):
        return
    elif agent.end[0]:
        whole = text[start : starts[agent.end[0] - 1] + agent.end[1] - 1]
        before, after = "{", f", {whole[1:-1]}}}"
    else:
        whole, before, after = "", "", f"\n{' ' * (agent.column - 1)}"
    if text.startswith(whole, start):  # and not quoted, or a list's
        options = tuple(f"{before}chunk: {size} B{after}" for size in _CHUNK_SIZES_BYTES)
        yield MovablePiece("chunk", agent.line, whole, start, start + len(whole), options)


def _find_raw_step_cuts(value: YamlNode, text: str, starts: list[int]) -> Iterator[MovablePiece]:
    start = starts[value.line - 1] + value.column - 1
    if isinstance(value, YamlScalar):
        found = _QUOTED_TEXT_PATTERN.match(text, start)
        if found is not None and value.is_one_line:
            cuts = _choose_cut_offsets(len(value.text.encode()))
            options = tuple(f"{{text: {found[0]}, cut: [{cut}], gap: 1ms}}" for cut in cuts)
            yield MovablePiece("cut", value.line, found[0], start, found.end(), options)
    elif isinstance(value, YamlMapping):
        given = {key.text: node for key, node in value.pairs}
        own, source = given.get("cut"), next((given[name] for name in _RAW_SOURCE_KEYS if name in given), None)
        if isinstance(own, YamlSequence) and own.end[0]:
            yield from _vary_byte_cuts(own, text, starts)
        elif value.end[0] and isinstance(source, YamlScalar) and not {"size", "repeat", "cut"} & set(given):
            size = len(source.text.encode()) if "text" in given else len(source.text.split()) if "hex" in given else 0
            stop = starts[value.end[0] - 1] + value.end[1] - 1
            whole = text[start:stop]
            options = tuple(f"{whole[:-1]}, cut: [{cut}], gap: 1ms}}" for cut in _choose_cut_offsets(size))
            yield MovablePiece("cut", value.line, whole, start, stop, options)


def _vary_byte_cuts(own: YamlSequence, text: str, starts: list[int]) -> Iterator[MovablePiece]:
    """Yield a list of cuts, each of which may be a byte earlier or later, or not be made."""
    start = starts[own.line - 1] + own.column - 1
    stop = starts[own.end[0] - 1] + own.end[1] - 1
    cuts = [int(item.text) for item in own.items if isinstance(item, YamlScalar)]
    near = [[cut + by for cut in cuts] for by in (-1, 1)]
    fewer = [cuts[:index] + cuts[index + 1 :] for index in range(len(cuts)) if len(cuts) > 1]
    options = tuple(f"[{', '.join(map(str, other))}]" for other in [*near, *fewer])
    yield MovablePiece("cut", own.line, text[start:stop], start, stop, options)


def _choose_cut_offsets(size: int) -> list[int]:
    """Choose where bytes are cut: at their ends, and in between."""
    chosen = [1, size - 1, *(size * part // (_MAX_BYTE_CUTS - 1) for part in range(1, _MAX_BYTE_CUTS - 1))]
    return sorted({cut for cut in chosen if 0 < cut < size})


_STEP_LIST_KEYS = ("script", "scripts", "do", "meanwhile", "allowed", "denied")
_INSTANT_STEP_NAMES = {
    "say",
    "delta",
    "think",
    "tool",
    "tool_done",
    "notice",
    "plan",
    "begin",
    "raw",
    "flood",
    "result",
}
"""Steps that take no time; an answer is one, too, but nothing is the same behind it."""


def find_movable_pieces(scenario: Scenario) -> tuple[MovablePiece, ...]:
    """List what of a scenario can be moved, in the order of its file: one without open values, or there is none.

    Args:
        scenario: times in its scripts, its drive and its handlers can be moved; raw bytes be cut, or all that an agent
            writes; and a write to stderr change places with its neighbour, or a deed in one session with one in
            another.
    """
    if scenario.openings:
        return ()
    root = parse_yaml(scenario.text, lambda *_: None)
    assert root is not None, "it was loaded"
    starts = find_line_starts(scenario.text)
    found = [
        *_find_movable_times(scenario, starts),
        *_find_pause_places(root, scenario, starts),
        *find_byte_cuts(root, scenario.text, starts),
        *_find_swappable_neighbours(root, scenario.text, starts),
    ]
    return tuple(sorted(found, key=lambda movable: (movable.start, -movable.stop)))


def apply_moves(text: str, chosen: Iterable[tuple[MovablePiece, str]]) -> str:
    """Give a file's text with some of its pieces moved.

    Args:
        text: the text.
        chosen: pieces, each with the text for its place; of two changes that overlap, the wider one holds.
    """
    changes = [(movable.start, movable.stop, other) for movable, other in chosen if other != movable.text]
    return _replace_spans(text, changes)


def replace_expected_times(scenario: Scenario, times: Mapping[str, Sequence[int | None]]) -> str:
    """Give a file's text with other times in its expectations.

    Args:
        scenario: the file.
        times: by expect key, the time of each item that the key states, in nanoseconds; None: it stays.
    """
    starts = find_line_starts(scenario.text)
    changes = []
    for expected in scenario.expected:
        for number, expression in _find_stated_times(expected.value):
            at = times.get(expected.key, ())[number : number + 1]
            place = _locate_expression(expression, scenario.text, starts)
            if at and at[0] is not None and place is not None:
                changes.append((place, place + len(expression.text), format_time(at[0])))
    return _replace_spans(scenario.text, changes)


def _find_stated_times(value: Any) -> Iterator[tuple[int, Expression]]:
    """Yield the times that an expectation states, each with the number of its item."""
    for number, item in enumerate(value if isinstance(value, list) else [value]):
        yield from ((number, expression) for expression, _ in _find_expressions(item))


def _replace_spans(text: str, changes: list[tuple[int, int, str]]) -> str:
    parts, at = [], 0
    for start, stop, other in sorted(changes, key=lambda change: (change[0], -change[1])):
        if start >= at:
            parts += [text[at:start], other]
            at = stop
    return "".join([*parts, text[at:]])


def _find_expressions(value: Any) -> Iterator[tuple[Expression, bool]]:
    """Yield every time below a value of the language, and whether it is one of those that say how often."""
    if isinstance(value, Expression):
        if value.measure is TIME_MEASURE:
            yield value, False
    elif isinstance(value, dict):
        for inner in value.values():
            yield from ((expression, repeats or "every" in value) for expression, repeats in _find_expressions(inner))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _find_expressions(inner)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _find_expressions(getattr(value, field.name))


def _locate_expression(expression: Expression, text: str, starts: list[int]) -> int | None:
    """Find where a time stands in the text; None if it does not stand there as it is (quoted, or another's step)."""
    if not 0 < expression.line <= len(starts):
        return None
    place = starts[expression.line - 1] + expression.column - 1
    return place if text.startswith(expression.text, place) else None


def _find_movable_times(scenario: Scenario, starts: list[int]) -> Iterator[MovablePiece]:
    own = [scenario, *scenario.parts.values()]
    seen: set[int] = set()
    for expression, repeats in _find_expressions([scenario.drive, [[part.scripts, part.handlers] for part in own]]):
        start = _locate_expression(expression, scenario.text, starts)
        if start is not None and start not in seen:
            seen.add(start)
            text = expression.text
            stop = start + len(text)
            yield MovablePiece("time", expression.line, text, start, stop, expression=expression, repeats=repeats)


def _find_pause_places(root: YamlNode, scenario: Scenario, starts: list[int]) -> Iterator[MovablePiece]:
    """Yield the places before steps, and between the actions of a caller who has one session."""
    for node in walk_nodes(root):
        for key, value in node.pairs if isinstance(node, YamlMapping) else ():
            if key.text in _STEP_LIST_KEYS and isinstance(value, YamlSequence):
                lists = [item for item in value.items if isinstance(item, YamlSequence)] or [value]
                yield from (pause for part in lists for pause in _find_pause_places_in_list(part, 0, "silence", starts))
            elif key.text == "drive" and isinstance(value, YamlSequence) and scenario.is_session and not scenario.parts:
                yield from _find_pause_places_in_list(value, 1, "wait", starts)


def _find_pause_places_in_list(steps: YamlSequence, first: int, word: str, starts: list[int]) -> Iterator[MovablePiece]:
    for item in steps.items[first:]:
        start = starts[item.line - 1] + item.column - 1
        own = f"{{{{{word}: {{}}}}}}, " if steps.end[0] else f"{word}: {{}}\n{' ' * (item.column - 3)}- "
        yield MovablePiece("pause", item.line, "", start, start, (own,))


def _find_swappable_neighbours(root: YamlNode, text: str, starts: list[int]) -> Iterator[MovablePiece]:
    """Yield neighbours that take no time and have nothing to do with one another, in the other order."""
    for node in walk_nodes(root):
        for key, value in node.pairs if isinstance(node, YamlMapping) else ():
            if not isinstance(value, YamlSequence):
                continue
            fits = _are_independent_actions if key.text == "drive" else _are_independent_steps
            for first, second in zip(value.items, value.items[1:], strict=False):
                if fits(first, second):
                    yield from _swap_neighbours(first, second, text, starts)


def _are_independent_actions(node: YamlNode, other: YamlNode) -> bool:
    first, second = _index_values_by_key(node), _index_values_by_key(other)
    timed = {"wait", "wait_for", "at", "after"} & {*first, *second}
    own = [given.get("session") for given in (first, second)]
    return not timed and all(isinstance(node, YamlScalar) for node in own) and own[0].text != own[1].text  # type: ignore[union-attr]


def _are_independent_steps(node: YamlNode, other: YamlNode) -> bool:
    given = _index_values_by_key(node), _index_values_by_key(other)
    return (
        all(_INSTANT_STEP_NAMES & set(keys) for keys in given) and len({_writes_to_stderr(keys) for keys in given}) > 1
    )


def _index_values_by_key(node: YamlNode) -> dict[str, YamlNode]:
    return {key.text: value for key, value in node.pairs} if isinstance(node, YamlMapping) else {}


def _writes_to_stderr(step: dict[str, YamlNode]) -> bool:
    raw, flood = (
        _index_values_by_key(step.get("raw", _EMPTY_MAPPING_NODE)),
        _index_values_by_key(step.get("flood", _EMPTY_MAPPING_NODE)),
    )
    to = raw.get("to")
    return "stderr" in flood or (isinstance(to, YamlScalar) and to.text == "stderr")


_EMPTY_MAPPING_NODE = YamlMapping(0, 0, ())


def _swap_neighbours(node: YamlNode, other: YamlNode, text: str, starts: list[int]) -> Iterator[MovablePiece]:
    first, second = _locate_list_item(node, text, starts), _locate_list_item(other, text, starts)
    if first is None or second is None:
        return
    (start, end), (begin, stop) = first, second
    other_text = text[begin:stop] + text[end:begin] + text[start:end]
    yield MovablePiece("order", node.line, text[start:stop], start, stop, (other_text,))


def _locate_list_item(node: YamlNode, text: str, starts: list[int]) -> tuple[int, int] | None:
    """Find where an item of a list stands, if it stands on one line."""
    start = starts[node.line - 1] + node.column - 1
    if isinstance(node, YamlMapping) and node.end[0]:
        return start, starts[node.end[0] - 1] + node.end[1] - 1
    last = max(inner.line for inner in walk_nodes(node))
    line = re.compile(r"[^\r\n#]*").match(text, start)
    is_whole = last == node.line and line is not None and text[line.end() : line.end() + 1] != "#"
    return (start, start + len(line[0].rstrip())) if is_whole and line is not None else None
