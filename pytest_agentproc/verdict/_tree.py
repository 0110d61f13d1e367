"""Owns the drawing of a run's processes as they were at the end: parents above children, each with its step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_agentproc.files import short_path
from pytest_agentproc.record import instant
from pytest_agentproc.verdict._facts import leaks
from pytest_agentproc.verdict._words import shortened, show_end

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_agentproc.record import Event, Record
    from pytest_agentproc.verdict._rows import Scenario

__all__ = ["tree"]

_MAX_LINES = 40
_COMMAND_CHARS = 100
_WIDEST = 60


@dataclass(slots=True)
class _Node:
    """One process, and those that it gave birth to."""

    name: str
    pid: int
    line: int
    depth: int
    above: _Node | None
    children: list[_Node] = field(default_factory=list)
    end: str = "not seen to end"
    is_left: bool = False
    command: str = ""


def tree(record: Record, scenario: Scenario) -> list[str]:
    """Draw every process that a run had: its name, pid and end, and the step that started it, or its command.

    A long drawing is cut: who was left, and who is above them, stays.

    Args:
        record: what happened.
        scenario: shows the steps as they are written in its file.

    Returns:
        the lines, one for each process; none if there was no process.
    """
    nodes = list(_in_order(_nodes(record)))
    kept = _kept(nodes)
    shown = [node for node in nodes if id(node) in kept]
    source = scenario.text.splitlines()
    pairs = [(_left_side(node), _right_side(node, short_path(scenario.path), source)) for node in shown]
    width = min(_WIDEST, max((len(left) for left, _ in pairs), default=0))
    lines = [f"{left:<{width}}  {right}".rstrip() for left, right in pairs]
    hidden = [node for node in nodes if id(node) not in kept]
    if hidden:
        left = sum(node.is_left for node in hidden)
        lines.append(f"... and {len(hidden)} more, {f'{left} of them left' if left else 'all gone'}")
    return lines


def _nodes(record: Record) -> list[_Node]:
    """Give the processes that the supervisor started, the others below them."""
    roots: list[_Node] = []
    known: dict[str, _Node] = {}
    for event in record.events:
        data = event.data
        if "by" in data:
            continue
        if event.code == "p" and "seen" in data:
            above = known.get(str(data.get("parent")))
            node = _Node(
                data["process"], data.get("pid") or 0, data.get("line") or 0, above.depth + 1 if above else 0, above
            )
            known[node.name] = node
            (above.children if above else roots).append(node)
        elif event.code == "x" and data["process"] in known:
            known[data["process"]].end = f"gone, {_how(event)}, at {instant(event.at)}"
    _mark_left(record, known)
    return roots


def _mark_left(record: Record, known: Mapping[str, _Node]) -> None:
    commands: Mapping[str, Sequence[str]] = record.header.get("argv", {})
    for name, node in known.items():
        if node.above is None:
            base = name.rpartition(" ")[0] if name not in commands else name
            node.command = " ".join(commands.get(base, ()))
    for leak in leaks(record):
        if (left := known.get(leak.process)) is not None:
            left.is_left = True
            left.command = " ".join(leak.argv) or left.command
            left.end = show_end(leak.state) + (f", {left.end.partition(', ')[2]}" if leak.state == "zombie" else "")


def _how(event: Event) -> str:
    code, signal = event.data.get("code"), event.data.get("signal")
    return f"signal {signal}" if signal else f"code {code}"


def _in_order(nodes: list[_Node]) -> Iterator[_Node]:
    waiting = nodes[::-1]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += node.children[::-1]


def _kept(nodes: list[_Node]) -> set[int]:
    """Choose whom there is room for: who was left with all above them first, then the others, in order."""
    kept: set[int] = set()
    for one in [*(node for node in nodes if node.is_left), *nodes]:
        line: list[_Node] = []
        above: _Node | None = one
        while above is not None and id(above) not in kept:
            line.append(above)
            above = above.above
        if len(kept) + len(line) <= _MAX_LINES:
            kept.update(id(node) for node in line)
    return kept


def _left_side(node: _Node) -> str:
    pid = f" (pid {node.pid})" if node.pid else ""
    return f"{'  ' * node.depth}{node.name}{pid}: {node.end}"


def _right_side(node: _Node, path: str, source: Sequence[str]) -> str:
    if not 0 < node.line <= len(source):
        return shortened(node.command, _COMMAND_CHARS)
    return f"{path}:{node.line}: {shortened(source[node.line - 1].strip(), _COMMAND_CHARS)}"
