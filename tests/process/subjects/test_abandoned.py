"""A caller that leaves in the middle of a run: how supervisors of many styles handle it (T4)."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
import pytest
import trio

from pytest_agentproc.errors import UsageError
from pytest_agentproc.scenario import NotApplicable
from pytest_agentproc.subjects import Client, Command, Driven, Function
from pytest_agentproc.verdict import choose_overall_verdict, judge_all_expectations
from tests.bundled import load_bundled

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.scenario import Scenario
    from pytest_agentproc.vocabulary import RunRequest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # of faulty cleanups
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(autouse=True)
def no_litter() -> Iterator[None]:
    """Collect the garbage of the faulty cleanups while no test runs."""
    yield
    gc.collect()


NAMES = ("run-is-cancelled[raw]", "run-that-ignores-term-is-cancelled", "run-with-servers-is-cancelled")
SCOPED = (
    "scope-of-a-run-that-ignores-term-is-cancelled",
    "run-with-servers-in-a-scope-is-cancelled",
    "run-in-a-scope-is-cancelled-as-it-ends-its-agent",
)
SCENARIOS, SCENARIOS_OF_SCOPES = ([load_bundled(name) for name in names] for names in (NAMES, SCOPED))
LIMITS = {"kill_grace": 2}


def build_asyncio_supervisor(clean: Callable[[Process], Awaitable[Any]]) -> Callable[[RunRequest], Any]:
    """Give a supervisor in asyncio's own style, by its reaction to a cancellation."""

    async def supervise(order: RunRequest) -> str:
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


def signal_group(agent: Process, number: int) -> None:
    """Signal the agent's group."""
    with suppress(ProcessLookupError):
        os.killpg(agent.pid, number)


async def do_nothing(_agent: Process) -> None:
    """Let it be."""


async def send_term(agent: Process) -> None:
    """Send TERM."""
    signal_group(agent, signal.SIGTERM)


async def kill_child_alone(agent: Process) -> None:
    """Kill the child, and no more."""
    agent.kill()
    await agent.wait()


async def kill_agent(agent: Process) -> None:
    """Kill, and leave the reaping to the event loop."""
    signal_group(agent, signal.SIGKILL)


async def terminate_wait_and_kill(agent: Process) -> None:
    """Terminate, wait, kill, wait: more than one wait after the cancellation."""
    signal_group(agent, signal.SIGTERM)
    with suppress(TimeoutError):
        await asyncio.wait_for(agent.wait(), 2)
    signal_group(agent, signal.SIGKILL)
    await agent.wait()


async def clean_up_in_own_task(agent: Process) -> None:
    """Have a task of its own do that."""
    LEFT.add(task := asyncio.create_task(terminate_wait_and_kill(agent)))
    task.add_done_callback(LEFT.discard)


LEFT: set[asyncio.Task[None]] = set()


async def kill_and_swallow_cancel(agent: Process) -> str:
    """Kill, and answer as if nothing were."""
    await terminate_wait_and_kill(agent)
    return "stopped"


async def kill_and_raise(agent: Process) -> None:
    """Kill, and raise what callers of its own know."""
    await terminate_wait_and_kill(agent)
    raise RuntimeError("the run was cancelled")


@pytest.mark.parametrize(
    ("clean", "verdicts"),
    [
        *(
            (clean, "passed passed passed")
            for clean in (
                kill_agent,
                terminate_wait_and_kill,
                clean_up_in_own_task,
                kill_and_swallow_cancel,
                kill_and_raise,
            )
        ),
        (do_nothing, "failed failed failed"),
        (send_term, "passed failed passed"),
        (kill_child_alone, "passed passed failed"),
    ],
)
def test_a_task_that_is_cancelled_may_clean_up_in_many_ways(runner: ScenarioRunner, clean: Any, verdicts: str) -> None:
    """It is cancelled once, as by `Task.cancel`, so it may wait; a child that its loop ends soon after has ended."""
    subject = Function(build_asyncio_supervisor(clean), limits=LIMITS, dialects=["raw"])
    seen = [
        choose_overall_verdict(judge_all_expectations(runner.play(scenario, subject))).value for scenario in SCENARIOS
    ]
    assert " ".join(seen) == verdicts


async def supervise_in_scope(order: RunRequest) -> str:
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


def build_anyio_supervisor(*, shielded: bool) -> Callable[[RunRequest], Any]:
    """Give a supervisor in anyio's style, whose cleanup terminates, waits, and kills: in a shield, or in none."""

    async def supervise(order: RunRequest) -> str:
        agent = await anyio.open_process(order.argv, env=order.env, stdin=DEVNULL, start_new_session=True)
        try:
            with anyio.fail_after(order.policy.inactivity_timeout):
                await agent.wait()
        except TimeoutError:
            await end(agent)
            return "inactive"
        finally:
            await end(agent)
        return "completed"

    async def end(agent: Any) -> None:
        with anyio.CancelScope(shield=shielded):
            with suppress(ProcessLookupError):
                os.killpg(agent.pid, signal.SIGTERM)
            with anyio.move_on_after(2):
                await agent.wait()
            with suppress(ProcessLookupError):
                os.killpg(agent.pid, signal.SIGKILL)
            await agent.wait()

    return supervise


