"""Owns the text of a failure: where, expected and seen, then the timeline. Never a stack, never a judgement."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import TYPE_CHECKING

from pytest_agentproc.errors import ClockError, SubjectError
from pytest_agentproc.files import short_path
from pytest_agentproc.record import text
from pytest_agentproc.verdict._compare import conclude, unmet
from pytest_agentproc.verdict._facts import last_step, leaks
from pytest_agentproc.verdict._program import end_of_program
from pytest_agentproc.verdict._rows import Played, Row, Scenario, Verdict
from pytest_agentproc.verdict._tree import tree
from pytest_agentproc.verdict._words import show_end

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_agentproc.record import Record

__all__ = ["alike", "differing", "explain", "explain_leaks", "findings"]

_HARMLESS = (Verdict.PASSED, Verdict.NOT_APPLICABLE, Verdict.KNOWN, Verdict.NOT_EXERCISED)
"""The verdicts of checks that need no words, as they are listed."""


_MOST_LINES = 12
"""So many lines of a program's stderr are shown: the last ones."""


def explain(played: Played, rows: Sequence[Row]) -> str:
    """Tell what was expected, what was seen, and how it came to that.

    Args:
        played: the run.
        rows: what `compare` made of it.

    Returns:
        `file:line: claim` of the first check that did not pass; those checks with file and line, expected and seen;
        the step that the agent was at; the tree at the end, if somebody was left who was not to be; the timeline of
        both sides; the verdict with the record's digest.
    """
    scenario = played.bound.scenario
    return "\n".join([findings(played, rows), *_story(scenario, played.record, conclude(rows))])


def findings(played: Played, rows: Sequence[Row]) -> str:
    """Tell what `explain` does, but for the timeline and the verdict."""
    scenario = played.bound.scenario
    is_theirs = isinstance(played.fault, SubjectError)
    bad = [row for row in unmet(rows) if not (is_theirs and row.verdict is Verdict.NOT_EXERCISED)]
    place = next((row.line for row in bad if row.line), None) or _first_line(scenario)
    path = short_path(scenario.path)
    parts = [f"{path}:{place}: {scenario.claim}"]
    if scenario.harm and any(row.level == "must" and row.verdict is Verdict.FAILED for row in bad):
        parts.append(f"  harm: {scenario.harm}")
    parts.append("")
    for row in bad:
        parts += _block(path, row)
    for verdict in _HARMLESS:
        names = [row.key for row in rows if row.verdict is verdict and row not in bad]
        if names:
            parts.append(f"  {verdict}: {', '.join(names)}")
    for process in played.bound.parts or ("agent",):
        line = last_step(played.record, process)
        if line:
            whose = "the agent's" if process == "agent" else f"{process}'s"
            parts.append(f"  {whose} last step: {path}:{line}: {_step(scenario, line)}")
    if isinstance(played.fault, ClockError):
        parts += _caller_waits(scenario, played.record)
    parts += _program(played.record)
    if any(row.key == "leaks" and row.verdict is Verdict.FAILED for row in rows):
        parts += _drawn(scenario, played.record)
    return "\n".join(parts)


def differing(first: Played, second: Played) -> str:
    """Tell in which line the timelines of two plays of one scenario first differ; empty: in none."""
    once, then = (text(played.record, played.bound.scenario) for played in (first, second))
    if once == then:
        return ""
    lines = [[" ".join(line.split()) for line in one.splitlines()] for one in (once, then)]  # one side may be wider
    pairs = zip_longest(*lines, fillvalue="nothing")
    one, other = next((pair for pair in pairs if pair[0] != pair[1]), ("a line on one side", "the same on the other"))
    return f"once  {one}\nthen  {other}"


def alike(first: Played, second: Played) -> bool:
    """Say whether two plays of one scenario went the same way, but for what a supervisor draws by chance.

    Nobody's verdict turns on the ids that a client makes: of what is read and written the size counts, and of a fault
    of the clock's not its pids and counts.
    """
    once, then = (_BY_CHANCE.sub("", text(played.record, played.bound.scenario)) for played in (first, second))
    return once.split() == then.split()


_BY_CHANCE = re.compile(r'(?<=B )"(?:[^"\\\n]|\\.)*"?|(?<=\(pid )\d+|\d+(?=, the pid that )|\d+(?= times\b)')


def explain_leaks(scenario: Scenario, record: Record) -> str:
    """Tell which processes were left, each at the line of the step that started it, or that it was at.

    Returns:
        the text of a failure as `explain` writes it; empty if none was left.
    """
    left = leaks(record)
    if not left:
        return ""
    lines = []
    for leak in left:
        place = leak.line or last_step(record, leak.process) or _first_line(scenario)
        words = f"{leak.process} was left ({show_end(leak.state)}): {_step(scenario, place)}"
        lines.append(f"{short_path(scenario.path)}:{place}: {words}".rstrip(": "))
    return "\n".join([*lines, *_drawn(scenario, record), *_story(scenario, record, Verdict.FAILED)])


def _caller_waits(scenario: Scenario, record: Record) -> list[str]:
    """Say for what the caller of a session waits, if waiting is the last thing it did."""
    done = [event.data for event in record.events if event.data["process"] == "caller" and "does" in event.data]
    if not done or not str(done[-1]["does"]).startswith("waits"):
        return []
    line = done[-1].get("line", 0)
    return [f"  the caller {done[-1]['does']}: {short_path(scenario.path)}:{line}: {_step(scenario, line)}"]


def _program(record: Record) -> list[str]:
    """Tell how a program that supervised ended, and what it said on stderr before."""
    ended = end_of_program(record)
    if ended is None:
        return []
    said = [line for line in ended["stderr"].splitlines() if line.strip()]
    told = ", and on its stderr stands" if said else ""
    dots = ["    ..."] if len(said) > _MOST_LINES else []
    return [f"  the program {ended['program']}{told}", *dots, *(f"    {line}" for line in said[-_MOST_LINES:])]


def _drawn(scenario: Scenario, record: Record) -> list[str]:
    drawing = tree(record, scenario)
    return ["  the tree at the end:", *(f"    {line}" for line in drawing)] if drawing else []


def _first_line(scenario: Scenario) -> int:
    return next((number for number, line in enumerate(scenario.text.splitlines(), 1) if line.strip()), 1)


def _story(scenario: Scenario, record: Record, verdict: Verdict) -> list[str]:
    return ["", text(record, scenario), "", f"{verdict}, record {record.digest()}"]


def _step(scenario: Scenario, line: int) -> str:
    source = scenario.text.splitlines()
    return source[line - 1].strip() if 0 < line <= len(source) else ""


def _block(path: str, row: Row) -> list[str]:
    place = f"  {path}:{row.line}" if row.line else ""
    level = "" if row.level == "must" else f" (level {row.level})"
    lines = [
        f"  {row.key}: {row.verdict}{level}{place}",
        f"    expected  {row.wanted}",
        f"    seen      {_indented(row.seen)}",
    ]
    if row.hint:
        lines.append(f"              ({_indented(row.hint)})")
    return lines


def _indented(words: str) -> str:
    return words.replace("\n", "\n" + " " * 14)
