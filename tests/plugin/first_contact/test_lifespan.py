"""An agent that lives as long as a FastAPI application, tested with FastAPI's own client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

APP = """
import asyncio, contextlib, subprocess

from fastapi import FastAPI


@contextlib.asynccontextmanager
async def lifespan(app):
    agent = app.state.agent = await asyncio.create_subprocess_exec(
        "claude", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    yield
    {end}
    await agent.wait()


app = FastAPI(lifespan=lifespan)


@app.get("/ask")
async def ask(prompt: str):
    agent = app.state.agent
    agent.stdin.write(f"{{prompt}}\\n".encode())
    return (await agent.stdout.readline()).decode().strip()
"""
TEST = """
from app import app, ask
from fastapi.testclient import TestClient

TALK = [{"wait_for": {"stdin": "build"}}, {"silence": "10ms"}, {"say": "done"}, {"wait_for": "eof"}]


def test_client(fake_agents):
    fake_agents.on_path(claude={"agent": "raw", "script": TALK})
    with TestClient(app) as client:
        assert client.get("/ask", params={"prompt": "build"}).json() == "done"
    [start] = fake_agents["claude"].starts
    assert start.stdin == b"build\\n"
    assert [name for name, _ in start.signals] == []


def test_virtual_time(fake_agents, virtual_clock):
    fake_agents.on_path(claude={"agent": "raw", "script": [{"silence": "1h"}, *TALK]})

    async def use():
        async with app.router.lifespan_context(app):
            return await ask("build")

    assert virtual_clock.run(use) == "done"
    assert virtual_clock.now == 3600.01
"""
KILLED = r"E +AssertionError: assert \['KILL'\] == \[\]"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "passed", "lines"),
    [("agent.stdin.close()", 2, ()), ("agent.kill()", 1, (KILLED,))],
    ids=["right", "kills at once"],
)
def test_an_agent_lives_as_long_as_the_application(
    pytester: pytest.Pytester, end: str, passed: int, lines: Sequence[str]
) -> None:
    """The client runs the application in a thread, in real time; its lifespan alone runs in virtual time as well."""
    pytester.makepyfile(app=APP.format(end=end), test_app=TEST)
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(passed=passed, failed=2 - passed, warnings=None)
    result.stdout.re_match_lines(lines)
