"""How a supervisor below a coordinator polls, and how its machine sleeps. Owns the use of the page; judges nothing.

The coordinator notes each waiter that it lets go at its deadline. Those of the supervisor are
what the timers of a loop are in lockstep: see `PollingDetector`.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_agentproc.clock import PollingDetector
from pytest_agentproc.events import ProcessStarted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_agentproc.clock import SystemClock
    from pytest_agentproc.record import Record


_DATE_OFFSET_BYTES, _MONOTONIC_OFFSET_BYTES, _WAKE_COUNT_OFFSET_BYTES, _FIRST_WAKE_OFFSET_BYTES = 24, 32, 52, 64
"""Where these stand in `page.h`."""
_WAKE_STRUCT = struct.Struct("iiqqq")
_MAX_NOTED_WAKES = 4096
"""`WAKES` of `page.h`."""
_MAX_EQUAL_WAITS = 64
"""A pace is found after a few."""

_MAX_MACHINE_SECONDS_OF_WAKES = 100
"""Seconds of the machine."""


class _CoordinatorWake(NamedTuple):
    pid: int
    tid: int
    armed: int
    at: int
    times: int


class CoordinatorWakes:
    """The waiters that the coordinator lets go from now on."""

    def __init__(self) -> None:
        with Path(os.environ["AGENTPROC_CLOCK"]).open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), 0)
        self._page[_WAKE_COUNT_OFFSET_BYTES : _WAKE_COUNT_OFFSET_BYTES + 4] = bytes(4)
        self._begun = _read_uptime()

    def have_taken_long(self) -> bool:
        """Say whether the machine is busy with them for so long that it must not go on for an hour of virtual time."""
        return _read_uptime() - self._begun > _MAX_MACHINE_SECONDS_OF_WAKES

    def suspend_machine(self, duration: int) -> None:
        """Let the machine sleep for so many nanoseconds: its wall clock jumps, and no process sees time pass."""
        place = slice(_DATE_OFFSET_BYTES, _DATE_OFFSET_BYTES + 8)
        date = int.from_bytes(self._page[place], "little") + duration
        self._page[place] = date.to_bytes(8, "little")

    def close(self) -> None:
        """Let the page go."""
        self._page.close()

    def count_wakes(self) -> int:
        """Give how often a program was let go at a deadline, as far as the page has room."""
        return sum(
            _WAKE_STRUCT.unpack_from(self._page, _FIRST_WAKE_OFFSET_BYTES + index * _WAKE_STRUCT.size)[-1]
            for index in range(self._count_notes())
        )

    def _count_notes(self) -> int:
        """Give the number of noted wakes. A process below may have written any number there."""
        count = int.from_bytes(self._page[_WAKE_COUNT_OFFSET_BYTES : _WAKE_COUNT_OFFSET_BYTES + 4], "little")
        return min(count, _MAX_NOTED_WAKES)

    def build_polling_detector(self, record: Record, clock: SystemClock) -> PollingDetector:
        """Give what the supervisor's timers did: the thread with the longest pace, or else all of them together."""
        fakes = {event.pid for event in record.events if isinstance(event, ProcessStarted)}
        own = [wake for wake in self._iterate_wakes(clock) if wake.pid not in fakes and wake.tid != os.getpid()]
        seen = Counter(wake.tid for wake in own)
        threads: dict[int, list[_CoordinatorWake]] = {}
        for wake in own:  # a shell has a new process for each look
            threads.setdefault(wake.tid if seen[wake.tid] > 1 or wake.times > 1 else 0, []).append(wake)
        detectors = [_build_detector(wakes) for wakes in threads.values()]
        best = max(detectors, key=lambda polling: polling.period, default=PollingDetector())
        return best if best.period else _build_detector(own)

    def _iterate_wakes(self, clock: SystemClock) -> Iterator[_CoordinatorWake]:
        zero = int.from_bytes(self._page[_MONOTONIC_OFFSET_BYTES : _MONOTONIC_OFFSET_BYTES + 8], "little") - clock.zero
        for index in range(self._count_notes()):
            pid, tid, armed, at, times = _WAKE_STRUCT.unpack_from(
                self._page, _FIRST_WAKE_OFFSET_BYTES + index * _WAKE_STRUCT.size
            )
            yield _CoordinatorWake(pid, tid, armed + zero, at + zero, times)


def _read_uptime() -> float:
    """Give the seconds of the machine, which no clock, and so no psutil, gives below a coordinator."""
    return float(Path("/proc/uptime").read_text("ascii").split()[0])


def _build_detector(wakes: Iterable[_CoordinatorWake]) -> PollingDetector:
    polling = PollingDetector()
    for armed, at in chain.from_iterable(map(_iterate_last_equal_waits, wakes)):
        polling.record_sleep(armed, at)
        polling.record_wake(at)
    return polling


def _iterate_last_equal_waits(wake: _CoordinatorWake) -> Iterator[tuple[int, int]]:
    """Give when each of several equal waits in a row began and ended: the last ones."""
    step = wake.at - wake.armed
    for back in reversed(range(min(wake.times, _MAX_EQUAL_WAITS))):
        yield wake.armed - back * step, wake.at - back * step
