"""One fake in real and in virtual time: its start decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

BOTH = """
    import asyncio, subprocess

    async def use(argv):
        process = await asyncio.create_subprocess_exec(*argv, stdout=subprocess.PIPE)
        return (await process.communicate())[0]

    def test_both(fake_agent, virtual_clock, agent_timeline):
        agent = fake_agent("- silence: 10ms\\n- say: hi")
        assert subprocess.run(agent.argv, capture_output=True).stdout == b"hi\\n"
        assert virtual_clock.run(use, agent.argv) == b"hi\\n"
        assert virtual_clock.now == 0.01
        assert subprocess.run(agent.argv, capture_output=True).stdout == b"hi\\n"
        virtual, first, second = agent.starts
        assert (virtual.at, virtual.ended_at, virtual.name) == (0, 0.01, "agent")
        assert (first.name, second.name) == ("agent", "agent 2")
        assert first.ended_at - first.at >= 0.01 and second.at > first.ended_at
        assert (len(agent_timeline), agent_timeline[0].times("exit")) == (2, (0.01,))
        agent_timeline[1].order("start", "stdout", "exit", "agent 2: start", "agent 2: exit")

    def test_hours_pass_at_once(fake_agent, virtual_clock):
        agent = fake_agent("- silence: 1h\\n- say: hi")
        assert virtual_clock.run(use, agent.argv) == b"hi\\n"
        assert (virtual_clock.now, agent.starts[0].ended_at) == (3600, 3600)
"""
REFUSED = (
    r"E   pytest_agentproc.errors.UsageError: agent \(pid \d+\) was started in real time and still runs, but virtual "
)


def test_the_start_of_a_fake_decides_its_time(pytester: pytest.Pytester) -> None:
    """A fake that was made before a virtual run works outside and inside of it."""
    pytester.makepyfile(BOTH)
    pytester.runpytest().assert_outcomes(passed=2)


def test_a_real_child_is_not_waited_for_in_virtual_time(pytester: pytest.Pytester) -> None:
    """The twin: virtual time would jump over all that it does, and give up on it at once."""
    pytester.makepyfile(
        """
        import asyncio, subprocess

        def test_mixed(fake_agent, virtual_clock):
            agent = fake_agent("- say: hi\\n- wait_for: eof")
            with subprocess.Popen(agent.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
                assert process.stdout.readline() == b"hi\\n"
                virtual_clock.run(asyncio.sleep, 1)
        """
    )
    result = pytester.runpytest("--tb=short")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [REFUSED + "time cannot wait for it", "E   start it inside the virtual run, or end it before the run begins"]
    )
