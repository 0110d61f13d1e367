"""Supervisors that write a whole prompt before they read: a fake that talks meanwhile fills all that may hold it."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import DEVNULL, PIPE
from typing import TYPE_CHECKING, Any

import anyio
import pytest
import trio

from pytest_agentproc.subjects import Function
from pytest_agentproc.verdict import judge_all_expectations
from tests.bundled import load_bundled

if TYPE_CHECKING:
    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.vocabulary import RunRequest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # from a deadlock's garbage
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

RUNS = [
    load_bundled(name)
    for name in ("talks-before-it-reads", "claude-talks-before-it-reads", "codex-talks-before-it-reads")
]
MEBIBYTE = 1 << 20


def name_exit_code(code: int | None) -> str:
    """Call a run by its exit code."""
    return "failed" if code else "completed"


async def start_agent(order: RunRequest, **streams: Any) -> Any:
    """Start the agent on asyncio."""
    return await asyncio.create_subprocess_exec(*order.argv, env=order.env, stdin=PIPE, stdout=PIPE, **streams)


async def write_prompt(agent: Any, order: RunRequest) -> None:
    """Write the whole prompt, and wait until the pipe has it."""
    agent.stdin.write(order.prompt.encode())
    await agent.stdin.drain()
    agent.stdin.close()


async def write_then_read(order: RunRequest) -> str:
    """Write, then read both streams."""
    agent = await start_agent(order, stderr=PIPE)
    await write_prompt(agent, order)
    await agent.communicate()
    return name_exit_code(agent.returncode)


async def write_then_read_with_long_limit(order: RunRequest) -> str:
    """Write, then read, with readers that hold lines of a mebibyte."""
    agent = await start_agent(order, stderr=PIPE, limit=MEBIBYTE)
    await write_prompt(agent, order)
    await agent.communicate()
    return name_exit_code(agent.returncode)


async def drop_stderr_and_write_then_read(order: RunRequest) -> str:
    """Leave stderr without a reader, so that only bytes on stdout can block."""
    agent = await start_agent(order, stderr=DEVNULL, limit=MEBIBYTE)
    await write_prompt(agent, order)
    await agent.stdout.read()
    return name_exit_code(await agent.wait())


async def read_stdout_and_write_then_read_stderr(order: RunRequest) -> str:
    """Read stdout all the time, and stderr at the end, so that only bytes on stderr can block."""
    agent = await start_agent(order, stderr=PIPE, limit=MEBIBYTE)
    reading = asyncio.create_task(agent.stdout.read())
    await write_prompt(agent, order)
    await reading
    await agent.stderr.read()
    return name_exit_code(await agent.wait())


async def read_while_writing(order: RunRequest) -> str:
    """Do both at a time, as asyncio's own `communicate` does."""
    agent = await start_agent(order, stderr=PIPE)
    await agent.communicate(order.prompt.encode())
    return name_exit_code(agent.returncode)


async def receive_all(stream: Any) -> None:
    """Read to the end."""
    async for _ in stream:
        pass


async def write_then_read_on_anyio(order: RunRequest) -> str:
    """Write, then read, on whatever loop it is."""
    async with await anyio.open_process(order.argv, env=order.env) as agent:
        assert agent.stdin is not None
        await agent.stdin.send(order.prompt.encode())
        await agent.stdin.aclose()
        async with anyio.create_task_group() as group:
            group.start_soon(receive_all, agent.stdout)
            group.start_soon(receive_all, agent.stderr)
        return name_exit_code(await agent.wait())


async def write_then_read_on_trio(order: RunRequest) -> str:
    """Write, then read, and leave stderr without a reader."""
    agent = await trio.lowlevel.open_process([*order.argv], env=order.env, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)
    assert agent.stdin is not None
    await agent.stdin.send_all(order.prompt.encode())
    await agent.stdin.aclose()
    await receive_all(agent.stdout)
    return name_exit_code(await agent.wait())


ASYNCIO = (
    write_then_read,
    write_then_read_with_long_limit,
    drop_stderr_and_write_then_read,
    read_stdout_and_write_then_read_stderr,
    write_then_read_on_anyio,
)


def find_outcome(runner: ScenarioRunner, scenario: Any, function: Any, backend: str) -> str:
    """Play, and give the outcome that was seen."""
    rows = judge_all_expectations(runner.play(scenario, Function(function), backend=backend))
    return next(f"{row.verdict}: {row.seen}" for row in rows if row.key == "outcome")


@pytest.mark.parametrize("scenario", RUNS, ids=lambda scenario: scenario.id)
@pytest.mark.parametrize("function", ASYNCIO, ids=lambda function: function.__name__)
def test_to_write_first_is_a_deadlock_on_asyncio(runner: ScenarioRunner, function: Any, scenario: Any) -> None:
    """Readers hold twice their limit, and the pipe 64 KiB more; either stream alone is longer than that."""
    assert find_outcome(runner, scenario, function, "asyncio").startswith("failed: deadlock")


@pytest.mark.parametrize("scenario", RUNS, ids=lambda scenario: scenario.id)
@pytest.mark.parametrize(
    "function", [write_then_read_on_trio, write_then_read_on_anyio], ids=lambda function: function.__name__
)
def test_to_write_first_is_a_deadlock_on_trio(runner: ScenarioRunner, function: Any, scenario: Any) -> None:
    """There, no code reads ahead."""
    assert find_outcome(runner, scenario, function, "trio").startswith("failed: deadlock")


@pytest.mark.parametrize("scenario", RUNS, ids=lambda scenario: scenario.id)
def test_to_read_meanwhile_is_right(runner: ScenarioRunner, scenario: Any) -> None:
    """All output of the agent is read."""
    assert find_outcome(runner, scenario, read_while_writing, "asyncio").startswith("passed")
