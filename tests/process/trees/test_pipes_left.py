"""A supervisor that leaves one pipe open after each run is caught in one run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import anyio
import pytest

from pytest_agentproc.scenario import loads
from pytest_agentproc.subjects import Command, Function, reference_supervisor
from pytest_agentproc.verdict import CheckRow, Verdict, judge_all_expectations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.vocabulary import RunRequest, Subject

HELLO = loads("scenario: hello\nagent: raw\nscript: [{say: hello}]\nexpect: {outcome: completed, pipes_left: 0}\n")


@pytest.fixture
def pipes() -> Iterator[list[int]]:
    """Give the read ends that a supervisor has made, and close what it has left."""
    made: list[int] = []
    yield made
    for number in made:
        os.close(number)


def judge_pipes(runner: ScenarioRunner, subject: Subject, backend: str = "asyncio") -> CheckRow:
    """Play the scenario, and give its row about pipes."""
    return next(
        row for row in judge_all_expectations(runner.play(HELLO, subject, backend=backend)) if row.key == "pipes_left"
    )


def test_the_reference_supervisor_leaves_no_pipe(runner: ScenarioRunner, backend: str) -> None:
    """It closes three of them for each agent."""
    row = judge_pipes(runner, reference_supervisor(), backend)
    assert (row.verdict, row.seen) == (Verdict.PASSED, "0")


@pytest.mark.parametrize("closes", [True, False])
def test_a_pipe_that_is_left_open_is_counted(
    runner: ScenarioRunner, backend: str, pipes: list[int], *, closes: bool
) -> None:
    """After some hundred runs of such a supervisor no agent can be started any more."""
    living = os.pipe()  # both ends are open, so it is no pipe to an ended process

    async def supervise(order: RunRequest) -> str:
        reader, writer = os.pipe()
        pipes.extend([] if closes else [reader])
        async with await anyio.open_process(order.argv, env=order.env, stdout=writer, stderr=None):
            os.close(writer)
        if closes:
            os.close(reader)
        return "completed"

    row = judge_pipes(runner, Function(supervise), backend)
    assert (row.verdict, row.seen) == ((Verdict.PASSED, "0") if closes else (Verdict.FAILED, "1"))
    for number in living:
        os.close(number)


def test_a_dead_pipe_with_the_number_of_an_older_one_is_counted(
    runner: ScenarioRunner, backend: str, pipes: list[int]
) -> None:
    """The caller left a dead pipe before the run; it is closed in the run, and the supervisor's gets its number."""
    older, writer = os.pipe()
    os.close(writer)

    async def supervise(order: RunRequest) -> str:
        async with await anyio.open_process(order.argv, env=order.env, stderr=None) as process:
            await process.wait()
        reader, writer = os.pipe()
        os.dup2(reader, older)
        os.close(reader)
        os.close(writer)
        pipes.append(older)
        return "completed"

    row = judge_pipes(runner, Function(supervise), backend)
    assert (row.verdict, row.seen) == (Verdict.FAILED, "1")


def test_the_pipes_of_another_process_are_not_counted(runner: ScenarioRunner) -> None:
    """A program has ended when its run is over, and all its pipes with it."""
    row = judge_pipes(runner, Command(["sh", "-c", '"$@"', "sh", "{agent}"]))
    assert row.verdict is Verdict.NOT_APPLICABLE
    assert row.seen == "its pipes are counted in virtual time alone, and in the kit's own process"
