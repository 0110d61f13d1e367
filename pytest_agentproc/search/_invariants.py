"""Owns what holds of every run whatever its scenario expects: the standing invariants. Judges records and answers."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING

from pytest_agentproc.errors import SubjectError
from pytest_agentproc.events import CallerActed, OutcomeReached, OutputWritten, StreamClosed, TurnEnded
from pytest_agentproc.verdict import find_returned_at, list_leaks
from pytest_agentproc.vocabulary import Outcome

if TYPE_CHECKING:
    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.record import Record
    from pytest_agentproc.vocabulary import RunReport


def find_broken_invariant(played: PlayResult) -> str:
    """Say which standing invariant a play breaks; "" if none."""
    if isinstance(played.fault, SubjectError):
        return str(played.fault).partition("\n")[0]
    if played.fault is not None:
        return f"time cannot advance: {played.fault}"
    checks = (
        _check_time_order,
        _check_one_outcome_each,
        _check_exit_codes,
        _check_silence_limit,
        _check_return_after_graces,
        _check_leaks,
    )
    return next((reason for check in checks if (reason := check(played))), "")


def _check_time_order(played: PlayResult) -> str:
    back = next((later for event, later in pairwise(played.record.events) if later.at < event.at), None)
    return "" if back is None else f"virtual time goes back, to {back.at} ns"


def _check_one_outcome_each(played: PlayResult) -> str:
    """Every prompt has exactly one outcome."""
    answer = played.answer
    if answer is None:
        return "the supervisor gave no answer"
    if answer.sessions is not None:
        return ""
    if answer.turns is None:
        is_told = answer.outcome is not None or played.bound.abandoned is not None
        return "" if is_told else "the run has no outcome"
    prompts = sum(action.kind == "prompt" for action in played.bound.drive)
    asked = sum(isinstance(event, CallerActed) and event.does == "prompt" for event in played.record.events)
    ended = Counter(event.turn for event in played.record.events if isinstance(event, TurnEnded))
    twice = [turn for turn, count in ended.items() if turn is not None and count > 1]
    if twice:
        return f"turn {twice[0]} has {ended[twice[0]]} outcomes"
    if len(answer.turns) != asked or any(turn.outcome is None for turn in answer.turns):
        return f"{asked} of {prompts} prompts were given, and {len(answer.turns)} have an outcome"
    return ""


def _check_exit_codes(played: PlayResult) -> str:
    assert played.answer is not None
    for answer in (played.answer, *(played.answer.turns or ())):
        codes = Outcome(answer.outcome).exit_codes if answer.outcome else ()
        if codes and answer.exit_code is not None and answer.exit_code not in codes:
            return f"the exit code of {answer.outcome} is {answer.exit_code}"
    return ""


def _is_run_report(answer: RunReport) -> bool:
    return answer.turns is None and answer.sessions is None


def _check_silence_limit(played: PlayResult) -> str:
    """A run is never ended for its silence while it is active within the policy, nor waited for past it."""
    assert played.answer is not None
    if not _is_run_report(played.answer) or played.answer.outcome in (Outcome.SPAWN_FAILED, None):
        return ""
    limits = played.bound.policy.nanoseconds()
    short, long = limits["inactivity_timeout"], limits["internal_tool_timeout"]
    over = played.answer.elapsed
    if short is None or over is None:
        return ""
    written = _list_write_times(played.record)
    gaps = [after - before for before, after in pairwise([0, *written, over])]
    if played.answer.outcome == Outcome.INACTIVE and gaps[-1] < short:
        return f"it was ended as inactive {gaps[-1]} ns after its last byte"
    longest = None if long is None else max(short, long)
    if longest is not None and max(gaps) > longest:
        return f"it was silent for {max(gaps)} ns, longer than any limit, and waited for"
    return ""


def _list_write_times(record: Record) -> list[int]:
    """List when anything was written before the outcome, but for what went to a stream that its writer had closed."""
    closed: set[tuple[str, str]] = set()
    written = []
    for event in takewhile(lambda event: not isinstance(event, OutcomeReached), record.events):
        if isinstance(event, StreamClosed):
            closed.add((event.process, event.stream))
        elif isinstance(event, OutputWritten) and (event.process, event.stream) not in closed:
            written.append(event.at)
    return written


def _check_return_after_graces(played: PlayResult) -> str:
    """The caller of a run has its answer once the graces after the outcome are over."""
    assert played.answer is not None
    at, over = find_returned_at(played.record), played.answer.elapsed
    if not _is_run_report(played.answer) or at is None or over is None:
        return ""
    limits = played.bound.policy.nanoseconds()
    names = ("background_grace", "linger_grace", "linger_kill_grace", "leftover_kill_grace", "kill_grace")
    if played.bound.policy.unstated & {*names}:
        return ""  # nobody knows how long that may be
    allowed = sum(limits[name] or 0 for name in names)
    return f"it returned {at - over} ns after the outcome" if at - over > allowed else ""


def _check_leaks(played: PlayResult) -> str:
    left = list_leaks(played.record)
    return f"{left[0].process} outlives the run" if left and not _has_expected_leaks(played) else ""


def _has_expected_leaks(played: PlayResult) -> bool:
    return any(expectation.key == "leaks" and expectation.wanted for expectation in played.bound.expect)
