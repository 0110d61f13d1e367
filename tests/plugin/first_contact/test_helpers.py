"""Programs that are no fakes beside the agent in virtual time, and the remedies that our messages name."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.plugin.first_contact.errors import list_error_lines

if TYPE_CHECKING:
    import pytest

SUPERVISOR = f"""
import anyio

SERVER = "import sys\\nfor line in sys.stdin: print(line.upper(), end='', flush=True)"


async def supervise(agent):
    "Have a server, as of MCP, answer what the agent says; give when that was."
    seen = []
    async with (
        await anyio.open_process(["{sys.executable}", "-S", "-c", SERVER]) as server,
        await anyio.open_process(agent) as process,
    ):
        async for line in process.stdout:
            await server.stdin.send(line)
            seen.append((await server.stdout.receive(), anyio.current_time()))
        await server.stdin.aclose()
    return seen
"""
TEST = """
import pytest
from supervisor import supervise


@pytest.mark.virtual_time(allow=["{name}"])
def test_the_server_answers_at_once(fake_agent, virtual_clock):
    agent = fake_agent("- silence: 1h\\n- say: one\\n- silence: 1h\\n- say: two")
    assert virtual_clock.run(supervise, agent.argv) == [(b"ONE\\n", 3600.0), (b"TWO\\n", 7200.0)]
"""
NAME = Path(sys.executable).name


def test_a_server_beside_the_agent_is_allowed_by_the_marker(pytester: pytest.Pytester) -> None:
    """A supervisor with an MCP server is tested as it is, in virtual time."""
    pytester.makepyfile(supervisor=SUPERVISOR, test_server=TEST.format(name=NAME))
    pytester.runpytest().assert_outcomes(passed=1)


def test_a_server_that_is_not_allowed_is_named_with_the_remedy(pytester: pytest.Pytester) -> None:
    """The twin: virtual time does not guess about programs."""
    pytester.makepyfile(supervisor=SUPERVISOR, test_server=TEST.format(name="other"))
    result = pytester.runpytest("--tb=line")
    result.assert_outcomes(failed=1)
    words = "is no fake agent, and virtual time cannot see what it does"
    result.stdout.re_match_lines([rf".*ForeignProgram: '{NAME}' \(pid \d+\) {words}"])


def test_each_remedy_of_a_refused_program_works(pytester: pytest.Pytester) -> None:
    """Both are called as the message has them."""
    pytester.makepyfile(
        test_refused="""
        import anyio, pytest, re, subprocess

        from pytest_agentproc.errors import ForeignProgram


        async def copy():
            return (await anyio.run_process(["cat"], stdin=subprocess.PIPE)).stdout


        async def use():
            async with await anyio.open_process(["cat"]) as cat:
                await cat.stdin.send(b"hi")
                return await cat.stdout.receive()


        def remedies(virtual_clock):
            with pytest.raises(ForeignProgram) as refused:
                virtual_clock.run(copy)
            return re.fullmatch(
                "declare it: @(.*) on the test, or (.*)", str(refused.value).splitlines()[1]).groups()


        def test_at_run_time(virtual_clock, request):
            from pytest_agentproc.clock import VirtualClock
            mark, call = remedies(virtual_clock)
            with VirtualClock() as fresh:
                eval(call, {"virtual_clock": fresh})
                assert fresh.run(use) == b"hi"
            assert mark == "pytest.mark.virtual_time(allow=['cat'])"
            assert eval(mark, {"pytest": pytest}).mark.kwargs == {"allow": ["cat"]}


        @pytest.mark.virtual_time(allow=["cat"])
        def test_by_the_marker(virtual_clock):
            assert virtual_clock.run(use) == b"hi"
        """
    )
    pytester.runpytest().assert_outcomes(passed=2)


def test_a_marker_without_a_list_is_refused(pytester: pytest.Pytester) -> None:
    """One name in place of a list would allow each of its letters."""
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.virtual_time(allow="cat")
        def test_cat(virtual_clock):
            pass
        """
    )
    result = pytester.runpytest("--tb=short")
    result.assert_outcomes(errors=1)
    assert list_error_lines(result) == [
        "E   pytest_agentproc.errors.UsageError: virtual_time(allow='cat') is no list of names",
        "E   write allow=['cat'], for example",
    ]
