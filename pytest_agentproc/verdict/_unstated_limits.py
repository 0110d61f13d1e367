"""Owns which failures say nothing because a limit is not stated: a demand that is wrong under another value of it.

Two things are tried. A grace between TERM and KILL may be 0, and is then honoured as if it were stated. And where the
reference supervisor fails a check under another value of a limit, that check depends on the limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_agentproc.verdict._rows import CheckRow, PlayResult, Verdict
from pytest_agentproc.verdict._session_checks import is_check_of_earlier_turn

if TYPE_CHECKING:
    from pytest_agentproc.verdict._rows import UnstatedLimitPlays


_GRACES_BEFORE_KILL = ("linger_kill_grace", "leftover_kill_grace", "kill_grace")
_FAILED_VERDICTS = (Verdict.FAILED, Verdict.NOT_EXERCISED)
_KEY_CHANGED_BY_CUT = "noise"
"""With the shortest value an agent may be ended in the middle of a line. That says nothing of how lines are counted."""

JudgeExpectations = Callable[[PlayResult], Sequence[CheckRow]]


def describe_limits_to_state(names: Iterable[str]) -> str:
    """Say what has to be stated for a check to be judged."""
    limits = ", ".join(f"'{name}': ..." for name in names)
    return f"state limits={{{limits}}} to have this judged"


def excuse_unstated(
    played: PlayResult, rows: list[CheckRow], compare: JudgeExpectations, proven: Iterable[str]
) -> list[CheckRow]:
    """Make failed checks not applicable whose demand depends on a limit that is not stated.

    Args:
        played: what was played.
        rows: its checks as they were judged.
        compare: judges a play.
        proven: the keys that a record proves under any limits: who was left, who was hit.
    """
    unstated = played.unstated
    open_keys = {row.key for row in rows if row.verdict in _FAILED_VERDICTS} - {*proven}
    if unstated is None or not open_keys:
        return rows
    excuses = {
        **_find_limit_dependent_checks(played, unstated, compare, open_keys),
        **_find_passing_without_grace(played, unstated, compare, open_keys),
    }
    return [
        row.mark_not_applicable(describe_limits_to_state(excuses[row.key]), excuses[row.key])
        if row.key in excuses and row.verdict in _FAILED_VERDICTS
        else row
        for row in rows
    ]


def excuse_undecided_passes(rows: list[CheckRow], deciding: Mapping[str, set[str]]) -> list[CheckRow]:
    """Make what passed not applicable if nothing is left that decides the scenario: it would be green for nothing.

    Args:
        rows: the checks of a scenario.
        deciding: for each level the keys on which its checks turn; none: they turn on all of them.
    """
    found = []
    for row in rows:
        keys = deciding[row.level]
        left_out = [row for row in rows if row.key in keys and row.verdict is Verdict.NOT_APPLICABLE]
        names = dict.fromkeys(name for row in left_out for name in row.unstated)
        is_withheld = row.verdict is Verdict.PASSED and names and len(left_out) == len(keys)
        found.append(
            row.mark_not_applicable(f"this decides nothing: {describe_limits_to_state(names)}") if is_withheld else row
        )
    return found


def _find_passing_without_grace(
    played: PlayResult, unstated: UnstatedLimitPlays, compare: JudgeExpectations, keys: Iterable[str]
) -> Mapping[str, tuple[str, ...]]:
    """Give the checks that pass if a supervisor that does not state its graces gives none."""
    names = tuple(name for name in _GRACES_BEFORE_KILL if name in unstated.names)
    if not names:
        return {}
    whole: Any = played
    bound = replace(
        _remove_grace(whole.bound),
        parts={key: _remove_grace(part) for key, part in whole.bound.parts.items()},
    )
    passed = {row.key for row in compare(replace(whole, bound=bound, unstated=None)) if row.verdict is Verdict.PASSED}
    return {key: names for key in keys if key in passed}


def _remove_grace(bound: Any) -> Any:
    graces = {name: 0.0 for name in _GRACES_BEFORE_KILL if name in bound.policy.unstated}
    return replace(bound, policy=replace(bound.policy, **graces)) if graces else bound


def _find_limit_dependent_checks(
    played: PlayResult, unstated: UnstatedLimitPlays, compare: JudgeExpectations, keys: set[str]
) -> Mapping[str, tuple[str, ...]]:
    """Give the checks that the reference supervisor fails under another value, each with the limits.

    Of another outcome nothing is judged but what ended before it. A run that never ended is right under no limit,
    unless the reference supervisor does not end either.
    """
    met = {row.key for row in compare(unstated.default_result) if row.verdict is Verdict.PASSED}
    found: dict[str, dict[str, None]] = {}
    for name, plays in unstated.varied_results.items():
        for place, play in enumerate(plays):
            if played.fault is not None and play.fault is None:
                continue
            missed = {row.key for row in compare(play) if row.verdict is not Verdict.PASSED} & met
            others = [key for key in missed if key.rpartition(".")[2] == "outcome"]
            for key in keys:
                if place == 0 and key.rpartition(".")[2] == _KEY_CHANGED_BY_CUT:
                    continue
                if key in missed or (others and not is_check_of_earlier_turn(key, others)):
                    found.setdefault(key, {})[name] = None
    return {key: tuple(names) for key, names in found.items()}
