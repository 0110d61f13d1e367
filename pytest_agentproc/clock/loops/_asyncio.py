"""Virtual time for asyncio: a loop whose selector waits at the hub. The one file that touches asyncio's private names.

Touched: `BaseEventLoop._ready`, `_scheduled`, `_stopping`, `_clock_resolution`, `_default_executor`, pipes' `_pipe`,
`_make_*_transport`, `_closed` of a child's transport; `_selector`, `_callback` of a handle; the `socket` of the modules
that make socket pairs; before 3.12 the child watcher; anyio's backend for its worker threads.
"""

from __future__ import annotations

import asyncio
import asyncio.selector_events
import asyncio.unix_events
import math
import os
import selectors
import sys
import threading
import warnings
import weakref
from typing import TYPE_CHECKING, Any

from pytest_agentproc.clock._debugger import is_guard_time_over
from pytest_agentproc.clock.loops._socket_pairs import allow_socket_pairs
from pytest_agentproc.clock.loops._warnings import is_reporting_errors
from pytest_agentproc.errors import Spin
from pytest_agentproc.interrupts import whole_block
from pytest_agentproc.originals import monotonic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor
    from contextlib import AbstractContextManager

    from pytest_agentproc.clock._hub import Hub

    HostWatchFactory = Callable[[], AbstractContextManager[None]]


_ITERATIONS_BETWEEN_IO_LOOKS = 64
"""The number of iterations after which a loop that is never idle looks at its I/O."""
_ANYIO_THREAD_RUNNER_NAME = "run_sync_in_worker_thread"


class _HubSelector(selectors.EpollSelector):
    """Wait at the hub instead of in the kernel."""

    loop: VirtualLoop

    def __init__(self, hub: Hub) -> None:
        super().__init__()
        self._hub = hub
        self._busy = 0
        self._since = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        loop = self.loop
        # No timer may fire during a look at I/O. The loop would compare timers with its own clock and fire a timeout
        # that an agent's answer of the same instant has to beat.
        loop.hold_timers()
        # After a blocked callback the loop takes input and due timers in one iteration, as in real time.
        if self._hub.is_late:
            self._hub.is_late = False
            loop.release_timers()
            return super().select(0)
        # Callbacks come first: several iterations may belong to one instant. All that is due at it runs before time
        # moves.
        if loop.has_ready_callbacks():
            self._busy += 1
            self._hub.turns += 1
            if self._busy % _ITERATIONS_BETWEEN_IO_LOOKS:
                return []
            self._raise_if_spinning()
            self._hub.settle_participants()
            return super().select(0)
        fire = self._hub.advance_time(loop.find_next_timer())
        self._busy = 0
        if fire:
            loop.release_timers()
        return super().select(0)

    def _raise_if_spinning(self) -> None:
        self._hub.turns += 1
        if self._busy == _ITERATIONS_BETWEEN_IO_LOOKS:
            self._since = monotonic()
        elif is_guard_time_over(self._since, self._hub.longest_loop_seconds):
            turns, self._busy = self._busy, 0
            self._hub.abort_with(
                Spin(
                    f"the asyncio loop ran {turns} times, for {self._hub.longest_loop_seconds:g} s, {_SPIN_DESCRIPTION}"
                )
            )


_SPIN_DESCRIPTION = "without a pause, a byte or a jump"


