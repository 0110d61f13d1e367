"""`subprocess.run` in a plain test: the first test of most users."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

TEST = """
    import subprocess

    def ask(argv, **options):
        return subprocess.run([*argv, "--print"{extra}], capture_output=True, text=True, check=False, **options)

    def test_hello(fake_agent, agent_timeline, tmp_path):
        agent = fake_agent("- wait_for: eof\\n- answer: hi\\n- exit: 3")
        done = ask(agent.argv, input="build it", env={{"MODE": "fast"}}, cwd=tmp_path)
        assert (done.stdout, done.returncode) == ("hi\\n", 3)
        [start] = agent.starts
        assert start.argv[-1] == "--print"
        assert (start.stdin, start.env["MODE"], start.cwd) == (b"build it", "fast", tmp_path)
        assert (start.status, start.signals) == (3, ())
        agent_timeline.order("start", "stdin", "stdout", "exit")
        agent_timeline.never("TERM")

    def test_by_name(fake_agent):
        agent = fake_agent({{"agent": "claude", "script": [{{"answer": "hi"}}]}})
        done = subprocess.run(["claude", "--version"], env=agent.env, capture_output=True, check=False)
        assert (done.returncode, agent.starts) == (0, ())

    def test_durations_are_real(fake_agent):
        import time
        agent, quick = fake_agent("- silence: 30ms\\n- say: hi"), fake_agent("- silence: 1h\\n- say: hi", scale=360_000)
        begun = time.monotonic()
        assert ask(agent.argv).stdout == ask(quick.argv).stdout == "hi\\n"
        assert time.monotonic() - begun >= 0.04
        assert agent.starts[0].ended_at - agent.starts[0].at >= 0.03
        assert quick.starts[0].ended_at - quick.starts[0].at >= 3600
"""


def test_a_plain_test_runs_a_fake_at_once(pytester: pytest.Pytester) -> None:
    """The test asks for no clock, and sees the input of the fake while it runs."""
    pytester.makepyfile(TEST.format(extra=""))
    pytester.runpytest().assert_outcomes(passed=3)


def test_a_wrong_argument_is_seen(pytester: pytest.Pytester) -> None:
    """The twin: the code under test adds an argument that it should not add."""
    pytester.makepyfile(TEST.format(extra=', "--verbose"'))
    result = pytester.runpytest("-k", "hello")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E       AssertionError: assert '--verbose' == '--print'"])


def test_a_fake_that_is_finished_early_is_known_as_well(pytester: pytest.Pytester) -> None:
    """To end a fake by hand is allowed, and the end of the test finds nothing left to do."""
    pytester.makepyfile(
        """
        import subprocess

        def test_finish(fake_agent):
            agent = fake_agent("- say: hi")
            subprocess.run(agent.argv, check=True)
            agent.finish()
            assert agent.starts[0].status == 0
        """
    )
    pytester.runpytest().assert_outcomes(passed=1)


def test_a_process_that_is_left_fails_the_test(pytester: pytest.Pytester) -> None:
    """The twin: the code under test does not end what its agent has left."""
    pytester.makepyfile(
        test_left='''
        import subprocess

        def test_left(fake_agent):
            agent = fake_agent("""
            - spawn: {id: server, inherits: []}
            - say: hi
            """)
            assert subprocess.run(agent.argv, capture_output=True).stdout == b"hi\\n"
        '''
    )
    result = pytester.runpytest()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["test_left.py:5: server was left (still alive): - spawn: {id: server, inherits: []}"])
