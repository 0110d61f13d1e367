"""Owns where the bytes of a file's agents can be cut: raw bytes at other places, and all that an agent writes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_agentproc.scenario._nodes import Mapping, Node, Scalar, Sequence
from pytest_agentproc.scenario._pieces import Movable, nodes_of

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["cuts"]

_QUOTED = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^']|'')*'""")
_SOURCES = ("text", "hex", "base64")
_MOST_CUTS = 6
_CHUNKS = (509, 61, 7)
"""Bytes of the pieces in which all is written: they end at ever other places of lines and characters."""
_LONG = {"flood", "size", "repeat"}
"""Words of a script that may write so much that small pieces of it would take for ever."""


def cuts(root: Node, text: str, starts: list[int]) -> Iterator[Movable]:
    """Yield what can be cut, or be cut at other places.

    Args:
        root: the file's node.
        text: its text.
        starts: where each line of that begins.
    """
    words = {key.text for node in nodes_of(root) for key, _ in (node.pairs if isinstance(node, Mapping) else ())}
    for node in nodes_of(root):
        for value in _under(node, "raw"):
            yield from _cut(value, text, starts)
    wholes = [
        root,
        *(own for named in _under(root, "sessions") if isinstance(named, Mapping) for _, own in named.pairs),
    ]
    for node in () if words & _LONG else wholes:
        for value in _under(node, "agent"):
            yield from _in_chunks(value, text, starts)


def _under(node: Node, name: str) -> list[Node]:
    """Give what stands under a key of a node; a process may be called as a key is."""
    return [value for key, value in node.pairs if key.text == name] if isinstance(node, Mapping) else []


def _in_chunks(agent: Node, text: str, starts: list[int]) -> Iterator[Movable]:
    """Yield the writes of an agent: each of them in small pieces."""
    start = starts[agent.line - 1] + agent.column - 1
    if isinstance(agent, Scalar):
        whole, own = agent.text, f"{{{{dialect: {agent.text}, {{}}}}}}"
    elif not isinstance(agent, Mapping) or any(key.text == "chunk" for key, _ in agent.pairs):
        return
    elif agent.end[0]:
        whole = text[start : starts[agent.end[0] - 1] + agent.end[1] - 1]
        own = f"{{{{{{}}, {whole[1:-1]}}}}}"
    else:
        whole, own = "", f"{{}}\n{' ' * (agent.column - 1)}"
    if text.startswith(whole, start):  # and not quoted, or a list's
        options = tuple(own.format(f"chunk: {size} B") for size in _CHUNKS)
        yield Movable("chunk", agent.line, whole, start, start + len(whole), options)


def _cut(value: Node, text: str, starts: list[int]) -> Iterator[Movable]:
    start = starts[value.line - 1] + value.column - 1
    if isinstance(value, Scalar):
        found = _QUOTED.match(text, start)
        if found is not None and value.is_one_line:
            cuts = _offsets(len(value.text.encode()))
            options = tuple(f"{{text: {found[0]}, cut: [{cut}], gap: 1ms}}" for cut in cuts)
            yield Movable("cut", value.line, found[0], start, found.end(), options)
    elif isinstance(value, Mapping):
        given = {key.text: node for key, node in value.pairs}
        own, source = given.get("cut"), next((given[name] for name in _SOURCES if name in given), None)
        if isinstance(own, Sequence) and own.end[0]:
            yield from _other_cuts(own, text, starts)
        elif value.end[0] and isinstance(source, Scalar) and not {"size", "repeat", "cut"} & set(given):
            size = len(source.text.encode()) if "text" in given else len(source.text.split()) if "hex" in given else 0
            stop = starts[value.end[0] - 1] + value.end[1] - 1
            whole = text[start:stop]
            options = tuple(f"{whole[:-1]}, cut: [{cut}], gap: 1ms}}" for cut in _offsets(size))
            yield Movable("cut", value.line, whole, start, stop, options)


def _other_cuts(own: Sequence, text: str, starts: list[int]) -> Iterator[Movable]:
    """Yield a list of cuts, each of which may be a byte earlier or later, or not be made."""
    start = starts[own.line - 1] + own.column - 1
    stop = starts[own.end[0] - 1] + own.end[1] - 1
    cuts = [int(item.text) for item in own.items if isinstance(item, Scalar)]
    near = [[cut + by for cut in cuts] for by in (-1, 1)]
    fewer = [cuts[:index] + cuts[index + 1 :] for index in range(len(cuts)) if len(cuts) > 1]
    options = tuple(f"[{', '.join(map(str, one))}]" for one in [*near, *fewer])
    yield Movable("cut", own.line, text[start:stop], start, stop, options)


def _offsets(size: int) -> list[int]:
    """Choose where bytes are cut: at their ends, and in between."""
    chosen = [1, size - 1, *(size * part // (_MOST_CUTS - 1) for part in range(1, _MOST_CUTS - 1))]
    return sorted({cut for cut in chosen if 0 < cut < size})
