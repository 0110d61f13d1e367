"""The net under our own suite holds: a test of ours that leaves a process fails."""

from __future__ import annotations

import pytest

from tests.architecture.sources import ROOT

SUITE = """
import os, subprocess, sys

def test_leaves_one_alive():
    global child  # it ends with this process, whose end closes its input
    child = subprocess.Popen([sys.executable, "-c", "print(); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdout.read(1)

def test_leaves_a_zombie():
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)

def test_leaves_none():
    subprocess.run(["true"], check=True)
"""


@pytest.mark.slow
def test_a_test_that_leaves_a_process_is_reported(pytester: pytest.Pytester) -> None:
    """A check that cannot fail would let every process test leak."""
    pytester.makeconftest((ROOT / "tests" / "conftest.py").read_text("utf-8"))
    pytester.makepyfile(SUITE)
    result = pytester.runpytest_subprocess("-p", "no:agentproc", "-W", "ignore")
    result.assert_outcomes(passed=3, errors=2)
    result.stdout.fnmatch_lines(
        [
            "*ERROR at teardown of test_leaves_one_alive*",
            "*the test left child processes: {*-c print(); input()'}*",
            "*ERROR at teardown of test_leaves_a_zombie*",
            "*the test left child processes: {*: 'zombie'}*",
        ]
    )
