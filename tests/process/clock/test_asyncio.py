"""asyncio code that is not ours, unmodified, in virtual time over real processes."""

from __future__ import annotations

import asyncio
import gc
import math
import signal
import subprocess
from asyncio.subprocess import DEVNULL, PIPE
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.clock import VirtualClock  # noqa: F401  # every sleep here is virtual
from pytest_agentproc.errors import Deadlock

if TYPE_CHECKING:
    from tests.process.stand import Stand

exec_ = asyncio.create_subprocess_exec


def test_wait_ends_with_the_agent(stand: Stand) -> None:
    """An exit code arrives at the very instant of the exit, an hour of silence later."""
    argv = stand.fake("- silence: 1h\n- exit: 3")

    async def host() -> tuple[int, float]:
        process = await exec_(*argv)
        return await process.wait(), asyncio.get_running_loop().time()

    assert stand.run(host) == (3, 3600.0)


def test_communicate_gets_all_and_the_end(stand: Stand) -> None:
    """Input goes in, both outputs come back, and no time has passed but the agent's own."""
    argv = stand.fake(
        '- wait_for: {stdin: "go*"}\n- silence: 5s\n- say: out\n- raw: {text: err, to: stderr}\n- exit: 4'
    )

    async def host() -> tuple[bytes, bytes, int | None, float]:
        process = await exec_(*argv, stdin=PIPE, stdout=PIPE, stderr=PIPE)
        out, err = await process.communicate(b"go on\n")
        return out, err, process.returncode, stand.seconds

    assert stand.run(host) == (b"out\n", b"err", 4, 5.0)


def test_an_answer_at_the_very_instant_of_a_timeout_is_in_time(stand: Stand) -> None:
    """Agents go before timers of the same instant, through every layer that a stream reader has."""
    argv = stand.fake("- silence: 60s\n- say: just in time")

    async def host() -> bytes:
        process = await exec_(*argv, stdout=PIPE)
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), 60)
        await process.wait()
        return line

    assert stand.run(host) == b"just in time\n"


def test_an_exit_at_the_very_instant_of_a_timeout_is_in_time(stand: Stand) -> None:
    """A `wait_for` around `wait` sees the exit, as exit beats the timer."""
    argv = stand.fake("- silence: 60s\n- exit: 7")

    async def host() -> int:
        process = await exec_(*argv)
        return await asyncio.wait_for(process.wait(), 60)

    assert stand.run(host) == 7


def test_an_answer_a_nanosecond_late_is_too_late(stand: Stand) -> None:
    """Time is exact on both sides of an instant; the agent is then killed, and nothing is left."""
    argv = stand.fake("- silence: 60s + 1ns\n- say: late\n- silence: for ever")

    async def host() -> tuple[float, int]:
        process = await exec_(*argv, stdout=PIPE)
        assert process.stdout is not None
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(process.stdout.readline(), 60)
        at = stand.seconds
        process.kill()
        return at, await process.wait()

    assert stand.run(host) == (60.0, -9)


def test_communicate_can_be_given_up_and_the_agent_killed(stand: Stand) -> None:
    """The usual recipe (wait_for communicate, kill, wait) works and costs no time after the limit."""
    argv = stand.fake("- say: begun\n- silence: for ever")

    async def host() -> tuple[int, float]:
        process = await exec_(*argv, stdout=PIPE)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(process.communicate(), 30)
        process.kill()
        return await process.wait(), stand.seconds

    assert stand.run(host) == (-9, 30.0)


def test_terminate_is_caught_and_answered_in_the_agents_own_time(stand: Stand) -> None:
    """A trapped TERM and its 1.5 s of cleaning up are seen exactly."""
    argv = stand.fake("- when: {signal: TERM}\n  do: [{silence: 1500ms}, {exit: 143}]\n- silence: for ever")

    async def host() -> tuple[int, float]:
        process = await exec_(*argv)
        await asyncio.sleep(10)
        process.terminate()
        return await process.wait(), stand.seconds

    assert stand.run(host) == (143, 11.5)


