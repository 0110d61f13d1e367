"""Threads of the program under test hold virtual time while they run."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import pytest
import trio

from pytest_agentproc.errors import Stall

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.process.stand import Stand


def run_with_to_thread(work: Callable[[], Any]) -> Any:
    """`asyncio.to_thread`."""
    return asyncio.to_thread(work)


def run_in_default_executor(work: Callable[[], Any]) -> Any:
    """`loop.run_in_executor`, its default executor."""
    return asyncio.get_running_loop().run_in_executor(None, work)


WAYS: list[tuple[str, Callable[[Callable[[], Any]], Any]]] = [
    ("asyncio", run_with_to_thread),
    ("asyncio", run_in_default_executor),
    ("asyncio", anyio.to_thread.run_sync),
    ("trio", anyio.to_thread.run_sync),
    ("trio", trio.to_thread.run_sync),
]
IDS = ["asyncio.to_thread", "run_in_executor", "anyio on asyncio", "anyio on trio", "trio.to_thread"]
ways = pytest.mark.parametrize(("backend", "start"), WAYS, ids=IDS)


def compute_for_a_while() -> str:
    """Take some real time, without sleeping, that a clock in a hurry would jump over."""
    for _ in range(200_000):
        pass
    return threading.current_thread().name


@ways
def test_time_is_held_while_a_thread_runs(
    stand: Stand, backend: str, start: Callable[[Callable[[], Any]], Any]
) -> None:
    """A timeout over a thread never fires by virtual time: its real work takes none."""
    argv = stand.fake("- silence: 1h")

    async def host() -> tuple[bool, float]:
        async with await anyio.open_process(argv) as process:
            with anyio.fail_after(0.001):
                name = await start(compute_for_a_while)
            at = stand.seconds
            await process.wait()
        return name != threading.current_thread().name, at

    assert stand.run(host, backend=backend) == (True, 0.0)
    assert stand.seconds == 3600.0


@ways
def test_a_thread_that_raises_lets_time_go_on(
    stand: Stand, backend: str, start: Callable[[Callable[[], Any]], Any]
) -> None:
    """Time is given back however a thread ends."""

    def fail() -> None:
        raise LookupError("in the thread")

    async def host() -> float:
        with pytest.raises(LookupError, match="in the thread"):
            await start(fail)
        await anyio.sleep(5)
        return stand.seconds

    assert stand.run(host, backend=backend) == 5.0


@ways
def test_several_threads_hold_time_together(
    stand: Stand, backend: str, start: Callable[[Callable[[], Any]], Any]
) -> None:
    """Time moves when the last of them has returned: here each waits for all the others."""
    barrier = threading.Barrier(3, timeout=10)

    async def meet() -> None:
        await start(barrier.wait)

    async def host() -> float:
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(meet)
        at = stand.seconds
        await anyio.sleep(1)
        return at

    assert stand.run(host, backend=backend) == 0.0
    assert stand.seconds == 1.0


def test_an_executor_of_ones_own_holds_time_too(stand: Stand) -> None:
    """It is the loop's door that counts, not whose threads they are."""

    async def host() -> float:
        with ThreadPoolExecutor(1) as pool:
            await asyncio.get_running_loop().run_in_executor(pool, compute_for_a_while)
        return stand.seconds

    assert stand.run(host) == 0.0


@pytest.mark.slow
@ways
def test_a_thread_that_never_returns_is_a_stall(
    make_stand: Callable[..., Stand], backend: str, start: Callable[[Callable[[], Any]], Any]
) -> None:
    """The guard is real time: it reports the thread, and the agent that waits meanwhile is ended."""
    stand = make_stand(guard=0.2)
    argv = stand.fake("- silence: for ever")
    release = threading.Event()

    def never() -> None:
        release.wait(20)

    async def host() -> None:
        async with await anyio.open_process(argv):
            threading.Timer(2.0, release.set).start()  # the interpreter joins its threads: let this one go in the end
            await start(never)

    with pytest.raises(Stall, match=r"1 thread\(s\) of the supervising program did not return within 0\.2 s"):
        stand.run(host, backend=backend)
    release.set()


def test_a_thread_that_is_refused_holds_no_time(make_stand: Callable[..., Stand]) -> None:
    """A pool that is shut down refuses work; a supervisor may catch that, and goes on."""
    stand = make_stand(guard=0.5)

    async def host() -> None:
        pool = ThreadPoolExecutor()
        pool.shutdown()
        with pytest.raises(RuntimeError, match="cannot schedule new futures after shutdown"):
            await asyncio.get_running_loop().run_in_executor(pool, compute_for_a_while)
        await anyio.sleep(3600)

    stand.run(host)
    assert stand.seconds == 3600.0