class VirtualLoop(asyncio.SelectorEventLoop):
    """An asyncio loop on the hub's time.

    Args:
        hub: whose time it is.
        attended: entered whenever the loop runs.
    """

    def __init__(self, hub: Hub, attended: HostWatchFactory) -> None:
        self._hub = hub
        self._attended = attended
        self._seconds = hub.seconds
        selector = _HubSelector(hub)
        selector.loop = self
        self._children: weakref.WeakSet[asyncio.SubprocessTransport] = weakref.WeakSet()
        self._pipes: weakref.WeakSet[Any] = weakref.WeakSet()
        super().__init__(selector)

    def run_forever(self) -> None:
        """Run, and register the loop with the hub meanwhile: a test library keeps loops that do not run."""
        with self._attended():
            descriptor = self._selector.fileno()  # type: ignore[attr-defined]
            self._hub.watch_loop(descriptor)
            self._hub.tasks = lambda: [task.get_coro() for task in asyncio.all_tasks(self)]
            try:
                super().run_forever()
            finally:
                self._hub.poller.forget(descriptor)
                self._hub.tasks = tuple  # else hub and loop hold each other until the garbage collector comes

    def time(self) -> float:
        """Give virtual seconds since the clock's start."""
        return self._seconds.now()

    def has_ready_callbacks(self) -> bool:
        """Say whether callbacks wait to be run."""
        return bool(self._ready or self._stopping)  # type: ignore[attr-defined]

    def find_next_timer(self) -> int | None:
        """Give the instant of the earliest timer, from the timer itself: a timeout would have been rounded."""
        # asyncio would pass a timeout, rounded to its clock's resolution. The timer itself has the exact deadline.
        scheduled: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        if not scheduled:
            return None
        self._seconds.note_timer(when := scheduled[0].when())
        return self._seconds.find_intended_instant(when)

    def hold_timers(self) -> None:
        """Keep all timers from firing, also the due ones: the hub decides when."""
        self._clock_resolution = -math.inf

    def release_timers(self) -> None:
        """Let timers fire that are due at this very instant."""
        scheduled: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        last = self._seconds.advance_to_last_due_timer(scheduled, asyncio.TimerHandle.when)
        self._clock_resolution = math.ulp(last)  # asyncio has those fire that are less than the time and this

    async def _make_subprocess_transport(self, *args: Any, **kwargs: Any) -> asyncio.SubprocessTransport:
        make = super()._make_subprocess_transport  # type: ignore[misc]
        transport: asyncio.SubprocessTransport = await make(*args, **kwargs)
        self._children.add(transport)
        return transport

    def _make_read_pipe_transport(self, *args: Any, **kwargs: Any) -> asyncio.BaseTransport:
        return self._remember_pipe(super()._make_read_pipe_transport(*args, **kwargs))  # type: ignore[misc]

    def _make_write_pipe_transport(self, *args: Any, **kwargs: Any) -> asyncio.BaseTransport:
        return self._remember_pipe(super()._make_write_pipe_transport(*args, **kwargs))  # type: ignore[misc]

    def _remember_pipe(self, transport: asyncio.BaseTransport) -> asyncio.BaseTransport:
        self._pipes.add(transport)
        return transport

    def close(self) -> None:
        """Close the loop, and before that the transports that the program has left open.

        After a fault these are all; otherwise those of dead children, whose last EOF came at the instant the program
        ended.
        """
        # An open transport would log "Event loop is closed" later, in an unrelated test.
        is_faulty = self._hub.fault is not None
        if not self.is_closed():
            children = [child for child in self._children if is_faulty or child.get_returncode() is not None]
            for child in children:
                child.close()
            # A pipe that is to close waits for its reader first, and that may be a process that lives on.
            pipes = [pipe for pipe in self._pipes if (is_faulty or pipe.is_closing()) and not _is_pipe_ending(pipe)]
            for pipe in pipes:
                # A transport whose end is on its way must not be aborted again: on CPython 3.13 that logged an
                # AttributeError after each deadlock.
                getattr(pipe, "abort", pipe.close)()
            if children or pipes:
                self.call_soon(self.stop)
                self.run_forever()
        for child in self._children:
            if child.get_returncode() is None and self._hub.registry.is_known(child.get_pid() or 0):
                # A fake that lives is left, and its test fails for it. To close its transport would kill it before that
                # is seen. Without this mark the transport's finalizer raises "Event loop is closed", and pytest prints
                # 25 lines of traceback.
                child._closed = True  # type: ignore[attr-defined]
        pidfds = [] if self.is_closed() else self._list_pidfds_of_living_children()
        super().close()
        for pidfd in pidfds:
            os.close(pidfd)

    def _list_pidfds_of_living_children(self) -> list[int]:
        """List the pidfds by which asyncio waits for children: it closes one at the child's exit only."""
        return [
            key.fd
            for key in self._selector.get_map().values()  # type: ignore[attr-defined]
            for handle in key.data
            if handle is not None and _is_wait_for_child(handle._callback)
        ]

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Report unhandled errors as long as the program runs."""
        if is_reporting_errors(self):
            super().call_exception_handler(context)

    async def shutdown_default_executor(self, *timeout: Any) -> None:
        """Hold time while the threads end; after a fault wait for none, since one may never end."""
        executor: Executor | None = self._default_executor  # type: ignore[has-type]
        if self._hub.fault is not None and executor is not None:
            executor.shutdown(wait=False, cancel_futures=True)
            self._default_executor = None
        self._hub.busy += 1
        try:
            await super().shutdown_default_executor(*timeout)
        finally:
            self._hub.busy -= 1

    def run_in_executor(  # type: ignore[override]  # the stub's variadic types say the same
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Hold time while the thread runs."""
        # A thread in flight holds time: a jump before its return would give the program its timeout before its result.
        future = super().run_in_executor(executor, func, *args)
        self._hub.busy += 1  # only now: a pool that is shut down has refused it

        def release_held_time(_: object) -> None:
            self._hub.busy -= 1

        future.add_done_callback(release_held_time)
        return future


