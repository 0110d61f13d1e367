"""The reference supervisor under another supervisor's limits, and when it is asked at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.errors import Spin
from pytest_agentproc.harness import _limit_binding, forecast_run
from pytest_agentproc.harness._limit_binding import ReferenceResults
from pytest_agentproc.scenario import loads
from pytest_agentproc.subjects import Function, reference_supervisor
from tests.bundled import load_bundled

if TYPE_CHECKING:
    from pytest_agentproc.vocabulary import RunRequest

SILENT = load_bundled("silent-past-the-limit")
OF_SESSIONS = load_bundled("session-timeout-cancels-the-turn")


async def _supervise_nothing(order: RunRequest) -> None:
    """Stand for a supervisor that is only asked for its limits."""


def test_it_is_played_under_both_limits() -> None:
    """The longest run is shorter than the silence there."""
    reference = ReferenceResults.for_play(
        SILENT, Function(_supervise_nothing, limits={"inactivity_timeout": 60, "max_runtime": 50})
    )
    assert reference is not None
    played = (reference.under_subject_limits, reference.under_file_limits)
    assert [play.answer.outcome for play in played if play.answer is not None] == ["overran", "inactive"]
    assert reference.under_subject_limits.reference is None


def test_a_session_is_played_under_both_limits() -> None:
    """A caller's turn is cut off by silence before its own time is over."""
    limits = {"inactivity_timeout": 60, "prompt_timeout": 600}
    reference = ReferenceResults.for_play(OF_SESSIONS, Function(_supervise_nothing, limits=limits, sessions=True))
    assert reference is not None
    turns = [
        play.answer.turns
        for play in (reference.under_subject_limits, reference.under_file_limits)
        if play.answer is not None
    ]
    assert [turn[0].outcome for turn in turns if turn] == ["inactive", "timed_out"]


def test_a_file_that_needs_a_limit_of_the_subjects_own_has_none() -> None:
    """The reference supervisor has none there unless it is given one, so that it says nothing of it."""
    scenario = loads("scenario: a\nagent: raw\nscript: [{silence: max_runtime}]\nexpect: {outcome: overran}\n")
    assert ReferenceResults.for_play(scenario, Function(_supervise_nothing, limits={"max_runtime": 50})) is None


def test_a_run_that_no_limit_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that drips on for days is ended by the file's longest run, and the subject has none."""
    monkeypatch.setattr(_limit_binding, "_MAX_MOVES_WITHOUT_LIMIT", 1000)
    script = 'script: [{drip: {stdout: ., every: 1s, for: 200h}}]\nexpect: {text: ""}\n'
    scenario = loads(f"scenario: a\nagent: raw\npolicy: {{max_runtime: 60s}}\n{script}")
    reference = ReferenceResults.for_play(scenario, Function(_supervise_nothing))
    assert reference is not None
    assert (type(reference.under_subject_limits.fault), reference.under_file_limits.fault) == (Spin, None)
    assert forecast_run(scenario, scenario.request_limits(Function(_supervise_nothing))).fault == "spin"


@pytest.mark.parametrize("name", ["reference", "its limits"])
def test_who_keeps_the_limits_of_the_file_has_none(name: str) -> None:
    """There is nothing to measure."""
    same = Function(_supervise_nothing, limits=dict(SILENT.request_agent_limits(reference_supervisor()).items()))
    assert ReferenceResults.for_play(SILENT, reference_supervisor() if name == "reference" else same) is None
