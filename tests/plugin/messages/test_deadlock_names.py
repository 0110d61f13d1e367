"""A deadlock names each process that waits, by the name that a user knows it by."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.slow

SCRIPT = '"- spawn: {id: mcp, inherits: [stdout]}\\n- die: SEGV"'
MCP_LINE = "mcp (pid N) waits for a signal, last at line 2 (sleep)"


def list_error_lines(result: pytest.RunResult) -> list[str]:
    """List the lines that pytest marks with an E, without numbers of processes."""
    return [re.sub(r"pid \d+", "pid N", line[1:].strip()) for line in result.outlines if line.startswith("E ")]


def test_a_child_of_a_dead_agent_has_its_own_name(pytester: pytest.Pytester) -> None:
    """The kernel calls it after its parent. In async virtual time the same words are used."""
    pytester.makepyfile(
        f"""
        import anyio, pytest, subprocess

        @pytest.mark.virtual_time
        def test_sync(fake_agents):
            fake_agents.on_path(claude={SCRIPT})
            subprocess.run(["claude", "-p", "hi"], capture_output=True)

        @pytest.mark.virtual_time
        async def test_async(fake_agents):
            fake_agents.on_path(claude={SCRIPT})
            await anyio.run_process(["claude", "-p", "hi"], stdin=subprocess.DEVNULL)
        """
    )
    lines = list_error_lines(pytester.runpytest_subprocess("--agentproc-virtual-sync"))
    sync_end = lines.index(MCP_LINE)
    assert lines[sync_end - 1].endswith(
        "Deadlock: nobody can move: all threads and processes wait, and no wait has a time limit"
    )
    assert any(f"; {MCP_LINE}" in line for line in lines[sync_end + 1 :])


@pytest.mark.parametrize(
    ("inherits", "stdout", "held"),
    [
        ("[stdout]", "subprocess.PIPE", ", and holds stdout open, which the supervising program reads"),
        (
            "[stdout, stderr]",
            "subprocess.PIPE",
            ", and holds stdout and stderr open, which the supervising program reads",
        ),
        ("[]", "subprocess.PIPE", ""),
        ("[stdout]", "(pair := os.pipe(), os.close(pair[0]))[0][1]", ""),
    ],
    ids=["one", "both", "none", "written by the test"],
)
def test_a_child_that_holds_the_stdout_of_a_dead_agent_is_said(
    pytester: pytest.Pytester, inherits: str, stdout: str, held: str
) -> None:
    """The test waits for the end of a stream. The one that holds it open is the fault to look for."""
    pytester.makepyfile(
        f"""
        import asyncio, os, pytest, subprocess

        @pytest.mark.virtual_time
        async def test_async(fake_agents):
            fake_agents.on_path(claude="- spawn: {{id: mcp, inherits: {inherits}}}\\n- die: SEGV")
            process = await asyncio.create_subprocess_exec(
                "claude", "-p", "hi", stdin=subprocess.DEVNULL, stdout={stdout}, stderr=subprocess.PIPE
            )
            await process.communicate()
            await asyncio.Event().wait()
        """
    )
    [line] = [line for line in list_error_lines(pytester.runpytest_subprocess()) if "Deadlock" in line]
    assert line.endswith(f"; {MCP_LINE}{held}")


def test_a_block_of_fakes_and_another_program_are_named(pytester: pytest.Pytester) -> None:
    """A fake that no fixture made has its script's name too. Another program shows its command."""
    pytester.makepyfile(
        """
        import pytest, subprocess
        from pytest_agentproc.plugin import FakeAgents

        @pytest.mark.virtual_time
        def test_sync():
            with FakeAgents() as agents:
                agents.on_path(claude="- silence: for ever", full="- flood: {stdout: 1 MiB}")
                subprocess.Popen(["full"], stdout=subprocess.PIPE)
                subprocess.Popen(["/bin/cat", "-u"], stdin=subprocess.PIPE)
                subprocess.run(["claude", "-p", "hi"])
        """
    )
    lines = list_error_lines(pytester.runpytest_subprocess("--agentproc-virtual-sync"))
    assert sorted(re.sub(r"\[\d+\]", "[N]", line) for line in lines[1:]) == [
        "/bin/cat -u (pid N) reads pipe:[N]",
        "claude (pid N) waits for a signal, last at line 7 (sleep)",
        "full (pid N) waits for room in stdout (descriptor 1), last at line 7 (flood)",
    ]