def test_a_signal_right_after_the_start_meets_an_agent_that_is_ready(stand: Stand) -> None:
    """A start is over when the agent can be signalled: no signal dies in a half-started interpreter."""
    argv = stand.fake("- wait_for: signal\n- exit: 5")

    async def host() -> tuple[int, float]:
        process = await exec_(*argv)
        await asyncio.sleep(0.000_000_001)
        process.send_signal(signal.SIGINT)
        return await process.wait(), stand.seconds

    assert stand.run(host) == (5, 1e-9)


def test_several_agents_keep_their_own_times(stand: Stand) -> None:
    """Answers come in the order of their instants, ties in the order of the starts."""
    scripts = [f"- silence: {seconds}s\n- say: agent {seconds}" for seconds in (30, 10, 20, 10)]
    seen: list[tuple[float, int, bytes]] = []

    async def talk(number: int, argv: list[str]) -> None:
        process = await exec_(*argv, stdout=PIPE)
        out, _ = await process.communicate()
        seen.append((stand.seconds, number, out))

    async def host() -> None:
        async with asyncio.TaskGroup() as group:
            for number, script in enumerate(scripts):
                group.create_task(talk(number, stand.fake(script)))

    stand.run(host)
    assert seen == [
        (10.0, 1, b"agent 10\n"),
        (10.0, 3, b"agent 10\n"),
        (20.0, 2, b"agent 20\n"),
        (30.0, 0, b"agent 30\n"),
    ]


def test_timers_fire_at_their_instants_in_order(stand: Stand) -> None:
    """call_later, call_at and sleep meet exactly, also between an agent's bytes."""
    argv = stand.fake("- drip: {stdout: '.', every: 1s, for: 3s}")
    seen: list[tuple[float, str]] = []

    async def host() -> None:
        loop = asyncio.get_running_loop()
        process = await exec_(*argv, stdout=PIPE)
        assert process.stdout is not None
        loop.call_later(2.5, lambda: seen.append((stand.seconds, "later")))
        loop.call_at(loop.time() + 1.5, lambda: seen.append((stand.seconds, "at")))
        while await process.stdout.read(1):
            seen.append((stand.seconds, "byte"))
        await process.wait()

    stand.run(host)
    assert seen == [(1.0, "byte"), (1.5, "at"), (2.0, "byte"), (2.5, "later"), (3.0, "byte")]


@pytest.mark.parametrize("when", [-math.inf, -1.0, math.nan])
def test_a_timer_that_has_always_been_due_fires_at_once(stand: Stand, when: float) -> None:
    """A call that is due now may be scheduled at any instant of the past, as under asyncio's own clock."""
    argv = stand.fake("- silence: 3s")

    async def host() -> float:
        process = await exec_(*argv)
        fired = asyncio.Event()
        await asyncio.sleep(1)
        asyncio.get_running_loop().call_at(when, fired.set)
        await fired.wait()
        at = stand.seconds
        await process.wait()
        return at

    assert stand.run(host) == 1.0
    assert stand.seconds == 3.0


@pytest.mark.parametrize("when", [math.inf, 1e300])
def test_a_timer_that_never_comes_stops_nobody(stand: Stand, when: float) -> None:
    """A limit that is off is often a number that is far too large."""
    argv = stand.fake("- silence: 3s")

    async def host() -> float:
        timer = asyncio.get_running_loop().call_at(when, pytest.fail, "it came")
        await (await exec_(*argv)).wait()
        timer.cancel()
        return stand.seconds

    assert stand.run(host) == 3.0


def test_a_thousand_timers_add_up_exactly(stand: Stand) -> None:
    """A tenth of a second is no binary fraction: the clock counts nanoseconds, and no error adds up."""

    async def host() -> float:
        for _ in range(1_000):
            await asyncio.sleep(0.1)
        return stand.seconds

    assert stand.run(host) == pytest.approx(100.0, abs=1e-6)