@pytest.mark.parametrize(("shielded", "verdict"), [(True, "passed"), (False, "failed")])
@pytest.mark.parametrize("scenario", SCENARIOS_OF_SCOPES, ids=lambda scenario: scenario.id)
def test_a_cleanup_that_waits_needs_a_shield(
    runner: ScenarioRunner, scenario: Scenario, backend: str, verdict: str, *, shielded: bool
) -> None:
    """A scope cancels at every await, on asyncio as on trio, so that a cleanup ends at its first one."""
    limits = {**LIMITS, "inactivity_timeout": 120}
    subject = Function(build_anyio_supervisor(shielded=shielded), limits=limits, dialects=["raw"], cancellable=True)
    assert (
        choose_overall_verdict(judge_all_expectations(runner.play(scenario, subject, backend=backend))).value == verdict
    )


def test_who_is_cancelled_as_a_task_alone_says_so(runner: ScenarioRunner) -> None:
    """A cleanup in asyncio's own style may wait, and is not judged by a scope."""
    subject = Function(
        build_asyncio_supervisor(terminate_wait_and_kill), limits=LIMITS, dialects=["raw"], cancellable="task"
    )
    assert choose_overall_verdict(judge_all_expectations(runner.play(SCENARIOS[1], subject))).value == "passed"
    with pytest.raises(NotApplicable, match="a supervisor that a cancel scope of anyio's may cancel"):
        runner.play(SCENARIOS_OF_SCOPES[0], subject)
    subject = Function(
        build_asyncio_supervisor(terminate_wait_and_kill), limits=LIMITS, dialects=["raw"], cancellable=True
    )
    assert (
        choose_overall_verdict(judge_all_expectations(runner.play(SCENARIOS_OF_SCOPES[0], subject))).value == "failed"
    )


def test_there_is_no_other_way_to_be_cancelled() -> None:
    """A word that means nothing is a mistake of the author's, at once."""
    with pytest.raises(UsageError, match="cancellable is 'scope'"):
        Function(build_asyncio_supervisor(terminate_wait_and_kill), cancellable="scope")  # type: ignore[arg-type]


class HeldClient(Client):
    """Hold the agent in a context of the client's own, and never answer."""

    async def start(self) -> None:
        """Start the agent."""
        await self.enter_context(hold_agent(self.order))

    async def prompt(self, text: str) -> str:
        """Wait for ever."""
        await anyio.Event().wait()
        return text


class LooseClient(HeldClient):
    """Hold the agent by nothing."""

    async def start(self) -> None:
        """Start the agent."""
        await anyio.open_process(self.order.argv, env=self.order.env, start_new_session=True)


@asynccontextmanager
async def hold_agent(order: RunRequest) -> AsyncIterator[None]:
    """Start the agent, and kill it when the block is left."""
    async with await anyio.open_process(order.argv, env=order.env, start_new_session=True) as agent:
        try:
            yield
        finally:
            with suppress(ProcessLookupError):
                os.killpg(agent.pid, signal.SIGKILL)


@pytest.mark.parametrize(("client", "verdict"), [(HeldClient, "passed"), (LooseClient, "failed")])
@pytest.mark.parametrize(
    "name", ["session-is-cancelled-in-a-turn[acp]", "scope-of-a-session-is-cancelled-in-a-turn[acp]"]
)
def test_a_session_that_is_cancelled_leaves_no_agent(
    runner: ScenarioRunner, name: str, client: type[Client], verdict: str, backend: str
) -> None:
    """An editor that is closed cancels its session, and closes nothing."""
    subject = Driven(client, dialects=["acp"], cancellable=True)
    played = runner.play(load_bundled(name), subject, backend=backend)
    assert choose_overall_verdict(judge_all_expectations(played)).value == verdict


async def supervise_without_scope(order: RunRequest) -> str:
    """Start it, and hold it by nothing."""
    agent = await trio.lowlevel.open_process([*order.argv], env=order.env, stdin=DEVNULL, stdout=PIPE)
    await agent.wait()
    return "completed"


@pytest.mark.parametrize(("function", "verdict"), [(supervise_in_scope, "passed"), (supervise_without_scope, "failed")])
def test_a_scope_that_is_cancelled_is_left(runner: ScenarioRunner, function: Any, verdict: str) -> None:
    """On trio a cancellation holds until the scope is left."""
    subject = Function(function, limits=LIMITS, dialects=["raw"])
    seen = [
        choose_overall_verdict(judge_all_expectations(runner.play(scenario, subject, backend="trio"))).value
        for scenario in SCENARIOS
    ]
    assert seen == [verdict] * len(SCENARIOS)


def test_in_real_time_it_is_the_same(runner: ScenarioRunner) -> None:
    """The scale is the fastest at which real time can still separate the two."""
    verdicts = {}
    for clean in (terminate_wait_and_kill, do_nothing):
        subject = Function(build_asyncio_supervisor(clean), dialects=["raw"])
        verdicts[clean.__name__] = choose_overall_verdict(
            judge_all_expectations(runner.play_real(SCENARIOS[0], subject, scale=10))
        ).value
    assert verdicts == {"terminate_wait_and_kill": "passed", "do_nothing": "failed"}


def do_nothing_in_thread(_order: RunRequest) -> None:
    """Do nothing."""


@pytest.mark.parametrize(
    "subject", [Command(["timeout", "60", "{agent}"]), Function(do_nothing_in_thread)], ids=lambda subject: subject.name
)
def test_who_cannot_be_cancelled_is_not_asked(runner: ScenarioRunner, subject: Any) -> None:
    """A thread continues whatever happens to its caller, and a program has no thread."""
    with pytest.raises(NotApplicable, match="a supervisor that is async, and can be cancelled"):
        runner.play_real(SCENARIOS[0], subject)
