"""The net under our own suite holds: a test of ours that leaves a process behind fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.architecture.sources import ROOT

if TYPE_CHECKING:
    from pathlib import Path

LEAVES_ONE_ALIVE = """
import subprocess, sys
def test_leaves_a_child():
    global child  # it ends with this process, whose end closes its input
    child = subprocess.Popen([sys.executable, "-c", "print(); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdout.read(1)
"""
LEAVES_A_ZOMBIE = """
import os
def test_leaves_a_zombie():
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
"""
LEAVES_NONE = """
import subprocess
def test_leaves_none():
    subprocess.run(["true"], check=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suite", "counts", "named"),
    [
        (LEAVES_ONE_ALIVE, {"passed": 1, "errors": 1}, "*the test left child processes: {*-c print(); input()'}*"),
        (LEAVES_A_ZOMBIE, {"passed": 1, "errors": 1}, "*the test left child processes: {*: 'zombie'}*"),
        (LEAVES_NONE, {"passed": 1}, "*1 passed*"),
    ],
    ids=["alive", "zombie", "none"],
)
def test_a_test_that_leaves_a_process_is_told(
    pytester: pytest.Pytester, suite: str, counts: dict[str, int], named: str
) -> None:
    """A check that cannot fail would let every process test leak."""
    conftest: Path = ROOT / "tests" / "conftest.py"
    pytester.makeconftest(conftest.read_text("utf-8"))
    pytester.makepyfile(suite)
    result = pytester.runpytest_subprocess("-p", "no:agentproc", "-W", "ignore")
    result.assert_outcomes(**counts)
    result.stdout.fnmatch_lines([named])
