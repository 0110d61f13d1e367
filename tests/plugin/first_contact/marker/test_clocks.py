"""Every clock of Python shows virtual time: in marked tests, under `virtual_clock` and in scenarios."""

from __future__ import annotations

import pytest

CLOCKS = """\
import asyncio, datetime, time, pytest
from datetime import datetime as dt
from time import monotonic, perf_counter as counter


class Watchdog:
    clock = time.monotonic

    def __init__(self, clock=time.monotonic, *, wall=time.time):
        self.seconds, self.wall = clock, wall


def seen():
    dog = Watchdog()
    return [monotonic(), counter(), time.monotonic(), time.perf_counter(), dog.seconds(), dog.clock()]


def walls():
    dog = Watchdog()
    return [time.time(), dog.wall(), dt.now(datetime.UTC).timestamp()]


async def work():
    loop = asyncio.get_running_loop()
    await asyncio.sleep(3600.1)
    assert {*seen(), loop.time()} == {3600.1}
    assert time.monotonic_ns() == time.perf_counter_ns() == 3_600_100_000_000
    assert time.time_ns() % 10**18 == 767_225_600_000_000_000 + 3_600_100_000_000
    assert {*walls()} == {1767225600 + 3600.1}
    assert dt.now(datetime.UTC).isoformat() == "2026-01-01T01:00:00.100000+00:00"
    assert dt.utcnow().isoformat() == dt.today().isoformat() == "2026-01-01T01:00:00.100000"
    assert datetime.date.today().isoformat() == "2026-01-01"
    return time.monotonic()
"""


@pytest.mark.filterwarnings("ignore:datetime.datetime.utcnow:DeprecationWarning")
def test_all_clocks_agree_to_the_nanosecond(pytester: pytest.Pytester) -> None:
    """Code may hold a clock by any name, as a default or as an attribute: each shows the same time."""
    pytester.makepyfile(
        clocks=CLOCKS,
        test_clocks="""
        import time, pytest
        from clocks import monotonic, seen, work

        def test_run(virtual_clock):
            assert virtual_clock.run(work) == virtual_clock.run(lambda: give(3600.1)) == time.monotonic()

        def test_coroutine(virtual_clock):
            assert virtual_clock.run(work()) == 3600.1

        async def give(value):
            return value

        @pytest.mark.virtual_time
        async def test_marked():
            await work()

        @pytest.mark.virtual_time
        async def test_twin():
            await work()
            assert monotonic() == 3600

        def test_the_next_test_has_real_time():
            assert len({int(one) for one in seen()}) <= 2 and min(seen()) > 1
            assert time.monotonic.__module__ == "time"
        """,
    )
    result = pytester.runpytest("-p", "no:anyio")
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(["E       assert 3600.1 == 3600"])


def test_the_marker_says_when_time_begins(pytester: pytest.Pytester) -> None:
    """`virtual_clock` obeys it too; without it every test begins at the same date."""
    pytester.makepyfile(
        """
        import asyncio, datetime, pytest

        @pytest.mark.virtual_time(start="2024-02-28T23:59:59Z")
        def test_leap_day(virtual_clock):
            virtual_clock.run(asyncio.sleep, 1)
            assert datetime.date.today().isoformat() == "2024-02-29"

        @pytest.mark.virtual_time(start="2024-02-29T01:59:59+02:00")
        async def test_offset():
            await asyncio.sleep(1)
            assert datetime.datetime.now().isoformat() == "2024-02-29T00:00:00"

        @pytest.mark.virtual_time
        async def test_default():
            assert datetime.datetime.now().isoformat() == "2026-01-01T00:00:01"
        """
    )
    result = pytester.runpytest("--strict-markers", "-p", "no:anyio")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["E *'2026-01-01T00:00:00' == '2026-01-01T00:00:01'"])


@pytest.mark.parametrize("where", ["inside", "around"])
def test_freeze_time_beside_virtual_time_is_refused(pytester: pytest.Pytester, where: str) -> None:
    """Two owners of the clocks would show unintended dates."""
    decorator = "@freezegun.freeze_time('2020-01-01')" if where == "around" else ""
    body = "freezegun.freeze_time('2020-01-01').start()" if where == "inside" else "pass"
    pytester.makepyfile(
        f"""
        import freezegun, pytest

        async def work():
            {body}

        {decorator}
        def test_dates(request):
            request.getfixturevalue("virtual_clock").run(work)
        """
    )
    result = pytester.runpytest()
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "E *UsageError: freeze_time and virtual time cannot both hold the clocks",
            'E * drop freeze_time: @pytest.mark.virtual_time(start="2026-11-22T12:00:00Z") says when virtual *',
        ]
    )


