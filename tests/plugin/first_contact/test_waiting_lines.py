"""The error of a test that waits for ever names the line that waits, and its traceback shows that line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

BEGIN = """
import asyncio
import subprocess

import anyio
import pytest

from supervisor import ask


@pytest.mark.virtual_time(backend="{backend}")
async def test_it(fake_agent, virtual_clock):
"""
DEAD = "nobody can move: the supervising program waits, and no timer of it runs; no agent lives"
SUPERVISOR = """
import subprocess

import anyio


async def ask(thing):
    return await thing.wait()


def ask_in_thread(argv, clock):
    with subprocess.Popen(argv) as agent:
        clock.hub.guard = 0.2
        return agent.wait()
"""


def list_failure_lines(pytester: pytest.Pytester, body: str, backend: str, *options: str) -> Sequence[str]:
    """Give the lines of a failed test from the first that is marked."""
    pytester.makepyfile(supervisor=SUPERVISOR, test_it=BEGIN.format(backend=backend) + body)
    result = pytester.runpytest("-q", "-p", "no:asyncio", *options)
    result.assert_outcomes(failed=1)
    lines = result.outlines
    begin = next(number for number, line in enumerate(lines) if line.startswith(">"))
    return [line for line in lines[begin:] if line.startswith((">", "E", "supervisor.py", "test_it.py"))]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_deadlock_names_the_line_that_waits(pytester: pytest.Pytester, backend: str) -> None:
    """The message of a deadlock is of no use to a tester as long as it does not say which `await` it is."""
    assert list_failure_lines(pytester, "    await ask(anyio.Event())\n", backend) == [
        ">       await ask(anyio.Event())",
        "test_it.py:12: ",
        ">       return await thing.wait()",
        f"E       pytest_agentproc.errors.Deadlock: {DEAD}",
        "E       the supervising program waits at supervisor.py:7",
        "supervisor.py:7: Deadlock",
    ]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_deadlock_of_several_tasks_names_the_line_of_each(pytester: pytest.Pytester, backend: str) -> None:
    """A task in a group waits elsewhere than the test, and its line is the one that a tester needs."""
    body = "    async with anyio.create_task_group() as group:\n        group.start_soon(ask, anyio.Event())\n"
    assert "E       the supervising program waits at supervisor.py:7 and test_it.py:12" in list_failure_lines(
        pytester, body, backend
    )


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_program_that_is_no_fake_is_named_with_the_line_of_its_start(pytester: pytest.Pytester, backend: str) -> None:
    """A supervisor may start programs in many places."""
    body = '    await anyio.run_process(["cat"], stdin=subprocess.PIPE)\n'
    lines = list_failure_lines(pytester, body, backend)
    assert lines[0] == '>       await anyio.run_process(["cat"], stdin=subprocess.PIPE)'
    assert lines[1].endswith(" is no fake agent, and virtual time cannot see what it does")
    assert lines[3:] == ["E       the supervising program is at test_it.py:12", "test_it.py:12: ForeignProgram"]


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_thread_that_stalls_is_named_with_its_line_and_that_of_its_task(
    pytester: pytest.Pytester, backend: str
) -> None:
    """A test that gives `subprocess.run` to a thread is sent to both lines."""
    body = (
        "    virtual_clock.hub.guard = 0.2\n"
        '    argv = fake_agent("- silence: 1h").argv\n'
        "    from supervisor import ask_in_thread\n"
        "    await anyio.to_thread.run_sync(ask_in_thread, argv, virtual_clock)\n"
    )
    lines = [line for line in list_failure_lines(pytester, body, backend) if line.startswith("E")]
    assert "did not return within 0.2 s, and time is held until then" in lines[0]
    assert lines[2:] == ["E       the supervising program waits at supervisor.py:13 and test_it.py:15"]
