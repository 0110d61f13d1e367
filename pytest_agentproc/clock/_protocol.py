"""The clock protocol, the current clock, the real clock, and virtual time in seconds.

A deadline is often a sum, such as 9.999 + 20.0, and lies a rounding error above the intended instant. A program that
compares the time with it when its timer fires would find it too early. So the time equals the deadline as long as the
instant lasts. A deadline further above a nanosecond than rounding errors reach comes at the next nanosecond. anyio's
`fail_after` is such a program: it raises no TimeoutError if the time is too early.
"""

from __future__ import annotations

import math
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from pytest_agentproc.interrupts import whole_block
from pytest_agentproc.originals import monotonic_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pytest_agentproc.clock._jump import JumpRule


_LEAST_ROUNDING_ERROR_SECONDS, _MAX_ROUNDING_ERROR_SECONDS = 0.25e-9, 0.5e-9
"""Seconds up to which rounding errors may add up, and the limit where a single float step is that large."""
_NANOSECONDS_PER_SECOND = 1_000_000_000


class LoopTime:
    """The time as a loop and `time.monotonic()` report it.

    Args:
        rule: the jump rule that moves this time.
    """

    def __init__(self, rule: JumpRule) -> None:
        self._rule = rule
        self._asked = 0.0
        self._asked_at = -1

    @property
    def instant(self) -> float:
        """The instant, as near as a float can be."""
        return self._rule.now / _NANOSECONDS_PER_SECOND

    @staticmethod
    def find_intended_instant(deadline: float) -> int | None:
        """Give the nanosecond that a deadline means; None if it never comes, 0 if it has always passed."""
        exact = deadline * _NANOSECONDS_PER_SECOND
        if exact == math.inf:
            return None
        if not exact > 0:  # also true for NaN
            return 0
        # Rounding to the nearest nanosecond fired a deadline of 1/3 s before its time, and anyio raised no
        # TimeoutError. So a deadline is rounded down only as far as rounding errors reach.
        before = math.floor(exact)
        error = min(max(_LEAST_ROUNDING_ERROR_SECONDS, math.ulp(deadline)), _MAX_ROUNDING_ERROR_SECONDS)
        return before if deadline - before / _NANOSECONDS_PER_SECOND <= error else before + 1

    def is_due(self, deadline: float) -> bool:
        """Say whether the instant that is meant by a deadline has come."""
        meant = self.find_intended_instant(deadline)
        return meant is not None and meant <= self._rule.now

    def now(self) -> float:
        """Give the instant; after `note_timer` as long as it lasts the deadline that is meant by it."""
        return self._asked if self._asked_at == self._rule.now else self.instant

    def note_timer(self, deadline: float) -> None:
        """Take note of a timer that is set: if it means this very instant, its time has come."""
        # Without this a timer for less than a nanosecond ahead was set again and again, and the play did not end.
        if self.now() < deadline and self.is_due(deadline):
            self._asked, self._asked_at = deadline, self._rule.now

    def advance_to_last_due_timer(self, heap: Sequence[Any], when: Callable[[Any], float]) -> float:
        """Set the time to the last due deadline, and give the time up to which timers fire: that, or the instant.

        A program that counts from deadline to deadline adds up rounding errors. From a quarter of a nanosecond on, its
        next timer fires a nanosecond later: no timer fires before its time.

        Args:
            heap: the timers; the due ones are together at the top.
            when: gives the deadline of a timer.
        """
        # The heap is walked from the top and only as far as timers are due, so a long heap costs nothing.
        last, places = self.instant, [0]
        while places:
            place = places.pop()
            if place < len(heap) and self.is_due(deadline := when(heap[place])):
                last = max(last, deadline)
                places += (2 * place + 1, 2 * place + 2)
        self.note_timer(last)
        return last


