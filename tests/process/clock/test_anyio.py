"""anyio code and plain subprocess code that are not ours, in virtual time on both event loops."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import weakref
from typing import TYPE_CHECKING

import anyio
import pytest

from pytest_agentproc.clock import VirtualClock
from tests.event_lines import list_lines
from tests.process.stand import list_open_descriptors, start_with_used_pid

if TYPE_CHECKING:
    from tests.process.stand import Stand


def test_run_process_ends_with_the_agent(stand: Stand, backend: str) -> None:
    """Both loops give the same bytes, code and instant."""
    argv = stand.fake("- wait_for: eof\n- silence: 90s\n- say: out\n- raw: {text: err, to: stderr}\n- exit: 3")

    async def host() -> tuple[bytes, bytes, int, float]:
        completed = await anyio.run_process(argv, input=b"go", check=False)
        return completed.stdout, completed.stderr, completed.returncode, anyio.current_time()

    assert stand.run(host, backend=backend) == (b"out\n", b"err", 3, 90.0)


def test_a_conversation_has_its_exact_times(stand: Stand, backend: str) -> None:
    """Question and answer alternate, and only the agent's thinking takes time."""
    argv = stand.fake(
        """
        - wait_for: {stdin: "one"}
        - silence: 2s
        - say: first
        - wait_for: {stdin: "two"}
        - silence: 3s
        - say: second
        - wait_for: eof
        """
    )

    async def host() -> list[tuple[float, bytes]]:
        seen: list[tuple[float, bytes]] = []

        async def ask(word: bytes) -> tuple[float, bytes]:
            assert process.stdin is not None
            assert process.stdout is not None
            await process.stdin.send(word)
            return stand.seconds, await process.stdout.receive()

        async with await anyio.open_process(argv) as process:
            seen += [await ask(b"one\n"), await ask(b"two\n")]
            assert process.stdin is not None
            await process.stdin.aclose()
            await process.wait()
        seen.append((stand.seconds, b""))
        return seen

    assert stand.run(host, backend=backend) == [(0.0, b"first\n"), (2.0, b"second\n"), (5.0, b"")]


def test_fail_after_lets_an_answer_of_the_same_instant_win(stand: Stand, backend: str) -> None:
    """Agents go before timers of the same instant."""
    argv = stand.fake("- silence: 10s\n- say: in time\n- wait_for: eof")

    async def host() -> bytes:
        async with await anyio.open_process(argv) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            with anyio.fail_after(10):
                answer = await process.stdout.receive()
            await process.stdin.aclose()
            await process.wait()
            return answer

    assert stand.run(host, backend=backend) == b"in time\n"


def test_a_conversation_of_the_very_instant_wins(stand: Stand, backend: str) -> None:
    """It takes several turns of both, and the timer waits for the last one."""
    argv = stand.fake("- silence: 10s\n- say: one\n- wait_for: {stdin: x}\n- say: two\n- wait_for: eof")

    async def host() -> tuple[bytes, bytes]:
        async with await anyio.open_process(argv) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            with anyio.fail_after(10):
                line = await process.stdout.receive()
                await process.stdin.send(b"x\n")
                two = await process.stdout.receive()
            await process.stdin.aclose()
            await process.wait()
            return line, two

    assert stand.run(host, backend=backend) == (b"one\n", b"two\n")


def test_leaving_a_process_block_early_kills_the_agent(stand: Stand, backend: str) -> None:
    """A timeout in the middle of a process block leaves no process, on either loop."""
    argv = stand.fake("- silence: for ever")

    async def host() -> tuple[int | None, float]:
        with anyio.move_on_after(7):
            async with await anyio.open_process(argv) as process:
                await process.wait()
        return process.returncode, stand.seconds

    assert stand.run(host, backend=backend) == (-9, 7.0)


def test_tasks_and_timers_of_one_program_meet_agents_in_one_order(stand: Stand, backend: str) -> None:
    """Ticks of the program and drops of the agent interleave exactly, ties to the agent."""
    argv = stand.fake('- drip: {stdout: ".", every: 2s, for: 6s}')
    seen: list[tuple[float, str]] = []

    async def tick() -> None:
        for _ in range(4):
            await anyio.sleep(1.5)
            seen.append((stand.seconds, "tick"))

    async def host() -> None:
        async with await anyio.open_process(argv) as process, anyio.create_task_group() as group:
            group.start_soon(tick)
            assert process.stdout is not None
            with contextlib.suppress(anyio.EndOfStream):
                while await process.stdout.receive(1):
                    seen.append((stand.seconds, "drop"))

    stand.run(host, backend=backend)
    assert seen == [
        (1.5, "tick"), (2.0, "drop"), (3.0, "tick"), (4.0, "drop"), (4.5, "tick"), (6.0, "drop"), (6.0, "tick"),
    ]  # fmt: skip


