"""A caller who goes away in the middle of a run: what supervisors of many a style make of it (T4)."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anyio
import pytest
import trio

from pytest_agentproc.scenario import NotApplicable, load
from pytest_agentproc.subjects import Command, Function
from pytest_agentproc.verdict import compare, conclude
from tests.architecture.sources import ROOT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from pytest_agentproc.harness import Lab
    from pytest_agentproc.vocabulary import Order

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # of what the wrong ones leave
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(autouse=True)
def no_litter() -> Iterator[None]:
    """Collect what the wrong ones leave while nobody minds it."""
    yield
    gc.collect()


NAMES = ("run-is-cancelled", "deaf-run-is-cancelled", "run-with-servers-is-cancelled")
SCENARIOS = [load(ROOT / "scenarios" / f"{name}.scenario.yaml") for name in NAMES]
LIMITS = {"kill_grace": 2}


def of_task(clean: Callable[[Process], Awaitable[Any]]) -> Callable[[Order], Any]:
    """Give a supervisor in asyncio's own style, by what it does when it is cancelled."""

    async def supervise(order: Order) -> str:
        agent = await asyncio.create_subprocess_exec(
            *order.argv, env=order.env, stdin=DEVNULL, stdout=PIPE, start_new_session=True
        )
        try:
            await agent.communicate()
        except asyncio.CancelledError:
            if (said := await clean(agent)) is not None:
                return str(said)
            raise
        return "completed"

    return supervise


def send(agent: Process, number: int) -> None:
    """Signal the agent's group."""
    with suppress(ProcessLookupError):
        os.killpg(agent.pid, number)


async def nothing(_agent: Process) -> None:
    """Let it be."""


async def asks(agent: Process) -> None:
    """Send TERM."""
    send(agent, signal.SIGTERM)


async def kills_it_alone(agent: Process) -> None:
    """Kill the child, and no more."""
    agent.kill()
    await agent.wait()


async def kills(agent: Process) -> None:
    """Kill, and leave the reaping to the event loop."""
    send(agent, signal.SIGKILL)


async def climbs(agent: Process) -> None:
    """Terminate, wait, kill, wait: more than one wait after the cancellation."""
    send(agent, signal.SIGTERM)
    with suppress(TimeoutError):
        await asyncio.wait_for(agent.wait(), 2)
    send(agent, signal.SIGKILL)
    await agent.wait()


async def delegates(agent: Process) -> None:
    """Have a task of its own do that."""
    LEFT.add(task := asyncio.create_task(climbs(agent)))
    task.add_done_callback(LEFT.discard)


LEFT: set[asyncio.Task[None]] = set()


async def swallows(agent: Process) -> str:
    """Kill, and answer as if nothing were."""
    await climbs(agent)
    return "stopped"


async def raises(agent: Process) -> None:
    """Kill, and raise what callers of its own know."""
    await climbs(agent)
    raise RuntimeError("the run was cancelled")


@pytest.mark.parametrize(
    ("clean", "verdicts"),
    [
        *((clean, "passed passed passed") for clean in (kills, climbs, delegates, swallows, raises)),
        (nothing, "failed failed failed"),
        (asks, "passed failed passed"),
        (kills_it_alone, "passed passed failed"),
    ],
)
def test_a_task_that_is_cancelled_may_clean_up_in_many_ways(lab: Lab, clean: Any, verdicts: str) -> None:
    """It is cancelled once, as by `Task.cancel`, so that it may wait; what its loop ends soon after is ended."""
    subject = Function(of_task(clean), limits=LIMITS, dialects=["raw"])
    seen = [conclude(compare(lab.play(scenario, subject))).value for scenario in SCENARIOS]
    assert " ".join(seen) == verdicts


async def in_a_scope(order: Order) -> str:
    """Hold the agent as trio and anyio do: the end of the block kills it, shielded."""
    async with await anyio.open_process(order.argv, env=order.env, stdin=DEVNULL, start_new_session=True) as agent:
        try:
            assert agent.stdout is not None
            async for _ in agent.stdout:
                pass
        finally:
            with suppress(ProcessLookupError):
                os.killpg(agent.pid, signal.SIGKILL)
    return "completed"


async def in_no_scope(order: Order) -> str:
    """Start it, and hold it by nothing."""
    agent = await trio.lowlevel.open_process([*order.argv], env=order.env, stdin=DEVNULL, stdout=PIPE)
    await agent.wait()
    return "completed"


@pytest.mark.parametrize(("function", "verdict"), [(in_a_scope, "passed"), (in_no_scope, "failed")])
def test_a_scope_that_is_cancelled_is_left(lab: Lab, function: Any, verdict: str) -> None:
    """On trio a cancellation holds until the scope is left."""
    subject = Function(function, limits=LIMITS, dialects=["raw"])
    seen = [conclude(compare(lab.play(scenario, subject, backend="trio"))).value for scenario in SCENARIOS]
    assert seen == [verdict] * len(SCENARIOS)


def test_in_real_time_it_is_the_same(lab: Lab) -> None:
    """As fast as it can be told apart."""
    verdicts = {}
    for clean in (climbs, nothing):
        subject = Function(of_task(clean), dialects=["raw"])
        verdicts[clean.__name__] = conclude(compare(lab.play_real(SCENARIOS[0], subject, scale=10))).value
    assert verdicts == {"climbs": "passed", "nothing": "failed"}


def in_a_thread(_order: Order) -> None:
    """Do nothing."""


@pytest.mark.parametrize(
    "subject", [Command(["timeout", "60", "{agent}"]), Function(in_a_thread)], ids=lambda one: one.name
)
def test_who_cannot_be_cancelled_is_not_asked(lab: Lab, subject: Any) -> None:
    """A thread goes on whatever becomes of its caller, and a program has none."""
    with pytest.raises(NotApplicable, match="a supervisor that is async, and can be cancelled"):
        lab.play_real(SCENARIOS[0], subject)
