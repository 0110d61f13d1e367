"""Deadlines between two nanoseconds, and sums that are a rounding error beside one, on both event loops."""

from __future__ import annotations

import asyncio
import itertools
import math
import random
from typing import TYPE_CHECKING

import anyio
import pytest

from pytest_agentproc.vocabulary import to_nanoseconds

if TYPE_CHECKING:
    from tests.process.stand import Stand


def test_a_deadline_that_is_a_sum_is_over_when_its_time_has_come(stand: Stand, backend: str) -> None:
    """In binary 9.999 + 20.0 lies above 29.999: a comparison of the two must not find it too early, for ever."""
    stand.fake("- silence: for ever")
    rounds = 0

    async def host() -> float:
        nonlocal rounds
        await anyio.sleep(9.999)
        deadline = anyio.current_time() + 20.0
        with anyio.CancelScope(deadline=deadline):
            await anyio.sleep_forever()
        while anyio.current_time() < deadline:
            rounds += 1
            await anyio.sleep(deadline - anyio.current_time())
        for _ in range(3):
            await anyio.sleep(0.1)
        return anyio.current_time()

    assert stand.run(host, backend=backend) == pytest.approx(30.299, abs=1e-10)
    assert rounds <= 1


@pytest.mark.parametrize("milliseconds", [4001, 4999, 5001, 5002, 7001, 12_345])
def test_a_timeout_that_is_a_sum_is_raised(stand: Stand, backend: str, milliseconds: int) -> None:
    """The time is looked at once the scope is over: found too early, it takes an end in time for granted."""
    stand.fake("- silence: for ever")

    async def host() -> list[int]:
        await anyio.sleep(milliseconds / 1000)
        ends = []
        for _ in range(3):
            with pytest.raises(TimeoutError):
                with anyio.fail_after(5):
                    await anyio.sleep_forever()
            ends.append(round(anyio.current_time() * 1e9))
        return ends

    assert stand.run(host, backend=backend) == [milliseconds * 1_000_000 + after * 10**9 for after in (5, 10, 15)]


def test_two_timeouts_of_one_instant_are_both_raised(stand: Stand, backend: str) -> None:
    """They differ by a rounding error, and the later one is not too early either."""
    stand.fake("- silence: for ever")

    async def host() -> int:
        raised = 0

        async def wait(first: float, then: float) -> None:
            nonlocal raised
            await anyio.sleep(first)
            try:
                with anyio.fail_after(then):
                    await anyio.sleep_forever()
            except TimeoutError:
                raised += 1

        async with anyio.create_task_group() as group:
            for first, then in ((0, 9.001), (4.001, 5), (3.7, 5.301), (8.9, 0.101), (9, 0.001)):
                group.start_soon(wait, first, then)
        return raised

    assert stand.run(host, backend=backend) == 5


def test_a_timeout_of_any_length_is_raised(stand: Stand, backend: str) -> None:
    """A third of a second ends between two nanoseconds: it is over at the later one, and not by a nanosecond more."""
    stand.fake("- silence: for ever")
    die = random.Random(7)  # noqa: S311  # no secret
    lengths = [1 / 3, 10 / 3, 5 / 6, *(die.uniform(0, 400) for _ in range(200))]

    async def host() -> list[float]:
        wrong = []
        for length in lengths:
            before = anyio.current_time()
            try:
                with anyio.fail_after(length):
                    await anyio.sleep_forever()
            except TimeoutError:
                if not 0 <= anyio.current_time() - (before + length) < 1e-9:
                    wrong.append(length)
            else:
                wrong.append(length)
        return wrong

    assert stand.run(host, backend=backend) == []


def test_a_limit_is_over_when_a_timer_of_its_length_fires(stand: Stand, backend: str) -> None:
    """A supervisor that states a third of a second and keeps it is late by nothing."""
    stand.fake("- silence: for ever")
    lengths = [1 / 3, 2 / 3, 10 / 3, 1 / 7, 0.1, 45.1, 86_400.123456, 1e-9, 4e-10, 1e-10]

    async def host() -> list[int]:
        instants = [0]
        for length in lengths:
            await anyio.sleep_until(instants[-1] / 1e9 + length)
            instants.append(stand.clock.now_ns)
        return instants

    instants = stand.run(host, backend=backend)
    assert [after - before for before, after in itertools.pairwise(instants)] == [*map(to_nanoseconds, lengths)]


