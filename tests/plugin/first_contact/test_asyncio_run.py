"""Async code that a plain test runs by itself: `asyncio.run`, `trio.run`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

TEST = """
    import asyncio, subprocess, trio

    STOPPABLE = [{{"when": {{"signal": "TERM"}}, "do": [{{"exit": 0}}]}}, {{"say": "hi"}}, {{"wait_for": "signal"}}]

    async def in_asyncio(argv):
        process = await asyncio.create_subprocess_exec(*argv, stdout=subprocess.PIPE)
        line = await asyncio.wait_for(process.stdout.readline(), 30)
        {stop}
        await process.wait()
        return line

    async def in_trio(argv):
        return (await trio.run_process(argv, capture_stdout=True, check=False)).stdout

    def test_asyncio(fake_agent, agent_timeline):
        agent = fake_agent({{"script": STOPPABLE}})
        assert asyncio.run(in_asyncio(agent.argv)) == b"hi\\n"
        assert [name for name, _ in agent.starts[0].signals] == ["TERM"]
        agent_timeline.order("stdout", "TERM", "exit")
        agent_timeline.never("KILL")

    def test_trio(fake_agent):
        agent = fake_agent("- say: hi\\n- exit: 4")
        assert (trio.run(in_trio, agent.argv), agent.starts[0].status) == (b"hi\\n", 4)
"""


def test_a_loop_that_a_test_runs_by_itself_is_in_real_time(pytester: pytest.Pytester) -> None:
    """The test does not ask for virtual time, so nothing waits for it."""
    pytester.makepyfile(TEST.format(stop="process.terminate()"))
    pytester.runpytest().assert_outcomes(passed=2)


def test_a_kill_without_a_term_is_seen(pytester: pytest.Pytester) -> None:
    """The twin: the code under test kills an agent that a TERM would have ended."""
    pytester.makepyfile(TEST.format(stop="process.kill()"))
    result = pytester.runpytest("-k", "asyncio")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E       AssertionError: assert ['KILL'] == ['TERM']"])
