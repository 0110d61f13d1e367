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
from tests.unit.harness.test_model_plays import DIES_SELDOM

if TYPE_CHECKING:
    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.plays import PlayResult

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


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")  # some defects leave theirs
@pytest.mark.parametrize("defect", defects.DEFECT_NAMES)
def test_a_defect_is_caught_as_each_scenario_claims(runner: ScenarioRunner, defect: str) -> None:
    """`catches` names the key on which a reader looks for the defect; what shows in the model shows with processes.

    One run and one session for each key is played with processes, too: the rest of the way is that of the reference
    supervisor, whose every play equals the model's. A fault that harms a user fails a must, or a supervisor is
    conformant with it. Both ways, so that its text is true.
    """
    subject = _build_defective_supervisor(defect)
    claims = [(scenario, key) for scenario, name, key in CLAIMS if name == defect]
    models = [run_in_model(scenario, subject) for scenario, _ in claims]
    failed = [[row for row in judge_all_expectations(model) if row.verdict is Verdict.FAILED] for model in models]
    missed = [
        (scenario.id, key)
        for (scenario, key), rows in zip(claims, failed, strict=True)
        if key not in [row.key for row in rows]
    ]
    assert missed == []
    shown = {
        (scenario.is_session, key): (scenario, model) for (scenario, key), model in zip(claims, models, strict=True)
    }
    is_harmful = any(row.level == "must" for rows in failed for row in rows)
    assert is_harmful is not bool(defects.DEFECTS[defect].harmless)
    gc.disable()  # a forgotten child is reaped with its object, and that must not be between the run and the look
    try:
        differ = [
            (scenario.id, _describe_difference(played, expected))
            for scenario, model in shown.values()
            if (played := _select_compared_values(runner.play(scenario, subject)))
            != (expected := _select_compared_values(model))
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
