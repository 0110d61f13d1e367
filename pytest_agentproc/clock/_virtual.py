"""The virtual clock as its users see it: run an async function in virtual time. Owns one hub; knows no scenario."""

from __future__ import annotations

import contextlib
import datetime as dt
import functools
import importlib.util
import inspect
import threading
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple, overload

import anyio

from pytest_agentproc import machine
from pytest_agentproc.clock._blockage import block_loop
from pytest_agentproc.clock._guards import watch_for_spin
from pytest_agentproc.clock._hub import Hub
from pytest_agentproc.clock._protocol import current_clock, set_current_clock
from pytest_agentproc.clock.loops._host_hooks import (
    KnownPrograms,
    await_started_child,
    end_started_processes,
    watch_host,
)
from pytest_agentproc.errors import UsageError
from pytest_agentproc.interrupts import end_left_blocks, whole_block

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
    from types import TracebackType

    from pytest_agentproc.clock._guards import PollingDetector
    from pytest_agentproc.clock._protocol import WatchedRun
    from pytest_agentproc.errors import ClockError


_Result = TypeVar("_Result")
_Arguments = TypeVarTuple("_Arguments")

DEFAULT_START_DATE = "2026-01-01T00:00:00Z"
"""The date that `datetime.now()` shows at the start of virtual time by default."""

EVENT_LOOP_BACKENDS = ("asyncio", "trio")

_running_clock_lock = threading.Lock()
"""Held while a virtual clock runs: it patches what all threads share."""


@contextlib.contextmanager
def raise_interrupt_alone() -> Iterator[None]:
    """Raise a Ctrl-C alone if it leaves the block in a group, as trio raises it: pytest would call it a failure."""
    try:
        yield
    except BaseExceptionGroup as group:
        if group.subgroup(KeyboardInterrupt) is None:
            raise
        raise KeyboardInterrupt from group


