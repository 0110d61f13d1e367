"""Owns the way from a played scenario to its rows and to one verdict over them; the checks are elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_agentproc.errors import ClockError, ScenarioError, ScenarioProblem, SubjectError, SupervisorCrash
from pytest_agentproc.events import ClientNotTold, ClientTold, HandshakeMissed, ScaleIgnored
from pytest_agentproc.verdict._agent_checks import check_stray_signals, list_stray_signals
from pytest_agentproc.verdict._artifact_checks import show_artifact
from pytest_agentproc.verdict._checks import check_leaks, find_check
from pytest_agentproc.verdict._facts import (
    list_expired_timers,
    list_leaks,
    select_session_play,
    was_any_agent_started,
)
from pytest_agentproc.verdict._patterns import SlowPattern
from pytest_agentproc.verdict._program_end import explain_program_failure
from pytest_agentproc.verdict._rows import CheckRow, Finding, Verdict
from pytest_agentproc.verdict._session_checks import (
    ExpectationCheck,
    fail_undelivered_answers,
    has_turn_ended,
    is_check_of_earlier_turn,
    is_turn_check,
)
from pytest_agentproc.verdict._unstated_limits import (
    describe_limits_to_state,
    excuse_undecided_passes,
    excuse_unstated,
    hint_at_missing_limits,
    is_explained_by_no_value,
    is_wrong_under_any_limits,
)
from pytest_agentproc.verdict._value_text import escape_unprintable_characters, show_wanted
from pytest_agentproc.vocabulary import LEVELS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_agentproc.plays import PlayResult, ReferencePlays
    from pytest_agentproc.scenario import Expectation


_CHECKS_OF_RECORD_ONLY: dict[str, ExpectationCheck] = {"leaks": check_leaks, "unrelated_processes": check_stray_signals}
"""What a record proves though the run ended in a fault."""

_OPEN_VERDICTS = (Verdict.UNDECIDED, Verdict.NOT_EXERCISED)
"""What is said of a check that nothing decides."""

_EXPECT_KEYS_WITH_TIMES = ("elapsed", "returned", "signals", "gone_at", "alive_at", "spawns", "asked", "called")
"""The last words of keys that state instants."""


def judge_all_expectations(played: PlayResult) -> tuple[CheckRow, ...]:
    """Judge every expectation of a scenario.

    Unrelated processes are watched whether or not the file says so. If the file does not name them, they have a row if
    one was harmed.
    A clock fault (a deadlock, an endless wait) fails the check `outcome`, whether or not the file states one, or the
    checks of the turns that had no end then. An exception in the subject is a row of its own. A check that the run
    never reached is not exercised; neither is a check that would be green though no agent was started. A limit that the
    subject does not have, or does not state, makes a check not applicable that depends on it. So is what failed under a
    subject that looks in turns, where instants that decide it are nearer to one another than its looks may be late: but
    for who was left, or hit. So is, with the same exception, what the kit's own supervisor meets under the limits of
    the file and misses under the subject's. What failed in real time under a subject that keeps limits and does not
    divide them is its adapter's error, and says nothing of it. A scenario that withholds a handshake is not applicable
    to a client that asks for none. An answer to a prompt that no agent got fails the turn's outcome, and nothing
    excuses it.

    Returns:
        one row per expectation, in the file's order.
    """
    rows = excuse_undecided_passes(
        _judge_expectations(played), {level: _list_deciding_keys(played, level) for level in LEVELS}
    )
    rows = _excuse_moot_leaks(played, _excuse_undecided(played, rows))
    rows = fail_undelivered_answers(played, rows)
    return tuple(
        replace(
            row,
            wanted=escape_unprintable_characters(row.wanted),
            seen=escape_unprintable_characters(row.seen),
            diff=escape_unprintable_characters(row.diff) if row.verdict is Verdict.FAILED else "",
        )
        for row in rows
    )


def _judge_expectations(played: PlayResult) -> list[CheckRow]:
    """Judge every expectation, also where nothing is left that decides the scenario."""
    level = played.bound.scenario.level
    rows = _excuse_unreported(played, [_judge_row(played, expectation) for expectation in played.bound.expect])
    if isinstance(played.fault, SubjectError):
        verdict = Verdict.CRASHED if isinstance(played.fault, SupervisorCrash) else Verdict.ADAPTER_ERROR
        rows.insert(0, CheckRow("answer", 0, "an answer", str(played.fault), verdict, level=level))
    elif played.fault is not None and Verdict.FAILED not in {
        row.verdict for row in rows if row.key not in _CHECKS_OF_RECORD_ONLY
    }:
        rows.insert(0, CheckRow("outcome", 0, "any", *_describe_fault(played.fault), level=level))
    harm = check_stray_signals(played, "unharmed")
    if harm.verdict is Verdict.FAILED and all(row.key != "unrelated_processes" for row in rows):
        rows.append(CheckRow("unrelated_processes", 0, "unharmed", harm.seen, harm.verdict, harm.hint, level))
    rows = explain_program_failure(played, rows)
    rows = _report_unscaled_limits(played, _excuse_unasked(played, _excuse_other_limits(played, rows)))
    rows = excuse_unstated(played, rows, _judge_expectations, _CHECKS_OF_RECORD_ONLY)
    return hint_at_missing_limits(played, rows, _judge_expectations, _CHECKS_OF_RECORD_ONLY)


def choose_overall_verdict(rows: Iterable[CheckRow], *, counts_info: bool = True) -> Verdict:
    """Say one verdict over the rows of a scenario: the gravest of them.

    Passed needs a check that the file states and that passed, at level `must` if it states any there: if all of them
    are not applicable, so is the scenario. A check at level `should` that nothing decides is left out if checks at
    level `must` decide something.

    Args:
        rows: the checks.
        counts_info: whether checks at level `info` count beside others.
    """
    rows = tuple(rows)
    if not counts_info:
        rows = tuple(row for row in rows if row.level != "info") or rows
    if any(row.level == "must" and row.line and row.verdict is not Verdict.NOT_APPLICABLE for row in rows):
        rows = tuple(row for row in rows if row.level != "should" or row.verdict not in _OPEN_VERDICTS)
    found = {row.verdict for row in rows}
    for verdict in Verdict:
        if verdict in found and verdict not in (Verdict.NOT_APPLICABLE, Verdict.PASSED):
            return verdict
    stated = [row for row in rows if row.line]
    deciding = {row.verdict for row in [row for row in stated if row.level == "must"] or stated}
    return Verdict.NOT_APPLICABLE if deciding == {Verdict.NOT_APPLICABLE} else Verdict.PASSED


def list_unmet_checks(rows: Sequence[CheckRow]) -> list[CheckRow]:
    """List the checks that did not pass though they apply, the gravest first."""
    bad = [row for row in rows if row.verdict not in (Verdict.PASSED, Verdict.NOT_APPLICABLE, Verdict.KNOWN)]
    return sorted(bad, key=lambda row: list(Verdict).index(row.verdict))


def _excuse_other_limits(played: PlayResult, rows: list[CheckRow]) -> list[CheckRow]:
    """Excuse what follows from the subject's limits: checks that the kit's own supervisor misses under them, too.

    Of another outcome nothing is judged, as it is another story from there on (turns before that one are), nor of a
    scenario all of whose deciding keys are among it. A key that this supervisor misses under the file's limits, too, is
    no matter of limits. A leak or a harmed process never is one, nor is a prompt without a turn and its like.
    """
    if played.reference is None or isinstance(played.fault, SubjectError):
        return rows
    missed = _find_missed_by_reference(played.reference)
    lacking = _describe_missing_limits(played.reference)
    if played.fault is not None and played.reference.under_subject_limits.fault is None:
        return rows
    deciding = _list_deciding_keys(played)
    is_moot = bool(deciding) and deciding <= missed.keys()
    others = {key: seen for key, seen in missed.items() if is_moot or _get_last_key_part(key) == "outcome"}
    other = next(iter(others.values()), "")
    plays = (played.reference.under_subject_limits, played.reference.under_file_limits)
    return [
        row.mark_not_applicable(f"{_INTRODUCTION_OF_LIMITS} {why}{lacking}")
        if row.key not in _CHECKS_OF_RECORD_ONLY
        and (
            why := missed.get(row.key, "")
            or ("" if not is_moot and is_check_of_earlier_turn(row.key, others) else other)
        )
        and not (row.verdict is Verdict.FAILED and is_wrong_under_any_limits(row.key, played, plays))
        else row
        for row in rows
    ]


_INTRODUCTION_OF_LIMITS = "with these limits the kit's own supervisor fails this check, too:"


def _find_missed_by_reference(reference: ReferencePlays) -> dict[str, str]:
    """Give what the kit's own supervisor meets under the file's limits, and does otherwise under the subject's.

    A text that it has no more is done otherwise, too, once something else is.
    """
    there = judge_all_expectations(reference.under_subject_limits)
    others = list_unmet_checks(there)
    if not others:
        return {}
    others += [row for row in there if row.verdict is Verdict.NOT_APPLICABLE]
    rows = judge_all_expectations(reference.under_file_limits)
    met = {row.key for row in rows if row.verdict is Verdict.PASSED and row.key not in _CHECKS_OF_RECORD_ONLY}
    return {row.key: f"{row.key} {row.seen}".partition("\n")[0] for row in others if row.key in met}


def _describe_missing_limits(reference: ReferencePlays) -> str:
    """Say which limits of the file the subject does not have, if without them the run does not end."""
    there, here = reference.under_subject_limits, reference.under_file_limits
    if there.fault is None or here.fault is not None:
        return ""
    parts = there.bound.parts.values() or (there.bound,)
    names = [
        name
        for name in list_expired_timers(here.record)
        if all(part.policy.to_whole_limits().get(name, 0) is None for part in parts)
    ]
    return f"; it has no {' and no '.join(names)}, so nothing ends this wait" if names else ""


def _excuse_unasked(played: PlayResult, rows: list[CheckRow]) -> list[CheckRow]:
    """Excuse a client that asks for no handshake, or was not told of what the scenario is about.

    A process that it leaves is still a leak, unless the run only ended because all sides waited.
    """
    events = played.record.events
    untold = {event.untold for event in events if isinstance(event, ClientNotTold)}
    untold -= {event.told for event in events if isinstance(event, ClientTold)}
    if any(isinstance(event, HandshakeMissed) for event in events):
        why = "the client asks for no handshake, and the scenario is about one"
    elif untold:
        why = f"the {min(untold)} came while the client was in `start`, where no `Client` is told of it"
    else:
        return rows
    return [
        row.mark_not_applicable(why)
        if row.key not in _CHECKS_OF_RECORD_ONLY or (row.key == "leaks" and played.fault is not None)
        else row
        for row in rows
    ]


def _report_unscaled_limits(played: PlayResult, rows: list[CheckRow]) -> list[CheckRow]:
    word = next((event.unscaled for event in played.record.events if isinstance(event, ScaleIgnored)), None)
    if word is None or all(row.verdict is not Verdict.FAILED for row in rows):
        return rows
    text = (
        f"it keeps limits and never asked for {word}, which was {played.record.header['scale']:g} here\n"
        f"have it divide its limits by {word}, or choose --agentproc-scale=1"
    )
    unread = "its limits were not divided by the scale"
    others = [
        replace(row, verdict=Verdict.NOT_EXERCISED, seen=unread, hint="") if row.verdict is Verdict.FAILED else row
        for row in rows
    ]
    wanted, level = "limits divided by the scale", played.bound.scenario.level
    return [CheckRow("answer", 0, wanted, text, Verdict.ADAPTER_ERROR, level=level), *others]


def _excuse_undecided(played: PlayResult, rows: list[CheckRow]) -> list[CheckRow]:
    """Excuse a subject that looked too seldom: for other instants and, with another outcome, for everything.

    Checks that fit another outcome are not judged either: a scenario that nothing decides has not been passed.
    """
    if not played.undecided or played.fault is not None:
        return rows
    judged = [row for row in rows if row.key not in _CHECKS_OF_RECORD_ONLY]
    failed = {row.key for row in judged if row.verdict is Verdict.FAILED}
    is_other = any(_get_last_key_part(key) == "outcome" for key in failed)
    open_keys = (
        {row.key for row in judged}
        if is_other
        else {key for key in failed if _get_last_key_part(key) in _EXPECT_KEYS_WITH_TIMES}
    )
    return [row.mark_not_applicable(played.undecided) if row.key in open_keys else row for row in rows]


def _excuse_moot_leaks(played: PlayResult, rows: list[CheckRow]) -> list[CheckRow]:
    """Excuse the leaks of a run that a fault of the clock ended, if nothing else of the run is judged.

    Without a limit that it does not have the run could not end otherwise.
    """
    others = {row.verdict for row in rows if row.key not in _CHECKS_OF_RECORD_ONLY}
    if played.fault is None or others != {Verdict.NOT_APPLICABLE}:
        return rows
    return [
        replace(row, verdict=Verdict.NOT_APPLICABLE) if row.verdict is Verdict.NOT_EXERCISED else row for row in rows
    ]


def _get_last_key_part(key: str) -> str:
    return key.rpartition(".")[2]


def _judge_row(played: PlayResult, expectation: Expectation) -> CheckRow:
    try:
        finding = _check_expectation(played, expectation)
    except SlowPattern as error:
        problem = ScenarioProblem(str(played.bound.scenario.path), expectation.line, 1, f"{expectation.key}: {error}")
        raise ScenarioError([problem]) from None
    unstated = expectation.unstated if finding.verdict is Verdict.NOT_APPLICABLE else ()
    missing = expectation.not_applicable or ", ".join(unstated)
    wanted = f"it depends on {missing}" if missing else _show_wanted_value(expectation.key, expectation.wanted)
    line, level = expectation.line or finding.line, expectation.level
    return CheckRow(
        expectation.key, line, wanted, finding.seen, finding.verdict, finding.hint, level, unstated, finding.diff
    )


def _show_wanted_value(key: str, wanted: Any) -> str:
    head, _, rest = key.partition(".")
    return show_artifact(rest, wanted) if head == "artifacts" else show_wanted(key, wanted)


def _check_expectation(played: PlayResult, expectation: Expectation) -> Finding:
    if expectation.not_applicable is not None:
        return Finding(Verdict.NOT_APPLICABLE, f"the subject has no {expectation.not_applicable}")
    if expectation.unstated and not _is_wrong_whatever_is_stated(played, expectation):
        return Finding(Verdict.NOT_APPLICABLE, describe_limits_to_state(expectation.unstated))
    played, key = select_session_play(played, expectation.key)
    wanted = expectation.wanted
    if played.fault is not None:
        return _judge_after_fault(played, played.fault, key, wanted)
    check = find_check(key)
    if check is None or played.answer is None:
        missing = "the run has neither an answer nor a fault" if check else "nothing checks this key"
        return Finding(Verdict.KIT_ERROR, missing)
    finding = check(played, wanted)
    if finding.verdict is Verdict.PASSED and not was_any_agent_started(played) and not _is_unstartable(played):
        return Finding(Verdict.NOT_EXERCISED, f"no agent was started; {finding.seen}")
    return finding


def _is_wrong_whatever_is_stated(played: PlayResult, expectation: Expectation) -> bool:
    """Say whether a check that names unstated limits failed in a way that none of their values explains.

    With the default values it fails, too. A run that ended in a fault is judged by its outcome.
    """
    if played.unstated is None or played.fault is not None:
        return False
    stated = replace(expectation, unstated=())
    return _check_expectation(played, stated).verdict is Verdict.FAILED and is_explained_by_no_value(
        expectation.key, played, played.unstated, expectation.unstated
    )


def _list_deciding_keys(played: PlayResult, level: str = "") -> set[str]:
    """Give the keys on which a scenario turns: those that its defects turn red; none if it names none.

    A must turns on keys at level must alone: what is only good practice cannot show that no user is harmed.
    """
    keys = {expectation.key for expectation in played.bound.expect if level != "must" or expectation.level == "must"}
    return keys & {*played.bound.scenario.catches.values()}


def _excuse_unreported(played: PlayResult, rows: list[CheckRow]) -> list[CheckRow]:
    """Excuse values that are not reported, as long as something is reported on which the scenario turns.

    That is what its defects turn red. One that names none turns on all that it states. A supervisor that keeps no
    transcript is judged by the text of that turn, which is all that its user reads.
    """
    found = []
    decided = {(row.level, row.key) for row in rows if row.verdict in (Verdict.PASSED, Verdict.FAILED)}
    for row in rows:
        deciding = _list_deciding_keys(played, row.level)
        is_decided = any(row.key in deciding for row in rows if (row.level, row.key) in decided)
        text = row.key.removesuffix("transcript") + "text"
        is_decided = is_decided or (_get_last_key_part(row.key) == "transcript" and (row.level, text) in decided)
        is_spared = is_decided or (bool(deciding) and row.key not in deciding)
        is_open = row.verdict is Verdict.UNDECIDED
        found.append(replace(row, verdict=Verdict.NOT_APPLICABLE) if is_open and is_spared else row)
    return found


def _is_unstartable(played: PlayResult) -> bool:
    """Say whether the scenario is about an agent that cannot be started."""
    wanted = [expectation.wanted for expectation in played.bound.expect if expectation.key == "outcome"]
    return played.bound.scenario.cannot_spawn is not None or wanted == ["spawn_failed"]


def _judge_after_fault(played: PlayResult, fault: Exception, key: str, wanted: Any) -> Finding:
    is_theirs = isinstance(fault, SubjectError)
    if key == "outcome" and not is_theirs:
        seen, verdict = _describe_fault(fault)
        return Finding(verdict, seen)
    if is_turn_check(key) and not is_theirs and not has_turn_ended(played.record, key):
        return Finding(Verdict.FAILED, f"no outcome: {_describe_fault(fault)[0]}")
    check = _CHECKS_OF_RECORD_ONLY.get(key)
    if check is not None and (list_leaks(played.record) if key == "leaks" else list_stray_signals(played)):
        return check(played, wanted)
    article = "an" if _get_fault_name(fault)[0] in "aeiou" else "a"
    return Finding(Verdict.NOT_EXERCISED, f"the run ended in {article} {_get_fault_name(fault)}")


def _describe_fault(fault: Exception) -> tuple[str, Verdict]:
    return f"{_get_fault_name(fault)}: {fault}", Verdict.FAILED


def _get_fault_name(fault: Exception) -> str:
    return fault.reason if isinstance(fault, SubjectError | ClockError) else type(fault).__name__
