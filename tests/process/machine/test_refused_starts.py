"""A machine without memory or descriptors: every way to start an agent fails as the system would have it fail."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc.errors import ScenarioError
from pytest_agentproc.scenario import NotApplicable, loads
from pytest_agentproc.subjects import Command, Function, reference_supervisor
from pytest_agentproc.verdict import Verdict, choose_overall_verdict, judge_all_expectations

if TYPE_CHECKING:
    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.vocabulary import RunRequest

TEXT = "scenario: a\nagent: {dialect: raw, cannot_spawn: no_memory}\nexpect: {outcome: spawn_failed}\n"
MEMORY = loads(TEXT)
DESCRIPTORS = loads(TEXT.replace("no_memory", "no_descriptors"))
KEEPER = loads(f"{TEXT}policy: {{containment: keeper}}\n")


async def _run_process(order: RunRequest) -> None:
    await anyio.run_process(order.argv, env=order.env)


async def _ask_for_the_version(order: RunRequest) -> None:
    await anyio.run_process([order.argv[0], "--version"], env=order.env)
    await _run_process(order)


async def _run_blocking(order: RunRequest) -> None:
    subprocess.run(order.argv, env=order.env, check=False, timeout=5)  # noqa: ASYNC221  # as a sync program does


async def _run_in_terminal(order: RunRequest) -> None:
    pid, _ = pty.fork()
    if pid == 0:
        os.execve(order.argv[0], order.argv, order.env)  # noqa: S606  # as ptyprocess does


def build_reporting_supervisor(start: Any) -> Function:
    """Give a supervisor that reports what the system said."""

    async def supervise(order: RunRequest) -> dict[str, object]:
        try:
            await start(order)
        except OSError as error:
            return {"outcome": "spawn_failed", "error": os.strerror(error.errno or 0)}
        return {"outcome": "completed"}

    return Function(supervise)


@pytest.mark.parametrize("start", [_run_process, _run_blocking, _run_in_terminal])
@pytest.mark.parametrize("is_real", [False, True], ids=["virtual", "real"])
def test_each_way_to_start_an_agent_fails(runner: ScenarioRunner, start: Any, is_real: bool) -> None:
    """What a supervisor does with the error is what the scenario is about."""
    play = runner.play_real if is_real else runner.play
    for scenario, words in ((MEMORY, "Cannot allocate memory"), (DESCRIPTORS, "Too many open files")):
        played = play(scenario, build_reporting_supervisor(start))
        assert choose_overall_verdict(judge_all_expectations(played)) is Verdict.PASSED
        assert played.answer is not None
        assert played.answer.error == words


def test_the_reference_supervisor_reports_the_error(runner: ScenarioRunner, backend: str) -> None:
    """The words of the system say what a user can do: free memory, or raise the limit on open files."""
    played = runner.play(MEMORY, reference_supervisor(), backend=backend)
    assert choose_overall_verdict(judge_all_expectations(played)) is Verdict.PASSED
    assert played.answer is not None
    assert "Cannot allocate memory (errno 12)" in str(played.answer.error)


def test_a_question_for_the_version_is_no_start(runner: ScenarioRunner) -> None:
    """Otherwise the refusal meets the first agent of a supervisor that asks, and not the agent after a crash."""
    second = TEXT.replace("raw", "claude").replace("no_memory", "{reason: no_memory, start: 2}")
    second = second.replace("spawn_failed", "completed")
    played = runner.play(loads(f"{second}script: [{{answer: x}}]\n"), build_reporting_supervisor(_ask_for_the_version))
    assert choose_overall_verdict(judge_all_expectations(played)) is Verdict.PASSED


def test_the_next_run_starts_its_agent(runner: ScenarioRunner) -> None:
    """The machine is as before when the block ends."""
    runner.play(MEMORY, reference_supervisor())
    sound = loads("scenario: a\nagent: raw\nscript: [{answer: x}]\nexpect: {outcome: completed}\n")
    assert choose_overall_verdict(judge_all_expectations(runner.play(sound, reference_supervisor()))) is Verdict.PASSED


def test_a_program_starts_its_agent_by_itself(runner: ScenarioRunner) -> None:
    """The kit cannot refuse a start of another process, so it gives no verdict."""
    words = "needs an agent that the process of pytest starts"
    with pytest.raises(NotApplicable, match=words):
        runner.play_real(MEMORY, Command([sys.executable, "-c", "", "{agent}"]))
    with pytest.raises(NotApplicable, match=words):
        runner.play(KEEPER, reference_supervisor())


def test_a_missing_file_is_missing_at_each_start() -> None:
    """The file of an agent does not come and go."""
    with pytest.raises(ScenarioError) as caught:
        loads(TEXT.replace("no_memory", "{reason: not_found, start: 2}") + "script: []\n")
    assert str(caught.value) == (
        "<text>:2:37: agent.cannot_spawn.reason must be no_memory or no_descriptors for one start: "
        "a file is the same at each start"
    )
