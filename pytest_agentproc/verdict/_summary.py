"""The summary of a session: a table by rule, the causes of failures, one sentence. Prints nothing.

A cause is a check and the shape of its difference: numbers, instants and quoted texts are left out. A scenario that
several causes explain counts for the one that explains the most scenarios, so that one missing rule is one line. Each
line has a scenario whose first failed check it is: run alone, that scenario is printed with the same check.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from pytest_agentproc.errors import ClockError
from pytest_agentproc.verdict._judgement import REASON_IN_REAL_TIME, compute_results_digest, hash_corpus
from pytest_agentproc.verdict._rows import Verdict
from pytest_agentproc.verdict._value_text import shorten_to_width
from pytest_agentproc.vocabulary import BUG_FAMILIES, RULES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_agentproc.verdict._judgement import JudgedCheck, JudgedScenario
    from pytest_agentproc.verdict._rows import CheckRow


_RED_VERDICTS_BY_LEVEL = {
    "must": {*Verdict} - {Verdict.PASSED, Verdict.KNOWN, Verdict.NOT_APPLICABLE},
    "should": {Verdict.KIT_ERROR, Verdict.ADAPTER_ERROR, Verdict.CRASHED, Verdict.FAILED},
}
"""The verdicts by which a scenario is red, at each level that counts, the higher level first."""

_KEYS_THAT_FOLLOW_OUTCOME = ("elapsed", "returned")
"""Checks whose failure mostly follows from another one."""

_VARYING_VALUE_PATTERN = re.compile(
    r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\d[\d.,]*(?: ?(?:ns|us|ms|s|min|h|B|KiB|MiB|characters)\b)?)"""
)
_TEXT_BEFORE_EXPECTED, _TEXT_BEFORE_EXAMPLE, _TEXT_BEFORE_SEEN = ": expected ", ", for example: expected ", ", seen "
_LEAK_TEXT_PATTERN = re.compile(r"^(?P<agent>agent )?.*?\((?P<state>[^)]*)\).*$")
_CLOCK_FAULT_PATTERN = re.compile(
    rf"(?:no outcome: )?(?P<clause>(?:{'|'.join(error.reason for error in ClockError.__subclasses__())}): [^:;,(]*\b)"
)
_TRACEBACK_PLACE_PATTERN = re.compile(r"^ +(?P<place>\S.*? in \S+): ")


class FailureCause(NamedTuple):
    """Why scenarios are red.

    Args:
        words: the verdict, the check, what was expected and what was seen, without what varies. If the two sides are
            alike without it, the values of one scenario stand there.
        judged: the scenarios: first those whose first failed check it is, and of these those at level `must`.
        counts: how many of them are red at each level.
    """

    words: str
    judged: tuple[JudgedScenario, ...]
    counts: dict[str, int]


def group_reds_by_cause(judged: Iterable[JudgedScenario]) -> list[FailureCause]:
    """Group the red scenarios by cause: those with failed musts first, then those of most scenarios."""
    open_scenarios = [
        (level, result, _list_red_row_shapes(result, level)) for result in judged if (level := _find_red_level(result))
    ]
    found: list[FailureCause] = []
    while open_scenarios:
        counts = Counter(shape for _, _, shapes in open_scenarios for shape in shapes)
        # Only first shapes are candidates, because a scenario that runs alone has its first shape as its cause.
        words = max((shapes[0] for _, _, shapes in open_scenarios), key=lambda shape: (counts[shape], shape))
        mine = [entry for entry in open_scenarios if words in entry[2]]
        open_scenarios = [entry for entry in open_scenarios if words not in entry[2]]
        levels = Counter(level for level, _, _ in mine)
        mine.sort(
            key=lambda entry: (entry[2][0] != words, [*_RED_VERDICTS_BY_LEVEL].index(entry[0]), entry[1].sort_key)
        )
        judged = tuple(result for _, result, _ in mine)
        found.append(
            FailureCause(
                _describe_cause(words, judged), judged, {level: levels[level] for level in _RED_VERDICTS_BY_LEVEL}
            )
        )
    return sorted(found, key=lambda cause: (*(-cause.counts[level] for level in _RED_VERDICTS_BY_LEVEL), cause.words))


