"""Fixtures are typed for users: mypy checks this file, and each `assert_type` in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_type

if TYPE_CHECKING:
    from pytest_agentproc.plugin import VirtualClock


async def double(number: int, *, times: int = 2) -> int:
    """Stand for a user's function."""
    return number * times


async def word() -> str:
    """Stand for another one."""
    return "hi"


def test_a_run_keeps_the_type_of_its_result(virtual_clock: VirtualClock) -> None:
    """A result of `Any` would hide mistakes in the rest of the test."""
    assert assert_type(virtual_clock.run(double, 2), int) == 4
    assert assert_type(virtual_clock.run(double(2, times=3)), int) == 6
    assert assert_type(virtual_clock.run(word, backend="trio"), str) == "hi"


def test_a_run_checks_the_arguments(virtual_clock: VirtualClock) -> None:
    """Its twin: where mypy saw no mistake here, the ignored error would be one."""
    assert virtual_clock.run(double, "2") == "22"  # type: ignore[arg-type, comparison-overlap]
