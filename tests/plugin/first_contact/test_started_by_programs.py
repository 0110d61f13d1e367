"""Agents that other programs start: a shell, Node, a Python program; and tests in workers of xdist."""

from __future__ import annotations

import shutil

import pytest

from tests.plugin.first_contact.errors import list_error_lines

NODE = """
const {spawn} = require("child_process");
const child = spawn(process.argv[1], process.argv.slice(2), {stdio: ["ignore", "inherit", "inherit"]});
child.on("exit", code => process.exit(code === 5 ? 0 : 1));
"""
TEST = """
    import subprocess, sys

    def test_program(fake_agent, agent_timeline):
        agent = fake_agent("- say: hi\\n- exit: {code}")
        done = subprocess.run([{program}, *agent.argv, "-p"], capture_output=True)
        assert (done.stdout, done.returncode) == (b"hi\\n", 0)
        [start] = agent.starts
        assert (start.argv[-1], start.status) == ("-p", 5)
        agent_timeline.order("start", "stdout", "exit")
"""
PROGRAMS = {
    "shell": '"sh", "-c", \'"$@"; test $? = 5\', "sh"',
    "python": '"python3", "-c", "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]) != 5)"',
    "node": f'"node", "-e", {NODE!r}',
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_between_changes_nothing(pytester: pytest.Pytester, program: str) -> None:
    """The fake tells by itself what it was given, whoever started it."""
    if program == "node" and shutil.which("node") is None:
        pytest.skip("there is no node on this machine")
    pytester.makepyfile(TEST.format(program=PROGRAMS[program], code=5))
    pytester.runpytest().assert_outcomes(passed=1)


def test_a_wrong_exit_code_is_seen_through_a_program(pytester: pytest.Pytester) -> None:
    """The twin: the agent ends with another code, which the shell reports as a failure."""
    pytester.makepyfile(TEST.format(program=PROGRAMS["shell"], code=6))
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([r"E       AssertionError: assert (b'hi\n', 1) == (b'hi\n', 0)"])


NUMBERS = """
    import subprocess, pytest

    def ask(argv, number):
        subprocess.run([*argv, str({number})], check=True)

    @pytest.mark.parametrize("number", range(4))
    def test_hello(fake_agent, number):
        agent = fake_agent("- say: hi")
        ask(agent.argv, number)
        agent.assert_called_once_with(..., str(number))
"""


@pytest.mark.slow
def test_each_case_of_a_test_has_its_own_fake(pytester: pytest.Pytester) -> None:
    """A parametrized test starts one fake in each case, in workers of xdist; one case has a fault, and fails alone.

    The twin of the right code never gives a number above two.
    """
    pytester.makepyfile(test_right=NUMBERS.format(number="number"), test_wrong=NUMBERS.format(number="min(number, 2)"))
    result = pytester.runpytest_subprocess("-n2")
    result.assert_outcomes(passed=4 + 3, failed=1)
    assert [line.strip() for line in list_error_lines(result)[:4]] == [
        "AssertionError: agent was called once, but with something else",
        "expected  agent ... 3",
        "seen      agent 2",
        "(different: argv)",
    ]
    assert "test_wrong.py::test_hello[3]" in result.stdout.str()