def _find_red_level(result: JudgedScenario) -> str:
    """Give the highest level at which a scenario is red; empty: at none that counts."""
    return (
        ""
        if result.level == "info"
        else next(
            (
                level
                for level in _RED_VERDICTS_BY_LEVEL
                if result.get_level_verdict(level) in _RED_VERDICTS_BY_LEVEL[level]
            ),
            "",
        )
    )


def _list_red_row_shapes(result: JudgedScenario, level: str) -> list[str]:
    """Give the shapes of the rows that make a scenario red, in the order of the rows."""
    verdict = result.get_level_verdict(level)
    rows = [row for row in result.rows if row.level == level and row.verdict == verdict]
    if not rows:
        reason = result.reason.removeprefix(f"{result.verdict}: ") or "there was no play to judge"
        return [f"{result.verdict}: {_mask_varying_values(reason)}"]
    first = [row for row in rows if row.key.rpartition(".")[2] not in _KEYS_THAT_FOLLOW_OUTCOME] or rows
    return [*dict.fromkeys(map(_describe_red_row_shape, first))]


def _describe_red_row_shape(row: JudgedCheck) -> str:
    key = row.key.rpartition(".")[2]
    if key == "answer":
        place = next(
            (found["place"] for line in row.seen.splitlines()[::-1] if (found := _TRACEBACK_PLACE_PATTERN.match(line))),
            "",
        )
        exception_text = _mask_varying_values(row.seen.removeprefix("it raised "))
        return ": ".join(filter(None, [row.verdict, place, exception_text]))
    if key == "leaks" and (left := _LEAK_TEXT_PATTERN.match(row.seen)):
        return f"{row.verdict}: leaks: {'the agent' if left['agent'] else 'a descendant'} is left ({left['state']})"
    fault = _CLOCK_FAULT_PATTERN.match(row.seen)
    if fault:
        return f"{row.verdict}: {_mask_varying_values(fault['clause'])}"
    seen = _mask_varying_values(row.seen)
    if row.verdict in (Verdict.NOT_EXERCISED, Verdict.KIT_ERROR) or seen.startswith("not reported"):
        return f"{row.verdict}: {key}: {seen}"
    return f"{row.verdict}: {key}{_TEXT_BEFORE_EXPECTED}{_mask_varying_values(row.expected)}{_TEXT_BEFORE_SEEN}{seen}"


def _describe_cause(words: str, judged: Iterable[JudgedScenario]) -> str:
    """Describe a cause by its shape, with the whole key if all its rows share one.

    Two sides that are alike without their values say nothing. Then the values of the first scenario stand there.
    """
    head, found, values = words.partition(_TEXT_BEFORE_EXPECTED)
    if not found:
        return words
    rows = [row for result in judged for row in result.rows if _describe_red_row_shape(row) == words]
    keys = {row.key for row in rows}
    if len(keys) == 1:
        head = f"{rows[0].verdict}: {rows[0].key}"
    wanted, _, seen = values.partition(_TEXT_BEFORE_SEEN)
    if wanted != seen and any(char.isalpha() for char in wanted + seen):
        return f"{head}{_TEXT_BEFORE_EXPECTED}{values}"
    pairs = dict.fromkeys((row.expected.partition("\n")[0], row.seen.partition("\n")[0]) for row in rows)
    wanted, seen = next(iter(pairs))
    before = _TEXT_BEFORE_EXPECTED if len(pairs) == 1 else _TEXT_BEFORE_EXAMPLE
    return f"{head}{before}{wanted}{_TEXT_BEFORE_SEEN}{seen}"


def _mask_varying_values(text: str) -> str:
    """Put `*` for numbers, times and quoted texts in the first line."""
    return _VARYING_VALUE_PATTERN.sub("*", text.partition("\n")[0])


