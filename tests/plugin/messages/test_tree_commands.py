"""The tree of processes in the failure of a leak: a start shows the arguments that it was given, in every time."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.slow

TESTS = """
    import anyio, pytest, subprocess

    WORDS = ["claude", "--print", "--model", "small", "what I asked"]

    @pytest.fixture(autouse=True)
    def on_path(fake_agents):
        fake_agents.on_path(claude="- spawn: {id: mcp}\\n- answer: done")

    @pytest.mark.virtual_time
    async def test_async_virtual():
        await anyio.run_process(WORDS)

    @pytest.mark.virtual_time
    def test_sync_virtual():
        subprocess.run(WORDS)

    def test_real():
        subprocess.run(WORDS)
"""


def test_an_agent_that_is_gone_shows_what_it_was_given(pytester: pytest.Pytester) -> None:
    """The default command of the dialect stood here, and no test had run it."""
    pytester.makepyfile(TESTS)
    result = pytester.runpytest_subprocess("--agentproc-virtual-sync")
    result.assert_outcomes(passed=3, errors=3)
    drawn = [re.sub(r"\d+(\.\d+)?", "N", line) for line in result.outlines if ": gone, code" in line]
    assert [" ".join(line.split()) for line in drawn] == [
        "claude (pid N): gone, code N, at N s claude --print --model small 'what I asked'"
    ] * 3
