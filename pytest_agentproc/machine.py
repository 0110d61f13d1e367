"""The machine's own time, also where a preload clock moves all clocks of this process. Owns the calls of the shim.

Below the coordinator of the preload clock (`clock/preload`) the shim answers every reading of a clock and ends every
wait. The kit's own waits must not move that time.
"""

from __future__ import annotations

import os
import select
import threading
import time
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from pytest_agentproc.interrupts import whole_block
from pytest_agentproc.originals import monotonic, monotonic_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "CLOCK_PAGE_VARIABLE",
    "enter_virtual_time",
    "find_preload_shim",
    "hold_virtual_time",
    "is_virtual",
    "read_date",
    "read_monotonic",
    "read_virtual_start",
    "sleep_machine_time",
]

CLOCK_PAGE_VARIABLE = "AGENTPROC_CLOCK"
"""The variable of the environment that leads a program to the page of its coordinator."""

_date: Callable[[], float] = partial(time.clock_gettime, time.CLOCK_REALTIME)
_CLOCK_REALTIME, _CLOCK_MONOTONIC = 0, 1
_virtual_start_ns: int | None = None
_known_threads: set[int] = set()
_SECONDS_FOR_NEW_THREADS = 2


@cache
def find_preload_shim() -> Any:
    """Give the shim that is loaded into this process; None: it is not below a coordinator."""
    if CLOCK_PAGE_VARIABLE not in os.environ:
        return None
    import ctypes  # slow to load, and needed below the coordinator alone

    shim: Any = ctypes.CDLL(None)
    if not hasattr(shim, "agentproc_is_below") or not shim.agentproc_is_below():
        return None
    shim.agentproc_machine.restype = ctypes.c_int64
    shim.agentproc_notes.restype = shim.agentproc_waits.restype = ctypes.c_char_p
    shim.agentproc_enter.argtypes = [ctypes.c_int64, ctypes.c_int]
    shim.agentproc_nap.argtypes = [ctypes.c_int64]
    return shim


def is_virtual() -> bool:
    """Say whether a coordinator moves all clocks of this process now."""
    shim = find_preload_shim()
    return shim is not None and bool(shim.agentproc_is_virtual())


def read_virtual_start() -> int | None:
    """Give when this sync test's virtual time began, as `time.monotonic_ns()` counts; None: there is none."""
    return _virtual_start_ns


def _wait_for_new_threads() -> None:
    """Wait until each thread that was started since the last time has come to rest, for two seconds at most.

    A wait lives in the time in which it begins. A thread that has just been started, such as that of a time-out, may
    begin its wait only later: it would live in virtual time, which stands still while the test computes.
    """
    from pytest_agentproc.procfs import list_threads, read_switches

    new = {*list_threads(os.getpid())} - _known_threads - {threading.get_native_id()}
    _known_threads.update(new)
    until = monotonic() + _SECONDS_FOR_NEW_THREADS
    before: dict[int, tuple[int, ...]] = {}
    while new and monotonic() < until:
        # During the nap who waits for the interpreter gets it, and is switched; who waits for a core does not sleep.
        now = {thread: read_switches(thread) for thread in new & {*list_threads(os.getpid())}}
        new = {thread for thread, switches in now.items() if not switches or switches != before.get(thread)}
        before = now
        if new:
            sleep_machine_time(1)


@whole_block
def enter_virtual_time(date: int, alarm: int) -> Iterator[Any]:
    """Have time be virtual below the coordinator while the block runs; gives the shim.

    Args:
        date: the date at its start, in nanoseconds since 1970.
        alarm: the signal that this thread gets when nobody can move any more.
    """
    global _virtual_start_ns  # noqa: PLW0603  # as the shim's page, it is one for the whole process
    shim = find_preload_shim()
    if not shim.agentproc_is_virtual():
        _wait_for_new_threads()
    was_real = shim.agentproc_enter(date, alarm)
    _virtual_start_ns = monotonic_ns()
    try:
        yield shim
    finally:
        _virtual_start_ns = None
        shim.agentproc_leave(was_real)


@whole_block
def hold_virtual_time(holders: int = 1) -> Iterator[None]:
    """Have virtual time stand still while the block runs; with -1, let it go on within a block in which it does not."""
    find_preload_shim().agentproc_hold(holders)
    try:
        yield
    finally:
        find_preload_shim().agentproc_hold(-holders)


def read_monotonic() -> float:
    """Give the seconds of the machine's clock of durations."""
    shim = find_preload_shim()
    return monotonic() if shim is None else shim.agentproc_machine(_CLOCK_MONOTONIC) / 1e9


def read_date() -> float:
    """Give the machine's date, in seconds since 1970."""
    shim = find_preload_shim()
    return _date() if shim is None else shim.agentproc_machine(_CLOCK_REALTIME) / 1e9


def sleep_machine_time(milliseconds: int) -> None:
    """Wait by the machine's clock; virtual time stands still meanwhile."""
    shim = find_preload_shim()
    if shim is None:
        select.poll().poll(milliseconds)
    else:
        shim.agentproc_nap(milliseconds * 1_000_000)
