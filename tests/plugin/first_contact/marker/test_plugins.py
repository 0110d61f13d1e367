"""`@pytest.mark.virtual_time` on async tests, beside each plugin that runs them and without any.

Each test comes with a twin whose supervisor has a fault: it waits for a minute too long.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import anyio
import pytest

from pytest_agentproc.errors import UsageError
from tests.plugin.first_contact.errors import list_error_lines
from tests.plugin.test_neighbours import load_plugins

if TYPE_CHECKING:
    from pytest_agentproc.clock import VirtualClock

ASYNCIO = """\
import asyncio, time
from asyncio.subprocess import PIPE


async def supervise(argv, limit):
    agent = await asyncio.create_subprocess_exec(*argv, stdout=PIPE)
    begun = time.monotonic()
    try:
        await asyncio.wait_for(agent.communicate(), limit)
    except TimeoutError:
        agent.kill()
        await agent.wait()
    return time.monotonic() - begun
"""

TRIO = """\
import trio, time


async def supervise(argv, limit):
    begun = time.monotonic()
    with trio.move_on_after(limit):
        await trio.run_process(argv)
    return time.monotonic() - begun
"""

ANYIO = TRIO.replace("trio", "anyio")

BODY = """
@pytest.mark.virtual_time
async def test_right(fake_agent, begun):
    assert await supervise(fake_agent("- silence: 1h").argv, 600) == 600.0
    assert begun == 60.0


@pytest.mark.virtual_time
async def test_faulty(fake_agent, begun):
    assert await supervise(fake_agent("- silence: 1h").argv, 660) == 600.0


def test_real_time_is_back():
    assert time.monotonic() > 1 and time.time() > 1_780_000_000
"""

FIXTURE = """
{fixture}
async def begun():
    await {library}.sleep(60)
    yield time.monotonic()
    await {library}.sleep(60)
"""

RED = re.compile(r"assert 660\.0 == 600\.0$", re.MULTILINE)


def require_one_failure(result: pytest.RunResult, times: int = 1) -> None:
    """Require that only the faulty supervisor failed, on its own time."""
    result.assert_outcomes(passed=times + 1, failed=times)
    assert len(RED.findall(result.stdout.str())) == times


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["strict", "auto"])
def test_pytest_asyncio_runs_the_test_in_virtual_time(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """Its runner makes the loop, for the async fixture too."""
    load_plugins(monkeypatch, "asyncio")
    options = ("-o", "asyncio_default_fixture_loop_scope=function", f"--asyncio-mode={mode}")
    mark = "pytestmark = pytest.mark.asyncio\n" if mode == "strict" else ""
    mark = mark.replace("pytestmark = ", "asynchronous = ")
    body = BODY.replace("@pytest.mark.virtual_time", "@pytest.mark.virtual_time\n@asynchronous") if mark else BODY
    fixture = FIXTURE.format(fixture="@pytest_asyncio.fixture", library="asyncio")
    pytester.makepyfile(f"import pytest, pytest_asyncio\n{ASYNCIO}\n{mark}{fixture}{body}")
    require_one_failure(pytester.runpytest(*options))


@pytest.mark.slow
def test_a_loop_that_is_for_other_tests_too_is_refused(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next test would be in virtual time as well; its twin has a loop of its own."""
    load_plugins(monkeypatch, "asyncio")
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.virtual_time
        @pytest.mark.asyncio
        async def test_wide():
            pass

        @pytest.mark.asyncio(loop_scope="function")
        @pytest.mark.virtual_time
        async def test_own():
            pass

        @pytest.mark.asyncio
        async def test_next():
            pass
        """
    )
    scopes = [f"asyncio_default_{name}_loop_scope=session" for name in ("test", "fixture")]
    result = pytester.runpytest("-o", scopes[0], "-o", scopes[1])
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(
        [
            "E *UsageError: the event loop of test_wide is for a whole session, and virtual time is for one test",
            'E *write @pytest.mark.asyncio(loop_scope="function") above the test',
        ]
    )


@pytest.mark.slow
def test_anyio_runs_the_test_in_virtual_time_on_both_loops(pytester: pytest.Pytester) -> None:
    """Its plugin keeps a loop from the async fixture to the end of it."""
    body = BODY.replace("@pytest.mark.virtual_time", "@pytest.mark.virtual_time\n@pytest.mark.anyio")
    fixture = FIXTURE.format(fixture="@pytest.fixture", library="anyio")
    pytester.makepyfile(f"import pytest\n{ANYIO}\n{fixture}{body}")
    require_one_failure(pytester.runpytest(), times=2)


@pytest.mark.slow
def test_pytest_trio_runs_the_test_in_virtual_time(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs async fixtures and the test in one run of trio."""
    load_plugins(monkeypatch, "trio")
    body = BODY.replace("@pytest.mark.virtual_time", "@pytest.mark.virtual_time\n@pytest.mark.trio")
    fixture = FIXTURE.format(fixture="@pytest.fixture", library="trio")
    pytester.makepyfile(f"import pytest\n{TRIO}\n{fixture}{body}")
    require_one_failure(pytester.runpytest("-p", "no:anyio"))


