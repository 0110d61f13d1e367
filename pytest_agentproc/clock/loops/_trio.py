"""Virtual time for trio: a clock that waits at the hub. The one file that touches trio's private names.

Trio asks its clock how long to sleep only when no task can run: that is the hub's turn, and the answer is always 'not
at all'. Touched: the runner's `io_manager`, `deadlines` and `waiting_for_idle`, tasks' `_attempt_abort`, the die that
trio casts for the order of tasks and whether it shuffles them by it (test libraries ask for that), the runner's `runq`
and its tasks' `_next_send`, the start of worker threads, the `socket` of the module that makes the wake-up pair, and
`to_thread.run_sync`, through which trio starts processes.
"""

from __future__ import annotations

import math
import operator
import random
import subprocess
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import outcome
import trio
import trio._core._run
import trio._core._wakeup_socketpair
import trio._threads

from pytest_agentproc.clock._debugger import is_guard_time_over
from pytest_agentproc.clock.loops._socket_pairs import allow_socket_pairs
from pytest_agentproc.errors import ClockError, Spin, Stall, UsageError
from pytest_agentproc.interrupts import whole_block
from pytest_agentproc.originals import monotonic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from pytest_agentproc.clock._hub import Hub

    HostWatchFactory = Callable[[], AbstractContextManager[None]]


_STEPS_BETWEEN_TIME_CHECKS = 64
"""A loop that is never idle is timed this often, in iterations."""

_MAX_ERRORS_THROWN_INTO_TASKS = 3
"""The number of faults thrown into waiting tasks after which the run is broken off."""


_get_timer_deadline: Callable[[Any], float] = operator.itemgetter(0)
"""Gives the deadline of one of trio's timers."""