def test_a_timeout_is_raised_beside_a_timer_between_nanoseconds(stand: Stand, backend: str) -> None:
    """Its deadline is a rounding error after a nanosecond; the other timer is not within that nanosecond."""
    stand.fake("- silence: for ever")

    async def host() -> bool:
        await anyio.sleep(9.999)
        try:
            with anyio.CancelScope(deadline=29.999 + 0.4e-9), anyio.fail_after(20.0):
                await anyio.sleep_forever()
        except TimeoutError:
            return True
        return False

    assert stand.run(host, backend=backend)


@pytest.mark.parametrize("order", [*itertools.permutations(range(3))])
def test_no_timer_fires_before_its_time(stand: Stand, backend: str, order: tuple[int, ...]) -> None:
    """Three fire within one nanosecond, a fourth after it, in whatever order they stand in a loop's heap."""
    stand.fake("- silence: for ever")
    deadlines = [9.001, math.nextafter(9.001, 10), 9.001 + 0.1e-9]
    behind = 9.001 + 0.4e-9
    seen: dict[float, float] = {}

    async def wait(deadline: float) -> None:
        with anyio.CancelScope(deadline=deadline):
            await anyio.sleep_forever()
        seen[deadline] = anyio.current_time()

    async def host() -> None:
        async with anyio.create_task_group() as group:
            for deadline in [*(deadlines[index] for index in order), behind]:
                group.start_soon(wait, deadline)

    stand.run(host, backend=backend)
    assert all(deadline <= at for deadline, at in seen.items())
    assert {round(seen[deadline] * 1e9) for deadline in deadlines} == {9_001_000_000}
    assert round(seen[behind] * 1e9) == 9_001_000_001


@pytest.mark.parametrize("order", [*itertools.permutations(range(3))])
def test_timers_of_one_instant_fire_together(stand: Stand, backend: str, order: tuple[int, ...]) -> None:
    """No rounding error lets an agent's answer to the first of them come between."""
    argv = stand.fake("- wait_for: {stdin: x}\n- say: answer\n- wait_for: eof")
    deadlines = [9.001, math.nextafter(9.001, 10), 9.001 + 0.1e-9]
    seen: list[str] = []

    async def host() -> None:
        async def fire(deadline: float) -> None:
            with anyio.CancelScope(deadline=deadline):
                await anyio.sleep_forever()
            seen.append("timer")
            assert process.stdin is not None
            if len(seen) == 1:
                await process.stdin.send(b"x\n")

        async with await anyio.open_process(argv) as process:
            async with anyio.create_task_group() as group:
                for index in order:
                    group.start_soon(fire, deadlines[index])
                assert process.stdout is not None
                await process.stdout.receive()
                seen.append("answer")
            assert process.stdin is not None
            await process.stdin.aclose()
            await process.wait()

    stand.run(host, backend=backend)
    assert seen == ["timer", "timer", "timer", "answer"]


def test_no_timer_of_asyncios_is_called_before_its_time(stand: Stand) -> None:
    """A callback looks at no clock before it acts."""
    stand.fake("- silence: for ever")
    seen: list[tuple[float, float]] = []

    async def host() -> None:
        loop = asyncio.get_running_loop()

        def note(deadline: float) -> None:
            seen.append((deadline, loop.time()))

        for deadline in (9.001, 9.001 + 0.4e-9):
            loop.call_at(deadline, note, deadline)
        await asyncio.sleep(10)

    stand.run(host)
    assert len(seen) == 2
    assert all(deadline <= at for deadline, at in seen)


