"""A loop that other code kept from running finds late events and due timers at once (A4)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anyio
import pytest
import trio

from pytest_agentproc.errors import Stall
from pytest_agentproc.events import OutputWritten
from pytest_agentproc.scenario import NotApplicable
from pytest_agentproc.subjects import Function, reference_supervisor
from pytest_agentproc.verdict import choose_overall_verdict, judge_all_expectations
from tests.bundled import load_bundled
from tests.process.stand import make_spinning

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.vocabulary import RunRequest
    from tests.process.stand import Stand

pytestmark = pytest.mark.slow

SCENARIOS = [
    load_bundled(name)
    for name in (
        "exits-while-the-loop-is-blocked",
        "talks-while-the-loop-is-blocked",
        "answers-while-the-loop-is-blocked[claude]",
    )
]
SECOND_LOOK = 0.01
LIMITS = {"inactivity_timeout": 120, "kill_grace": 0, "linger_kill_grace": 0}


async def read_with_timeout(agent: Any, limit: float) -> bytes | None:
    """Read under asyncio's own `timeout`: bytes from a pipe take two iterations more than the timer."""
    with suppress(TimeoutError):
        async with asyncio.timeout(limit):
            return bytes(await agent.stdout.read(65536))
    return None


async def read_with_timeout_and_look_again(agent: Any, limit: float) -> bytes | None:
    """Read as `read_with_timeout` does, and look once more before the agent is given up."""
    first = await read_with_timeout(agent, limit)
    return await read_with_timeout(agent, SECOND_LOOK) if first is None else first


async def read_in_anyio_scope(agent: Any, limit: float) -> bytes | None:
    """Read in a scope of anyio's, and look once more, too."""
    for seconds in (limit, SECOND_LOOK):
        with anyio.move_on_after(seconds):
            try:
                return bytes(await agent.stdout.receive())
            except anyio.EndOfStream:
                return b""
    return None


async def read_in_trio_scope(agent: Any, limit: float) -> bytes | None:
    """Read in a scope of trio's, and ask what was read."""
    with trio.move_on_after(limit):
        return bytes(await agent.stdout.receive_some(65536))
    return None


async def read_in_trio_scope_by_deadline(agent: Any, limit: float) -> bytes | None:
    """Read in a scope of trio's, and ask whether the time is over."""
    with trio.move_on_after(limit) as scope:
        data = await agent.stdout.receive_some(65536)
    return None if scope.cancel_called else bytes(data)


async def start_agent(order: RunRequest, read: Any) -> Any:
    """Start the agent as the library does whose streams are read."""
    if read is read_in_anyio_scope:
        return await anyio.open_process(order.argv, env=order.env, stdin=DEVNULL, stderr=None, start_new_session=True)
    if read in (read_in_trio_scope, read_in_trio_scope_by_deadline):
        argv = [*order.argv]
        return await trio.lowlevel.open_process(argv, env=order.env, stdin=DEVNULL, stdout=PIPE, start_new_session=True)
    return await asyncio.create_subprocess_exec(
        *order.argv, env=order.env, stdin=DEVNULL, stdout=PIPE, start_new_session=True
    )


def build_supervisor(read: Callable[[Any, float], Awaitable[bytes | None]]) -> Function:
    """Give a supervisor by how it reads: an agent that is silent for too long is killed."""

    async def supervise(order: RunRequest) -> dict[str, Any]:
        agent, said, outcome = await start_agent(order, read), b"", ""
        while not outcome:
            data = await read(agent, 120)
            said += data or b""
            outcome = {None: "inactive", b"": "completed"}.get(data, "")
        if outcome == "inactive":
            with suppress(ProcessLookupError):
                os.killpg(agent.pid, signal.SIGKILL)
        code = await agent.wait()
        text = said.decode().strip()
        if order.dialect == "claude" and outcome == "completed":
            text = json.loads(text.splitlines()[-1])["result"]
        return {"outcome": outcome, "text": text, "agent_status": code}

    return Function(supervise, name=read.__name__, limits=LIMITS, dialects=["raw", "claude"])