class _WorkerThreads:
    """Worker threads in flight: each holds time until it delivers, or until a stall makes its waiter give up."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._waiting: dict[object, Callable[[Any], Any]] = {}

    def start(
        self,
        plain: Callable[..., None],
        function: Callable[[], Any],
        deliver: Callable[[Any], Any],
        name: str | None = None,
    ) -> None:
        key = object()
        self._waiting[key] = deliver
        self._hub.busy += 1
        plain(function, lambda result: self._deliver_result(key, result), name)

    def raise_in_waiters(self, error: Exception) -> None:
        """Raise the error in every waiter; the late result of its thread is dropped."""
        for key in tuple(self._waiting):
            self._deliver_result(key, outcome.Error(error))

    def _deliver_result(self, key: object, result: Any) -> None:
        deliver = self._waiting.pop(key, None)
        if deliver is not None:
            try:
                deliver(result)
            finally:
                self._hub.busy -= 1


class _InOrderRandom(random.Random):
    """A die that always has tasks run in the order in which they became ready."""

    def random(self) -> float:
        """Give the number for which trio turns its list of them round, whose end it takes first."""
        return 0.0


_SHARED_IN_ORDER_RANDOM = _InOrderRandom()
"""One for all runs: to make one asks the kernel for a state that is never used."""


class TrioClock(trio.abc.Clock, trio.abc.Instrument):
    """A trio clock on the hub's time, which as an instrument also sees when trio looks for due timers.

    Args:
        hub: whose time it is.
        attended: entered whenever trio runs.
    """

    is_idle = False
    """Whether trio has nothing to do for its host, which resumes it when it has: it must not wait then."""

    def __init__(self, hub: Hub, attended: HostWatchFactory) -> None:
        self._hub = hub
        self._attended = attended
        self._run = ExitStack()
        self._seconds = hub.seconds
        self._fire = True
        self._expiring = False
        self._descriptor: int | None = None
        self._steps = 0
        self._since = 0.0
        self._throws = 0
        self._end: ClockError | None = None
        self.threads = _WorkerThreads(hub)

    def start_clock(self) -> None:
        """Begin; the hub has begun already."""

    def current_time(self) -> float:
        """Give virtual seconds since the clock's start; -inf, when trio asks for timers and none may fire."""
        # Trio asks for the time in two places: tasks ask for the present, and the loop for due timers. Only the second
        # may be held back. `after_io_wait` marks it.
        if self._expiring:
            self._expiring = False
            if self._end is not None:
                raise self._end  # it is swallowed, too
            fire, self._hub.is_late = self._fire or self._hub.is_late, False
            return self._find_firing_time() if fire else -math.inf
        return self._seconds.now()

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Let the others move until trio has something to do; then there is nothing left to sleep."""
        runner = trio._core._run.GLOBAL_RUN_CONTEXT.runner
        if self.is_idle:
            self._fire = False
            return 0.0
        if self._descriptor is None:
            self._descriptor = runner.io_manager._epoll.fileno()
            self._hub.watch_loop(self._descriptor)
            self._hub.tasks = lambda: [task.coro for task in runner.tasks]
        self._steps = 0
        if runner.waiting_for_idle:
            self._fire = False
            return math.inf  # more than whatever cushion they wait for
        # After a blocked callback trio must look at input and timers in one round.
        if self._hub.is_late:
            return 0.0
        self._seconds.note_timer(deadline)
        try:
            self._fire = self._hub.advance_time(self._seconds.find_intended_instant(deadline))
        except ClockError as error:
            # An error raised from here would become a TrioInternalError, and the program's clean-up would never run.
            self._throw_into_tasks(runner, error)
        # A stalled thread never delivers, so its waiter would wait for ever although the verdict is known.
        if isinstance(self._hub.fault, Stall):
            self.threads.raise_in_waiters(self._hub.fault)
        return 0.0

    def _find_firing_time(self) -> float:
        """Give the time up to which timers fire now."""
        return self._seconds.advance_to_last_due_timer(
            trio._core._run.GLOBAL_RUN_CONTEXT.runner.deadlines._heap, _get_timer_deadline
        )

    def _throw_into_tasks(self, runner: Any, error: ClockError) -> None:
        """Raise in every task that waits: this is the second fault, so they hide from cancellation.

        Raised here it would be an internal error of trio, and the program's own clean-up would never run.
        """
        self._fire = False
        # The first fault cancels a scope; these tasks are shielded from it. After three throws the program seems
        # to swallow every error.
        self._throws += 1
        if self._throws > _MAX_ERRORS_THROWN_INTO_TASKS:
            raise error

        def raise_error() -> None:
            raise error

        for task in tuple(runner.tasks):
            if task is not runner.init_task and task.parent_nursery is not runner.system_nursery and task._abort_func:
                task._attempt_abort(raise_error)

    def before_io_wait(self, timeout: float) -> None:
        """Count the steps since the hub was asked last: tasks that run on for ever never ask it."""
        self._steps += 1
        if self._steps == 1:
            self._since = monotonic()
        if self._steps % _STEPS_BETWEEN_TIME_CHECKS:
            return
        self._hub.turns += 1
        longest = self._hub.longest_loop_seconds
        if is_guard_time_over(self._since, longest):
            steps, self._steps = self._steps, 0
            spin = Spin(f"the trio loop ran {steps} times, for {longest:g} s, without a pause, a byte or a jump")
            if self._hub.fault is None:
                self._hub.abort_with(spin)
            else:
                self._throw_into_cancelled(spin)

    def _throw_into_cancelled(self, error: ClockError) -> None:
        """Give the error to every task that is about to be cancelled: a task that runs on swallows cancellation."""
        # A task that swallows `Cancelled` runs on for ever. The fault in its place ends it.
        self._throws += 1
        if self._throws > _MAX_ERRORS_THROWN_INTO_TASKS:
            self._end = error
        for task in trio._core._run.GLOBAL_RUN_CONTEXT.runner.runq:
            if isinstance(task._next_send, outcome.Error):
                task._next_send = outcome.Error(error)

    def after_io_wait(self, timeout: float) -> None:
        """Take the next question for the time as the one for due timers."""
        self._expiring = True

    def before_run(self) -> None:
        """Have the hub know what the host does; a host of its own says itself when trio runs."""
        if not trio._core._run.GLOBAL_RUN_CONTEXT.runner.is_guest:
            self._run.enter_context(self._attended())

    def after_run(self) -> None:
        """Let go of trio's descriptor before trio closes it."""
        if self._descriptor is not None:
            self._hub.poller.forget(self._descriptor)
            self._descriptor = None
        self._run.close()

    def drop_references(self) -> None:
        """Hold nothing any more: trio's own objects hold one another, and this, until the garbage collector comes."""
        vars(self).clear()


