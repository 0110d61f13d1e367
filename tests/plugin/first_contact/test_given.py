"""The input of an agent from the code under test: stdin, environment, a limit of time, and a kill when that is over."""

from __future__ import annotations

import pytest

from tests.plugin.first_contact.errors import list_error_lines

TEST = """
import subprocess


def ask(argv):
    try:
        done = subprocess.run(
            argv, input="{prompt}", env={{"HOME": "/x"{more}}}, capture_output=True, text=True, timeout={limit})
    except subprocess.TimeoutExpired:
        return None
    return done.stdout


def test_stdin(fake_agent):
    agent = fake_agent("- wait_for: eof\\n- answer: done")
    assert ask(agent.argv) == "done\\n"
    agent.assert_called_once_with(..., stdin="build it")


def test_env(fake_agent):
    agent = fake_agent("- answer: done")
    assert ask(agent.argv) == "done\\n"
    agent.assert_called_once_with(..., env={{"HOME": "/x", "API_KEY": None}})


def test_slow(fake_agent):
    agent = fake_agent("- silence: 1s\\n- answer: done", scale=10)
    assert ask(agent.argv) == "done\\n"


def test_hangs(fake_agent):
    agent = fake_agent("- say: hi\\n- silence: for ever")
    assert ask(agent.argv) is None
    assert [name for name, _ in agent.starts[0].signals] == ["KILL"]
"""
RIGHT = {"prompt": "build it", "more": "", "limit": 2}
WRONG = "AssertionError: agent was called once, but with something else"


@pytest.mark.slow
def test_code_that_gives_what_it_should_passes(pytester: pytest.Pytester) -> None:
    """The limit is over in one case of the four."""
    pytester.makepyfile(TEST.format(**RIGHT))
    pytester.runpytest().assert_outcomes(passed=4)


@pytest.mark.parametrize(
    ("case", "fault", "said"),
    [
        (
            "stdin",
            {"prompt": "build"},
            [
                WRONG,
                "expected  agent ...",
                "stdin: 'build it'",
                "seen      agent",
                "stdin: 'build'",
                "(different: stdin)",
            ],
        ),
        (
            "env",
            {"more": ', "API_KEY": "secret"'},
            [
                WRONG,
                "expected  agent ...",
                "env HOME: '/x'",
                "env API_KEY: not set",
                "seen      agent",
                "env API_KEY: 'secret'",
                "(different: env API_KEY)",
            ],
        ),
        ("slow", {"limit": 0.05}, ["AssertionError: assert None == 'done\\n'"]),
    ],
)
def test_a_fault_is_seen(pytester: pytest.Pytester, case: str, fault: dict[str, object], said: list[str]) -> None:
    """The twins: part of the prompt is lost, a secret reaches the agent, the limit is too short."""
    pytester.makepyfile(TEST.format(**{**RIGHT, **fault}))
    result = pytester.runpytest("-k", case)
    result.assert_outcomes(failed=1)
    assert [line.strip() for line in list_error_lines(result)[: len(said)]] == said


@pytest.mark.slow
def test_an_agent_that_is_not_killed_fails_the_test(pytester: pytest.Pytester) -> None:
    """The twin: the code under test gives up, and lets the agent live on."""
    pytester.makepyfile(
        test_hangs='''
        import subprocess

        def test_hangs(fake_agent):
            agent = fake_agent("""
            - say: hi
            - silence: for ever
            """)
            process = subprocess.Popen(agent.argv, stdout=subprocess.PIPE)
            try:
                process.wait(timeout=0.2)
            except subprocess.TimeoutExpired:
                process.stdout.close()
        '''
    )
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["test_hangs.py:6: agent was left (still alive): - silence: for ever"])
    result.stdout.no_fnmatch_line("* open: *agentproc-*")  # the kit's own log of the fake