def test_a_sum_of_many_means_its_instant(stand: Stand, backend: str) -> None:
    """Ten tenths after 9,000 s are a few rounding errors more than a second, and no nanosecond."""
    stand.fake("- silence: for ever")
    deadline = 9_000.0
    for _ in range(10):
        deadline += 0.1
    assert deadline > math.nextafter(9_001.0, math.inf)

    async def host() -> float:
        with anyio.CancelScope(deadline=deadline):
            await anyio.sleep_forever()
        at = anyio.current_time()
        assert at >= deadline
        await anyio.sleep(1)
        return anyio.current_time()

    assert stand.run(host, backend=backend) == pytest.approx(9_002.0, abs=1e-10)


@pytest.mark.parametrize(
    "deadline",
    ["0x1.3c68000000478p+21", "0x1.3c68000000479p+21", "0x1.9dcb96f0f3ac1p+21", "0x1.0000000000001p+23"],
)
def test_an_instant_weeks_after_the_start_comes(stand: Stand, backend: str, deadline: str) -> None:
    """Then floats lie as far from one another as nanoseconds do, and every one is a deadline that comes."""
    stand.fake("- silence: for ever")
    at = float.fromhex(deadline)

    async def wait(until: float) -> None:
        with anyio.CancelScope(deadline=until):
            await anyio.sleep_forever()
        assert 0 <= anyio.current_time() - until < 1e-9

    async def host() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(wait, math.nextafter(at, 0))
            group.start_soon(wait, at)

    stand.run(host, backend=backend)


def test_a_pace_of_tenths_is_kept_for_minutes(stand: Stand, backend: str) -> None:
    """Counting from deadline to deadline adds up rounding errors, but each tick is on its nanosecond."""
    stand.fake("- silence: for ever")

    async def host() -> list[int]:
        late = []
        for tick in range(1, 20_001):
            await anyio.sleep(0.1)
            if round(anyio.current_time() * 1e9) != tick * 100_000_000:
                late.append(tick)
        return late

    assert stand.run(host, backend=backend) == []


@pytest.mark.parametrize(("start", "length"), [(9_000, 0.1), (86_400, 0.3), (100_000, 5.3), (600_000, 0.001)])
def test_each_of_many_timeouts_is_raised(stand: Stand, backend: str, start: float, length: float) -> None:
    """Hours after the start their errors have soon grown to a nanosecond: then one is a nanosecond later, none lost."""
    stand.fake("- silence: for ever")

    async def host() -> float:
        await anyio.sleep(start)
        for _ in range(5_000):
            before = anyio.current_time()
            with pytest.raises(TimeoutError), anyio.fail_after(length):
                await anyio.sleep_forever()
            assert anyio.current_time() >= before + length
        return anyio.current_time() - start

    assert stand.run(host, backend=backend) == pytest.approx(5_000 * length, abs=5e-6)


@pytest.mark.parametrize("off", [0.0, 0.3e-9, 0.45e-9, 0.55e-9, 0.7e-9])
def test_what_an_agent_says_comes_before_the_timer_of_its_instant(stand: Stand, backend: str, off: float) -> None:
    """A deadline below a nanosecond is one of it."""
    argv = stand.fake("- silence: 1s\n- say: word\n- silence: for ever")
    seen: list[str] = []

    async def host() -> None:
        async def fire() -> None:
            with anyio.CancelScope(deadline=1.0 - off):
                await anyio.sleep_forever()
            seen.append("timer")

        async with await anyio.open_process(argv) as process, anyio.create_task_group() as group:
            group.start_soon(fire)
            assert process.stdout is not None
            await process.stdout.receive()
            seen.append("word")
            await anyio.sleep(1)
            process.kill()

    stand.run(host, backend=backend)
    assert seen == ["word", "timer"]


def test_ten_years_pass(stand: Stand, backend: str) -> None:
    """Then floats are two nanoseconds apart from one another."""
    stand.fake("- silence: for ever")

    async def host() -> float:
        await anyio.sleep(10 * 365 * 86400)
        with anyio.move_on_after(0.7):
            await anyio.sleep_forever()
        return anyio.current_time()

    assert stand.run(host, backend=backend) == 10 * 365 * 86400 + 0.7
