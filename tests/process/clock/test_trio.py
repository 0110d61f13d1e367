"""trio code that is not ours, unmodified, in virtual time over real processes."""

from __future__ import annotations

import functools
import math
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

if TYPE_CHECKING:
    from tests.process.stand import Stand


def run_on_trio(stand: Stand, host: object, *args: object) -> object:
    """Run on trio."""
    return stand.run(host, *args, backend="trio")  # type: ignore[arg-type]


def test_run_process_ends_with_the_agent(stand: Stand) -> None:
    """Output, exit code and instant are the agent's own."""
    argv = stand.fake("- silence: 1h\n- say: done\n- exit: 3")

    async def host() -> tuple[bytes, int, float]:
        completed = await trio.run_process(argv, capture_stdout=True, check=False)
        return completed.stdout, completed.returncode, trio.current_time()

    assert run_on_trio(stand, host) == (b"done\n", 3, 3600.0)


def test_an_answer_at_the_very_instant_of_a_timeout_is_in_time(stand: Stand) -> None:
    """Agents go before timers of the same instant."""
    argv = stand.fake("- silence: 60s\n- say: just in time\n- wait_for: eof")

    async def host() -> bytes:
        process = await trio.lowlevel.open_process(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        with trio.fail_after(60):
            answer = await process.stdout.receive_some()
        await process.stdin.aclose()
        await process.wait()
        await process.stdout.aclose()
        return bytes(answer)

    assert run_on_trio(stand, host) == b"just in time\n"


def test_an_exit_at_the_very_instant_of_a_timeout_is_in_time(stand: Stand) -> None:
    """An exit beats the timer also through trio's own child watching."""
    argv = stand.fake("- silence: 60s\n- exit: 7")

    async def host() -> int:
        process = await trio.lowlevel.open_process(argv)
        with trio.fail_after(60):
            return int(await process.wait())

    assert run_on_trio(stand, host) == 7


def test_a_timeout_a_nanosecond_before_the_exit_fires(stand: Stand) -> None:
    """Time is exact on both sides of an instant; cancelling run_process terminates the agent as trio does."""
    argv = stand.fake("- when: {signal: TERM}\n  do: [{silence: 1s}, {exit: 0}]\n- silence: 60s + 1ns")

    async def host() -> tuple[bool, float]:
        with trio.move_on_after(60) as scope:
            await trio.run_process(argv)
        return scope.cancelled_caught, stand.seconds

    assert run_on_trio(stand, host) == (True, 60.000000001)


def test_a_cancelled_run_process_kills_a_deaf_agent_after_trios_five_seconds(stand: Stand) -> None:
    """Trio's own escalation (TERM, 5 s, KILL) is seen to the nanosecond."""
    argv = stand.fake("- when: {signal: TERM}\n  do: []\n- silence: for ever")

    async def host() -> float:
        with trio.move_on_after(60):
            await trio.run_process(argv)
        return stand.seconds

    with pytest.warns(RuntimeWarning, match="ignored SIGTERM for 5 seconds"):
        assert run_on_trio(stand, host) == 65.0


def test_several_agents_keep_their_own_times(stand: Stand) -> None:
    """Each nursery task meets its agent's answer at its instant."""
    seen: list[tuple[float, int]] = []

    async def talk(number: int, argv: list[str]) -> None:
        await trio.run_process(argv)
        seen.append((stand.seconds, number))

    async def host() -> None:
        async with trio.open_nursery() as nursery:
            for number, seconds in enumerate((30, 10, 20, 10)):
                nursery.start_soon(talk, number, stand.fake(f"- silence: {seconds}s"))

    run_on_trio(stand, host)
    assert sorted(seen) == [(10.0, 1), (10.0, 3), (20.0, 2), (30.0, 0)]
    assert [at for at, _ in seen] == [10.0, 10.0, 20.0, 30.0]


def test_agents_have_the_order_in_which_trio_started_them(stand: Stand) -> None:
    """A start is no thread's race: the order of the record is that of the calls, on any run."""
    argvs = [stand.fake("- silence: 1s", name=f"agent{number}") for number in range(4)]

    async def host() -> list[int]:
        processes = [await trio.lowlevel.open_process(argv) for argv in argvs]
        for process in processes:
            await process.wait()
        return [process.pid for process in processes]

    assert run_on_trio(stand, host) == stand.pids()


def test_waiting_until_all_tasks_are_blocked_moves_no_time(stand: Stand) -> None:
    """`wait_all_tasks_blocked` speaks of tasks: no agent moves for it, and no timer fires."""
    argv = stand.fake("- silence: 5s\n- say: later")
    seen: list[str] = []

    async def sleeper() -> None:
        await trio.sleep(3)
        seen.append("slept")

    async def host() -> tuple[float, list[str]]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sleeper)
            nursery.start_soon(functools.partial(trio.run_process, argv))
            await trio.testing.wait_all_tasks_blocked()
            await trio.testing.wait_all_tasks_blocked(0.001)
            return stand.seconds, list(seen)

    assert run_on_trio(stand, host) == (0.0, [])
    assert (stand.seconds, seen) == (5.0, ["slept"])


