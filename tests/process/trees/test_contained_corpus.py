"""The bundled scenarios hold for every containment of the tree: stronger containment costs no instant."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.subjects import ReferenceSupervisor
from pytest_agentproc.verdict import Verdict, choose_overall_verdict, explain_play, judge_all_expectations
from tests.bundled import load_all_bundled, load_first_of_each_file

if TYPE_CHECKING:
    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.scenario import Scenario
    from pytest_agentproc.vocabulary import LimitsRequest, Policy

OF_TREES = load_first_of_each_file(
    scenario for scenario in load_all_bundled() if {"T1", "T3", "T6", "C1", "P8"} & set(scenario.covers)
)


class ContainingSupervisor(ReferenceSupervisor):
    """The reference supervisor, which holds every tree at least so."""

    def __init__(self, containment: str) -> None:
        super().__init__(containment)
        self._containment = containment

    def policy(self, request: LimitsRequest) -> Policy:
        """Ask for more where less was asked for."""
        policy = super().policy(request)
        return policy if policy.has_containment(self._containment) else replace(policy, containment=self._containment)


@pytest.mark.slow
@pytest.mark.parametrize("containment", ["subreaper", "keeper"])
@pytest.mark.parametrize("scenario", OF_TREES, ids=lambda scenario: scenario.id)
def test_a_scenario_of_trees_is_green_at_every_containment(
    runner: ScenarioRunner, scenario: Scenario, containment: str
) -> None:
    """Signals, their instants and their order are those of the group, for agents that are no children of ours, too."""
    played = runner.play(scenario, ContainingSupervisor(containment))
    rows = judge_all_expectations(played)
    assert choose_overall_verdict(rows) is Verdict.PASSED, explain_play(played, rows)
