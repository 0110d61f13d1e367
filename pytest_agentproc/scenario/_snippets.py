"""Owns what an editor puts down for a step that is chosen from its list. Knows no step: the table has them."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from pytest_agentproc.scenario._fields import Either, Fields
from pytest_agentproc.scenario._kinds import Choice, ListOf, Only, Time, Whole
from pytest_agentproc.scenario._script import Steps
from pytest_agentproc.scenario._steps import STEPS

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["snippets"]


def snippets() -> list[dict[str, Any]]:
    """Give one snippet for each step: its shortest form, with a tab stop at each value."""
    return [
        {"label": entry.name, "description": entry.doc, "body": _body(entry.name, count(1))} for entry in STEPS.values()
    ]


def _body(name: str, stops: Iterator[int]) -> dict[str, Any]:
    entry = STEPS[name]
    body = {name: _value(entry.kind, stops)}
    if entry.also is not None and entry.also.required:
        body[entry.also.name] = _value(entry.also.kind, stops)
    return body


def _value(kind: Any, stops: Iterator[int]) -> Any:
    kind = getattr(kind, "shape", kind)
    if isinstance(kind, Either):
        return _value(kind.scalar, stops)
    if isinstance(kind, Fields):
        needed = [key for key in kind.keys if key.required or key.name in kind.one_of[:1]]
        return {key.name: _value(key.kind, stops) for key in needed}
    if isinstance(kind, Steps):
        return [{"answer": _stop(stops, "done")}]
    if isinstance(kind, ListOf):
        return [_value(kind.kind, stops)]
    return _scalar(kind, stops)


def _scalar(kind: Any, stops: Iterator[int]) -> str:
    if isinstance(kind, Choice | Only):
        words = kind.options if isinstance(kind, Choice) else kind.words
        return f"${{{next(stops)}|{','.join(words)}|}}"
    if isinstance(kind, Time):
        return _stop(stops, "10s")
    if isinstance(kind, Whole):
        return _stop(stops, str(kind.low))
    examples = getattr(kind, "examples", ())
    return _stop(stops, examples[0] if examples else getattr(kind, "label", "").partition(" ")[0] or "TEXT")


def _stop(stops: Iterator[int], text: str) -> str:
    return f"${{{next(stops)}:{text}}}"