_LEVELS_THAT_COUNT = ("must", "should")
"""The levels at which a failure is counted; each has a column."""
_HEADING_OF_RULES, _HEADING_OF_BUG_FAMILIES = "rule (must, should: failed)", "as in bug reports"
_HEADING_OF_CAUSES = "what went wrong (must, should: scenarios)"
_MAX_SHOWN_CAUSES = 10
_ERROR_VERDICTS = (Verdict.ADAPTER_ERROR, Verdict.KIT_ERROR)
_FAILED_VERDICTS = (Verdict.FAILED, Verdict.CRASHED)
"""The verdicts by which a supervisor is wrong."""
_OPEN_VERDICTS = (Verdict.UNDECIDED, Verdict.NOT_EXERCISED)
_SPACE_BETWEEN_COLUMNS = "  "
_SHOWN_HASH_CHARS = 12


class Conformance(StrEnum):
    """What the checks say of a supervisor as a whole, as a verb phrase; the first of these that applies."""

    NOT_CONFORMANT = "is not conformant"
    NO_VERDICT = "has no verdict"
    UNDECIDED = "is undecided"
    NOT_JUDGED = "was not judged"
    CONFORMANT = "is conformant"


def judge_conformance(judged: Sequence[JudgedScenario]) -> Conformance:
    """Say whether a supervisor keeps the rules at level `must`. Files at level `info` do not count.

    Returns:
        `NOT_CONFORMANT`: a check at level `must` failed, or the supervisor crashed there. `NO_VERDICT`: there was a
        kit error or an adapter error, or a scenario file could not be read. `UNDECIDED`: a check at level `must` needs
        a value that the supervisor does not report. `NOT_JUDGED`: no check passed, as nothing applied or all failures
        are known. `CONFORMANT`: none of these.
    """
    counted = [result for result in judged if result.level != "info"]
    musts = [result.get_level_verdict("must") for result in counted]
    if any(verdict in _FAILED_VERDICTS for verdict in musts):
        return Conformance.NOT_CONFORMANT
    if any(result.verdict in _ERROR_VERDICTS or not result.file for result in counted):
        return Conformance.NO_VERDICT
    if any(verdict in _OPEN_VERDICTS for verdict in musts):
        return Conformance.UNDECIDED
    applied = [result for result in counted if result.verdict != Verdict.NOT_APPLICABLE]
    if any(row.verdict == Verdict.PASSED and row.level != "info" for result in applied for row in result.rows):
        return Conformance.CONFORMANT
    return Conformance.NOT_JUDGED


def is_red_at_should_only(result: JudgedScenario) -> bool:
    """Say whether a scenario is red, and no check at level `must` is the reason."""
    return _find_red_level(result) == "should"


def count_undecided(judged: Sequence[JudgedScenario]) -> int:
    """Count the scenarios whose checks at level `must` nothing decides, as the supervisor does not report enough."""
    return sum(result.get_level_verdict("must") in _OPEN_VERDICTS for result in judged if result.level != "info")


def format_summary(
    judged: Sequence[JudgedScenario], version: str, width: int = 80, *, is_whole: bool = True
) -> list[str]:
    """Sum up what came of one subject.

    Args:
        judged: every scenario that was judged with it.
        version: the kit's.
        width: how many columns a line may have.
        is_whole: whether all scenarios were run that were to be; a part allows no verdict on the subject.

    Returns:
        a table by rule, those that failed first, with a column for errors of an adapter's or the kit's if there are
        any; those of which nothing applied in a line of their own, and those of which real time could show nothing
        in another; a table of the bug families in which something failed; a table of causes, those of
        failed musts first, each with the command that runs one of its scenarios; the limits to state so that more is
        judged; the sentence of `judge_conformance`; and in two lines below it what else was counted, and what it
        was counted with.
    """
    counted = [result for result in judged if result.level != "info"]
    by_rule = {rule: [result for result in counted if rule in result.covers] for rule in RULES}
    columns = _list_summary_columns(counted)
    rows = [(rule, _count_scenarios(those, columns)) for rule, those in by_rule.items() if those]
    rows.sort(key=lambda row: [not row[1].get(column) for column in (*_LEVELS_THAT_COUNT, "errors", "undecided")])
    applied = [(rule, counts) for rule, counts in rows if counts["n/a"] < sum(counts.values())]
    others = [rule for rule, counts in rows if counts["n/a"] == sum(counts.values())]
    lines = (
        _format_table(
            _HEADING_OF_RULES,
            [(f"{rule}  {RULES[rule].demands}", counts) for rule, counts in applied],
            width,
            is_whole=True,
        )
        if applied
        else []
    )
    unseen = [rule for rule in others if any(result.reason.startswith(REASON_IN_REAL_TIME) for result in by_rule[rule])]
    others = [rule for rule in others if rule not in unseen]
    lines += textwrap.wrap(f"nothing applied of: {', '.join(others)}", width) if others else []
    lines += textwrap.wrap(f"real time could show nothing of: {', '.join(unseen)}", width) if unseen else []
    lines += _format_bug_families(counted, columns, width)
    lines += _format_failure_causes(counted, width)
    lines += describe_unstated_limits([row for result in counted for row in result.rows], width)
    return [*lines, *([""] if lines else []), *_format_conclusion(judged, counted, version, is_whole=is_whole)]


