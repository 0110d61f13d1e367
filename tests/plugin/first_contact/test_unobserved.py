"""A claim about an unobserved value is an error, and never holds."""

from __future__ import annotations

import pytest

NO_START = """\
E   pytest_agentproc.errors.UsageError: no fake agent of this test has been started, so there is nothing to ask of it
E   start it first, by the command agent.argv: its code may have found another program
"""


def test_a_fake_that_nobody_started_says_nothing(pytester: pytest.Pytester) -> None:
    """Code that starts another program would pass `never("TERM")` for ever."""
    pytester.makepyfile(
        """
        def test_real(fake_agent, agent_timeline):
            fake_agent("- answer: hi")
            agent_timeline.never("TERM")

        def test_virtual(fake_agent, agent_timeline, virtual_clock):
            import asyncio
            fake_agent("- answer: hi")
            virtual_clock.run(asyncio.sleep, 1)
            agent_timeline.never("TERM")
        """
    )
    result = pytester.runpytest("--tb=short")
    result.assert_outcomes(failed=2)
    assert result.stdout.str().count(NO_START) == 2


REAL, VIRTUAL = "subprocess.run(agent.argv)", "virtual_clock.run(anyio.run_process, agent.argv)"


@pytest.mark.parametrize(
    ("start", "word"),
    [(REAL, "completed"), (REAL, "leak"), (VIRTUAL, "inactivity_timeout"), (VIRTUAL, "returned"), (VIRTUAL, "cancel")],
)
def test_a_supervisor_that_nobody_recorded_is_not_asked_for(pytester: pytest.Pytester, start: str, word: str) -> None:
    """Code that a test runs by itself has no record of what it decided, in real and in virtual time."""
    pytester.makepyfile(
        f"""
        import anyio, subprocess

        def test_words(fake_agent, agent_timeline, virtual_clock):
            agent = fake_agent("- answer: hi")
            {start}
            agent_timeline.order("start", "stdout", "exit")
            agent_timeline.never("KILL")
            agent_timeline.never("agent 2: start")
            agent_timeline.never("{word}")
        """
    )
    result = pytester.runpytest("--tb=short")
    result.assert_outcomes(failed=1)
    assert (
        f"E   pytest_agentproc.errors.UsageError: {word!r} is about the supervisor, which nobody recorded: the test "
        "started the fake by its own code\n"
        "E   ask for start, exit, stdout, stderr, stdin, a signal or line N; or let agent_run run the scenario\n"
    ) in result.stdout.str()