def _is_pipe_ending(transport: Any) -> bool:
    """Say whether a pipe is closed or closes soon; a pipe that still has bytes to write may stay open for ever."""
    # Only pipes have this; a subprocess transport may always be closed.
    if not hasattr(transport, "_pipe"):
        return False
    is_stuck = bool(getattr(transport, "get_write_buffer_size", int)())
    return transport._pipe is None or (transport.is_closing() and not is_stuck)


def _is_wait_for_child(callback: object) -> bool:
    """Say whether a loop's reader is asyncio's own wait for a child by its pidfd."""
    watcher = getattr(callback, "__self__", None)
    return type(watcher).__module__ == asyncio.unix_events.__name__ and "Pidfd" in type(watcher).__name__


@whole_block
def host_asyncio_loops(hub: Hub, attended: HostWatchFactory) -> Iterator[None]:
    """Put every loop that is made in this thread on the hub's time: `asyncio.Runner` and test libraries ask here."""
    plain, thread = asyncio.new_event_loop, threading.get_ident()

    with build_asyncio_options(hub, attended) as options:

        def new_event_loop() -> asyncio.AbstractEventLoop:
            is_here = threading.get_ident() == thread
            loop: asyncio.AbstractEventLoop = options["loop_factory"]() if is_here else plain()
            return loop

        for module in (asyncio, asyncio.events):
            vars(module)["new_event_loop"] = new_event_loop
        try:
            yield
        finally:
            for module in (asyncio, asyncio.events):
                vars(module)["new_event_loop"] = plain


@whole_block
def build_asyncio_options(hub: Hub, attended: HostWatchFactory) -> Iterator[dict[str, Any]]:
    """Give anyio's backend options; threads and children are the hub's business meanwhile."""
    from anyio._backends import _asyncio as backend

    pool: Any = backend.AsyncIOBackend
    kept, plain = pool.__dict__[_ANYIO_THREAD_RUNNER_NAME], getattr(pool, _ANYIO_THREAD_RUNNER_NAME)

    async def run_sync_in_worker_thread(*args: Any, **kwargs: Any) -> Any:
        hub.busy += 1
        try:
            return await plain(*args, **kwargs)
        finally:
            hub.busy -= 1

    setattr(pool, _ANYIO_THREAD_RUNNER_NAME, staticmethod(run_sync_in_worker_thread))
    try:
        with (
            allow_socket_pairs(asyncio.selector_events, asyncio.unix_events),
            _watch_children_by_pidfd() as attach,
        ):
            yield {"loop_factory": lambda: attach(VirtualLoop(hub, attended))}
    finally:
        setattr(pool, _ANYIO_THREAD_RUNNER_NAME, kept)


@whole_block
def _watch_children_by_pidfd() -> Iterator[Callable[[VirtualLoop], VirtualLoop]]:
    """Give what makes a loop wait for children by pidfd: before 3.12 asyncio has threads for that."""
    # The thread of the old child watcher reports an exit in real time: 9 of 150 runs saw it at the wrong instant.
    if sys.version_info >= (3, 12):
        yield lambda loop: loop
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        policy: Any = asyncio.get_event_loop_policy()
        before = getattr(policy, "_watcher", None)
        watcher: Any = asyncio.PidfdChildWatcher()
        policy.set_child_watcher(watcher)

    def attach_child_watcher(loop: VirtualLoop) -> VirtualLoop:
        watcher.attach_loop(loop)
        return loop

    try:
        yield attach_child_watcher
    finally:
        policy._watcher = before