class WatchedRun(Protocol):
    """A run as a clock sees it: one descriptor, one deadline, one look a wake.

    `news` says that the last look woke a task that waits in the loop; the loop then gets its turn.
    """

    news: bool

    @property
    def descriptor(self) -> int | None:
        """The descriptor that is readable when something happened, or None before the start."""

    @property
    def deadline(self) -> int | None:
        """The instant, in nanoseconds of this clock, at which to look whatever happened; None: never.

        It changes in `look` only.
        """

    def look(self) -> bool:
        """Take one look at everything; return True once there is nothing left to wait for."""

    def describe(self) -> str:
        """Say in a clause what is waited for, for the message of a deadlock."""


class Clock(Protocol):
    """The time, a way to wait, and a name."""

    name: str

    def instant(self) -> int:
        """Give the time in whole nanoseconds; only differences mean something."""

    async def drive(self, watched: WatchedRun) -> None:
        """Look once at the start and then at each event or deadline, until `look` says that all is done.

        An exception of `look` ends the wait and is raised here. Cancellation ends the wait at once.
        """

    def await_child(self, pid: int) -> None:
        """Take note of an agent that was not started by `subprocess`, right after its start.

        A virtual clock waits until the agent, or a fake below it, has said hello, or the agent is dead. A process that
        is neither is a fault unless it was declared. For a start by `subprocess` the clock does this by itself. In real
        time there is nothing to do.

        Args:
            pid: the process, whose number no other process gets meanwhile.
        """


class _ClockReference:
    """The reference of a context to a clock: loops copy contexts, and keep the copies longer than the clock lives."""

    __slots__ = ("clock",)

    def __init__(self, clock: Clock) -> None:
        self.clock: Clock | None = clock


_current_clock_reference: ContextVar[_ClockReference | None] = ContextVar("agentproc_clock", default=None)


def current_clock() -> Clock | None:
    """Give the clock of a run that was given none: a virtual one inside virtual time, otherwise None."""
    held = _current_clock_reference.get()
    return None if held is None else held.clock


@whole_block
def set_current_clock(clock: Clock) -> Iterator[None]:
    """Let a clock be the current one while the block runs, in contexts that are copied meanwhile as well."""
    held = _ClockReference(clock)
    token = _current_clock_reference.set(held)
    try:
        yield
    finally:
        held.clock = None
        _current_clock_reference.reset(token)


class SystemClock:
    """Real time: `time.monotonic_ns`, and waits of an event loop.

    Args:
        scale: the factor by which it is faster than the machine's clock; every duration is divided by it.
        zero: the monotonic instant of the machine, in nanoseconds, that counts as 0.
    """

    name = "real"

    def __init__(self, scale: float = 1, zero: int = 0) -> None:
        self.scale = scale
        self.zero = zero

    def start(self) -> None:
        """Have the present count as 0."""
        self.zero = monotonic_ns()

    def instant(self) -> int:
        """Give the monotonic clock of the machine in nanoseconds since `zero`, times the scale."""
        return self.convert_moment_to_instant(monotonic_ns())

    def convert_moment_to_instant(self, moment: int) -> int:
        """Give the instant of this clock that is a moment of the machine's monotonic clock, in nanoseconds."""
        return int((moment - self.zero) * self.scale)

    def convert_instant_to_moment(self, instant: int) -> int:
        """Give the moment of the machine's monotonic clock that is an instant of this clock, in nanoseconds."""
        return self.zero + int(instant / self.scale)

    def await_child(self, pid: int) -> None:
        """See `Clock.await_child`: nothing to do in real time."""

    async def drive(self, watched: WatchedRun) -> None:
        """Wait for the descriptor or the deadline, look, and again."""
        import anyio  # loaded only for a loop; a checker of scenarios never pays for it

        while not watched.look():
            deadline = watched.deadline
            left = math.inf if deadline is None else (deadline - self.instant()) / 1_000_000_000 / self.scale
            if left <= 0:
                await anyio.lowlevel.checkpoint()
                continue
            with anyio.move_on_after(left):
                if watched.descriptor is None:
                    await anyio.sleep_forever()
                else:
                    await anyio.wait_readable(watched.descriptor)
