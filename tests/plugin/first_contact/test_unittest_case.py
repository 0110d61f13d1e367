"""Fakes in `unittest`, where there are no fixtures."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

CASE = """
import subprocess, unittest

import anyio

from pytest_agentproc.plugin import FakeAgents


class TestAsk(unittest.TestCase):
    def setUp(self):
        self.agents = self.enterContext(FakeAgents())

    def test_an_hour_of_silence(self):
        self.agents.on_path(claude="- silence: 1h\\n- answer: hi")
        done = self.agents.virtual_clock.run(anyio.run_process, ["claude", "-p", "hello"])
        self.assertIn(b"hi", done.stdout)
        self.assertEqual(self.agents.virtual_clock.now, 3600)
        self.agents["claude"].assert_called_once_with("-p", "hello")

    def test_plain_code(self):
        self.agents.on_path("claude")
        done = subprocess.run(["claude", "-p", "hi"], capture_output=True, timeout=20)
        self.assertIn(b"done", done.stdout)
        self.agents["claude"].assert_called_once_with("-p", "hi")
"""
LEAK = """
    def test_a_leak(self):
        self.agents.on_path(claude='''
        - say: hi
        - silence: for ever
        ''')

        async def forget():
            self.process = subprocess.Popen(["claude", "-p", "hello"], stdout=subprocess.DEVNULL)
            await anyio.sleep(1)

        self.agents.virtual_clock.run(forget)
"""


def test_a_test_case_has_fakes(pytester: pytest.Pytester) -> None:
    """Under pytest and under unittest alone."""
    pytester.makepyfile(test_case=CASE)
    pytester.runpytest().assert_outcomes(passed=2)
    command = [sys.executable, "-m", "unittest", "-q", "test_case"]
    completed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (completed.returncode, completed.stdout) == (0, ""), completed.stderr


def test_a_leak_fails_the_test_case_at_its_line(pytester: pytest.Pytester) -> None:
    """The twin: a fake that still runs is an exception as the block ends."""
    pytester.makepyfile(test_case=CASE + LEAK)
    result = pytester.runpytest()
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        ["E * AssertionError: test_case.py:28: claude was left (still alive): - silence: for ever"]
    )
