"""Drives with real processes: the effect of a caller's action is there at the same instant as in the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.harness import run_in_model
from pytest_agentproc.record import compute_normal_form
from pytest_agentproc.scenario import NotApplicable, loads
from pytest_agentproc.subjects import reference_supervisor
from pytest_agentproc.verdict import Verdict, judge_all_expectations
from pytest_agentproc.vocabulary import Policy

if TYPE_CHECKING:
    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.vocabulary import LimitsRequest, RunReport, RunRequest

EVERYTHING = """
scenario: viewers come and go, questions are answered, the agent is stopped, a turn is cancelled at an instant
agent: {dialect: claude, mode: session}
handler: {permission: allow, after: 2s}
drive:
  - attach: early
  - prompt: one
  - wait_for: turn 1
  - attach: short
  - detach: short
  - prompt: two
  - stop: {}
    after: 3s
  - wait_for: status ready
  - attach: late
  - prompt: three
  - cancel: {}
    at: 30s
  - wait: 1s
  - prompt: four
scripts:
  - - wait_for: prompt 1
    - tool: {id: t, name: Bash}
    - ask: {permission: Bash, allowed: [{say: "yes"}], denied: [{say: "no"}]}
    - tool_done: t
    - answer: one is done
    - wait_for: prompt 2
    - silence: for ever
  - - wait_for: prompt 1
    - wait_for: cancel
    - acknowledge: cancel
    - wait_for: prompt 2
    - answer: four is done
expect:
  turns:
    - {text: one is done, elapsed: 2s}
    - {outcome: stopped, elapsed: 3s}
    - {outcome: cancelled, elapsed: 25s}
    - {text: four is done, elapsed: 0s}
  asked: [{permission: Bash, answer: allow, after: 2s}]
  status: [starting, ready, prompting, ready, prompting, restarting, ready, prompting, ready, prompting, ready, closed]
  viewers:
    early: {status: closed, transcript: {contains: four is done}}
    short: {status: ready, transcript: {contains: one is done}}
    late: {status: closed, transcript: {contains: one is done}}
  spawns: [0s, 5s]
  background: []
  warnings: []
  noise: 0
  error: ""
  returned: 31s
"""


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_drive_is_played_as_the_model_predicts(runner: ScenarioRunner, backend: str) -> None:
    """Every event of both sides at its nanosecond, and the same answer."""
    scenario = loads(EVERYTHING, "everything")
    foretold, played = (
        run_in_model(scenario, reference_supervisor()),
        runner.play(scenario, reference_supervisor(), backend=backend),
    )
    assert [row for row in judge_all_expectations(played) if row.verdict is not Verdict.PASSED] == []
    assert compute_normal_form(played.record) == compute_normal_form(foretold.record)
    assert played.answer == foretold.answer


AT_ONE_INSTANT = """
scenario: the caller's own time comes at the very instant at which the agent is started again
agent: {dialect: pi, mode: rpc}
drive: [{prompt: a}, {wait_for: turn 1}, {prompt: b}, {attach: v, after: restart_backoff}]
scripts: [[{wait_for: prompt 1}, {exit: 3}], [{wait_for: prompt 1}, {answer: done}]]
"""


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_caller_whose_time_has_come_waits_for_its_turn(runner: ScenarioRunner, backend: str) -> None:
    """The loop counts as the last run: sessions move first, and so they do in the model."""
    scenario = loads(AT_ONE_INSTANT, "at-one-instant")
    foretold, played = (
        run_in_model(scenario, reference_supervisor()),
        runner.play(scenario, reference_supervisor(), backend=backend),
    )
    assert compute_normal_form(played.record) == compute_normal_form(foretold.record)


class _OneShot:
    """A supervisor of runs."""

    name = "one-shot"
    keeps_artifacts = False
    holds_sessions = False

    def policy(self, request: LimitsRequest) -> Policy:
        return Policy.for_dialect(request.dialect)

    async def run(self, order: RunRequest) -> RunReport:
        raise AssertionError("it is never asked")


def test_a_session_is_not_applicable_to_a_supervisor_of_runs(runner: ScenarioRunner) -> None:
    """It claims nothing about sessions, and is not blamed."""
    with pytest.raises(NotApplicable, match="sessions"):
        runner.play(loads(EVERYTHING, "everything"), _OneShot())