@whole_block
def host_trio_runs(hub: Hub, attended: HostWatchFactory) -> Iterator[None]:
    """Have every run of trio be on the hub's time, whatever library starts it."""
    from anyio._backends import _trio as backend

    core: Any = trio._core._run
    runners: Any = backend.TestRunner
    plain_setup, plain_call = core.setup_runner, runners._call_in_runner_task

    with build_trio_options(hub, attended) as options:
        clock: TrioClock = options["clock"]

        def setup_runner(given: Any, instruments: Any, *others: Any) -> Any:
            if isinstance(given, TrioClock):
                return plain_setup(given, instruments, *others)
            if given is not None:
                raise UsageError(
                    f"{type(given).__name__} and virtual time cannot both be the clock of trio",
                    "drop the clock fixture: virtual time jumps by itself",
                )
            return plain_setup(clock, [*instruments, clock], *others)

        def call_in_runner_task(runner: Any, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            """Run one fixture or one test of anyio's plugin, whose trio is a guest: between them it is idle."""

            def call_and_mark_busy(*args: Any, **kwargs: Any) -> Any:
                clock.is_idle = False
                return await_and_mark_idle(function(*args, **kwargs))

            async def await_and_mark_idle(result: Any) -> Any:
                try:
                    return await result
                finally:
                    clock.is_idle = True

            clock.is_idle = True
            with attended():
                return plain_call(runner, call_and_mark_busy, *args, **kwargs)

        core.setup_runner, runners._call_in_runner_task = setup_runner, call_in_runner_task
        try:
            yield
        finally:
            core.setup_runner, runners._call_in_runner_task = plain_setup, plain_call


@whole_block
def build_trio_options(hub: Hub, attended: HostWatchFactory) -> Iterator[dict[str, Any]]:
    """Give anyio's backend options; worker threads hold time meanwhile."""
    clock = TrioClock(hub, attended)
    threads: Any = trio._threads
    to_thread: Any = trio.to_thread
    core: Any = trio._core._run
    plain_start, plain_run = threads.start_thread_soon, to_thread.run_sync
    plain_die, is_shuffled = core._r, core._ALLOW_DETERMINISTIC_SCHEDULING

    async def run_sync(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Start processes in place: in threads of their own their order would be a race."""
        # `Popen` in a worker thread would start processes in the order that the machine gives to threads.
        if isinstance(function, partial) and function.func is subprocess.Popen:
            await trio.lowlevel.checkpoint_if_cancelled()
            return function(*args)
        return await plain_run(function, *args, **options)

    threads.start_thread_soon = partial(clock.threads.start, plain_start)
    to_thread.run_sync = run_sync
    # Trio reverses every other batch of ready tasks by an unseeded random number, so one program had two timelines.
    # With hypothesis loaded it shuffles by the same number.
    core._r, core._ALLOW_DETERMINISTIC_SCHEDULING = _SHARED_IN_ORDER_RANDOM, False
    try:
        with allow_socket_pairs(trio._core._wakeup_socketpair):
            yield {"clock": clock, "instruments": [clock]}
    finally:
        threads.start_thread_soon, to_thread.run_sync = plain_start, plain_run
        core._r, core._ALLOW_DETERMINISTIC_SCHEDULING = plain_die, is_shuffled
        clock.drop_references()
