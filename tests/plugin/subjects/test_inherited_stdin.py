"""A supervisor whose agent inherits stdin, in each way of running pytest and the command."""

from __future__ import annotations

import subprocess
import sys

import pytest

MINE = """
import subprocess
from asyncio.subprocess import PIPE, create_subprocess_exec
from pytest_agentproc.subjects import Function

async def mine(order):
    {first}
    agent = await create_subprocess_exec(*order.argv, env=order.env, stdout=PIPE)
    return {{"outcome": "completed", "text": (await agent.communicate())[0].decode().strip()}}

subject = Function(mine)
"""
SCENARIO = """
scenario: it reads its stdin to the end
agent: raw
script: [wait_for: eof, answer: done]
expect: {outcome: completed, text: done}
"""
PYTEST = ("pytest", "-p", "no:anyio", "--agentproc-subject=mine:subject", "eof.scenario.yaml")


def run_python(pytester: pytest.Pytester, *words: str, first: str = "", typed: str = "") -> tuple[int, str]:
    """Run a module in a folder with the supervisor and the scenario; give its exit code and what it printed."""
    pytester.makepyfile(mine=MINE.format(first=first))
    pytester.path.joinpath("eof.scenario.yaml").write_text(SCENARIO, "utf-8")
    command = [sys.executable, "-m", *words]
    done = subprocess.run(
        command, cwd=pytester.path, input=typed, capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        PYTEST,
        (*PYTEST, "-s"),
        (*PYTEST, "--capture=sys"),
        (*PYTEST, "-n1"),
        ("pytest_agentproc", "run", "--subject", "mine:subject", "eof.scenario.yaml"),
    ],
    ids=["pytest", "-s", "sys", "xdist", "run"],
)
def test_it_is_red_although_stdin_is_at_its_end(pytester: pytest.Pytester, words: tuple[str, ...]) -> None:
    """A CI server ends the stdin of pytest, and a worker of pytest-xdist has none."""
    if "-n1" in words:
        pytest.importorskip("xdist")
    code, printed = run_python(pytester, *words)
    assert code == 1
    assert "nobody can move" in printed


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        (*PYTEST, "-s"),
        (*PYTEST, "--capture=sys"),
        PYTEST,
        ("pytest_agentproc", "run", "--subject", "mine:subject", "eof.scenario.yaml"),
    ],
    ids=["-s", "sys", "pytest", "run"],
)
def test_a_debugger_gets_what_its_user_types(pytester: pytest.Pytester, words: tuple[str, ...]) -> None:
    """A debugger that waited for keys at the open pipe would wait for ever."""
    _, printed = run_python(pytester, *words, first="breakpoint()", typed="p 6 * 7\nc\n")
    assert "(Pdb) 42" in printed
