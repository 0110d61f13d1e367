"""The corpus: every file loads, binds to any policy, and says nothing that only the default numbers make true."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.vocabulary import BUG_FAMILIES, Policy
from tests.bundled import load_all_bundled

if TYPE_CHECKING:
    from pytest_agentproc.scenario import Expectation, Scenario

CORPUS = load_all_bundled()
OTHER = {
    "inactivity_timeout": 37.0,
    "internal_tool_timeout": 211.0,
    "max_runtime": 1001.0,
    "linger_grace": 0.7,
    "linger_kill_grace": 0.11,
    "leftover_kill_grace": 0.13,
    "kill_grace": 5.3,
}
"""Another supervisor's numbers, odd enough that no sum of some is another."""

REPORTS = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+/(issues/\d+|pull/\d+|blob/[0-9a-f]{40}/[\w./%-]+)")


def _get_id(scenario: Scenario) -> str:
    return scenario.id


def _build_other_limits(scenario: Scenario) -> dict[str, Any]:
    return {**OTHER, **scenario.policy}


def _list_expected_instants(checks: tuple[Expectation, ...]) -> dict[str, list[int]]:
    """List every instant that is expected, by key."""
    times: dict[str, list[int]] = {}
    for check in checks:
        if check.key.endswith("signals"):
            times[check.key] = [at for _, at in check.wanted]
        elif check.key.rpartition(".")[2] in ("elapsed", "returned", "gone_at", "alive_at"):
            times[check.key] = [check.wanted]
    return times


@pytest.mark.parametrize("scenario", CORPUS, ids=_get_id)
def test_a_scenario_of_the_corpus_says_what_it_is_for(scenario: Scenario) -> None:
    """In the corpus covers and source are not optional."""
    assert scenario.covers
    assert REPORTS.fullmatch(scenario.source), scenario.source


@pytest.mark.parametrize("scenario", CORPUS, ids=_get_id)
def test_a_scenario_of_the_corpus_binds_to_another_policy(scenario: Scenario) -> None:
    """A supervisor with other numbers is judged by its own: nothing turns negative, uneven or out of order."""
    parts = {name: Policy(**_build_other_limits(part)) for name, part in scenario.parts.items()}
    times = _list_expected_instants(scenario.bind(parts or Policy(**_build_other_limits(scenario))).expect)
    assert all(at == sorted(at) for at in times.values())
    elapsed, returned = times.get("elapsed", [0])[0], times.get("returned")
    assert returned is None or elapsed <= returned[0]
    assert returned is None or all(at <= returned[0] for key in times for at in times[key])


def test_ids_are_unique() -> None:
    """An id is what baselines and reports name."""
    ids = [scenario.id for scenario in CORPUS]
    assert sorted(set(ids)) == sorted(ids)


def test_every_bug_family_has_two_scenarios_at_least() -> None:
    """Each with its source; one scenario of a family is an anecdote."""
    covered = [rule for scenario in CORPUS if scenario.source for rule in scenario.covers]
    assert [name for name, (_, rules) in BUG_FAMILIES.items() if sum(map(covered.count, rules)) < 2] == []


def test_no_list_of_background_tasks_leaves_out_a_sub_agent_at_work() -> None:
    """A real claude lists it until its end; only a step `task` enters it in the list that the fake prints."""
    unlisted = [
        scenario.id
        for scenario in load_all_bundled()
        if "subtype: task_started" in scenario.text and "- task:" in scenario.text and scenario.level == "must"
    ]
    assert unlisted == []
