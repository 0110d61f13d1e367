"""The fixtures in tests whose own event loop runs already: possible calls work, impossible calls say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest

from pytest_agentproc.errors import UsageError

if TYPE_CHECKING:
    from pytest_agentproc.plugin import AgentTimeline, Fakes, Runner, Sessions, VirtualClock

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Run each test here on both loops."""
    return str(request.param)


@pytest.mark.slow
async def test_runs_and_conversations_are_in_virtual_time_as_ever(
    agent_run: Runner, agent_session: Sessions, agent_timeline: AgentTimeline
) -> None:
    """They have a loop of their own, in another thread."""
    assert agent_run("- silence: 1h", inactivity_timeout=None).elapsed == 3600.0
    talk = agent_session("- wait_for: prompt 1\n- silence: 1h\n- answer: hi")
    assert talk.prompt("hello").elapsed == 3600.0
    assert agent_timeline[1].at("completed") == 3600.0


@pytest.mark.slow
async def test_a_fake_is_in_real_time(fake_agent: Fakes) -> None:
    """The test's own loop keeps real time, and a fake beside it must keep the same."""
    agent = fake_agent("- silence: 1h\n- say: hello", scale=3600_000)
    assert (await anyio.run_process([agent.name], env=agent.env)).stdout == b"hello\n"
    plain = fake_agent("- say: hello")
    assert (await anyio.run_process(plain.argv)).stdout == b"hello\n"


async def test_a_virtual_clock_cannot_begin_there(virtual_clock: VirtualClock) -> None:
    """Waiting for it would block the loop that it is to run beside."""
    with pytest.raises(UsageError, match="virtual time cannot begin inside an event loop that runs already\nmake the"):
        virtual_clock.run(anyio.sleep, 1)


async def test_two_clocks_cannot_run_at_once(agent_run: Runner, agent_session: Sessions) -> None:
    """A patch of one would look like a patch of the other."""
    with agent_session("- wait_for: prompt 1\n- answer: hi") as talk:
        with pytest.raises(UsageError, match="virtual time runs already, and there is one clock at a time\n"):
            agent_run("- say: hello")
        assert talk.prompt("hello").text == "hi"


async def test_a_scale_is_a_number_above_zero(fake_agent: Fakes) -> None:
    """Nothing could be divided by another one."""
    with pytest.raises(UsageError, match="scale is 0, but must be more than 0"):
        fake_agent("- say: hello", scale=0)
