"""A machine that sleeps moves the wall clock alone: a supervisor that measures silence by it is caught."""

from __future__ import annotations

import datetime as dt
import time
from typing import TYPE_CHECKING

import anyio
import pytest

from pytest_agentproc.clock import VirtualClock
from pytest_agentproc.scenario import loads
from pytest_agentproc.subjects import Function
from pytest_agentproc.verdict import Verdict, choose_overall_verdict, judge_all_expectations

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.vocabulary import RunRequest

SLEEP = loads(
    "scenario: the machine sleeps\nagent: raw\nhost: {sleeps: {at: 10s, for: 8h}}\n"
    "script: [{say: working}, {silence: inactivity_timeout / 2}, {say: done}]\n"
    "expect: {outcome: completed}\nshould: {elapsed: inactivity_timeout / 2}\n"
)
LIMIT = 120.0


def _read_monotonic() -> float:
    return time.monotonic()


def _read_time() -> float:
    return time.time()


def _read_datetime() -> float:
    return dt.datetime.now(dt.UTC).timestamp()


def build_polling_supervisor(read: Callable[[], float]) -> Function:
    """Give a supervisor that looks at a clock once a second, and ends the agent after LIMIT seconds of silence."""

    async def supervise(order: RunRequest) -> dict[str, object]:
        heard = read()
        async with await anyio.open_process(order.argv, env=order.env, cwd=order.cwd) as agent:
            assert agent.stdout is not None
            while agent.returncode is None:
                with anyio.move_on_after(1):
                    try:
                        await agent.stdout.receive()
                        heard = read()
                    except anyio.EndOfStream:
                        await agent.wait()
                if agent.returncode is None and read() - heard >= LIMIT:
                    agent.kill()
                    await agent.wait()
                    return {"outcome": "inactive"}
        return {"outcome": "completed"}

    return Function(supervise, limits={"inactivity_timeout": LIMIT})


def test_silence_by_the_monotonic_clock_passes(runner: ScenarioRunner) -> None:
    """Linux and macOS stop this clock while the machine sleeps."""
    assert (
        choose_overall_verdict(judge_all_expectations(runner.play(SLEEP, build_polling_supervisor(_read_monotonic))))
        is Verdict.PASSED
    )


@pytest.mark.parametrize("read", [_read_time, _read_datetime])
def test_silence_by_the_wall_clock_fails(runner: ScenarioRunner, read: Callable[[], float]) -> None:
    """At the first look after the sleep, eight hours seem to have passed."""
    rows = {
        row.key: (row.verdict, row.seen)
        for row in judge_all_expectations(runner.play(SLEEP, build_polling_supervisor(read)))
    }
    assert rows["outcome"] == (Verdict.FAILED, "inactive")


def test_only_the_wall_clock_jumps() -> None:
    """A user's own test may let the machine sleep, too."""
    clock = VirtualClock(start="2026-11-22T00:00:00Z")

    async def jump() -> tuple[float, float, str]:
        monotonic, wall = time.monotonic(), time.time()
        clock.suspend_machine(3600)
        return time.monotonic() - monotonic, time.time() - wall, dt.datetime.now(dt.UTC).isoformat()

    with clock:
        assert clock.run(jump()) == (0, 3600, "2026-11-22T01:00:00+00:00")
