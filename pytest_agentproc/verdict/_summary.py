"""Owns the summary of a session: a table by rule, what bug reports of the kind say, one sentence. Prints nothing."""

from __future__ import annotations

import textwrap
from collections import Counter
from typing import TYPE_CHECKING

from pytest_agentproc.verdict._causes import causes
from pytest_agentproc.verdict._judged import NOT_IN_REAL_TIME, corpus_hash, digest_of
from pytest_agentproc.verdict._rows import Verdict
from pytest_agentproc.verdict._words import shortened
from pytest_agentproc.vocabulary import ARCHETYPES, RULES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_agentproc.verdict._judged import Judged

__all__ = ["is_conformant", "summary", "undecided"]

_LEVELS = ("must", "should")
"""The levels at which a failure is counted; each has a column."""
_RULES, _REPORTS = "rule (must, should: failed)", "as in bug reports"
_CAUSES = "what went wrong (must, should: scenarios)"
_MOST_CAUSES = 10
_ERRORS = (Verdict.ADAPTER_ERROR, Verdict.KIT_ERROR)
_WRONG = (Verdict.FAILED, Verdict.CRASHED)
"""The verdicts by which a supervisor is wrong."""
_OPEN = (Verdict.UNDECIDED, Verdict.NOT_EXERCISED)
_GAP = "  "
_SHORT = 12


def is_conformant(judged: Sequence[Judged]) -> bool:
    """Say whether a supervisor keeps the rules by which it was judged, as far as it reports what it does.

    No check at level `must` may have failed, or have ended in an error, and some check must have passed. A file that
    could not be read might have decided.
    """
    counted = [one for one in judged if one.level != "info"]
    broken = any(one.at("must") in (*_WRONG, *_ERRORS) or not one.file for one in counted)
    return any(one.verdict == Verdict.PASSED for one in counted) and not broken


def undecided(judged: Sequence[Judged]) -> int:
    """Count the scenarios whose checks at level `must` nothing decides, as the supervisor does not report enough."""
    return sum(one.at("must") in _OPEN for one in judged if one.level != "info")


def summary(judged: Sequence[Judged], version: str, width: int = 80) -> list[str]:
    """Sum up what came of one subject.

    Args:
        judged: every scenario that was judged with it.
        version: the kit's.
        width: how many columns a line may have.

    Returns:
        a table by rule, those that failed first, with a column for errors of an adapter's or the kit's if there are
        any; those of which nothing applied in a line of their own, and those of which real time could show nothing
        in another; a table of the archetypes of bug reports in which something failed; a table of causes, those of
        failed musts first, each with the command that runs one of its scenarios; the limits to state so that more is
        judged; and the sentence that says whether the subject is conformant.
    """
    counted = [one for one in judged if one.level != "info"]
    by_rule = {rule: [one for one in counted if rule in one.covers] for rule in RULES}
    columns = _columns(counted)
    rows = [(rule, _counts(those, columns)) for rule, those in by_rule.items() if those]
    rows.sort(key=lambda row: [not row[1].get(column) for column in (*_LEVELS, "errors", "undecided")])
    applied = [(rule, counts) for rule, counts in rows if counts["n/a"] < sum(counts.values())]
    others = [rule for rule, counts in rows if counts["n/a"] == sum(counts.values())]
    lines = _table(_RULES, [(f"{rule}  {RULES[rule]}", counts) for rule, counts in applied], width) if applied else []
    unseen = [rule for rule in others if any(one.reason.startswith(NOT_IN_REAL_TIME) for one in by_rule[rule])]
    others = [rule for rule in others if rule not in unseen]
    lines += textwrap.wrap(f"nothing applied of: {', '.join(others)}", width) if others else []
    lines += textwrap.wrap(f"real time could show nothing of: {', '.join(unseen)}", width) if unseen else []
    lines += _by_archetype(counted, columns, width)
    lines += _by_cause(counted, width)
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
    """Name the columns; errors and known failures have one only if there are any."""
    counts = _counts(counted)
    return [name for name in counts if counts[name] or name not in ("errors", "known")]


def _counts(judged: Sequence[Judged], columns: Sequence[str] = ()) -> dict[str, int]:
    """Count scenarios. A scenario may have failed at two levels; in all other columns it stands once."""
    found = Counter(one.verdict for one in judged)
    failed = {level: sum(one.at(level) in _WRONG for one in judged) for level in _LEVELS}
    counts = {
        **failed,
        "errors": sum(found[error] for error in _ERRORS),
        "undecided": undecided(judged),
        "known": found[Verdict.KNOWN],
        "passed": found[Verdict.PASSED],
        "n/a": found[Verdict.NOT_APPLICABLE] + sum(one.verdict in _OPEN and one.level != "must" for one in judged),
    }
    return {column: counts[column] for column in columns or counts}


def _by_archetype(counted: Sequence[Judged], columns: list[str], width: int) -> list[str]:
    """Say which kinds of public bug reports these reds are; a scenario may be of several."""
    rows = []
    for name, (words, rules) in ARCHETYPES.items():
        counts = _counts([one for one in counted if {*rules} & {*one.covers}], columns)
        if any(counts[column] for column in (*_LEVELS, "undecided")):
            rows.append((f"{name}  {words}", counts))
    return ["", *_table(_REPORTS, rows, width)] if rows else []


def _by_cause(counted: Sequence[Judged], width: int) -> list[str]:
    """Group red scenarios by cause: sixty reds are a few mistakes to mend."""
    found = causes(counted)
    if not found:
        return []
    shown, others = found[:_MOST_CAUSES], found[_MOST_CAUSES:]
    heading, *lines = _table(_CAUSES, [(cause.words, cause.counts) for cause in shown], width)
    told = ["", heading]
    for line, cause in zip(lines, shown, strict=True):
        told += [line, *(f"  {one.rerun}" for one in cause.judged[:1] if one.rerun)]
    more = sum(len(cause.judged) for cause in others)
    return [*told, *([f"and {len(others)} more, of {more} scenarios: the file of results has all"] if others else [])]


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
    figures = [f"{level}: {counts[level]} failed" for level in _LEVELS]
    figures.append(f"undecided: {counts['undecided']}")
    errors = [f"{found[error]} {error}{'s' if found[error] > 1 else ''}" for error in _ERRORS if found[error]]
    others = [*errors, f"{counts['passed']} passed", f"{counts['n/a']} not applicable", f"{counts['known']} known"]
    informational = sum(one.level == "info" and one.verdict != Verdict.NOT_APPLICABLE for one in judged)
    if informational:
        others.append(f"{informational} informational")
    clocks = " and ".join(dict.fromkeys(one.clock for one in sorted(judged, key=lambda one: one.clock == "real")))
    return (
        f"agentproc: {judged[0].subject} {_verdict(judged)}: {', '.join(figures)}; {', '.join(others)}; "
        f"pytest-agentproc {version}, corpus {corpus_hash(judged)[:_SHORT]}, {clocks} clock, "
        f"digest {digest_of(judged)[:_SHORT]}"
    )


def _verdict(judged: Sequence[Judged]) -> str:
    if not is_conformant(judged):
        return "is not conformant"
    count = undecided(judged)
    return f"is conformant as far as reported ({count} undecided)" if count else "is conformant"
