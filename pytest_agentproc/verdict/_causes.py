"""Owns which red scenarios of a session have one cause, and how a cause is written. Pure; counts no rules.

A cause is a check and the shape of its difference: numbers, instants and quoted texts are left out. A scenario that
several causes explain counts for the one that explains the most scenarios, so that one missing rule is one line.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from pytest_agentproc.errors import ClockError
from pytest_agentproc.verdict._rows import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_agentproc.verdict._judged import Judged, JudgedRow

__all__ = ["Cause", "causes"]

_RED = {
    "must": {*Verdict} - {Verdict.PASSED, Verdict.KNOWN, Verdict.NOT_APPLICABLE},
    "should": {Verdict.KIT_ERROR, Verdict.ADAPTER_ERROR, Verdict.CRASHED, Verdict.FAILED},
}
"""The verdicts by which a scenario is red, at each level that counts, the higher level first."""

_FOLLOWS = ("elapsed", "returned")
"""Checks whose failure mostly follows from another one."""

_VARIES = re.compile(
    r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\d[\d.,]*(?: ?(?:ns|us|ms|s|min|h|B|KiB|MiB|characters)\b)?)"""
)
_LEFT = re.compile(r"^(?P<agent>agent )?.*?\((?P<state>[^)]*)\).*$")
_FAULT = re.compile(
    rf"(?:no outcome: )?(?P<clause>(?:{'|'.join(error.reason for error in ClockError.__subclasses__())}): [^:;,(]*\b)"
)
_FRAME = re.compile(r"^ +(?P<place>\S.*? in \S+): ")


class Cause(NamedTuple):
    """Why scenarios are red.

    Args:
        words: the verdict, the check, what was expected and what was seen, without what varies.
        judged: the scenarios, those at level `must` first.
        counts: how many of them are red at each level.
    """

    words: str
    judged: tuple[Judged, ...]
    counts: dict[str, int]


def causes(judged: Iterable[Judged]) -> list[Cause]:
    """Group the red scenarios by cause: those with failed musts first, then those of most scenarios."""
    open_scenarios = [(level, one, _shapes(one, level)) for one in judged if (level := _level(one))]
    found: list[Cause] = []
    while open_scenarios:
        counts = Counter(shape for _, _, shapes in open_scenarios for shape in shapes)
        words = max(counts, key=lambda shape: (counts[shape], shape))
        mine = [(level, one) for level, one, shapes in open_scenarios if words in shapes]
        open_scenarios = [(level, one, shapes) for level, one, shapes in open_scenarios if words not in shapes]
        levels = Counter(level for level, _ in mine)
        ordered = sorted(mine, key=lambda pair: ([*_RED].index(pair[0]), pair[1].place))
        found.append(Cause(words, tuple(one for _, one in ordered), {level: levels[level] for level in _RED}))
    return sorted(found, key=lambda cause: (*(-cause.counts[level] for level in _RED), cause.words))


def _level(one: Judged) -> str:
    """Give the highest level at which a scenario is red; empty: at none that counts."""
    return "" if one.level == "info" else next((level for level in _RED if one.at(level) in _RED[level]), "")


def _shapes(one: Judged, level: str) -> set[str]:
    """Give the shapes of the rows that make a scenario red."""
    verdict = one.at(level)
    rows = [row for row in one.rows if row.level == level and row.verdict == verdict]
    if not rows:
        reason = one.reason.removeprefix(f"{one.verdict}: ") or "there was no play to judge"
        return {f"{one.verdict}: {_without_values(reason)}"}
    first = [row for row in rows if row.key.rpartition(".")[2] not in _FOLLOWS] or rows
    return {_shape(row) for row in first}


def _shape(row: JudgedRow) -> str:
    key = row.key.rpartition(".")[2]
    if key == "answer":
        place = next((found["place"] for line in row.seen.splitlines()[::-1] if (found := _FRAME.match(line))), "")
        said = _without_values(row.seen.removeprefix("it raised "))
        return ": ".join(filter(None, [row.verdict, place, said]))
    if key == "leaks" and (left := _LEFT.match(row.seen)):
        return f"{row.verdict}: leaks: {'the agent' if left['agent'] else 'a descendant'} is left ({left['state']})"
    fault = _FAULT.match(row.seen)
    if fault:
        return f"{row.verdict}: {_without_values(fault['clause'])}"
    seen = _without_values(row.seen)
    if row.verdict in (Verdict.NOT_EXERCISED, Verdict.KIT_ERROR) or seen.startswith("not reported"):
        return f"{row.verdict}: {key}: {seen}"
    return f"{row.verdict}: {key}: expected {_without_values(row.expected)}, seen {seen}"


def _without_values(text: str) -> str:
    """Put `*` for numbers, times and quoted texts in the first line."""
    return _VARIES.sub("*", text.partition("\n")[0])
