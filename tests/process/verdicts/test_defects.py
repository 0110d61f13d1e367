"""Every defect is caught where the corpus says so, in the model and with real processes, and every rule is broken."""

from __future__ import annotations

import gc
from itertools import zip_longest
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc import defects
from pytest_agentproc.harness import _supervise, run_in_model
from pytest_agentproc.record import compute_normal_form
from pytest_agentproc.scenario import loads
from pytest_agentproc.subjects import ReferenceSupervisor
from pytest_agentproc.verdict import Verdict, choose_overall_verdict, judge_all_expectations
from pytest_agentproc.vocabulary import RULES
from tests.bundled import load_all_bundled
from tests.process.kill_matrix import list_failed_keys
from tests.unit.harness.test_model_plays import DIES_SELDOM

if TYPE_CHECKING:
    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.scenario import Scenario

pytestmark = pytest.mark.once

UNBREAKABLE = {
    "T2": "signals go through pidfds, so no decider can name a wrong pid; and only a bystander could tell",
}
"""Rules that no replaced decider can break, and why."""

_ComparedPlay = tuple[list[str], list[object]]
"""The keys that failed, and the whole timeline."""

CLAIMS = [(scenario, defect, key) for scenario in load_all_bundled() for defect, key in scenario.catches.items()]


def _build_defective_supervisor(defect: str) -> ReferenceSupervisor:
    made = defects.find_defect(defect)
    return ReferenceSupervisor(defect, made.deciders, made.session_deciders)


def _name_claim(value: object) -> str:
    return getattr(value, "id", str(value))


def test_a_rule_is_broken_by_a_defect_or_it_is_said_why_not() -> None:
    """Without a defect that breaks a promise, we cannot know whether the bundled scenarios check it."""
    broken = {defect.breaks for defect in defects.DEFECTS.values()}
    assert broken | set(UNBREAKABLE) == set(RULES)
    assert broken & set(UNBREAKABLE) == set()


def test_a_defect_is_caught_by_a_scenario_of_the_rule_that_it_breaks() -> None:
    """A scenario that covers a rule, and lets the rule be broken, covers it in name only."""
    caught = {(defect, rule) for scenario, defect, _ in CLAIMS for rule in scenario.covers}
    assert [defect.name for defect in defects.DEFECTS.values() if (defect.name, defect.breaks) not in caught] == []


def test_a_rule_is_covered_by_a_scenario_that_catches_something() -> None:
    """Both ways: the scenario is there, and it can turn red."""
    assert {rule for scenario, _, _ in CLAIMS for rule in scenario.covers} | set(UNBREAKABLE) == set(RULES)


@pytest.mark.parametrize(("scenario", "defect", "key"), CLAIMS, ids=_name_claim)
def test_a_claim_holds_in_the_model(scenario: Scenario, defect: str, key: str) -> None:
    """`catches` names the key on which a reader looks for the defect."""
    assert key in list_failed_keys(scenario, defect)


def test_a_defect_is_caught_in_runs_and_in_sessions_or_it_says_why_it_is_in_one_of_them() -> None:
    """A defect that changes runs alone is green in a session with the same fault, and nobody is told."""
    right = ReferenceSupervisor("right")
    changed = {
        name: (made.deciders != right.deciders, made.session_deciders != right.session_deciders)
        for name, made in defects.DEFECTS.items()
    }
    caught = {name: [False, False] for name in changed}
    for scenario, defect, _ in CLAIMS:
        caught[defect][scenario.is_session] = True
    assert [name for name, both in changed.items() if tuple(caught[name]) != both] == []
    assert [name for name, both in changed.items() if all(both) is bool(defects.DEFECTS[name].one_kind)] == []


def test_a_defect_fails_a_must_unless_its_text_says_why_nobody_is_harmed() -> None:
    """A fault that harms a user and fails no must lets a supervisor be conformant with it; both ways, so it is true."""
    harmful = {
        defect
        for scenario, defect, _ in CLAIMS
        for row in judge_all_expectations(run_in_model(scenario, _build_defective_supervisor(defect)))
        if row.verdict is Verdict.FAILED and row.level == "must"
    }
    assert [name for name, defect in defects.DEFECTS.items() if (name in harmful) is bool(defect.harmless)] == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")  # some defects leave theirs
@pytest.mark.parametrize("defect", defects.DEFECT_NAMES)
def test_what_a_defect_does_is_the_same_with_processes(runner: ScenarioRunner, defect: str) -> None:
    """A defect that shows in the model only would be a mistake of the model."""
    subject = _build_defective_supervisor(defect)
    gc.disable()  # a forgotten child is reaped with its object, and that must not be between the run and the look
    try:
        differ = [
            (claimed.id, _describe_difference(played, model))
            for claimed in (scenario for scenario, name, _ in CLAIMS if name == defect)
            if (played := _select_compared_values(runner.play(claimed, subject)))
            != (model := _select_compared_values(run_in_model(claimed, subject)))
        ]
    finally:
        gc.enable()
        gc.collect()
    assert differ == []


def _describe_difference(played: _ComparedPlay, model: _ComparedPlay) -> tuple[object, ...]:
    """Give the keys that failed, and the first lines in which two timelines differ, so that a reader can see why."""
    lines = next((both for both in zip_longest(played[1], model[1]) if both[0] != both[1]), ())
    return played[0], model[0], *lines


def _select_compared_values(played: PlayResult) -> _ComparedPlay:
    """Give the keys that failed, and the whole timeline."""
    red = [row.key for row in judge_all_expectations(played) if row.verdict is Verdict.FAILED]
    return red, [*compute_normal_form(played.record)]


def test_a_supervisor_that_starts_its_agent_for_ever_is_given_up(
    runner: ScenarioRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each crash is minutes after the last one, so no guard of one instant and no limit on restarts ends the run."""
    monkeypatch.setattr(_supervise, "MAX_AGENT_STARTS", 20)
    played = runner.play(loads(DIES_SELDOM), _build_defective_supervisor("crash-repeats-the-prompt"))
    assert str(played.fault) == "the supervisor starts its agent again and again, 20 times by now"
    assert choose_overall_verdict(judge_all_expectations(played)) is Verdict.FAILED
