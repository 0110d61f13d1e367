"""Owns `agent: {each: [...]}`: one file that runs once for each of several agents. Refuses to know what an agent is.

A file is loaded for one of its agents at a time: `choose` puts that agent's dialect and mode in the place of the list,
and `narrow` gives the text of a file for that agent alone. Everything after that sees an ordinary file.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from pytest_agentproc.scenario._nodes import Mapping, Node, Scalar, Sequence, parse

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Each", "agents_of", "choose", "find_each", "narrow"]

_FORM = "write each: [claude, gemini stream, ...]"


class Each(NamedTuple):
    """The agents of a file, by name, each with the scalars of its dialect and its mode.

    `start` and `end` are the places of the list's brackets in the file: line and column, from 1.
    """

    agents: dict[str, tuple[Scalar, ...]]
    start: tuple[int, int]
    end: tuple[int, int]


def find_each(root: Node, report: Callable[[int, int, str], None]) -> Each | None:
    """Find the list of agents; None if the file has none, or a wrong one.

    Args:
        root: the file.
        report: takes line, column and message of each mistake in the list.
    """
    listed = _listed(root)
    if listed is None or _is_beside(root, report):
        return None
    if not isinstance(listed, Sequence) or not listed.end[0] or not listed.items:
        report(listed.line, listed.column, f"each must be a list in brackets: {_FORM}")
        return None
    found: list[tuple[Scalar, ...]] = []
    for item in listed.items:
        words = item.text.split() if isinstance(item, Scalar) else []
        if not isinstance(item, Scalar) or len(words) not in (1, 2):
            report(item.line, item.column, f"each item of each must be a dialect, or a dialect and a mode: {_FORM}")
            return None
        scalars = tuple(item._replace(text=word, column=item.column + item.text.find(word)) for word in words)
        if _words(scalars) in map(_words, found):
            report(item.line, item.column, f"each has {item.text} twice")
            return None
        found.append(scalars)
    dialects = [scalars[0].text for scalars in found]
    names = ["-".join(_words(one)) if dialects.count(one[0].text) > 1 else one[0].text for one in found]
    return Each(dict(zip(names, found, strict=True)), (listed.line, listed.column), listed.end)


def _is_beside(root: Node, report: Callable[[int, int, str], None]) -> bool:
    """Report what an agent has beside the list though each item of the list says it."""
    agent = _agent(root)
    beside = [key for key, _ in agent.pairs if key.text in ("dialect", "mode")] if agent else []
    for key in beside:
        report(key.line, key.column, f"each item of each says its {key.text}: leave {key.text} out")
    return bool(beside)


def _words(scalars: tuple[Scalar, ...]) -> tuple[str, ...]:
    return tuple(scalar.text for scalar in scalars)


def _agent(root: Node) -> Mapping | None:
    """Give the mapping under the file's own key `agent`."""
    values = [value for key, value in root.pairs if key.text == "agent"] if isinstance(root, Mapping) else []
    return values[0] if values and isinstance(values[0], Mapping) else None


def _listed(root: Node) -> Node | None:
    """Give the value of `each` in the file's own `agent`."""
    agent = _agent(root)
    return None if agent is None else next((value for key, value in agent.pairs if key.text == "each"), None)


def choose(root: Node, each: Each, name: str) -> Node:
    """Give the file with one of its agents: each word keeps its place."""
    if not isinstance(root, Mapping):
        return root
    chosen = each.agents[name]
    given = zip(("dialect", "mode"), chosen, strict=False)
    own = tuple((Scalar(value.line, value.column, key, plain=True), value) for key, value in given)
    pairs: list[tuple[Scalar, Node]] = []
    for key, value in root.pairs:
        if key.text == "agent" and isinstance(value, Mapping):
            others = tuple(pair for pair in value.pairs if pair[0].text != "each")
            pairs.append((key, value._replace(pairs=own + others)))
        else:
            pairs.append((key, value))
    return root._replace(pairs=tuple(pairs))


def narrow(text: str, each: Each, name: str) -> str:
    """Give the file's text with this agent alone in the list; every line keeps its number."""
    starts = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]
    begin, end = (starts[line - 1] + column - 1 for line, column in (each.start, each.end))
    lines = "\n" * (each.end[0] - each.start[0])
    return f"{text[:begin]}[{' '.join(_words(each.agents[name]))}{lines}]{text[end:]}"


def agents_of(text: str) -> tuple[str, ...]:
    """Give the names of the agents that a file runs with one after the other; () if it has one, or is no scenario."""
    if "each" not in text:  # most files: they are not read before their tests run
        return ()
    root = parse(text, lambda *_: None)
    each = None if root is None else find_each(root, lambda *_: None)
    return () if each is None else tuple(each.agents)