def test_nested_timeouts_end_the_inner_one_first(stand: Stand) -> None:
    """`asyncio.timeout` inside `asyncio.timeout` around a silent agent: each at its instant."""
    argv = stand.fake("- silence: for ever")

    async def host() -> list[float]:
        process = await exec_(*argv)
        seen = []
        try:
            async with asyncio.timeout(9):
                try:
                    async with asyncio.timeout(4):
                        await process.wait()
                except TimeoutError:
                    seen.append(stand.seconds)
                await process.wait()
        except TimeoutError:
            seen.append(stand.seconds)
        process.kill()
        await process.wait()
        return seen

    assert stand.run(host) == [4.0, 9.0]


def test_a_prompt_larger_than_the_pipe_waits_for_its_reader(stand: Stand) -> None:
    """`drain` ends when the agent reads on, not before and not by real time."""
    argv = stand.fake("- stdin: stop\n- silence: 8s\n- stdin: read\n- wait_for: eof")

    async def host() -> tuple[float, float]:
        process = await exec_(*argv, stdin=PIPE)
        assert process.stdin is not None
        process.stdin.write(b"x" * 500_000)
        await process.stdin.drain()
        drained = stand.seconds
        process.stdin.close()
        await process.wait()
        return drained, stand.seconds

    assert stand.run(host) == (8.0, 8.0)


def test_an_agent_whose_output_goes_nowhere_runs_on(stand: Stand) -> None:
    """Streams that lead to /dev/null never block and never wake."""
    argv = stand.fake("- flood: {stdout: 1MiB}\n- silence: 2s\n- flood: {stderr: 1MiB}\n- exit: 6")

    async def host() -> tuple[int, float]:
        process = await exec_(*argv, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)
        return await process.wait(), stand.seconds

    assert stand.run(host) == (6, 2.0)


def test_an_agent_left_running_ends_with_the_clock(stand: Stand) -> None:
    """A program that forgets its agent leaves neither process nor zombie once the clock is closed."""
    argv = stand.fake("- silence: for ever")

    async def host() -> subprocess.Popen[bytes]:
        process = subprocess.Popen(argv)
        await asyncio.sleep(1)
        return process

    process = stand.run(host)
    stand.close()
    assert (stand.seconds, process.returncode) == (1.0, -9)


def test_leftovers_of_a_program_reach_no_later_test(stand: Stand, caplog: pytest.LogCaptureFixture) -> None:
    """The garbage collector runs at any time: its finds from an ended program belong to no later test."""

    def leave() -> None:
        future = asyncio.get_running_loop().create_future()
        future.set_exception(BrokenPipeError("nobody looks"))
        own: list[object] = [future]
        own.append(own)

    async def host() -> int:
        leave()
        gc.collect()
        told = len(caplog.records)
        leave()
        return told

    gc.disable()
    try:
        assert stand.run(host) == 1
    finally:
        gc.enable()
    gc.collect()
    assert [record.name for record in caplog.records] == ["asyncio"]


@pytest.mark.parametrize("closes", [False, True])
@pytest.mark.parametrize("said", [b"hello", b"x" * 300_000], ids=["little", "more than a pipe holds"])
def test_a_program_with_open_pipes_gets_only_the_fault(
    stand: Stand, caplog: pytest.LogCaptureFixture, said: bytes, *, closes: bool
) -> None:
    """A pipe that is already ending is not ended again; a pipe that would wait for its reader for ever is ended."""
    argv = stand.fake("- stdin: stop\n- silence: for ever")

    async def host() -> None:
        process = await asyncio.create_subprocess_exec(*argv, stdin=PIPE, stdout=PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(said)
        try:
            await process.stdout.readline()
        finally:
            if closes:
                process.stdin.close()

    with pytest.raises(Deadlock):
        stand.run(host)
    assert caplog.records == []