def describe_unstated_limits(rows: Iterable[CheckRow | JudgedCheck], width: int) -> list[str]:
    """Say how many checks were not judged because the supervisor does not state a limit, and which ones to state."""
    rows = [row for row in rows if row.unstated]
    found = Counter(name for row in rows for name in row.unstated)
    if not rows:
        return []
    checks = "1 more check" if len(rows) == 1 else f"{len(rows)} more checks"
    names = ", ".join(sorted(found, key=lambda name: (-found[name], name)))
    return ["", *textwrap.wrap(f"state {names} to have {checks} judged", width)]


def _list_summary_columns(counted: Sequence[JudgedScenario]) -> list[str]:
    """Name the columns; errors and known failures have one only if there are any."""
    counts = _count_scenarios(counted)
    return [name for name in counts if counts[name] or name not in ("errors", "known")]


def _count_scenarios(judged: Sequence[JudgedScenario], columns: Sequence[str] = ()) -> dict[str, int]:
    """Count scenarios. A scenario may have failed at two levels; in all other columns it stands once."""
    found = Counter(result.verdict for result in judged)
    failed = {
        level: sum(result.get_level_verdict(level) in _FAILED_VERDICTS for result in judged)
        for level in _LEVELS_THAT_COUNT
    }
    counts = {
        **failed,
        "errors": sum(found[error] for error in _ERROR_VERDICTS),
        "undecided": count_undecided(judged),
        "known": found[Verdict.KNOWN],
        "passed": found[Verdict.PASSED],
        "n/a": found[Verdict.NOT_APPLICABLE]
        + sum(result.verdict in _OPEN_VERDICTS and result.level != "must" for result in judged),
    }
    return {column: counts[column] for column in columns or counts}


def list_counted_columns(result: JudgedScenario) -> tuple[str, ...]:
    """Give the columns of the summary in which a scenario counts: the levels at which it failed, or another one."""
    if result.level == "info":
        return () if result.verdict == Verdict.NOT_APPLICABLE else ("informational",)
    return tuple(column for column, count in _count_scenarios([result]).items() if count)


def format_verdict_line(judged: Sequence[JudgedScenario], *, is_whole: bool = True) -> str:
    """Write the sentence on one subject, with the figures that decide."""
    counted = [result for result in judged if result.level != "info"]
    counts, errors = _count_scenarios(counted), _list_errors(counted)
    figures = [f"{level}: {counts[level]} failed" for level in _LEVELS_THAT_COUNT]
    figures.append(f"undecided: {counts['undecided']}")
    verdict = _format_verdict(judged, errors) if is_whole else _TEXT_AFTER_INTERRUPTION
    return f"agentproc: {judged[0].subject} {verdict}: {', '.join(figures)}"


def _list_errors(counted: Sequence[JudgedScenario]) -> list[str]:
    found = Counter(result.verdict for result in counted)
    return [f"{found[error]} {error}{'s' if found[error] > 1 else ''}" for error in _ERROR_VERDICTS if found[error]]


