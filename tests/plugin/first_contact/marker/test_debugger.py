"""No guard of real time fires during debugging.

The guards are lowered to a fraction of a second; the twin shows that the same guard fires without a debugger.
"""

from __future__ import annotations

import sys

import pytest

PYTEST = (sys.executable, "-m", "pytest", "-p", "no:anyio")

LOWERED = """\
from pytest_agentproc.clock import VirtualClock

plain = VirtualClock.__init__
VirtualClock.__init__ = lambda self, **options: plain(self, **{**options, "guard": 0.2})
"""

BLOCKS = """\
import time, pytest

def compute():
    {first}
    time.sleep(0.5)

@pytest.mark.virtual_time
async def test_it():
    compute()
"""


def write_blocking_test(pytester: pytest.Pytester, first: str) -> None:
    """Write a test that blocks its loop for longer than the guard."""
    pytester.makeconftest(LOWERED)
    pytester.makepyfile(test_it=BLOCKS.format(first=first))


@pytest.mark.slow
def test_without_a_debugger_the_guard_fires(pytester: pytest.Pytester) -> None:
    """Otherwise the others here would prove nothing."""
    write_blocking_test(pytester, "pass")
    result = pytester.runpytest_subprocess("-p", "no:anyio")
    result.assert_outcomes(failed=1)
    red = "the supervising program computes, or waits in a call that blocks its loop, for 0.2 s now, at "
    result.stdout.re_match_lines([rf"E +pytest_agentproc.errors.Spin: {red}.*test_it.py:\d \(compute\)"])


@pytest.mark.slow
@pytest.mark.parametrize("call", ["breakpoint()", "import pdb; pdb.set_trace()"])
def test_breakpoint_switches_the_guards_off(pytester: pytest.Pytester, call: str) -> None:
    """The user reads code at the prompt for minutes, and continues."""
    write_blocking_test(pytester, call)
    result = pytester.run(*PYTEST, timeout=30, stdin=b"p 6 * 7\ncontinue\n")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*(Pdb) 42"])


@pytest.mark.slow
def test_trace_switches_the_guards_off(pytester: pytest.Pytester) -> None:
    """`--trace` stops at the first line of the test."""
    write_blocking_test(pytester, "pass")
    result = pytester.run(*PYTEST, "--trace", timeout=30, stdin=b"continue\n")
    result.assert_outcomes(passed=1)


@pytest.mark.slow
def test_a_debugger_in_a_worker_thread_is_no_stall(pytester: pytest.Pytester) -> None:
    """Time is held while the thread is at the prompt, and no limit ends that."""
    pytester.makeconftest(LOWERED)
    pytester.makepyfile(
        test_it="""
        import asyncio, pytest
        from time import sleep

        def work(debugs):
            if debugs:
                breakpoint()
            sleep(0.5)

        @pytest.mark.virtual_time
        async def test_debugged():
            await asyncio.to_thread(work, True)
        """,
        test_twin="""
        import asyncio, pytest
        from test_it import work

        @pytest.mark.virtual_time
        async def test_twin():
            await asyncio.to_thread(work, False)
        """,
    )
    result = pytester.run(*PYTEST, "test_twin.py", timeout=30, stdin=b"")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [
            r"E +.*Stall: 1 thread\(s\) of the supervising program did not return within 0.2 s, .*",
            r"E +await the agent in async code, or test code that waits for it in a thread without virtual time",
        ]
    )
    result = pytester.run(*PYTEST, "test_it.py", timeout=30, stdin=b"continue\n")
    result.assert_outcomes(passed=1)


@pytest.mark.slow
def test_an_attached_debugger_is_known_by_its_trace_function(pytester: pytest.Pytester) -> None:
    """A debugger of an editor traces every function."""
    pytester.makepyfile(pydevd_tracing="def trace(frame, event, arg):\n    return trace\n")
    write_blocking_test(pytester, "import sys, pydevd_tracing; sys.settrace(pydevd_tracing.trace)")
    pytester.runpytest_subprocess("-p", "no:anyio").assert_outcomes(passed=1)


@pytest.mark.slow
def test_the_guards_count_under_coverage(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """It traces every function too, and is no debugger."""
    monkeypatch.setenv("COVERAGE_CORE", "ctrace")
    write_blocking_test(pytester, "pass")
    result = pytester.run(sys.executable, "-m", "coverage", "run", "-m", *PYTEST[2:], timeout=60)
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([r"E +pytest_agentproc.errors.Spin: .*"])
