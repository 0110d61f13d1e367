"""Plays in the model one after the other: none leaves anything to the next. Without a process."""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.defects import find_defect
from pytest_agentproc.harness import run_in_model
from pytest_agentproc.scenario import NotApplicable, loads
from pytest_agentproc.subjects import ReferenceSupervisor, reference_supervisor
from pytest_agentproc.verdict import Verdict, choose_overall_verdict, judge_all_expectations
from pytest_agentproc.vocabulary import Policy

if TYPE_CHECKING:
    from collections.abc import Iterator

DIES_SELDOM = """
scenario: an agent that dies in each turn
agent: {dialect: acp}
drive: [{prompt: hi}]
script: [{wait_for: prompt 1}, {silence: 330s}, {exit: 0}]
expect: {turns: [{outcome: agent_lost}]}
"""
TALK = """
scenario: an agent that is asked twice
agent: {dialect: claude, mode: session}
drive: [{prompt: first}, {wait_for: turn 1}, {prompt: second}]
script: [{wait_for: prompt 1}, {answer: one}, {silence: prompt_timeout / 2}, {wait_for: prompt 2}, {answer: two}]
"""


@pytest.fixture
def collecting() -> Iterator[None]:
    """Leave the collector of garbage as it was."""
    was_on = gc.isenabled()
    yield
    (gc.enable if was_on else gc.disable)()


def test_a_scenario_that_is_played_again_has_the_same_timeline() -> None:
    """It keeps what it was bound to, which no play may change."""
    scenario = loads(TALK)
    first, second = (run_in_model(scenario, reference_supervisor()) for _ in range(2))
    assert first.bound.program is second.bound.program
    assert [*first.record.lines()] == [*second.record.lines()]
    assert first.answer == second.answer


def test_a_scenario_is_bound_anew_under_other_limits() -> None:
    """Its content belongs to the limits that it was bound to last; the given object stays as it was."""
    scenario = loads("scenario: a pause\nagent: raw\nscript:\n  - silence: inactivity_timeout / 2")
    short, long = Policy(inactivity_timeout=2), Policy(inactivity_timeout=4)
    pauses = [scenario.bind(policy).program["steps"][0][2][0] for policy in (short, long, short)]
    assert pauses == [1_000_000_000, 2_000_000_000, 1_000_000_000]
    again = Policy(inactivity_timeout=2.0)
    assert scenario.bind(again).policy is again


@pytest.mark.usefixtures("collecting")
@pytest.mark.parametrize("is_on", [True, False])
def test_a_play_leaves_the_collector_as_it_was(is_on: bool) -> None:  # a parameter of a test
    """Garbage is collected after a play, unless the caller does not want that; a refusal changes nothing."""
    (gc.enable if is_on else gc.disable)()
    run_in_model(loads(TALK), reference_supervisor())
    assert gc.isenabled() is is_on
    with pytest.raises(NotApplicable):
        run_in_model(loads("scenario: a limit\nagent: raw\nscript:\n  - silence: max_runtime"), reference_supervisor())
    assert gc.isenabled() is is_on


def test_a_limit_between_two_nanoseconds_may_be_rounded_more_than_once() -> None:
    """A supervisor that adds such limits up is later by one at each; with whole ones it is exact."""
    played = run_in_model(loads(TALK), reference_supervisor())
    assert played.tolerance == 0
    parts = replace(played.bound, policy=Policy(restart_backoff=1 / 3))
    assert 0 < replace(played, bound=parts).tolerance < 1000


def test_a_supervisor_that_starts_its_agent_for_ever_is_given_up() -> None:
    """It sends the prompt to each new agent, and the crashes are too far apart for its limit on restarts."""
    defect = find_defect("crash-repeats-the-prompt")
    played = run_in_model(
        loads(DIES_SELDOM), ReferenceSupervisor(defect.name, session_deciders=defect.session_deciders)
    )
    assert str(played.fault) == "the supervisor starts its agent again and again, 50 times by now"
    assert choose_overall_verdict(judge_all_expectations(played)) is Verdict.FAILED