def _format_bug_families(counted: Sequence[JudgedScenario], columns: list[str], width: int) -> list[str]:
    """Say which kinds of public bug reports these reds are; a scenario may be of several."""
    rows = []
    for name, (words, rules) in BUG_FAMILIES.items():
        counts = _count_scenarios([result for result in counted if {*rules} & {*result.covers}], columns)
        if any(counts[column] for column in (*_LEVELS_THAT_COUNT, "undecided")):
            rows.append((f"{name}  {words}", counts))
    return ["", *_format_table(_HEADING_OF_BUG_FAMILIES, rows, width, is_whole=True)] if rows else []


def _format_failure_causes(counted: Sequence[JudgedScenario], width: int) -> list[str]:
    """Group red scenarios by cause: sixty reds are a few mistakes to mend."""
    found = group_reds_by_cause(counted)
    if not found:
        return []
    shown, others = found[:_MAX_SHOWN_CAUSES], found[_MAX_SHOWN_CAUSES:]
    heading, *lines = _format_table(_HEADING_OF_CAUSES, [(cause.words, cause.counts) for cause in shown], width)
    notes = ["", heading]
    for line, cause in zip(lines, shown, strict=True):
        notes += [line, *(f"  {result.rerun}" for result in cause.judged[:1] if result.rerun)]
    more = sum(len(cause.judged) for cause in others)
    return [*notes, *([f"and {len(others)} more, of {more} scenarios: the file of results has all"] if others else [])]


def _format_table(
    heading: str, rows: Sequence[tuple[str, dict[str, int]]], width: int, *, is_whole: bool = False
) -> list[str]:
    """Write a line for each row; a name that is to be whole goes on in lines below, under its words."""
    columns = [*rows[0][1]]
    room = width - sum(len(_SPACE_BETWEEN_COLUMNS + column) for column in columns)
    lines = [heading.ljust(room) + "".join(_SPACE_BETWEEN_COLUMNS + column for column in columns)]
    for name, counts in rows:
        words, more = _split_name_to_fit(name, room, width) if is_whole else (shorten_to_width(name, room), [])
        cells = "".join(
            _SPACE_BETWEEN_COLUMNS + (str(counts[column]) if counts[column] else "-").rjust(len(column))
            for column in columns
        )
        lines += [words.ljust(room) + cells, *more]
    return lines


def _split_name_to_fit(name: str, room: int, width: int) -> tuple[str, list[str]]:
    """Give what of a name stands beside the figures, and the lines below it, which are as wide as the table."""
    first = textwrap.wrap(name, room, break_on_hyphens=False)[0]
    indent = " " * (len(name.partition("  ")[0]) + len(_SPACE_BETWEEN_COLUMNS))
    below = textwrap.wrap(name[len(first) :].strip(), width, initial_indent=indent, subsequent_indent=indent)
    return first, below


def _format_conclusion(
    judged: Sequence[JudgedScenario], counted: Sequence[JudgedScenario], version: str, *, is_whole: bool
) -> list[str]:
    counts = _count_scenarios(counted)
    others = [
        *_list_errors(counted),
        f"{counts['passed']} passed",
        f"{counts['n/a']} not applicable",
        f"{counts['known']} known",
    ]
    informational = sum(result.level == "info" and result.verdict != Verdict.NOT_APPLICABLE for result in judged)
    if informational:
        others.append(f"{informational} informational")
    applied = [result for result in judged if result.verdict != Verdict.NOT_APPLICABLE]
    clocks = " and ".join(sorted({result.clock for result in applied or judged}, reverse=True))
    corpus, digest = hash_corpus(judged)[:_SHOWN_HASH_CHARS], compute_results_digest(judged)[:_SHOWN_HASH_CHARS]
    return [
        format_verdict_line(judged, is_whole=is_whole),
        f"  {', '.join(others)}; {clocks} clock",
        f"  pytest-agentproc {version}, corpus {corpus}, digest {digest}",
    ]


_TEXT_AFTER_INTERRUPTION = "was not judged to the end, as the session was interrupted"


def _format_verdict(judged: Sequence[JudgedScenario], errors: Sequence[str]) -> str:
    conformance = judge_conformance(judged)
    if conformance is Conformance.NO_VERDICT:
        reason = f"of {' and '.join(errors)}" if errors else "a scenario file could not be read"
        return f"{conformance} because {reason}"
    return f"{conformance} because no check passed" if conformance is Conformance.NOT_JUDGED else conformance