@pytest.mark.slow
@pytest.mark.parametrize(("library", "code"), [("asyncio", ASYNCIO), ("trio", TRIO)])
def test_the_marker_alone_runs_an_async_test(pytester: pytest.Pytester, library: str, code: str) -> None:
    """No plugin is needed for async tests; `backend` chooses the event loop."""
    marker = "virtual_time" if library == "asyncio" else 'virtual_time(backend="trio")'
    body = BODY.replace("virtual_time", marker)
    fixture = "\n@pytest.fixture\ndef begun():\n    return 60.0\n"
    pytester.makepyfile(f"import pytest\n{code}\n{fixture}{body}")
    require_one_failure(pytester.runpytest("-p", "no:anyio"))


@pytest.mark.slow
def test_unittest_runs_the_test_in_virtual_time(pytester: pytest.Pytester) -> None:
    """`asyncSetUp` and the test share a loop, which `asyncio.Runner` makes."""
    pytester.makepyfile(
        f"""
import pytest, unittest
{ASYNCIO}

class TestCase(unittest.IsolatedAsyncioTestCase):
    @pytest.fixture(autouse=True)
    def fakes(self, fake_agent):
        self.fake_agent = fake_agent

    async def asyncSetUp(self):
        await asyncio.sleep(60)
        self.begun = time.monotonic()

    @pytest.mark.virtual_time
    async def test_right(self):
        assert await supervise(self.fake_agent("- silence: 1h").argv, 600) == 600.0
        assert self.begun == 60.0

    @pytest.mark.virtual_time
    async def test_faulty(self):
        assert await supervise(self.fake_agent("- silence: 1h").argv, 660) == 600.0


def test_real_time_is_back():
    assert time.monotonic() > 1 and time.time() > 1_780_000_000
"""
    )
    result = pytester.runpytest()
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["E*assert 660.0 == 600.0"])


@pytest.mark.parametrize("fixture", ["agent_run", "agent_session"])
def test_a_fixture_with_a_clock_of_its_own_is_refused_in_a_marked_test(pytester: pytest.Pytester, fixture: str) -> None:
    """The message has the code to write, which works; so does an async test without the marker."""
    pytester.makepyfile(
        test_marked=f"""
        import pytest

        @pytest.mark.virtual_time
        async def test_marked({fixture}):
            {fixture}("- answer: hi")

        @pytest.mark.anyio
        @pytest.mark.parametrize("anyio_backend", ["asyncio"])
        async def test_plain({fixture}):
            {fixture}("- answer: hi")

        def test_in_run({fixture}, virtual_clock):
            async def ask():
                {fixture}("- answer: hi")

            virtual_clock.run(ask)
        """
    )
    result = pytester.runpytest()
    result.assert_outcomes(passed=1, failed=2)
    said, begun = list_error_lines(result), "begins a virtual time of its own, and virtual time runs here already"
    assert said[:4] == [
        f"pytest_agentproc.errors.UsageError: {fixture} {begun}",
        "call it in a plain function, outside virtual_clock.run and without @pytest.mark.virtual_time:",
        f"def test_marked({fixture}):",
        f"    {fixture}(...)",
    ]
    assert said[6] == f"def test_in_run({fixture}):"
    pytester.makepyfile(test_remedy="\n".join(said[2:4]).replace("...", "'- answer: hi'"))
    pytester.runpytest("test_remedy.py").assert_outcomes(passed=1)


