"""Fakes that several tests share: a fixture of the user's own scope around `FakeAgents`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

TEST = """
import anyio, os, pytest, subprocess

from pytest_agentproc.plugin import FakeAgents

PATH = os.environ["PATH"]


@pytest.fixture(scope="{scope}")
def agents():
    with FakeAgents() as agents:
        yield agents.on_path(claude='''
        - answer: hi
        {more}
        ''')


def ask(agents):
    return agents.virtual_clock.run(anyio.run_process, ["claude", "-p", "hello"])


def test_first(agents):
    assert b"hi" in ask(agents).stdout


def test_second(agents):
    assert b"hi" in ask(agents).stdout
    assert len(agents["claude"].starts) == 2
"""
LEAK = """

def test_a_leak(agents):
    async def forget():
        global process
        process = subprocess.Popen(["claude", "-p", "hello"], stdout=subprocess.DEVNULL)
        await anyio.sleep(1)

    agents.virtual_clock.run(forget)
"""


def test_a_module_and_a_session_share_fakes(pytester: pytest.Pytester) -> None:
    """The starts of both tests are there, and PATH is as before at the end."""
    pytester.makepyfile(
        test_module=TEST.format(scope="module", more=""),
        test_session=TEST.format(scope="session", more=""),
    )
    pytester.runpytest().assert_outcomes(passed=4)


def test_a_leak_fails_the_last_test_that_had_the_fakes(pytester: pytest.Pytester) -> None:
    """The twin: only the end of the module shows that nothing will end it."""
    pytester.makepyfile(test_module=TEST.format(scope="module", more="- wait_for: signal").split("def test_")[0] + LEAK)
    result = pytester.runpytest()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        ["E * AssertionError: test_module.py:13: claude was left (still alive): - wait_for: signal"]
    )
