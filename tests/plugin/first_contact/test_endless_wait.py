"""Code that waits without a limit for a stuck agent gets a report soon, and is ended in the end."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

CONFTEST = """
from pytest_agentproc.plugin import _fakes as _lifetime

_lifetime.FAKE_LIFETIME_SECONDS, _lifetime.WAIT_NOTICE_DELAY_SECONDS = {lifetime}, {patience}
"""
TEST = '''
    import subprocess

    def test_silence(fake_agent):
        agent = fake_agent("""
        - say: hello
        - silence: for ever
        """)
        try:
            subprocess.run(agent.argv, capture_output=True{limit})
        except subprocess.TimeoutExpired:
            pass
        [start] = agent.starts
        assert [name for name, _ in start.signals] == ["KILL"]
'''
NOTICE = """
agentproc: test_endless.py::test_silence: a fake agent waits at test_endless.py:6 in real time, and nothing comes; \
it is ended after {lifetime} s
give the code that waits for it a limit (timeout=10), or put the test in virtual time: @pytest.mark.virtual_time
"""
ENDED = """\
test_endless.py:6: agent was ended after 0.3 s of real time: - silence: for ever
give the code that waits for it a limit (timeout=10), or put the test in virtual time: @pytest.mark.virtual_time
"""


def _run_on_terminal(pytester: pytest.Pytester, limit: str, *, lifetime: float, patience: float) -> str:
    """Run the test as from a shell with a visible output."""
    pytester.makepyfile(test_endless=TEST.format(limit=limit))
    pytester.makeconftest(CONFTEST.format(lifetime=lifetime, patience=patience))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120).stdout


def test_a_limit_of_the_code_under_test_is_left_alone(pytester: pytest.Pytester) -> None:
    """It is said that the fake waits, and nothing is ended: the code may be right, and have a longer patience."""
    output = _run_on_terminal(pytester, ", timeout=0.3", lifetime=60, patience=0.1)
    assert NOTICE.format(lifetime=60) in output
    assert "1 passed" in output
    assert "error" not in output


def test_a_wait_without_a_limit_is_ended(pytester: pytest.Pytester) -> None:
    """The twin: the code under test has no limit, and the failure names the step and the remedy."""
    output = _run_on_terminal(pytester, "", lifetime=0.3, patience=0.1)
    assert NOTICE.format(lifetime=0.3) in output
    assert ENDED in output
    assert "1 passed, 1 error" in output


def test_a_fake_that_goes_on_says_nothing(pytester: pytest.Pytester) -> None:
    """A silence that ends is no wait in vain, nor is a test that was given no fake."""
    pytester.makepyfile(
        "import subprocess\n\ndef test_it(fake_agent):\n    "
        'subprocess.run(fake_agent("- silence: 200ms\\n- say: hi").argv, capture_output=True)\n'
    )
    pytester.makeconftest(CONFTEST.format(lifetime=60, patience=0.01))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    output = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120).stdout
    assert "agentproc" not in output
    assert "1 passed" in output


def test_a_fake_lives_on_while_somebody_debugs(pytester: pytest.Pytester) -> None:
    """A breakpoint takes as long as it takes."""
    pytester.makepyfile(
        """
        import select, subprocess

        def test_it(fake_agent):
            agent = fake_agent("- say: hi\\n- wait_for: eof")
            with subprocess.Popen(agent.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
                breakpoint()
                assert process.stdout.readline() == b"hi\\n"
                assert not select.select([process.stdout], [], [], 0.4)[0]
        """
    )
    pytester.makeconftest(CONFTEST.format(lifetime=0.2, patience=60))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    completed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, input="continue\n")
    assert "1 passed" in completed.stdout
    assert "error" not in completed.stdout
