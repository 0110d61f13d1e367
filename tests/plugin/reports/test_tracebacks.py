"""The traceback of a failed test: the test's own frames and the supervisor's, and all frames if that is asked for."""

from __future__ import annotations

import re

import pytest

FAILS = """
import anyio
import pytest
from supervising import supervise

def test_raises(virtual_clock):
    virtual_clock.run(supervise)

def test_chained(virtual_clock):
    async def wrap():
        try:
            await supervise()
        except KeyError as error:
            raise LookupError("no model") from error
    virtual_clock.run(wrap)

def test_grouped(virtual_clock):
    async def hold():
        async with anyio.create_task_group() as group:
            group.start_soon(supervise)
    virtual_clock.run(hold)

def test_waits_for_ever(virtual_clock):
    virtual_clock.run(anyio.sleep_forever)

def test_is_misspelled(fake_agent):
    fake_agent("- silnce: 3")
"""
SUPERVISING = """
import anyio

async def supervise():
    await anyio.sleep(3)
    with anyio.fail_after(1):
        raise KeyError("model")
"""


@pytest.fixture(autouse=True)
def _tests(pytester: pytest.Pytester) -> None:
    """Have tests that fail inside the kit's and anyio's frames."""
    pytester.makepyfile(supervising=SUPERVISING, test_fails=FAILS)


@pytest.mark.parametrize("style", ["auto", "long", "short", "native"])
def test_a_failure_has_no_frames_of_the_kit_or_the_event_loop(pytester: pytest.Pytester, style: str) -> None:
    """The fault is in the test or in the supervisor."""
    result = pytester.runpytest("-p", "no:asyncio", f"--tb={style}")
    result.assert_outcomes(failed=5)
    printed = result.stdout.str()
    assert not re.findall(r"\S*(?:pytest_agentproc|anyio|asyncio)/\w\S*", printed)
    assert len(re.findall(r"supervising\.py\D+6\b", printed)) == 3


def test_a_full_trace_has_them(pytester: pytest.Pytester) -> None:
    """An author of the kit sees its frames."""
    printed = pytester.runpytest("-p", "no:asyncio", "--full-trace", "-k", "raises").stdout.str()
    assert re.search(r"pytest_agentproc/clock/_virtual\.py:\d+: ", printed)
    assert re.search(r"site-packages/anyio/\S+:\d+: ", printed)


def test_a_mistake_of_the_kit_keeps_its_frames(pytester: pytest.Pytester) -> None:
    """The place in the kit is all that helps there."""
    pytester.makeconftest(
        """
        import pytest
        from pytest_agentproc.clock import VirtualClock

        @pytest.fixture(autouse=True)
        def broken(monkeypatch):
            monkeypatch.setattr(VirtualClock, "_run_on_backend", None)
        """
    )
    printed = pytester.runpytest("-p", "no:asyncio", "--tb=short", "-k", "raises").stdout.str()
    assert re.search(r"pytest_agentproc/clock/_virtual\.py:\d+: in run", printed)
    assert "TypeError: 'NoneType' object is not callable" in printed


LEAVES_GARBAGE = """
import ast
import gc

import pytest_agentproc.supervisor

class Transport:
    def __init__(self):
        self.itself = self

    def __del__(self):
        ast.parse("a = 1")

def test_it():
    gc.collect()
    gc.disable()
    for _ in range(50):
        Transport()
    gc.set_threshold(20_000)
    gc.enable()
    assert False, "the test's own failure"

def padding():
"""
"""The collector comes while pytest parses this file, which is long enough, and finalizes what the test left.

The kit guards against that in sessions that use it, so the file imports a part of it."""


@pytest.mark.slow
def test_a_finalizer_does_not_break_the_report_of_a_failure(pytester: pytest.Pytester) -> None:
    """On CPython before 3.11.8 and 3.12.2 the session ended with an internal error of pytest."""
    pytester.makepyfile(test_it=LEAVES_GARBAGE + "    a = [1, 2, 3]\n" * 4000)
    result = pytester.runpytest_subprocess("-p", "no:anyio", "test_it.py")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*AssertionError: the test's own failure"])
