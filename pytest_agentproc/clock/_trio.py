"""Virtual time for trio: a clock that waits at the hub. The one file that touches trio's private names.

Trio asks its clock how long to sleep only when no task can run: that is the hub's turn, and the answer is always 'not
at all'. Touched: the runner's `io_manager` and `waiting_for_idle`, and the start of worker threads.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import trio
import trio._core._run
import trio._threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_agentproc.clock._hub import Hub

__all__ = ["TrioClock", "trio_options"]


class TrioClock(trio.abc.Clock, trio.abc.Instrument):
    """A trio clock on the hub's time, and the instrument that tells it when trio looks for due timers."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._fire = True
        self._expiring = False
        self._descriptor: int | None = None

    def start_clock(self) -> None:
        """Begin; the hub has begun already."""

    def current_time(self) -> float:
        """Give virtual seconds since the clock's start; just below, when trio asks for timers that may not fire."""
        seconds = self._hub.now / 1_000_000_000
        if self._expiring:
            self._expiring = False
            return seconds + 0.5e-9 if self._fire else seconds - 0.5e-9
        return seconds

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Let the others move until trio has something to do; then there is nothing left to sleep."""
        runner = trio._core._run.GLOBAL_RUN_CONTEXT.runner
        if self._descriptor is None:
            self._descriptor = runner.io_manager._epoll.fileno()
            self._hub.watch_loop(self._descriptor)
        if runner.waiting_for_idle:
            self._fire = False
            return 1.0
        self._fire = self._hub.turn(None if deadline == math.inf else round(deadline * 1_000_000_000))
        return 0.0

    def before_io_wait(self, timeout: float) -> None:
        """Nothing: the hub has waited."""

    def after_io_wait(self, timeout: float) -> None:
        """Take the next question for the time as the one for due timers."""
        self._expiring = True

    def after_run(self) -> None:
        """Let go of trio's descriptor before trio closes it."""
        if self._descriptor is not None:
            self._hub.poller.forget(self._descriptor)


@contextmanager
def trio_options(hub: Hub) -> Iterator[dict[str, Any]]:
    """Give anyio's backend options; worker threads hold time meanwhile."""
    threads: Any = trio._threads
    plain = threads.start_thread_soon

    def start_thread_soon(fn: Callable[[], Any], deliver: Callable[[Any], Any], name: str | None = None) -> None:
        hub.busy += 1

        def delivered(result: Any) -> None:
            try:
                deliver(result)
            finally:
                hub.busy -= 1

        plain(fn, delivered, name)

    threads.start_thread_soon = start_thread_soon
    clock = TrioClock(hub)
    try:
        yield {"clock": clock, "instruments": [clock]}
    finally:
        threads.start_thread_soon = plain
