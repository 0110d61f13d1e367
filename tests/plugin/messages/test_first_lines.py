"""The first fifteen lines of a failure say what is wrong, for the mistakes that a new user makes first."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

pytestmark = pytest.mark.slow

MAX_LINES = 15

TESTS = """
    import asyncio, subprocess
    import anyio, pytest

    ASK = ["claude", "-p", "what I asked"]

    def start_and_kill(fake):
        process = subprocess.Popen(ASK, stdin=subprocess.DEVNULL)
        while not fake.starts:
            pass
        process.kill()
        return process.wait()

    def test_wrong_arguments(fake_agents):
        fake_agents.on_path(claude="- answer: done")
        subprocess.run([*ASK, "--verbose"], stdin=subprocess.DEVNULL)
        fake_agents["claude"].assert_called_once_with("-p", "what I asked")

    def test_wrong_step(fake_agents):
        fake_agents.on_path(claude="- anwser: done")

    @pytest.mark.virtual_time
    async def test_left_child(fake_agents):
        fake_agents.on_path(claude="- spawn: {id: mcp}\\n- answer: done")
        await anyio.run_process(ASK)

    @pytest.mark.virtual_time
    async def test_nobody_moves(fake_agents):
        fake_agents.on_path(claude="- silence: for ever")
        await anyio.run_process(ASK)

    @pytest.mark.virtual_time
    async def test_child_keeps_stdout(fake_agents):
        fake_agents.on_path(claude="- spawn: {id: mcp, inherits: [stdout]}\\n- die: SEGV")
        await anyio.run_process(ASK)

    @pytest.mark.virtual_time
    def test_child_keeps_stdout_sync(fake_agents):
        fake_agents.on_path(claude="- spawn: {id: mcp, inherits: [stdout]}\\n- die: SEGV")
        subprocess.run(ASK, capture_output=True)

    def test_other_program(fake_agents):
        fake_agents.on_path("claude", keep_path=False)
        subprocess.run(["git", "status"], check=True)

    def test_real_time(fake_agents, virtual_clock):
        fake_agents.on_path(claude="- silence: 1h\\n- answer: done")
        assert start_and_kill(fake_agents["claude"]) == 0

    @pytest.mark.virtual_time
    async def test_signals(fake_agents):
        fake_agents.on_path(claude="- silence: for ever")
        process = await asyncio.create_subprocess_exec(*ASK, stdin=subprocess.DEVNULL)
        await asyncio.sleep(60)
        process.terminate()
        await process.wait()
        assert fake_agents["claude"].starts[0].signals == (("INT", 60),)
"""

CLAUDE_WAITS = "claude (pid N) waits for a signal, last at line 2 (sleep)"
MCP_WAITS = "mcp (pid N) waits for a signal, last at line 2 (sleep)"
MCP_HOLDS = ", and holds stdout open, which the supervising program reads"
NOBODY_MOVES = (
    "E       pytest_agentproc.errors.Deadlock: nobody can move: the supervising program waits, "
    "and no timer of it runs; "
)
SYNC_DEADLOCK = (
    "E       pytest_agentproc.errors.Deadlock: nobody can move: all threads and processes wait, and no wait has a "
    "time limit"
)
CAUSES = {
    "test_wrong_arguments": [
        "E       AssertionError: claude was called once, but with something else",
        "E         expected  claude -p 'what I asked'",
        "E         seen      claude -p 'what I asked' --verbose",
    ],
    "test_wrong_step": [
        'E       pytest_agentproc.errors.ScenarioError: test_it.py:19:3: unknown step "anwser": did you mean "answer"?'
    ],
    "ERROR at teardown of test_left_child": [
        "<test_left_child>:2: mcp was left (still alive): - spawn: {id: mcp}",
        "  the tree at the end:",
        "    claude (pid N): gone, code 0, at 0 s  claude -p 'what I asked'",
    ],
    "test_nobody_moves": [f"{NOBODY_MOVES}{CLAUDE_WAITS}", "E       the supervising program waits at test_it.py:29"],
    "test_child_keeps_stdout": [
        f"{NOBODY_MOVES}{MCP_WAITS}{MCP_HOLDS}",
        "E       the supervising program waits at test_it.py:34",
    ],
    "test_child_keeps_stdout_sync": [SYNC_DEADLOCK, f"E         {MCP_WAITS}"],
    "test_other_program": [
        "E       FileNotFoundError: [Errno 2] No such file or directory: 'git'",
        "E       agentproc: git was not found: its PATH leads to fakes alone (claude); take keep_path=False away",
    ],
    "test_real_time": [
        (
            "E       agentproc: the test asks for virtual_clock, and nothing called virtual_clock.run(...): "
            "its fakes were in real time; "
            "for virtual time write @pytest.mark.virtual_time above it, and take virtual_clock away"
        )
    ],
    "test_signals": ["E       AssertionError: assert (('TERM', 60.0),) == (('INT', 60),)"],
}


def test_the_first_lines_name_the_cause(pytester: pytest.Pytester) -> None:
    """A reader of a CI log looks no further."""
    pytester.makepyfile(test_it=TESTS)
    result = pytester.runpytest_subprocess("--agentproc-virtual-sync", "-rN")
    assert result.parseoutcomes()["failed"] == len(CAUSES) - 1
    lines = [re.sub(r"pid \d+", "pid N", line) for line in result.outlines]
    heads = [place for place, line in enumerate(lines) if re.fullmatch(r"_{3,} .* _{3,}|=+( .* )?=+", line)]
    sections = {lines[start].strip("_ "): lines[start : min(end, start + MAX_LINES)] for start, end in pairwise(heads)}
    for name, causes in CAUSES.items():
        assert [line for line in sections[name] if line in causes] == causes, name
