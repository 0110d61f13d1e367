"""The whole corpus is green for the reference supervisor: in the model, and with real processes on both event loops."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.harness import run_in_model
from pytest_agentproc.subjects import reference_supervisor
from pytest_agentproc.verdict import Verdict, explain_play, judge_all_expectations
from tests.bundled import load_all_for_functions

if TYPE_CHECKING:
    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.scenario import Scenario

CORPUS = load_all_for_functions()
corpus = pytest.mark.parametrize("scenario", CORPUS, ids=[scenario.id for scenario in CORPUS])


def assert_green(played: PlayResult) -> None:
    """Have every row passed."""
    rows = judge_all_expectations(played)
    assert {row.verdict for row in rows} <= {Verdict.PASSED}, explain_play(played, rows)


@corpus
def test_a_scenario_is_green_in_the_model(scenario: Scenario) -> None:
    """Its expectations were written by hand, and the machine meets them without any process."""
    assert_green(run_in_model(scenario, reference_supervisor()))


@corpus
def test_a_scenario_is_green_with_real_processes(runner: ScenarioRunner, backend: str, scenario: Scenario) -> None:
    """The same expectations hold for real pipes, signals and exits."""
    played = runner.play(scenario, reference_supervisor(), backend=backend)
    assert_green(played)
    assert [event for event in played.record.events if "stray" in event.data] == [], (
        "T2: not even for a pid that is free"
    )