class VirtualClock:
    """Time that moves only when the program under test and every fake agent are blocked.

    As a context manager it ends all processes that are left at the end of the block.

    Args:
        allow: names of other programs that may be started; see `allow`.
        guard: real seconds after which a fake or a thread that neither parks nor speaks is a `Stall`.
        patience: virtual seconds of repeated looks, while nothing else happens, that make a `Spin`.
        start: the date and time at its start, in ISO 8601; without an offset it is UTC.

    Raises:
        UsageError: `start` is no date.
    """

    name = "virtual"

    def __init__(
        self,
        *,
        allow: Iterable[str] = (),
        guard: float = 10.0,
        patience: float = 86_400.0,
        start: str = DEFAULT_START_DATE,
    ) -> None:
        self.start = _parse_start_date(start)
        self.hub = Hub(guard, round(patience * 1_000_000_000))
        self.slept_ns = 0
        """How far the wall clock has jumped while the machine slept, in nanoseconds."""
        self.has_run = False
        """Whether anything was in this time so far."""
        self._depth = 0
        self._is_closed = False
        self.launchers: set[str] = set()
        self.on_close: Callable[[], None] | None = None
        self._allowed = set(allow)

    def __enter__(self) -> VirtualClock:  # noqa: PYI034  # it has no subclass
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def now(self) -> float:
        """Seconds since this clock's start."""
        return self.hub.now / 1_000_000_000

    @property
    def now_ns(self) -> int:
        """Nanoseconds since this clock's start."""
        return self.hub.now

    @property
    def polling_detector(self) -> PollingDetector:
        """The pace at which the code that runs in this time wakes by itself."""
        return self.hub.polling_detector

    def allow(self, *names: str) -> None:
        """Allow programs that are no fakes, such as an MCP server or `cat`, from the next start on.

        Time is held while such a program works, or sleeps by the machine's clock. It passes while the program and its
        children wait for input. The limit: a program that waits for another machine looks the same, so time passes
        then, too.

        Args:
            names: the file names of the programs, as they are started: `cat`, `node`.
        """
        self._allowed.update(names)

    def on_fault(self, report: Callable[[ClockError], None]) -> None:
        """Report a fault at once, before any process is ended or any task is cancelled for it."""
        self.hub.fault_handler = report

    def block(self, seconds: float) -> None:
        """Keep the event loop from running for a time, as a long computation in a callback does.

        Agents continue meanwhile. In its next iteration the loop finds all their output, and every due timer.

        Args:
            seconds: how long, on this clock.
        """
        block_loop(self.hub, self.hub.now + round(seconds * 1_000_000_000))

    def suspend_machine(self, seconds: float) -> None:
        """Let the machine sleep: its wall clock jumps, and no process sees time pass.

        Args:
            seconds: how far `time.time()` and `datetime.now()` jump; this clock and `time.monotonic()` stand still.
        """
        self.slept_ns += round(seconds * 1_000_000_000)

    def instant(self) -> int:
        """See `Clock.instant`: nanoseconds since this clock's start."""
        return self.hub.rule.now

    async def drive(self, watched: WatchedRun) -> None:
        """See `Clock.drive`."""
        await self.hub.runs.drive(watched)

    def await_child(self, pid: int) -> None:
        """See `Clock.await_child`."""
        await_started_child(self.hub, pid, KnownPrograms(self.launchers, self._allowed))

    @overload
    def run(self, function: Coroutine[Any, Any, _Result], *, backend: str = ...) -> _Result: ...

    @overload
    def run(
        self, function: Callable[[*_Arguments], Awaitable[_Result]], *args: *_Arguments, backend: str = ...
    ) -> _Result: ...

    def run(self, function: Any, *args: Any, backend: str = "asyncio") -> Any:  # type: ignore[misc]  # Any are all
        """Run an async function to its end, in virtual time.

        Args:
            function: what to run; `asyncio`, `trio` and `anyio` code alike. Or its coroutine: `run(work(agent))`.
            args: its arguments.
            backend: "asyncio" or "trio".

        Raises:
            UsageError: the backend is unknown or not installed, or a loop runs here already, or another virtual clock.
            Deadlock: no side could move any more.
            Stall: a fake or a thread ran on in real time without a word.
            Spin: the program looked again and again without taking anything.
        """
        if inspect.iscoroutine(function):
            with contextlib.closing(function):
                return self.run(_await_coroutine, function, backend=backend)
        require_backend(backend)
        if _find_cancelled_error() is not None and _running_clock_lock.locked():
            raise UsageError(
                "virtual time runs already in this event loop, and run() begins its own",
                "await the code here: result = await function(...)",
            )
        if _find_cancelled_error() is not None:
            raise UsageError(
                "virtual time cannot begin inside an event loop that runs already",
                "make the test a plain function, and give run() your async one; or mark the async test with "
                "@pytest.mark.virtual_time; agent_run and agent_session work here",
            )
        with end_left_blocks(), self.watch_host_actions():
            return self._run_on_backend(function, args, backend)

    @whole_block
    def watch_host_actions(self) -> Iterator[None]:
        """See each process that is started and each signal that is sent, while an event loop of this clock runs.

        Raises:
            UsageError: another virtual clock runs, or this one has ended.
        """
        if self._is_closed:
            raise UsageError(
                "this event loop is in virtual time, and the test that it was made for is over",
                "give the loop and its fixtures the scope of one test",
            )
        if machine.read_virtual_start() is not None:
            raise UsageError(
                "this test is in virtual time already, and agent_run, agent_session and run() begin their own",
                "call the code here as it is, or take @pytest.mark.virtual_time away: they work without it",
            )
        # The patches are global to the interpreter. A second clock in another thread would move the first one's time.
        if not self._depth and not _running_clock_lock.acquire(blocking=False):
            raise UsageError(
                "virtual time runs already, and there is one clock at a time",
                "let that run end, or close the agent_session, first",
            )
        self._depth += 1
        self.has_run = True
        try:
            with contextlib.ExitStack() as stack:
                if self._depth == 1:
                    stack.enter_context(self.patch_time())
                    stack.enter_context(watch_host(self.hub, self.launchers, self._allowed))
                    stack.enter_context(watch_for_spin(self.hub))
                yield
        finally:
            self._depth -= 1
            if not self._depth:
                _running_clock_lock.release()

    @property
    def is_loop_running(self) -> bool:
        """Whether an event loop of this clock runs."""
        return self._depth > 0

    @whole_block
    def patch_time(self) -> Iterator[None]:
        """Have `time` and `datetime` follow this clock while the block runs, outside its event loop too.

        Raises:
            UsageError: freezegun holds the time.
        """
        from pytest_agentproc.clock._wall import make_python_clocks_follow

        is_current = current_clock() is self  # a second one would end before the tasks that took it over
        with make_python_clocks_follow(self), contextlib.nullcontext() if is_current else set_current_clock(self):
            yield

    @whole_block
    def make_loops_virtual(self) -> Iterator[None]:
        """Have each event loop that is made in this thread while the block runs be in this clock's time."""
        from pytest_agentproc.clock.loops._asyncio import host_asyncio_loops

        with contextlib.ExitStack() as stack:
            stack.enter_context(self.patch_time())
            stack.enter_context(host_asyncio_loops(self.hub, self.watch_host_actions))
            if importlib.util.find_spec("trio") is not None:
                from pytest_agentproc.clock.loops._trio import host_trio_runs

                stack.enter_context(host_trio_runs(self.hub, self.watch_host_actions))
            yield

    def wrap_with_fault_check(self, function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        """Give an async function that raises a fault of this clock as soon as there is one.

        Raises:
            UsageError: the event loop that runs it is not of this clock.
        """

        @functools.wraps(function)
        async def run(*args: Any, **kwargs: Any) -> Any:
            if not self.is_loop_running:
                raise UsageError(
                    "the event loop of this test is in real time: it began before the test, or was chosen by name",
                    "give the loop, and every async fixture, the scope of one test, and name no loop factory",
                )
            with self.patch_time():  # unittest made its context before
                return await self._run_until_fault(functools.partial(function, **kwargs), args)

        return run

    def _run_on_backend(self, function: Callable[..., Awaitable[Any]], args: tuple[Any, ...], backend: str) -> Any:
        if backend == "trio":
            from pytest_agentproc.clock.loops._trio import build_trio_options as options
        else:
            from pytest_agentproc.clock.loops._asyncio import build_asyncio_options as options
        try:
            with (
                raise_interrupt_alone(),
                options(self.hub, self.watch_host_actions) as backend_options,
                end_left_blocks(),  # a patch that was made within ours is undone before ours
            ):
                return anyio.run(
                    self._run_until_fault, function, args, backend=backend, backend_options=backend_options
                )
        except Exception as error:
            fault = self.hub.fault
            # The fault is the verdict. An error of the program's clean-up after it would hide it.
            if fault is None or error is fault:
                raise
            raise fault from error  # what breaks while a fault unwinds is no verdict of its own

    async def _run_until_fault(self, function: Callable[..., Awaitable[Any]], args: tuple[Any, ...]) -> Any:
        hub = self.hub
        result: Any = None
        trace: TracebackType | None = None
        with anyio.CancelScope() as scope:
            hub.on_fault = scope.cancel
            try:
                result = await function(*args)
            except BaseException as error:
                trace = error.__traceback__
                raise
            finally:
                hub.on_fault = None
        if hub.fault is not None:
            raise hub.fault.with_traceback(trace)  # it shows the line that was cancelled for the fault
        hub.settle_participants()
        return result

    def close(self) -> None:
        """End all processes that are left and close every descriptor."""
        self._is_closed = True
        with contextlib.ExitStack() as stack:
            if self.on_close is not None:
                stack.callback(self.on_close)
            stack.callback(self.hub.close)
            end_started_processes(self.hub)


def is_in_loop() -> bool:
    """Say whether an event loop of real time runs in this thread."""
    return _find_cancelled_error() is not None and current_clock() is None


def _find_cancelled_error() -> type[BaseException] | None:
    """Give how the event loop that runs in this thread cancels; None: none runs."""
    try:
        return anyio.get_cancelled_exc_class()
    except RuntimeError:  # whatever its class is, which depends on anyio's version
        return None


async def _await_coroutine(coroutine: Coroutine[Any, Any, _Result]) -> _Result:
    return await coroutine


def _parse_start_date(start: str) -> dt.datetime:
    """Read when virtual time begins.

    Raises:
        UsageError: it is no date.
    """
    try:
        date = dt.datetime.fromisoformat(start)
    except (ValueError, TypeError) as error:
        raise UsageError(
            f"start is {start!r}, but must be a date in ISO 8601", f'write start="{DEFAULT_START_DATE}"'
        ) from error
    return date.astimezone(dt.UTC) if date.tzinfo else date.replace(tzinfo=dt.UTC)


def require_backend(backend: str) -> None:
    """Refuse a backend that is unknown or not installed, in one clear sentence.

    Raises:
        UsageError: with the remedy.
    """
    if backend not in EVENT_LOOP_BACKENDS:
        raise UsageError(f"backend is {backend!r}, but must be asyncio or trio", "write --agentproc-backend=asyncio")
    if backend == "trio" and importlib.util.find_spec("trio") is None:
        raise UsageError("backend trio needs the trio package", "pip install 'pytest-agentproc[trio]'")
