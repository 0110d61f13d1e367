"""The wall clock of a test follows its virtual clock, for that test alone."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_dates_follow_virtual_time(pytester: pytest.Pytester, backend: str) -> None:
    """Code that stamps its logs sees the hours pass that its agent is silent for."""
    pytester.makepyfile(
        f"""
        import datetime, time
        import anyio

        async def work(agent):
            before = datetime.datetime.now(datetime.timezone.utc), time.time()
            await anyio.run_process(agent.argv)
            after = datetime.datetime.now(datetime.timezone.utc), time.time()
            return before, after

        def test_stamps(fake_agent, virtual_clock, wall_clock):
            before, after = virtual_clock.run(work, fake_agent("- silence: 90m"), backend="{backend}")
            assert before[0].isoformat() == "2026-01-01T00:00:00+00:00"
            assert after[0].isoformat() == "2026-01-01T01:30:00+00:00"
            assert after[1] - before[1] == 5400

        def test_the_next_test_has_real_time():
            assert datetime.datetime.now() != datetime.datetime.now() or time.time() > 1_780_000_000
            assert datetime.datetime.__name__ == "datetime"
        """
    )
    pytester.runpytest().assert_outcomes(passed=2)


def test_the_marker_says_when_time_begins(pytester: pytest.Pytester) -> None:
    """A test that is about a date names it, and needs no fixture by name."""
    pytester.makepyfile(
        """
        import asyncio, datetime, pytest

        @pytest.mark.wall_clock("2024-02-28T23:59:59Z")
        def test_leap_day(virtual_clock):
            virtual_clock.run(asyncio.sleep, 1)
            assert datetime.date.today().isoformat() == "2024-02-29"
        """
    )
    pytester.runpytest("--strict-markers").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("marker", "body", "message"),
    [
        ('"soon"', "pass", "wall clock start is 'soon', but must be a date in ISO 8601"),
        ("", "freezegun.freeze_time('2020-01-01').start()", "freeze_time and the virtual wall clock cannot both*"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(
    pytester: pytest.Pytester, marker: str, body: str, message: str
) -> None:
    """Two owners of the time would give dates that nobody meant."""
    pytester.makepyfile(
        f"""
        import freezegun, pytest

        @pytest.mark.wall_clock({marker})
        def test_dates():
            {body}
        """
    )
    result = pytester.runpytest()
    assert result.ret == 1
    result.stdout.fnmatch_lines([f"*UsageError: {message}"])


def test_the_guard_keeps_real_time(pytester: pytest.Pytester) -> None:
    """A stopped clock would let a host that spins run for ever."""
    pytester.makepyfile(
        """
        import anyio, pytest
        from pytest_agentproc.clock import VirtualClock, wall_clock
        from pytest_agentproc.errors import Spin

        async def spin():
            while True:
                await anyio.sleep(0)

        @pytest.mark.parametrize("backend", ["asyncio", "trio"])
        def test_spin(backend):
            with VirtualClock(guard=0.2) as clock, wall_clock(clock), pytest.raises(Spin):
                clock.run(spin, backend=backend)
        """
    )
    pytester.runpytest().assert_outcomes(passed=2)
