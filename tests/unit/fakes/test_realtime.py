"""When a fake in real time was started: the zero of all that it plays."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from pytest_agentproc.fake_agents import realtime

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

PAUSE = 50_000_000


def test_a_pause_between_two_looks_at_the_time_makes_no_start_earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start before its supervisor's zero is red for a supervisor that did nothing wrong, on a busy machine only."""
    late = 0

    def paused(clock: Callable[..., int]) -> Callable[..., int]:
        def look(*arguments: int) -> int:
            nonlocal late
            late += PAUSE
            return clock(*arguments) + late

        return look

    clocks = SimpleNamespace(
        monotonic_ns=paused(time.monotonic_ns),
        clock_gettime_ns=paused(time.clock_gettime_ns),
        CLOCK_BOOTTIME=time.CLOCK_BOOTTIME,
    )
    monkeypatch.setattr(realtime, "time", clocks)
    monkeypatch.setattr(realtime, "_MAX_START_NS", 1 << 62)
    ticks = int(Path("/proc/self/stat").read_text("ascii").rpartition(")")[2].split()[19])
    started = ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    offset = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns()
    assert realtime._read_process_start_instant() >= started - offset  # noqa: SLF001  # only a machine under load shows it otherwise