def test_a_run_in_a_run_is_refused(virtual_clock: VirtualClock) -> None:
    """The remedy is the plain `await`."""

    async def inner() -> float:
        await anyio.sleep(3600)
        return anyio.current_time()

    async def outer() -> float:
        with pytest.raises(UsageError) as refused:
            virtual_clock.run(inner)
        assert str(refused.value).splitlines() == [
            "virtual time runs already in this event loop, and run() begins its own",
            "await the code here: result = await function(...)",
        ]
        return await inner()

    assert virtual_clock.run(outer) == 3600


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_test_that_can_never_end_says_why(pytester: pytest.Pytester, backend: str) -> None:
    """If no part can move any more, the message says it at once, and so does the twin that a plugin runs."""
    pytester.makepyfile(
        f"""
        import anyio, pytest

        @pytest.mark.virtual_time(backend="{backend}")
        async def test_alone():
            await anyio.Event().wait()

        @pytest.mark.anyio
        @pytest.mark.parametrize("anyio_backend", ["{backend}"])
        @pytest.mark.virtual_time
        async def test_run_by_anyio():
            await anyio.Event().wait()
        """
    )
    result = pytester.runpytest()
    result.assert_outcomes(failed=2)
    red = "pytest_agentproc.errors.Deadlock: nobody can move: the supervising program waits, and no timer of it runs; "
    assert result.stdout.str().count(f"{red}no agent lives\n") == 2


POSITIONAL = (
    '@pytest.mark.virtual_time("2026")\nasync def test_it():\n    pass',
    "@pytest.mark.virtual_time('2026') takes start=, backend= and allow= only",
    'write @pytest.mark.virtual_time(start="2026-11-22T12:00:00Z")',
)
NO_DATE = (
    '@pytest.mark.virtual_time(start="soon")\nasync def test_it():\n    pass',
    "start is 'soon', but must be a date in ISO 8601",
    'write start="2026-01-01T00:00:00Z"',
)
OTHER_LOOP_CODE = """\
@pytest.mark.anyio
@pytest.mark.parametrize('anyio_backend', ['asyncio'])
@pytest.mark.virtual_time(backend='trio')
async def test_it():
    pass
"""
OTHER_LOOP = (
    OTHER_LOOP_CODE,
    "backend='trio' is for async tests that no plugin runs, and test_it?asyncio? is none",
    "take backend= away, and choose the event loop as the plugin says",
)
WIDE_CODE = """\
@pytest.fixture(scope='module')
async def wide(anyio_backend):
    yield 1

@pytest.mark.anyio
@pytest.mark.parametrize('anyio_backend', ['asyncio'], scope='module')
@pytest.mark.virtual_time
async def test_it(wide):
    pass
"""
WIDE = (
    WIDE_CODE,
    "the event loop of this test is in real time: it began before the test, or was chosen by name",
    "give the loop, and every async fixture, the scope of one test, and name no loop factory",
)


@pytest.mark.parametrize(("code", "first", "second"), [POSITIONAL, NO_DATE, OTHER_LOOP, WIDE])
def test_what_cannot_be_in_virtual_time_says_so(pytester: pytest.Pytester, code: str, first: str, second: str) -> None:
    """A test in real time that looks as if it were in virtual time would be wrong in silence."""
    pytester.makepyfile(f"import pytest\n\n{code}\n")
    result = pytester.runpytest()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"E *UsageError: {first.replace('[', '?')}", f"E *{second}"])
