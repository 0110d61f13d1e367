"""Several sessions with real processes: as the model foretells, on both loops, and red where one touches another."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.errors import UsageError
from pytest_agentproc.harness import run_in_model
from pytest_agentproc.record import compute_normal_form
from pytest_agentproc.scenario import NotApplicable, loads
from pytest_agentproc.subjects import ReferenceSupervisor, reference_supervisor
from pytest_agentproc.verdict import Verdict, judge_all_expectations
from tests.bundled import load_bundled

if TYPE_CHECKING:
    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.vocabulary import CallerAction, RunReport, RunRequest

EVERYTHING = """
scenario: sessions of three dialects do everything at a time, much of it at the same instants, and one does nothing
sessions:
  one:
    agent: {dialect: claude, mode: session}
    handler: [{permission: allow, after: 2s}, {hook: lint, registers_at: 1s}]
    script:
      - wait_for: prompt 1
      - tool: {id: t, name: Bash}
      - ask: {hook: lint, event: PostToolUse}
      - ask: {permission: Bash, allowed: [{say: "yes"}], denied: [{say: "no"}]}
      - tool_done: t
      - answer: one is done
      - wait_for: prompt 2
      - answer: one again
  two:
    agent: {dialect: pi, mode: rpc}
    policy: {prompt_timeout: 2s}
    scripts:
      - - spawn: {id: helper, ignores_signals: true}
        - wait_for: prompt 1
        - wait_for: cancel
        - acknowledge: cancel
        - wait_for: prompt 2
        - exit: 3
      - - wait_for: prompt 1
        - answer: two is back
  three:
    agent: {dialect: acp, mode: session}
    handler: {permission: deny, after: 1s}
    policy: {restart_backoff: 2s}
    scripts:
      - - wait_for: prompt 1
        - ask: {permission: Write, allowed: [{answer: written}], denied: [{answer: refused}]}
        - wait_for: prompt 2
        - silence: for ever
      - - wait_for: prompt 1
        - answer: three is done
  idle:
    agent: {dialect: pi, mode: rpc}
    script: []
drive:
  - {session: one, attach: early}
  - {session: three, attach: early}
  - {session: one, prompt: a}
  - {session: two, prompt: b}
  - {session: three, prompt: c}
  - {session: two, wait_for: turn 1}
  - {session: two, prompt: d}
  - {session: three, prompt: e}
  - {session: two, wait_for: status restarting}
  - {session: two, prompt: f}
  - {session: three, stop: {}, after: 1s}
  - {session: one, prompt: g}
  - {session: one, attach: short}
  - {session: one, detach: short}
  - {session: three, wait_for: status ready}
  - {session: three, prompt: h}
expect:
  sessions:
    one:
      turns: [{text: one is done}, {text: one again, elapsed: 0s}]
      called: [{lint: 1s}]
    two:
      turns: [{outcome: timed_out, elapsed: 2s}, {outcome: agent_lost}, {text: two is back}]
      spawns: [0s, 3s]
    three:
      turns: [{text: refused, elapsed: 1s}, {outcome: stopped}, {text: three is done}]
    idle: {turns: [], status: [starting, ready, closed]}
"""


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_several_sessions_are_played_as_the_model_predicts(runner: ScenarioRunner, backend: str) -> None:
    """Every event of all sides at its nanosecond, and the same answers."""
    scenario = loads(EVERYTHING, "everything")
    foretold, played = (
        run_in_model(scenario, reference_supervisor()),
        runner.play(scenario, reference_supervisor(), backend=backend),
    )
    assert [row for row in judge_all_expectations(played) if row.verdict is not Verdict.PASSED] == []
    assert compute_normal_form(played.record) == compute_normal_form(foretold.record)
    assert played.answer == foretold.answer


class _MixesSessions(ReferenceSupervisor):
    """A supervisor that mixes its sessions up in the way that a test chooses."""

    def __init__(self, wrong: str) -> None:
        super().__init__(f"mixed: {wrong}")
        self.wrong = wrong

    async def run(self, order: RunRequest) -> RunReport:
        first, second = order.sessions
        if self.wrong == "limits":
            order = replace(order, sessions=(first, replace(second, policy=first.policy)))
        elif self.wrong == "answers":
            answer = await super().run(order)
            left, right = (answer.sessions or {}).items()
            return replace(answer, sessions={left[0]: right[1], right[0]: left[1]})
        else:
            swapped = {first.name: second.name, second.name: first.name}
            drive: list[CallerAction] = []
            for action in order.drive:
                is_hit = f"{action.kind}s" == self.wrong
                drive += [action] if not is_hit or action.kind == "close" else []
                drive += [replace(action, session=swapped[action.session])] if is_hit else []
            order = replace(order, drive=tuple(drive))
        return await super().run(order)


@pytest.mark.parametrize(
    ("name", "wrong", "red"),
    [
        ("sessions-cancel-stays-in-one", "cancels", "sessions.right.turns.1.outcome"),
        ("sessions-answers-do-not-mix", "answers", "sessions.red.turns.1.text"),
        ("sessions-timeout-stays-in-one", "limits", "sessions.steady.turns.1.outcome"),
        ("sessions-close-kills-one", "closes", "sessions.other.turns.1.outcome"),
    ],
)
def test_a_supervisor_that_mixes_its_sessions_up_is_red(
    runner: ScenarioRunner, name: str, wrong: str, red: str
) -> None:
    """A scenario about keeping sessions apart must find a supervisor that mixes them up."""
    scenario = load_bundled(name)
    rows = judge_all_expectations(runner.play(scenario, _MixesSessions(wrong)))
    assert red in [row.key for row in rows if row.verdict is Verdict.FAILED]


class _OneShot(ReferenceSupervisor):
    """A supervisor of runs."""

    holds_sessions = False


def test_sessions_are_not_applicable_to_a_supervisor_of_runs(runner: ScenarioRunner) -> None:
    """It claims nothing about sessions, and is not blamed."""
    with pytest.raises(NotApplicable, match="sessions"):
        runner.play(loads(EVERYTHING, "everything"), _OneShot())


def test_a_scenario_of_several_sessions_has_no_single_fake(runner: ScenarioRunner) -> None:
    """Its parts have one each, which is called as its session is."""
    scenario = loads(EVERYTHING, "everything")
    with pytest.raises(UsageError, match="everything has a fake for each of its sessions: one, two, three, idle"):
        runner.make_fake(scenario)
    assert runner.make_fake(scenario.parts["two"]).name == "pi"
