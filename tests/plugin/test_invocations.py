"""A script for each invocation in users' own tests: a program that tries again meets the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def test_a_program_that_tries_again_gets_the_second_script(pytester: pytest.Pytester) -> None:
    """The test says what each try meets, and its record says when each was made."""
    pytester.makepyfile(
        '''
        import anyio, pytest

        async def patient(argv):
            """A program as users have one: it tries twice, a minute apart."""
            done = await anyio.run_process(argv, check=False)
            if done.returncode:
                await anyio.sleep(60)
                done = await anyio.run_process(argv, check=False)
            return done.stdout

        @pytest.mark.parametrize("backend", ["asyncio", "trio"])
        def test_retry(fake_agent, virtual_clock, backend):
            agent = fake_agent({"scripts": [[{"silence": "5s"}, {"exit": 1}], [{"say": "hello"}]]})
            assert virtual_clock.run(patient, agent.argv, backend=backend) == b"hello\\n"
            born = {e.data["process"]: e.at / 1e9 for e in agent.record.events if "seen" in e.data}
            assert born == {"agent": 0.0, "agent 2": 65.0}
        '''
    )
    pytester.runpytest().assert_outcomes(passed=2)


def test_an_invocation_that_is_left_is_named_with_its_line(pytester: pytest.Pytester) -> None:
    """The second one of a fake fails its test as the first one would."""
    pytester.makepyfile(
        test_leak='''
        import anyio, subprocess

        def test_leak(fake_agent, virtual_clock):
            agent = fake_agent("""
            scenario: an agent that is started twice
            agent: raw
            scripts:
              - [exit: 1]
              - - linger: for ever
            """)
            async def forget():
                global child
                await anyio.run_process(agent.argv, check=False)
                child = subprocess.Popen(agent.argv, stdout=subprocess.DEVNULL)
                await anyio.sleep(1)
            virtual_clock.run(forget)

        def teardown_module():
            child.wait()
        '''
    )
    result = pytester.runpytest()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["test_leak.py:9: agent 2 was left (still alive): - - linger: for ever"])
