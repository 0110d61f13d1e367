"""The levels of the bundled scenarios follow the harm that each file names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.subjects import reference_supervisor
from pytest_agentproc.vocabulary import OUTCOME_BY_LIMIT, Outcome
from tests.bundled import load_all_bundled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_agentproc.scenario import Expectation, Scenario

pytestmark = pytest.mark.once

HARM_OF_SIGNALS_AND_STARTS = re.compile(r"kill|ended|\bends\b|stops|stopped|another agent|second agent", re.IGNORECASE)
"""Words of a harm that signals or starts are about: an agent or a session is ended, or one more is started."""

LESS_EXACT = [*OUTCOME_BY_LIMIT.values(), Outcome.INPUT_FAILED, Outcome.AGENT_LOST, Outcome.INCOMPLETE]
"""Outcomes of a run that did not complete, for which a careful supervisor may have another name."""


def _list_musts() -> Iterator[tuple[Scenario, Expectation]]:
    for scenario in load_all_bundled():
        bound = scenario.bind(scenario.request_limits(reference_supervisor()))
        for part in (bound, *(bound.parts or {}).values()):
            yield from ((scenario, check) for check in part.expect if check.level == "must")


def test_signals_and_starts_are_a_must_only_where_the_harm_is_about_them() -> None:
    """A careful supervisor may send another signal, or start its agent once more, and harm nobody."""
    wrong = {
        (scenario.id, check.key)
        for scenario, check in _list_musts()
        if check.key.split(".")[-1] in ("signals", "spawns")
        and not HARM_OF_SIGNALS_AND_STARTS.search(scenario.harm or "")
    }
    assert wrong == set()


def test_no_must_asks_for_one_of_several_names_of_a_failure() -> None:
    """That the run did not complete is the must; what a supervisor calls it is good practice."""
    wrong = {
        (scenario.id, check.key)
        for scenario, check in _list_musts()
        if check.key.split(".")[-1] == "outcome" and check.wanted in LESS_EXACT
    }
    assert wrong == set()
