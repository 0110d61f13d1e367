"""Owns the summary of a session: a table by rule, what bug reports of the kind say, one sentence. Prints nothing."""

from __future__ import annotations

import textwrap
from collections import Counter
from typing import TYPE_CHECKING

from pytest_agentproc.verdict._judged import NOT_IN_REAL_TIME, corpus_hash, digest_of
from pytest_agentproc.verdict._rows import Verdict
from pytest_agentproc.verdict._words import shortened
from pytest_agentproc.vocabulary import ARCHETYPES, RULES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_agentproc.verdict._judged import Judged

__all__ = ["is_conformant", "summary"]

_COLUMNS: dict[str, tuple[Verdict, ...]] = {
    "failed": (Verdict.FAILED,),
    "errors": (Verdict.ADAPTER_ERROR, Verdict.KIT_ERROR),
    "undecided": (Verdict.UNDECIDED, Verdict.NOT_EXERCISED),
    "known": (Verdict.KNOWN,),
    "passed": (Verdict.PASSED,),
    "n/a": (Verdict.NOT_APPLICABLE,),
}
_RED = {verdict for column in ("failed", "errors") for verdict in _COLUMNS[column]}
_GAP = "  "
_SHORT = 12


def is_conformant(judged: Sequence[Judged]) -> bool:
    """Say whether a subject keeps the rules that it was judged by.

    Nothing may have failed, nothing that must be decided be undecided or not exercised, and something must have passed:
    who has nothing that applies to him has shown nothing.
    """
    verdicts = {one.verdict for one in judged if one.tier != "info"}
    undecided = {one.verdict for one in judged if one.tier == "must"} & {*_COLUMNS["undecided"]}
    return Verdict.PASSED in verdicts and not undecided and not verdicts & _RED


def summary(judged: Sequence[Judged], version: str, width: int = 80) -> list[str]:
    """Sum up what came of one subject.

    Args:
        judged: every scenario that was judged with it.
        version: the kit's.
        width: how many columns a line may have.

    Returns:
        a table by rule, those that failed first, with a column for errors of an adapter's or the kit's if there are
        any; those of which nothing applied in a line of their own, and those of which real time could show nothing
        in another; a table of the archetypes of bug reports in which something failed; the limits to state so that
        more is judged; and the sentence that says whether the subject is conformant.
    """
    counted = [one for one in judged if one.tier != "info"]
    by_rule = {rule: [one for one in counted if rule in one.covers] for rule in RULES}
    columns = _columns(counted)
    rows = [(rule, _counts(those, columns)) for rule, those in by_rule.items() if those]
    rows.sort(key=lambda row: [not row[1].get(column) for column in ("failed", "errors", "undecided")])
    applied = [(rule, counts) for rule, counts in rows if counts["n/a"] < sum(counts.values())]
    others = [rule for rule, counts in rows if counts["n/a"] == sum(counts.values())]
    lines = _table("rule", [(f"{rule}  {RULES[rule]}", counts) for rule, counts in applied], width) if applied else []
    unseen = [rule for rule in others if any(one.reason.startswith(NOT_IN_REAL_TIME) for one in by_rule[rule])]
    others = [rule for rule in others if rule not in unseen]
    lines += textwrap.wrap(f"nothing applied of: {', '.join(others)}", width) if others else []
    lines += textwrap.wrap(f"real time could show nothing of: {', '.join(unseen)}", width) if unseen else []
    lines += _by_archetype(counted, columns, width)
    lines += _not_stated(counted, width)
    return [*lines, *([""] if lines else []), _sentence(judged, counted, version)]


def _not_stated(judged: Sequence[Judged], width: int) -> list[str]:
    """Say how many checks were not judged because the supervisor does not state a limit, and which ones to state."""
    rows = [row for one in judged for row in one.rows if row.unstated]
    found = Counter(name for row in rows for name in row.unstated)
    if not rows:
        return []
    checks = "1 more check" if len(rows) == 1 else f"{len(rows)} more checks"
    names = ", ".join(sorted(found, key=lambda name: (-found[name], name)))
    return ["", *textwrap.wrap(f"state {names} to have {checks} judged", width)]


def _columns(counted: Sequence[Judged]) -> list[str]:
    """Leave the column for errors out where there are none, as there should be."""
    has_errors = any(one.verdict in _COLUMNS["errors"] for one in counted)
    return [column for column in _COLUMNS if column != "errors" or has_errors]


def _counts(judged: Sequence[Judged], columns: Iterable[str] = _COLUMNS) -> dict[str, int]:
    found = Counter(one.verdict for one in judged)
    return {column: sum(found[verdict] for verdict in _COLUMNS[column]) for column in columns}


def _by_archetype(counted: Sequence[Judged], columns: list[str], width: int) -> list[str]:
    """Say which kinds of public bug reports these reds are; a scenario may be of several."""
    rows = []
    for name, (words, rules) in ARCHETYPES.items():
        counts = _counts([one for one in counted if {*rules} & {*one.covers}], columns)
        if counts["failed"] or counts["undecided"]:
            rows.append((f"{name}  {words}", counts))
    return ["", *_table("as in bug reports", rows, width)] if rows else []


def _table(heading: str, rows: Sequence[tuple[str, dict[str, int]]], width: int) -> list[str]:
    columns = [*rows[0][1]]
    room = width - sum(len(_GAP + column) for column in columns)
    lines = [heading.ljust(room) + "".join(_GAP + column for column in columns)]
    for name, counts in rows:
        words = shortened(name, room)
        cells = "".join(
            _GAP + (str(counts[column]) if counts[column] else "-").rjust(len(column)) for column in columns
        )
        lines.append(words.ljust(room) + cells)
    return lines


def _sentence(judged: Sequence[Judged], counted: Sequence[Judged], version: str) -> str:
    counts = _counts(counted)
    found = Counter(one.verdict for one in counted)
    figures = [f"{counts['failed']} failed"]
    if counts["undecided"]:
        figures.append(f"{counts['undecided']} undecided")
    errors = [error for error in _COLUMNS["errors"] if found[error]]
    figures += [f"{found[error]} {error}{'s' if found[error] > 1 else ''}" for error in errors]
    figures += [f"{counts['passed']} passed", f"{counts['n/a']} not applicable", f"{counts['known']} known"]
    if len(judged) > len(counted):
        figures.append(f"{len(judged) - len(counted)} for information and not counted")
    clocks = " and ".join(dict.fromkeys(one.clock for one in sorted(judged, key=lambda one: one.clock == "real")))
    verdict = "is conformant" if is_conformant(judged) else "is not conformant"
    return (
        f"agentproc: {judged[0].subject} {verdict}: {', '.join(figures)}; pytest-agentproc {version}, "
        f"corpus {corpus_hash(judged)[:_SHORT]}, {clocks} clock, digest {digest_of(judged)[:_SHORT]}"
    )
