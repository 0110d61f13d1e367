"""Owns which step wrote which bytes, where a record proves it without saying so. Knows no layout and no scenario."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_agentproc.record._normal import AnyEvent


_WRITERS = frozenset({"say", "answer", "result", "bytes", "flood"})
_SPLITTERS = frozenset({"meanwhile", "when"})


def attributed(events: Iterable[AnyEvent]) -> Iterator[AnyEvent]:
    """Add the line of its step to output that does not carry it.

    The step that a process began last wrote it, if the process has one track only; else it is sure only of what
    follows in the same instant on a step that writes. A line that is not sure is left out.
    """
    steps: dict[str, tuple[int, Any, int]] = {}
    split: set[str] = set()
    for event in events:
        at, code, data = event
        process = data["process"]
        if code == "m" and "step" in data:
            steps[process] = at, data["step"], data["line"]
            if data["step"] in _SPLITTERS:
                split.add(process)
        elif code in "oe" and "bytes" in data and not data.get("line") and process in steps:
            since, step, line = steps[process]
            if process not in split or (since == at and step in _WRITERS):
                yield at, code, {**data, "line": line}
                continue
        yield event