def test_a_plain_popen_is_seen_without_any_waiting(stand: Stand, backend: str) -> None:
    """Code that polls its Popen between sleeps sees the exit at its instant."""
    argv = stand.fake("- silence: 1s\n- exit: 5")

    async def host() -> tuple[int | None, int | None, float]:
        process = subprocess.Popen(argv)
        await anyio.sleep(0.999_999_999)
        before = process.poll()
        await anyio.sleep(0.000_000_001)
        return before, process.poll(), stand.seconds

    assert stand.run(host, backend=backend) == (None, 5, 1.0)


@pytest.mark.parametrize("how", ["popen", "pid", "group"])
def test_a_signal_by_any_door_has_its_whole_effect_at_once(stand: Stand, backend: str, how: str) -> None:
    """Popen.send_signal, os.kill and os.killpg: the default disposition kills before the next line runs."""
    argv = stand.fake("- silence: for ever")

    async def host() -> tuple[int | None, float]:
        process = subprocess.Popen(argv, start_new_session=True)
        await anyio.sleep(1)
        if how == "popen":
            process.terminate()
        elif how == "pid":
            os.kill(process.pid, signal.SIGTERM)
        else:
            os.killpg(process.pid, signal.SIGTERM)
        return process.poll(), stand.seconds

    assert stand.run(host, backend=backend) == (-15, 1.0)


def test_a_stopped_agent_is_left_out_until_it_is_continued(stand: Stand, backend: str) -> None:
    """SIGSTOP takes an agent out of time: its instants pass, and it runs again when it is continued."""
    argv = stand.fake("- silence: 2s\n- exit: 4")

    async def host() -> tuple[int | None, int | None, float]:
        process = subprocess.Popen(argv)
        await anyio.sleep(1)
        process.send_signal(signal.SIGSTOP)
        await anyio.sleep(9)
        stopped = process.poll()
        process.send_signal(signal.SIGCONT)
        await anyio.sleep(1)
        return stopped, process.poll(), stand.seconds

    assert stand.run(host, backend=backend) == (None, 4, 11.0)


def test_no_descriptor_is_left_open(stand: Stand, backend: str) -> None:
    """Ten runs under ten clocks leave the table of descriptors as it was."""
    argv = stand.fake("- silence: for ever")

    async def host() -> None:
        with anyio.move_on_after(7):
            async with await anyio.open_process(argv) as process:
                await process.wait()

    stand.run(host, backend=backend)
    before = len(list_open_descriptors())
    for _ in range(3):
        stand.run(host, backend=backend)
    assert len(list_open_descriptors()) - before <= 3 * len(("link", "stage", "pidfd"))
    stand.close()
    assert len(list_open_descriptors()) < before


@pytest.mark.parametrize("end", ["TERM", "KILL"])
def test_how_an_agent_died_is_known_though_it_is_reaped_at_once(stand: Stand, backend: str, end: str) -> None:
    """`poll()` right after the signal reaps it: then only the reaper can ask the kernel for its status."""
    argv = stand.fake("- silence: for ever")

    async def host() -> int | None:
        process = subprocess.Popen(argv)
        process.send_signal(getattr(signal, f"SIG{end}"))
        return process.poll()

    assert stand.run(host, backend=backend) == -getattr(signal, f"SIG{end}")
    assert [event.data["signal"] for event in list_lines(stand.fakes[0].record) if event.code == "x"] == [end]


def test_a_pid_that_comes_again_is_somebody_new(stand: Stand, backend: str) -> None:
    """Time waits for a fake that has just been started, even if another one had its number before."""
    argv = stand.fake("- say: up\n- silence: for ever")

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(argv, stdout=subprocess.PIPE)

    async def host() -> tuple[bytes, float]:
        first = start()
        await anyio.sleep(1)
        first.kill()
        first.communicate()
        again = start_with_used_pid(first.pid, start)
        try:
            await anyio.sleep(1)
            again.kill()
            return again.communicate()[0], anyio.current_time()
        finally:
            again.kill()

    assert stand.run(host, backend=backend) == (b"up\n", 2.0)


def test_a_clock_that_is_over_is_held_by_nobody(backend: str) -> None:
    """Thousands of plays in a row wait for no garbage collector, and keep no memory that the next one could use."""

    async def host() -> None:
        await anyio.sleep(1)

    gc.collect()
    gc.disable()
    try:
        with VirtualClock() as clock:
            clock.run(host, backend=backend)
            hub = weakref.ref(clock.hub)
        del clock
        assert hub() is None
    finally:
        gc.enable()