def test_nested_deadlines_end_the_inner_one_first(stand: Stand) -> None:
    """Scopes within scopes around a silent agent: each at its instant."""
    argv = stand.fake("- silence: for ever")

    async def host() -> list[float]:
        process = await trio.lowlevel.open_process(argv)
        seen = []
        with trio.move_on_after(9):
            with trio.move_on_after(4):
                await process.wait()
            seen.append(stand.seconds)
            await process.wait()
        seen.append(stand.seconds)
        process.kill()
        await process.wait()
        return seen

    assert run_on_trio(stand, host) == [4.0, 9.0]


@pytest.mark.parametrize("deadline", [-math.inf, -1.0])
def test_a_deadline_that_has_always_passed_ends_its_scope_at_once(stand: Stand, deadline: float) -> None:
    """Trio's own way to end a scope from outside and call it a timeout."""
    argv = stand.fake("- silence: 3s")

    async def host() -> float:
        process = await trio.lowlevel.open_process(argv)
        async with trio.open_nursery() as nursery:
            scope = trio.CancelScope(deadline=1e300)

            async def end() -> None:
                await trio.sleep(1)
                scope.deadline = deadline

            nursery.start_soon(end)
            with scope:
                await process.wait()
        at = stand.seconds
        await process.wait()
        return at

    assert run_on_trio(stand, host) == 1.0
    assert stand.seconds == 3.0


def test_a_thousand_sleeps_add_up_exactly(stand: Stand) -> None:
    """No rounding adds up: the clock counts nanoseconds."""

    async def host() -> float:
        for _ in range(1_000):
            await trio.sleep(0.1)
        return stand.seconds

    assert run_on_trio(stand, host) == pytest.approx(100.0, abs=1e-6)


@pytest.mark.parametrize("beside_hypothesis", [False, True])
def test_tasks_that_are_ready_at_one_instant_run_in_order(
    stand: Stand, beside_hypothesis: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trio casts a die for that; two runs that differ would make every verdict on such a program a matter of luck."""
    monkeypatch.setattr("trio._core._run._ALLOW_DETERMINISTIC_SCHEDULING", beside_hypothesis)
    lines: list[int] = []

    async def wait(number: int, start: trio.Event) -> None:
        await start.wait()
        lines.append(number)

    async def host() -> None:
        for _ in range(20):
            starts = [trio.Event() for _ in range(5)]
            async with trio.open_nursery() as nursery:
                for number, start in enumerate(starts):
                    nursery.start_soon(wait, number, start)
                await trio.testing.wait_all_tasks_blocked()
                for start in starts:
                    start.set()

    run_on_trio(stand, host)
    assert lines == [0, 1, 2, 3, 4] * 20


def test_ctrl_c_below_a_nursery_is_raised_alone(stand: Stand) -> None:
    """A nursery raises it in a group, which pytest calls a failure, so that the session went on."""

    async def host() -> None:
        async with trio.open_nursery(), trio.open_nursery():
            signal.raise_signal(signal.SIGINT)
            await trio.sleep(1)

    with pytest.raises(KeyboardInterrupt):
        run_on_trio(stand, host)
