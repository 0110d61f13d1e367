"""Owns which failures say nothing because a limit is not stated: a demand that is wrong under another value of it.

Two things are tried. A grace between TERM and KILL may be 0, and is then honoured as if it were stated. And where the
reference supervisor fails a check under another value of a limit, that check depends on the limit.

No limit explains a prompt without a turn, words of another turn, one start too many, a signal of another kind, or an
agent that was ended before a limit began to count. So such a check stays, also if its own value depends on a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from pytest_agentproc.errors import Deadlock, EndlessAgent, EndlessWait, Hang
from pytest_agentproc.events import TimerEvent
from pytest_agentproc.plays import PlayResult
from pytest_agentproc.verdict._facts import (
    list_agent_starts,
    list_signals,
    list_turning_points,
    select_session_play,
)
from pytest_agentproc.verdict._rows import CheckRow, Verdict, is_time_as_wanted
from pytest_agentproc.verdict._session_checks import find_turn_number
from pytest_agentproc.vocabulary import SIGNALS_THAT_BEGIN_ENDING, TIMEOUTS_THAT_ARE_NEVER_0, RunReport

if TYPE_CHECKING:
    from pytest_agentproc.plays import UnstatedPlays


_GRACES_BEFORE_KILL = ("linger_kill_grace", "leftover_kill_grace", "kill_grace")
_FAULTS_OF_ENDLESS_RUNS = (Deadlock, EndlessAgent, EndlessWait, Hang)
_FAILED_VERDICTS = (Verdict.FAILED, Verdict.NOT_EXERCISED)
_SIGNAL_OF_CLOSED_PIPE = "PIPE"
"""Nobody sends it: an agent dies of it whose supervisor gives it no grace, and so closes its pipes."""
_KEY_CHANGED_BY_CUT = "noise"
"""With the shortest value an agent may be ended in the middle of a line. That says nothing of how lines are counted."""
_REPORTED_FIELDS = frozenset(field.name for field in fields(RunReport))

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


def hint_at_missing_limits(
    played: PlayResult, rows: Iterable[CheckRow], compare: JudgeExpectations, kept: Iterable[str]
) -> list[CheckRow]:
    """Say in a run that never ended which unstated limit could have ended it, and how to state it.

    That is a limit without which the reference supervisor fails the same check.

    Args:
        played: what was played.
        rows: its checks as they were judged.
        compare: judges a play.
        kept: the keys that such an end decides nothing about.
    """
    rows, unstated = [*rows], played.unstated
    first = next((row for row in rows if row.verdict is Verdict.FAILED and row.key not in kept), None)
    if unstated is None or first is None or not isinstance(played.fault, _FAULTS_OF_ENDLESS_RUNS):
        return rows
    if first.key not in _list_met_keys(compare(unstated.default_result)):
        return rows
    names = [name for name, play in unstated.endless_results.items() if first.key not in _list_met_keys(compare(play))]
    if names:
        hint = (
            f"it states no {' and no '.join(names)}, which ends this wait for the kit's own supervisor:\n"
            f"state limits={{'{names[0]}': 30}} if it waits 30 s at most, and None if it waits for ever"
        )
        rows[rows.index(first)] = replace(first, hint=hint)
    return rows


def _list_met_keys(rows: Iterable[CheckRow]) -> set[str]:
    return {row.key for row in rows if row.verdict is Verdict.PASSED}


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


def is_wrong_under_any_limits(key: str, played: PlayResult, plays: Sequence[PlayResult]) -> bool:
    """Say whether a check failed in a way in which no play of the reference supervisor fails it.

    Args:
        key: the expect key of the check.
        played: what was played.
        plays: the same scenario with the reference supervisor, under several limits.
    """
    others = [select_session_play(play, key)[0] for play in plays]
    own, key = select_session_play(played, key)
    if key == "spawns":
        return _count_starts(own) > max(map(_count_starts, others))
    head, _, leaf = key.rpartition(".")
    if leaf == "signals":
        process = head.removeprefix("processes.") or None
        known = set().union(*(_list_signal_names(other, process) for other in others))
        known |= {*SIGNALS_THAT_BEGIN_ENDING} if own.bound.first_signal != "TERM" else set()
        return not _list_signal_names(own, process) <= known | {_SIGNAL_OF_CLOSED_PIPE}
    number = find_turn_number(key)
    if number is None or own.answer is None or own.answer.turns is None:
        return False
    if len(own.answer.turns) < number:
        return all(len(_list_turns(other)) >= number for other in others)
    return key.endswith((".text", ".transcript")) and _has_words_of_another_turn(own, number, others)


def _count_starts(play: PlayResult) -> int:
    return len(list_agent_starts(play.record))


def _list_signal_names(play: PlayResult, process: str | None) -> set[str]:
    return {name for name, _ in list_signals(play.record, process)}


def _list_turns(play: PlayResult) -> Sequence[RunReport]:
    return () if play.answer is None else play.answer.turns or ()


def _has_words_of_another_turn(own: PlayResult, number: int, others: Sequence[PlayResult]) -> bool:
    """Say whether a turn has the text of another one. A new agent says all from the start, and so proves nothing."""
    turns = [(place, turn.text) for other in others for place, turn in enumerate(_list_turns(other), 1) if turn.text]
    rightful = {text for place, text in turns if place == number}
    seen = _list_turns(own)[number - 1].text or ""
    return _count_starts(own) == 1 and any(
        text in seen and not any(text in right for right in rightful) for place, text in turns if place != number
    )


def _find_passing_without_grace(
    played: PlayResult, unstated: UnstatedPlays, compare: JudgeExpectations, keys: Iterable[str]
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
    passed = _list_met_keys(compare(replace(whole, bound=bound, unstated=None)))
    return {key: names for key in keys if key in passed}


def _remove_grace(bound: Any) -> Any:
    graces = {name: 0.0 for name in _GRACES_BEFORE_KILL if name in bound.policy.unstated}
    return replace(bound, policy=replace(bound.policy, **graces)) if graces else bound


def _find_limit_dependent_checks(
    played: PlayResult, unstated: UnstatedPlays, compare: JudgeExpectations, keys: set[str]
) -> Mapping[str, tuple[str, ...]]:
    """Give the checks that the reference supervisor fails under another value, each with the limits.

    A check that no value changes stays, and so does one that failed in a way that no value explains. Only what is
    reported with another outcome, such as a text, goes with it. A run that never ended is right under no limit, unless
    the reference supervisor does not end either.
    """
    met = _list_met_keys(compare(unstated.default_result))
    found: dict[str, dict[str, None]] = {}
    for name, plays in unstated.varied_results.items():
        for place, play in enumerate(plays):
            if played.fault is not None and play.fault is None:
                continue
            missed = {row.key for row in compare(play) if row.verdict is not Verdict.PASSED} & met
            others = [key for key in missed if key.rpartition(".")[2] == "outcome"]
            for key in {key for key in keys if key in missed or _goes_with_outcome(key, others)}:
                if place == 0 and key.rpartition(".")[2] == _KEY_CHANGED_BY_CUT:
                    continue
                found.setdefault(key, {})[name] = None
    names = {name for names in found.values() for name in names}
    return {key: tuple(own) for key, own in found.items() if not is_explained_by_no_value(key, played, unstated, names)}


def is_explained_by_no_value(key: str, played: PlayResult, unstated: UnstatedPlays, names: Iterable[str]) -> bool:
    """Say whether a check failed in a way that no value of the unstated limits explains.

    Args:
        key: the expect key of the check.
        played: what was played.
        unstated: the plays of the reference supervisor.
        names: the limits on which the check depends.
    """
    if _has_ended_agent_before_limits(played, unstated, names):
        return True
    plays = [unstated.default_result, *chain.from_iterable(unstated.varied_results.values())]
    return is_wrong_under_any_limits(key, played, plays)


def _goes_with_outcome(key: str, others: Iterable[str]) -> bool:
    """Say whether a check is about what is reported with one of these outcomes: of the same run, or the same turn."""
    head, _, field = key.rpartition(".")
    return field in _REPORTED_FIELDS and any(other.rpartition(".")[0] == head for other in others)


def _has_ended_agent_before_limits(played: PlayResult, unstated: UnstatedPlays, names: Iterable[str]) -> bool:
    """Say whether the supervisor ended an agent, or started one more, before any of these limits began to count.

    From there on the limits explain nothing. A timeout cannot be 0, so its first instant comes too early, too.
    """
    usual = unstated.default_result.record
    timers = [event for event in usual.events if isinstance(event, TimerEvent)]
    began = {name: min((event.at for event in timers if event.timer == name), default=0) for name in names}
    expected = list_turning_points(usual)
    return any(
        all(at <= since if name in TIMEOUTS_THAT_ARE_NEVER_0 else at < since for name, since in began.items())
        for at in list_turning_points(played.record)
        if not any(is_time_as_wanted(played, due, at) for due in expected)
    )
