"""Another interpreter of the same process: exact in a plain function, and a clear message where it is not."""

from __future__ import annotations

import subprocess
import sys
import threading
from textwrap import dedent

import pytest

from tests.process.stand import CEILING

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.version_info < (3, 12), reason="all interpreters have one lock"),
]

HELPERS = """
    import asyncio, subprocess, threading, time, pytest
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters

    def run(code):
        is_new = hasattr(interpreters, "exec")
        other = interpreters.create("isolated") if is_new else interpreters.create(isolated=True)
        try:
            failed = (interpreters.exec if is_new else interpreters.run_string)(other, code)
            assert failed is None, failed
        finally:
            interpreters.destroy(other)

    def ask(agent):
        return f"import subprocess; assert subprocess.check_output({[*map(str, agent.argv)]!r}) == b'hi\\\\n'"
"""

EXACT = """
    import threading, time
    def compute():
        end = time.thread_time() + 0.1
        while time.thread_time() < end:
            pass
    threads = [threading.Thread(target=compute) for _ in range(2)] + [threading.Thread(target=time.sleep, args=(3600,))]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert time.monotonic() - begun == 3600
"""

NO_LINE = "no line of a thread is known, because this process has 1 other interpreter"


def run_tests(pytester: pytest.Pytester, body: str) -> pytest.RunResult:
    """Run tests in a process of their own, which a wrong look at another interpreter would abort."""
    pytester.makepyfile(dedent(HELPERS) + dedent(body))
    return pytester.runpytest_subprocess("-q", "-p", "no:asyncio")


def test_in_a_plain_function_its_time_is_virtual_and_exact(pytester: pytest.Pytester) -> None:
    """Its lock is no wait of the program, an agent that it starts is one like others."""
    result = run_tests(
        pytester,
        f"""
        pytestmark = pytest.mark.virtual_time

        def test_threads():
            begun = time.monotonic()
            run({dedent(EXACT)!r})
            assert time.monotonic() - begun == 3600

        def test_an_agent(fake_agent):
            agent = fake_agent("- silence: 1h\\n- answer: hi")
            begun = time.monotonic()
            thread = threading.Thread(target=run, args=(ask(agent),))
            thread.start()
            thread.join()
            assert time.monotonic() - begun == 3600
        """,
    )
    result.assert_outcomes(passed=2)


def test_a_deadlock_beside_one_is_reported(pytester: pytest.Pytester) -> None:
    """To look at the threads of another interpreter would abort the process, so the message says that nobody did."""
    result = run_tests(
        pytester,
        """
        @pytest.mark.virtual_time
        def test_it(fake_agent):
            agent = fake_agent("- silence: for ever")
            thread = threading.Thread(target=run, args=(ask(agent),), daemon=True)
            thread.start()
            try:
                thread.join()
            finally:
                agent.starts[0].process.kill()
        """,
    )
    result.stdout.fnmatch_lines(["E  *Deadlock: nobody can move*", f"E *{NO_LINE}"])


def test_in_an_async_test_a_wait_in_one_is_reported(pytester: pytest.Pytester) -> None:
    """Its clocks are real there: the message says so, and where they are virtual."""
    result = run_tests(
        pytester,
        """
        @pytest.mark.virtual_time
        async def test_it(fake_agent, virtual_clock):
            virtual_clock.hub.guard = 1
            agent = fake_agent("- silence: 1h\\n- answer: hi")
            await asyncio.to_thread(run, ask(agent))
        """,
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E  *Stall: 1 thread(s) of the supervising program did not return within 1 s*",
            f"E *{NO_LINE}",
            "E *their clocks are real here; in a plain function with @pytest.mark.virtual_time they are virtual",
        ]
    )


def test_a_deadlock_of_the_main_thread_within_one_is_said(pytester: pytest.Pytester) -> None:
    """Python hears of signals in its first interpreter alone, so nothing but another process can end this wait."""
    pytester.makepyfile(
        dedent(HELPERS)
        + dedent(
            """
            @pytest.mark.virtual_time
            def test_it(fake_agent):
                run(ask(fake_agent("- silence: for ever")))
            """
        )
    )
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:asyncio", "--agentproc-virtual-sync"]
    with subprocess.Popen(words, cwd=pytester.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        assert run.stdout is not None
        limit = threading.Timer(CEILING, run.kill)
        limit.start()
        lines = []
        for line in run.stdout:  # it ends with the process, which would wait for ever
            lines.append(line)
            if line.startswith("this is a deadlock, and the main thread does not hear of it"):
                break
        limit.cancel()
        run.kill()
    assert "time stands still" in lines[-2], lines
    assert lines[-1].endswith("end it by kill -KILL, or by pytest-timeout with --timeout-method=thread\n"), lines