def play_all(runner: ScenarioRunner, read: Any, backend: str) -> set[str]:
    """Play all scenarios of a run, and give their results."""
    return {
        choose_overall_verdict(
            judge_all_expectations(runner.play(scenario, build_supervisor(read), backend=backend))
        ).value
        for scenario in SCENARIOS
    }


@pytest.mark.parametrize(
    ("read", "backend", "verdict"),
    [
        (read_with_timeout_and_look_again, "asyncio", "passed"),
        (read_in_anyio_scope, "asyncio", "passed"),
        (read_in_anyio_scope, "trio", "passed"),
        (read_in_trio_scope, "trio", "passed"),
        (read_with_timeout, "asyncio", "failed"),
        (read_in_trio_scope_by_deadline, "trio", "failed"),
    ],
)
def test_a_supervisor_that_looks_before_it_gives_up_is_green(
    runner: ScenarioRunner, read: Any, backend: str, verdict: str
) -> None:
    """Each library has a careful way, and a careless way that throws an answer away."""
    assert play_all(runner, read, backend) == {verdict}


def test_without_a_blocked_loop_the_careless_ones_are_green(runner: ScenarioRunner) -> None:
    """Virtual time settles what agents do before a timer fires: at the same instant the fault cannot show."""
    scenario = load_bundled("exits-at-the-deadline")
    for read, backend in ((read_with_timeout, "asyncio"), (read_in_trio_scope_by_deadline, "trio")):
        assert (
            choose_overall_verdict(
                judge_all_expectations(runner.play(scenario, build_supervisor(read), backend=backend))
            ).value
            == "passed"
        )


def test_the_kits_own_supervisor_is_not_blocked_in_real_time(runner: ScenarioRunner) -> None:
    """Whether two instants compete is no question of real time there."""
    with pytest.raises(NotApplicable, match="line 5 needs virtual time"):
        runner.play_real(SCENARIOS[0], reference_supervisor())


TALK = """
- silence: 1s
- say: one
- silence: 1s
- say: two
- silence: 5s
- exit: 3
"""


def test_agents_go_on_while_the_loop_is_blocked(stand: Stand, backend: str) -> None:
    """All that they did is there at the next look, and time is where the callback ended."""
    argv = stand.fake(TALK)

    async def supervise() -> tuple[float, bytes, float, int | None]:
        async with await anyio.open_process(argv, stderr=None) as process:
            assert process.stdout is not None
            stand.clock.block(1.5)
            first, data = stand.seconds, await process.stdout.receive()
            stand.clock.block(8)
            return first, data, stand.seconds, await process.wait()

    assert stand.run(supervise, backend=backend) == (1.5, b"one\n", 9.5, 3)
    events = stand.fakes[0].record.events
    assert [event.at for event in events if isinstance(event, OutputWritten)] == [10**9, 2 * 10**9]


def test_timers_that_are_due_fire_at_the_next_iteration(stand: Stand, backend: str) -> None:
    """None of them fires while the loop is blocked; a timer that is due later fires at its own time."""
    fired: list[tuple[float, float]] = []

    async def sleeper(seconds: float) -> None:
        await anyio.sleep(seconds)
        fired.append((seconds, stand.seconds))

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for seconds in (3, 1, 2, 6):
                group.start_soon(sleeper, seconds)
            await anyio.sleep(0.5)
            stand.clock.block(4)

    stand.run(main, backend=backend)
    assert sorted(fired) == [(1, 4.5), (2, 4.5), (3, 4.5), (6, 6.0)]


def test_an_agent_that_spins_while_the_loop_is_blocked_is_a_stall(
    make_stand: Callable[..., Stand], backend: str
) -> None:
    """The guard holds there, too."""
    stand = make_stand(guard=0.2)
    argv = make_spinning(stand.fake("- silence: 1s"))

    async def supervise() -> None:
        async with await anyio.open_process(argv, stderr=None) as process:
            stand.clock.block(2)
            await process.wait()

    with pytest.raises(Stall, match="it neither parked nor spoke"):
        stand.run(supervise, backend=backend)
