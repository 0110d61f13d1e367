"""Every tie rule matters: a model in which it is broken gives another timeline than the true one and reality."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.errors import ClockError
from pytest_agentproc.harness import InMemoryModel, run_in_model
from pytest_agentproc.record import compute_normal_form
from pytest_agentproc.subjects import reference_supervisor
from tests.benchmarks._together import bind_all, play_together_in_model
from tests.bundled import load_all_for_functions
from tests.parity.broken import BROKEN, UNSEEN
from tests.parity.cases import CASES, load_case, load_pairs

if TYPE_CHECKING:
    from pytest_agentproc.scenario import Scenario

pytestmark = pytest.mark.once


@cache
def _load_scenarios() -> tuple[Scenario, ...]:
    corpus = load_all_for_functions()
    return (*(load_case(claim) for claim in CASES), *corpus)


@cache
def _describe_plays(name: str = "") -> dict[str, object]:
    model = BROKEN[name] if name else InMemoryModel
    fields: dict[str, object] = {}
    for scenario in _load_scenarios():
        fields[scenario.id] = compute_normal_form(run_in_model(scenario, reference_supervisor(), model=model).record)
    for number, pair in enumerate(load_pairs()):
        try:
            fields[f"pair {number}"] = compute_normal_form(play_together_in_model(bind_all(pair), model)[0])
        except ClockError as error:
            fields[f"pair {number}"] = error.reason
    return fields


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_tie_rule_changes_a_timeline(name: str) -> None:
    """The equality of model and reality does not prove a rule that no case can show."""
    true, false = _describe_plays(), _describe_plays(name)
    assert [claim for claim in true if true[claim] != false[claim]]


def test_every_tie_rule_is_broken_once_or_cannot_be_seen() -> None:
    """The list of rules is complete."""
    broken = {int(name.split()[0]) for name in BROKEN}
    assert broken | set(UNSEEN) == set(range(1, 12))
    assert not broken & set(UNSEEN)
