"""The virtual clock as its users see it: run an async function in virtual time. Owns one hub; knows no scenario."""

from __future__ import annotations

import contextlib
import importlib.util
import threading
from typing import TYPE_CHECKING, Any

import anyio

from pytest_agentproc.clock._blockage import block
from pytest_agentproc.clock._hub import Hub
from pytest_agentproc.clock._protocol import running
from pytest_agentproc.clock._sentry import sentry
from pytest_agentproc.clock._window import Programs, end_started, meet, watch_host
from pytest_agentproc.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from types import TracebackType

    from pytest_agentproc.clock._protocol import Watched
    from pytest_agentproc.clock._pulse import Pulse
    from pytest_agentproc.errors import ClockError

__all__ = ["BACKENDS", "VirtualClock", "is_in_loop", "require_backend"]

BACKENDS = ("asyncio", "trio")

_one_at_a_time = threading.Lock()
"""Held while a virtual clock runs: it patches what all threads share."""


class VirtualClock:
    """Time that moves only when the program under test and every fake agent are blocked.

    As a context manager it ends, at the end of the block, whoever is left.

    Args:
        allow: names of programs that are no fakes and may be started; see `allow`.
        guard: real seconds after which a fake or a thread that neither parks nor speaks is a `Stall`.
        patience: virtual seconds after which code that looks again and again, while nobody else does anything, is a
            `Spin`.
    """

    name = "virtual"

    def __init__(self, *, allow: Iterable[str] = (), guard: float = 10.0, patience: float = 86_400.0) -> None:
        self.hub = Hub(guard, round(patience * 1_000_000_000))
        self.launchers: set[str] = set()
        self.on_close: Callable[[], None] | None = None
        self._allowed = set(allow)

    def __enter__(self) -> VirtualClock:  # noqa: PYI034  # nobody derives from it
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
    def pulse(self) -> Pulse:
        """The pace at which the code that runs in this time wakes by itself."""
        return self.hub.pulse

    def allow(self, *names: str) -> None:
        """Allow programs that are no fakes, such as an MCP server or `cat`, from the next start on.

        Time is held while such a program works, or sleeps by the machine's clock. It passes while the program and its
        children wait for input. The limit: a program that waits for another machine looks the same, so time passes
        then, too.

        Args:
            names: the file names of the programs, as they are started: `cat`, `node`.
        """
        self._allowed.update(names)

    def on_fault(self, tell: Callable[[ClockError], None]) -> None:
        """Have somebody hear of a fault at once, before anybody is ended or cancelled for it."""
        self.hub.hears_fault = tell

    def block(self, seconds: float) -> None:
        """Keep the event loop from running for a time, as a callback does that computes so long.

        Agents go on meanwhile. In its next iteration the loop finds all that they wrote, and every timer that is due.

        Args:
            seconds: how long, on this clock.
        """
        block(self.hub, self.hub.now + round(seconds * 1_000_000_000))

    def instant(self) -> int:
        """See `Clock.instant`: nanoseconds since this clock's start."""
        return self.hub.rule.now

    async def drive(self, watched: Watched) -> None:
        """See `Clock.drive`."""
        await self.hub.runs.drive(watched)

    def meet(self, pid: int) -> None:
        """See `Clock.meet`."""
        meet(self.hub, pid, Programs(self.launchers, self._allowed))

    def run(self, function: Callable[..., Awaitable[Any]], *args: Any, backend: str = "asyncio") -> Any:
        """Run an async function to its end, in virtual time.

        Args:
            function: what to run; `asyncio`, `trio` and `anyio` code alike.
            args: its arguments.
            backend: "asyncio" or "trio".

        Raises:
            UsageError: the backend is unknown or not installed, or a loop runs here already, or another virtual clock.
            Deadlock: nobody could move any more.
            Stall: a fake or a thread ran on in real time without a word.
            Spin: the program looked again and again without taking anything.
        """
        require_backend(backend)
        if is_in_loop():
            raise UsageError(
                "virtual time cannot begin inside an event loop that runs already",
                "make the test a plain function, and give run() your async one; agent_run and agent_session work here",
            )
        if not _one_at_a_time.acquire(blocking=False):
            raise UsageError(
                "virtual time runs already, and there is one clock at a time",
                "let that run end, or close the agent_session, first",
            )
        try:
            return self._run(function, args, backend)
        finally:
            _one_at_a_time.release()

    def _run(self, function: Callable[..., Awaitable[Any]], args: tuple[Any, ...], backend: str) -> Any:
        if backend == "trio":
            from pytest_agentproc.clock._trio import trio_options as options
        else:
            from pytest_agentproc.clock._asyncio import asyncio_options as options
        try:
            with (
                running(self),
                watch_host(self.hub, self.launchers, self._allowed),
                sentry(self.hub),
                options(self.hub) as backend_options,
            ):
                return anyio.run(self._guarded, function, args, backend=backend, backend_options=backend_options)
        except Exception as error:
            fault = self.hub.fault
            if fault is None or error is fault:
                raise
            raise fault from error  # what breaks while a fault unwinds is no verdict of its own

    async def _guarded(self, function: Callable[..., Awaitable[Any]], args: tuple[Any, ...]) -> Any:
        hub = self.hub
        result: Any = None
        with anyio.CancelScope() as scope:
            hub.on_fault = scope.cancel
            try:
                result = await function(*args)
            finally:
                hub.on_fault = None
        if hub.fault is not None:
            raise hub.fault
        hub.settle()
        return result

    def close(self) -> None:
        """End whoever is left and give every descriptor back."""
        with contextlib.ExitStack() as stack:
            if self.on_close is not None:
                stack.callback(self.on_close)
            stack.callback(self.hub.close)
            end_started(self.hub)


def is_in_loop() -> bool:
    """Say whether an event loop runs in this thread."""
    try:
        anyio.get_cancelled_exc_class()
    except RuntimeError:  # whatever its class is, which depends on anyio's version
        return False
    return True


def require_backend(backend: str) -> None:
    """Refuse a backend that is unknown or not installed, in one clear sentence.

    Raises:
        UsageError: with the remedy.
    """
    if backend not in BACKENDS:
        raise UsageError(f"backend is {backend!r}, but must be asyncio or trio", "write --agentproc-backend=asyncio")
    if backend == "trio" and importlib.util.find_spec("trio") is None:
        raise UsageError("backend trio needs the trio package", "pip install 'pytest-agentproc[trio]'")
