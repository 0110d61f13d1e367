"""Every rule has a scenario that covers it, every defect a scenario that catches it, and every name is a known one."""

from __future__ import annotations

import ast
from functools import cache
from typing import TYPE_CHECKING

from pytest_agentproc import defects
from pytest_agentproc.supervisor import TurnWatchdog, Watchdog
from pytest_agentproc.vocabulary import ALL_LIMIT_NAMES, OUTCOME_BY_LIMIT, RULES, Outcome, Policy
from tests.architecture.sources import ROOT
from tests.bundled import load_all_bundled

if TYPE_CHECKING:
    from pytest_agentproc.scenario import Scenario, StatedLimits


@cache
def _load_corpus() -> tuple[Scenario, ...]:
    return load_all_bundled()


def _build_limits(scenario: Scenario) -> StatedLimits:
    if scenario.parts:
        return {name: Policy.for_dialect(part.dialect, **part.policy) for name, part in scenario.parts.items()}
    return Policy.for_dialect(scenario.dialect, **scenario.policy)


def test_every_rule_is_covered_by_a_scenario() -> None:
    """A promise that no scenario covers is a promise without a check."""
    covered = {rule for scenario in _load_corpus() for rule in scenario.covers}
    assert covered == set(RULES)


def test_every_scenario_covers_a_rule_and_names_its_source() -> None:
    """The corpus states what each file is for and where its facts come from."""
    assert [scenario.id for scenario in _load_corpus() if not scenario.covers or not scenario.source] == []


def test_every_defect_is_caught_by_a_scenario() -> None:
    """A scenario that no wrong supervisor fails proves nothing about the right one."""
    caught = {defect for scenario in _load_corpus() for defect in scenario.catches}
    assert caught == set(defects.DEFECT_NAMES)


def test_a_defect_is_caught_on_a_key_that_the_scenario_expects() -> None:
    """`catches` says which row turns red; a row that is not there cannot."""
    unknown = [
        f"{scenario.id}: {defect} on {key}"
        for scenario in _load_corpus()
        for expected in [{expectation.key for expectation in scenario.bind(_build_limits(scenario)).expect}]
        for defect, key in scenario.catches.items()
        if key not in expected
    ]
    assert unknown == []


def test_every_must_names_the_harm_and_a_public_report_of_it() -> None:
    """A check that decides whether a supervisor is conformant names a harm to a user."""
    bare = [
        scenario.id
        for scenario in _load_corpus()
        if scenario.level == "must" and not (scenario.harm and scenario.source.startswith("https://"))
    ]
    assert bare == []


def test_every_limit_is_read_by_the_reference_supervisor() -> None:
    """A limit that is a legal key of a scenario and that nothing reads would do nothing, without a word."""
    read = {
        node.value
        for file in (ROOT / "pytest_agentproc" / "supervisor").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    } | {
        node.attr
        for file in (ROOT / "pytest_agentproc" / "supervisor").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Attribute)
    }
    assert [name for name in ALL_LIMIT_NAMES if name not in read] == []


def test_every_limit_that_cuts_off_names_its_outcome_once() -> None:
    """The table on `Outcome` is the only one: watchdogs, checks and messages derive from it."""
    assert {*TurnWatchdog.LIMITS} | {*Watchdog.LIMITS} == {*OUTCOME_BY_LIMIT}
    assert all(OUTCOME_BY_LIMIT[outcome.limit] is outcome for outcome in Outcome if outcome.limit)
