"""Supervisors whose agent inherits stdin, and the same ones without that fault, in every way of playing."""

from __future__ import annotations

import subprocess
from asyncio.subprocess import DEVNULL, PIPE, create_subprocess_exec
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.scenario import loads
from pytest_agentproc.subjects import Command, Function
from pytest_agentproc.verdict import Verdict, judge_all_expectations
from tests.bundled import load_bundled
from tests.process.stand import list_open_descriptors

if TYPE_CHECKING:
    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.vocabulary import Subject

MUST = load_bundled("stdin-ends-with-the-prompt[raw]")
SHOULD = load_bundled("stdin-is-not-the-users[gemini]")
SAYS = {"outcome": {"exit_code": {0: "completed", "other": "failed"}}, "text": "stdout"}


async def inherits(order: Any) -> dict[str, str]:
    """Run an agent with the stdin of this process."""
    agent = await create_subprocess_exec(*order.argv, env=order.env, stdout=PIPE)
    return {"outcome": "completed", "text": (await agent.communicate())[0].decode().strip()}


async def ends_input(order: Any) -> dict[str, str]:
    """Run an agent without input."""
    agent = await create_subprocess_exec(*order.argv, env=order.env, stdin=DEVNULL, stdout=PIPE)
    return {"outcome": "completed", "text": (await agent.communicate())[0].decode().strip()}


def blocks_and_inherits(order: Any) -> dict[str, str]:
    """Do the same in sync code."""
    agent = subprocess.run(order.argv, env=order.env, stdout=PIPE, text=True, check=True)
    return {"outcome": "completed", "text": agent.stdout.strip()}


def blocks_and_ends_input(order: Any) -> dict[str, str]:
    """Do the same in sync code."""
    agent = subprocess.run(order.argv, env=order.env, stdin=DEVNULL, stdout=PIPE, text=True, check=True)
    return {"outcome": "completed", "text": agent.stdout.strip()}


def give_up(redirection: str = "") -> Command:
    """Describe a program that gives its agent a minute."""
    script = f'exec timeout "$0" "$@" {redirection}'
    return Command(["sh", "-c", script, "{inactivity_timeout}", "{agent}"], says=SAYS)


def list_failed(runner: ScenarioRunner, subject: Subject, scenario: Any, *, is_real: bool = False) -> set[str]:
    """List the levels at which a scenario fails."""
    played = runner.play_real(scenario, subject, scale=100) if is_real else runner.play(scenario, subject)
    return {row.level for row in judge_all_expectations(played) if row.verdict is Verdict.FAILED}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("faulty", "right"),
    [
        (Function(inherits), Function(ends_input)),
        (Function(blocks_and_inherits), Function(blocks_and_ends_input)),
        (give_up(), give_up("</dev/null")),
    ],
    ids=["async", "sync", "program"],
)
def test_an_agent_that_inherits_stdin_is_seen(runner: ScenarioRunner, faulty: Subject, right: Subject) -> None:
    """In a terminal or a service it waits for ever for the end of its input, or takes the user's keys."""
    assert "must" in list_failed(runner, faulty, MUST)
    assert list_failed(runner, faulty, SHOULD) == {"should"}
    assert list_failed(runner, right, MUST) == list_failed(runner, right, SHOULD) == set()


@pytest.mark.slow
def test_it_is_seen_in_real_time_too(runner: ScenarioRunner) -> None:
    """The same play by the machine's clock: the program gives its agent up."""
    assert "must" in list_failed(runner, give_up(), MUST, is_real=True)
    assert list_failed(runner, give_up("</dev/null"), MUST, is_real=True) == set()


def test_a_prompt_on_stdin_goes_through_a_program_to_its_agent(runner: ScenarioRunner) -> None:
    """A program that lets its agent inherit stdin is right there: the prompt is on it, and its end follows."""
    scenario = loads(
        "scenario: hello\nagent: {dialect: raw, prompt: stdin}\nscript: [wait_for: eof, answer: hello]\n"
        "expect: {outcome: completed, text: hello, received: {stdin: hi}}\n"
    )
    assert list_failed(runner, give_up(), scenario) == set()


async def leaves_its_agent(order: Any) -> dict[str, str]:
    """Return while the agent lives and asyncio waits for its exit."""
    await create_subprocess_exec(*order.argv, env=order.env, stdin=DEVNULL, stdout=DEVNULL)
    return {"outcome": "completed"}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of the Popen that is left
@pytest.mark.parametrize("supervisor", [inherits, leaves_its_agent])
def test_a_play_leaves_no_descriptor(runner: ScenarioRunner, supervisor: Any) -> None:
    """An agent may still wait for its stdin as the play ends, and asyncio for that agent."""
    list_failed(runner, Function(supervisor), MUST)
    before = list_open_descriptors()
    list_failed(runner, Function(supervisor), MUST)
    assert list_open_descriptors() == before
