"""How an item is run, searched and judged, and how its test ends. Collects nothing."""

from __future__ import annotations

import gc
from contextlib import contextmanager, nullcontext
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, cast

import pytest

from pytest_agentproc.errors import AdapterError, KitError
from pytest_agentproc.harness import NotForRealTime, explain_no_virtual_time, explain_real_time_only, run_in_model
from pytest_agentproc.plugin._contributions import get_runner, is_reference_supervisor
from pytest_agentproc.plugin._options import format_rerun_command, get_option
from pytest_agentproc.plugin.reports._pages import add_run_page, add_unplayed_entry, forget_earlier_pages
from pytest_agentproc.plugin.reports._progress import record_play_figures
from pytest_agentproc.plugin.reports._results_store import apply_baseline, record_judgement
from pytest_agentproc.plugin.reports._timelines import add_run_to_timeline
from pytest_agentproc.record import Record
from pytest_agentproc.scenario import NotApplicable
from pytest_agentproc.verdict import (
    REASON_IN_REAL_TIME,
    Judgement,
    Verdict,
    compare_with_repeat,
    confirm_red_judgement,
    explain_play,
    judge_play,
    list_unmet_checks,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_agentproc.harness import ReferenceSubject
    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.plugin._contributions import ScenarioTest
    from pytest_agentproc.scenario import Scenario
    from pytest_agentproc.vocabulary import Subject


_CANCELLABLE_ONLY_CLAUSE = "it counts with a supervisor that is stated to be cancellable"


class ScenarioFailed(Exception):
    """A scenario whose verdict is not `passed`; its text is the explanation, whole."""


def play_in_virtual_time(node: pytest.Item, scenario: Scenario, backend: str, subject: Subject) -> PlayResult:
    """Play a scenario in virtual time, and show the record to the plugins that want it.

    Raises:
        ScenarioFailed: the subject broke when it was asked for its limits.
        pytest.skip.Exception: the subject has none of the limits that the script needs, declined the order, or is for
            real time only.
    """
    reason = explain_no_virtual_time(subject)
    if reason:
        pytest.skip(f"not applicable: {reason}")
    record = Record()
    if not explain_real_time_only(subject):
        add_run_to_timeline(node, record, scenario)
    try:
        played = _play_and_publish(
            node, lambda: get_runner(node.config).play(scenario, subject, backend=backend, record=record)
        )
    except NotForRealTime as out_of_reach:
        pytest.skip(f"{REASON_IN_REAL_TIME}: {out_of_reach}")
    if played.record is not record:
        add_run_to_timeline(node, played.record, scenario)
    return played


def play_in_real_time(node: pytest.Item, scenario: Scenario, backend: str, subject: Subject) -> PlayResult:
    """Play a scenario in real time, otherwise as `play`.

    Raises:
        pytest.skip.Exception: as there, or real time cannot judge the scenario.
    """
    config, scale = node.config, get_option(node.config, "scale")
    try:
        return _play_and_publish(
            node, lambda: get_runner(config).play_real(scenario, subject, backend=backend, scale=scale)
        )
    except NotForRealTime as reason:
        pytest.skip(f"{REASON_IN_REAL_TIME}: {reason}")


def _play_and_publish(node: pytest.Item, play: Callable[[], PlayResult]) -> PlayResult:
    try:
        played = play()
    except AdapterError as error:
        raise ScenarioFailed(f"{Verdict.ADAPTER_ERROR}: {error}") from error
    except NotApplicable as limit:
        pytest.skip(f"not applicable: {limit.reason()}")
    node.ihook.pytest_agentproc_record(nodeid=node.nodeid, record=played.record)
    return played


def finish_test_by_judgement(judgement: Judgement, *, is_reference: bool = True) -> None:
    """End a test as its judgement demands.

    Args:
        judgement: what came of the scenario.
        is_reference: whether the supervisor is the kit's own; a scenario at level `info` binds no other one.

    Raises:
        ScenarioFailed: a check failed, was not exercised or could not be decided.
        pytest.skip.Exception: no check is about a limit that the subject has, or the scenario is informational or may
            stay undecided.
        pytest.xfail.Exception: the failure is known.
    """
    if judgement.verdict is Verdict.NOT_APPLICABLE:
        pytest.skip(f"not applicable: {judgement.reason}")
    if judgement.verdict is Verdict.KNOWN:
        pytest.xfail(judgement.reason)
    if not judgement.is_red:
        return
    assert judgement.played is not None, "what was not played is not red"
    text = explain_play(judgement.played, judgement.rows)
    level = judgement.played.bound.scenario.level
    if level == "info" and not is_reference:
        row = list_unmet_checks(judgement.rows)[0]
        counts = "" if judgement.played.bound.abandoned is None else f" ({_CANCELLABLE_ONLY_CLAUSE})"
        pytest.skip(f"informational: {text.splitlines()[0]}: {row.key} is {row.seen}, not {row.wanted}{counts}")
    if level == "should" and judgement.verdict is Verdict.UNDECIDED:
        keys = ", ".join(row.key for row in judgement.rows if row.verdict is Verdict.UNDECIDED)
        pytest.skip(f"undecided: the subject does not report {keys}")
    raise ScenarioFailed(text)


def _is_tolerated(judgement: Judgement, lowest_level: str) -> bool:
    """Say whether a red scenario passes, as all that is wrong is below the level that fails the run; no error is."""
    levels = {row.level for row in list_unmet_checks(judgement.rows)}
    is_error = judgement.verdict in (Verdict.KIT_ERROR, Verdict.ADAPTER_ERROR)
    return lowest_level == "must" and judgement.is_red and not is_error and "should" in levels and "must" not in levels


_SEARCH_SEED = 0


def search_other_settings(node: pytest.Item, scenario: Scenario, backend: str, subject: Subject) -> None:
    """Search what a scenario leaves open, or move what it says, in as many settings as the session asks for.

    Raises:
        ScenarioFailed: a promise is broken; the text has the scenario that shows it, whole.
        UsageError: Hypothesis is not installed.
    """
    is_open = bool(scenario.openings)
    word = "search" if is_open else "explore"
    runs = get_option(node.config, word)
    if not runs:
        return
    from pytest_agentproc.search import confirm_failure, explore, format_failure_scenario, require_hypothesis, search

    if is_open:
        require_hypothesis()
    runner = get_runner(node.config)
    result = (search if is_open else explore)(
        scenario, subject, runs=runs, seed=_SEARCH_SEED, runner=runner, backend=backend
    )
    if result.find is None:
        return
    confirmed = confirm_failure(result.find, subject, runner, backend=backend)
    if not confirmed.repeats:
        raise ScenarioFailed(
            f"{scenario.path}: the search broke a promise, and real processes do not repeat it: "
            f"that is the kit's fault, not the supervisor's\n{confirmed.difference}"
        )
    file = f"found-{scenario.id.replace('[', '-').rstrip(']')}.scenario.yaml"
    text = format_failure_scenario(
        result.find,
        subject=subject.name,
        seed=_SEARCH_SEED,
        run=result.first,
        replay=format_rerun_command(node, file),
        is_defect=False,
        explored=not is_open,
    )
    raise ScenarioFailed(
        f"{scenario.path}: the search broke a promise in setting {result.first} of {result.runs}: "
        f"{result.find.reason}\n"
        f"this is the scenario that shows it; keep it as {file}:\n\n{text}"
    )


_MAX_REAL_TIME_PLAYS = 3
_MAX_FROZEN_OBJECTS_BY_DEFAULT = 5_000
"""An interpreter puts fewer objects aside by itself (3.12: 375); a process that has loaded pytest puts more aside."""


def play_and_judge(item: ScenarioTest) -> None:
    """Play the scenario and judge what was seen.

    A red play in real time during which the machine was late by half of what the scenario bears says nothing of the
    subject: it is played again. A red result in virtual time is run once more, too, and stands if it happens again:
    somebody may have killed the agent.
    """
    forget_earlier_pages(item)
    _record_unplayed(item, Judgement(Verdict.KIT_ERROR))
    for _ in range(_MAX_REAL_TIME_PLAYS):
        start = perf_counter()
        item.played = played = _play_and_record_problem(item)
        real = perf_counter() - start
        record_play_figures(item, played, real)
        is_reference = is_reference_supervisor(item.subject)
        judgement = judge_play(played, partial(apply_baseline, item), is_reference=is_reference)
        if judgement.is_red and played.is_virtual and item.clock == "virtual":
            judgement = confirm_red_judgement(judgement, partial(_play_and_record_problem, item))
        judgement = _repeat_play(item, judgement)
        if not (judgement.is_red and played.was_starved):
            record_judgement(item, judgement, real)
            add_run_page(item, played, judgement.rows, judgement.verdict)
            if _is_tolerated(judgement, get_option(item.config, "level")):
                item.add_report_section("call", "agentproc", explain_play(played, judgement.rows))
            else:
                finish_test_by_judgement(judgement, is_reference=is_reference)
            return _search_and_record_problem(item) if played.is_virtual else None
    reason = f"in real time the machine was too slow {_MAX_REAL_TIME_PLAYS} times"
    _record_unplayed(item, Judgement(Verdict.UNDECIDED, reason=reason))
    pytest.skip(f"undecided: {reason}")


def _search_and_record_problem(item: ScenarioTest) -> None:
    """Search the scenario further, and record a problem that is found as a failure."""
    try:
        search_other_settings(item, item.scenario, item.backend, item.subject)
    except ScenarioFailed as broken:
        _record_unplayed(item, Judgement(Verdict.FAILED, played=item.played, reason=str(broken).splitlines()[0]))
        raise


def _record_unplayed(item: ScenarioTest, judgement: Judgement) -> None:
    """Record a judgement that no page of a play shows."""
    record_judgement(item, judgement)
    add_unplayed_entry(item, judgement)


def _repeat_play(item: ScenarioTest, judgement: Judgement) -> Judgement:
    """Play the scenario as often as the session asks for; stop at the first play that differs."""
    times = 1 if item.played is not None and not item.played.is_virtual else get_option(item.config, "repeat")
    for _ in range(1, times):
        if judgement.verdict is not Verdict.KIT_ERROR:
            judgement = compare_with_repeat(judgement, _play_and_record_problem(item))
    return judgement


def _play_and_record_problem(item: ScenarioTest) -> PlayResult:
    """Play the scenario once; if it cannot be played, record the reason."""
    try:
        if item.clock == "model":
            subject = _skip_unless_reference(item)
            return _play_and_publish(item, lambda: run_in_model(item.scenario, subject))
        with nullcontext() if is_reference_supervisor(item.subject) else _collect_garbage_after():
            return (play_in_virtual_time if item.clock == "virtual" else play_in_real_time)(
                item, item.scenario, item.backend, item.subject
            )
    except ScenarioFailed as broken:
        _record_unplayed(item, Judgement(Verdict.ADAPTER_ERROR, reason=str(broken)))
        raise
    except KitError as error:
        _record_unplayed(item, Judgement(Verdict.KIT_ERROR, reason=str(error)))
        raise
    except pytest.skip.Exception as reason:
        _record_unplayed(item, Judgement(Verdict.NOT_APPLICABLE, reason=str(reason)))
        raise


@contextmanager
def _collect_garbage_after() -> Iterator[None]:
    """Collect the garbage of a foreign supervisor here, and not in the middle of a later test.

    Objects from before the run are frozen meanwhile, because a search of them all takes as long as a run. They are not
    if another caller has frozen objects that must stay frozen.
    """
    is_bare = gc.get_freeze_count() <= _MAX_FROZEN_OBJECTS_BY_DEFAULT
    if is_bare:
        gc.freeze()
    try:
        yield
    finally:
        gc.collect()
        if is_bare:
            gc.unfreeze()


def _skip_unless_reference(item: ScenarioTest) -> ReferenceSubject:
    """Give the subject, if the model can play it."""
    if not is_reference_supervisor(item.subject):
        pytest.skip("not applicable: the model plays the reference supervisor only")
    return cast("ReferenceSubject", item.subject)