def test_sync_code_that_waits_for_a_virtual_clock_is_stopped(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outside the event loop nothing moves virtual time, and a loop that waits for it would hang without a word."""
    from pytest_agentproc.clock import _wall  # it loads freezegun

    monkeypatch.setattr(_wall, "_MAX_SECONDS_OF_READS", 0.0)
    pytester.makepyfile(
        """
        import time

        def test_poll(virtual_clock):
            while time.monotonic() < 5:
                pass
        """
    )
    pytester.syspathinsert()
    result = pytester.runpytest()
    result.stdout.fnmatch_lines(
        [
            "E *Spin: code outside an event loop reads the clock again and again, for * s, and virtual time *",
            "E *make that code async, or let it wait before the test asks for virtual time",
        ]
    )


@pytest.mark.slow
def test_a_wait_in_a_worker_thread_keeps_the_clock_that_ends_it(pytester: pytest.Pytester) -> None:
    """`subprocess.run(timeout=)` waits in real time, so its limit is real, and virtual time is held meanwhile."""
    pytester.makepyfile(
        """
        import asyncio, subprocess, time, pytest

        def wait(argv):
            return subprocess.run(argv, timeout=0.05)

        @pytest.mark.virtual_time
        async def test_thread(fake_agent):
            with pytest.raises(subprocess.TimeoutExpired):
                await asyncio.to_thread(wait, fake_agent("- silence: 1h").argv)
            assert time.monotonic() == 0.0

        @pytest.mark.virtual_time
        async def test_twin(fake_agent):
            await asyncio.to_thread(wait, fake_agent("- silence: 1h").argv)
        """
    )
    result = pytester.runpytest("-p", "no:anyio")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["E *subprocess.TimeoutExpired: Command *agent*timed out after 0.0* seconds"])


@pytest.mark.slow
@pytest.mark.parametrize("clock", ["time.monotonic", "time.perf_counter", "time.time", "utc"])
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_supervisor_with_limits_on_any_clock_is_judged_right(
    pytester: pytest.Pytester, clock: str, backend: str
) -> None:
    """It asks the clock, not the event loop, how long the agent has been silent; its twin allows a second more."""
    pytester.path.joinpath("silent.scenario.yaml").write_text(
        "scenario: a silent agent is ended after two minutes\nagent: raw\npolicy: {inactivity_timeout: 120s}\n"
        "script: [say: hello, silence: for ever]\n"
        "expect: {outcome: inactive, elapsed: 120s, signals: [{TERM: 120s}]}\n"
    )
    pytester.makepyfile(
        mine=f"""
        import datetime, time
        import anyio
        from pytest_agentproc.subjects import Function

        def utc():
            return datetime.datetime.now(datetime.UTC).timestamp()

        async def supervise(order, limit=120):
            async with await anyio.open_process(order.argv, env=order.env, cwd=order.cwd) as agent:
                heard, outcome = {clock}(), "inactive"
                while {clock}() - heard < limit:
                    with anyio.move_on_after(limit - ({clock}() - heard)):
                        try:
                            await agent.stdout.receive()
                            heard = {clock}()
                        except anyio.EndOfStream:
                            outcome = "completed"
                            break
                agent.terminate()
                await agent.wait()
            return {{"outcome": outcome}}

        async def too_late(order):
            return await supervise(order, 121)

        def right():
            return Function(supervise, limits={{"inactivity_timeout": 120}})

        def late():
            return Function(too_late, limits={{"inactivity_timeout": 120}})
        """
    )
    subjects = "--agentproc-subject=mine:right,mine:late"
    result = pytester.runpytest(f"--agentproc-backend={backend}", subjects)
    result.assert_outcomes(passed=1, failed=1)


def test_an_object_that_only_calls_itself_a_module_is_passed_over(pytester: pytest.Pytester) -> None:
    """Libraries of cffi stand among the modules, and have no names of their own."""
    pytester.makepyfile(
        """
        import asyncio, sys, types

        class Library:
            __slots__ = ()

            @property
            def __class__(self):
                return types.ModuleType

        def test_virtual(virtual_clock, monkeypatch):
            monkeypatch.setitem(sys.modules, "library", Library())
            virtual_clock.run(asyncio.sleep, 3600)
            assert virtual_clock.now == 3600
        """
    )
    pytester.runpytest().assert_outcomes(passed=1)
