"""Signs that a host hangs, spins or polls: its wakes, its waits, its real-time alarm. Decides no order.

A shell that waits for its child, or a reader of a pipe, works with any clock. A program that sleeps for five seconds,
or waits for input with a limit, uses real time. If the kernel or the machine does not show which it is, the program
counts as the first kind.

The alarm rings several times in a guard period. If the host has not come to the hub for a whole period, the error is
raised inside the host's code. If other code uses the alarm (a test's time limit), or off the main thread, that limit
counts instead. A ring wakes a loop that listens for signals, as trio does, so the hub counts the rings. (A watching
thread would cost each run milliseconds for its start and end.)
"""

from __future__ import annotations

import io
import os
import signal
import threading
from _signal import SIG_DFL, getsignal
from _signal import signal as handle
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pytest_agentproc.clock._debugger import is_debugged, is_guard_time_over
from pytest_agentproc.errors import Hang, Spin
from pytest_agentproc.interrupts import whole_block
from pytest_agentproc.originals import monotonic

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


class _TimedSystemCall(NamedTuple):
    """A system call that can wait with a limit.

    Args:
        limit: which of its arguments that is; None: it always has one.
        is_pointer: whether the limit is a pointer, null for none; else milliseconds, negative for none.
    """

    limit: int | None
    is_pointer: bool = False


_TIMED_CALLS_OF_ALL_MACHINES = {441: _TimedSystemCall(3, is_pointer=True)}  # epoll_pwait2

_TIMED_CALLS_BY_MACHINE = {
    "x86_64": {
        7: _TimedSystemCall(2),  # poll
        23: _TimedSystemCall(4, is_pointer=True),  # select
        35: _TimedSystemCall(None),  # nanosleep
        230: _TimedSystemCall(None),  # clock_nanosleep
        232: _TimedSystemCall(3),  # epoll_wait
        270: _TimedSystemCall(4, is_pointer=True),  # pselect6
        271: _TimedSystemCall(2, is_pointer=True),  # ppoll
        281: _TimedSystemCall(3),  # epoll_pwait
        **_TIMED_CALLS_OF_ALL_MACHINES,
    },
    "aarch64": {
        22: _TimedSystemCall(3),  # epoll_pwait
        72: _TimedSystemCall(4, is_pointer=True),  # pselect6
        73: _TimedSystemCall(2, is_pointer=True),  # ppoll
        101: _TimedSystemCall(None),  # nanosleep
        115: _TimedSystemCall(None),  # clock_nanosleep
        **_TIMED_CALLS_OF_ALL_MACHINES,
    },
}

_timed_calls_of_this_machine = _TIMED_CALLS_BY_MACHINE.get(os.uname().machine, {})


def has_timed_wait(pid: int) -> bool:
    """Say whether the first thread of a process waits for a time of its own."""
    try:
        with io.open(f"/proc/{pid}/syscall", "rb", buffering=0) as file:
            words = file.read(512).split()
    # A guess here would be a wrong verdict, so an unreadable or unknown call counts as untimed.
    except OSError:
        return False
    call = (
        _timed_calls_of_this_machine.get(int(words[0]))
        if len(words) > _SYSTEM_CALL_ARGUMENT_COUNT and words[0].isdigit()
        else None
    )
    if call is None:
        return False
    if call.limit is None:
        return True
    limit = int(words[1 + call.limit], 16)
    return limit != 0 if call.is_pointer else limit & 0x8000_0000 == 0


_SYSTEM_CALL_ARGUMENT_COUNT = 6


LONGEST_POLLING_PERIOD_NS = 250_000_000
"""Nanoseconds. A loop that looks less often than this is late, and not merely of another style."""

_MAX_QUICK_GAPS_KEPT = 8
_MAX_SHORT_SLEEPS_KEPT = 256
_EQUAL_GAPS_THAT_PROVE_POLLING = 3
"""The number of equally long steps in a row, from one wake to the next, that make a pace. A step may have two parts."""
WAKE_GAP_TOLERANCE_NS = 10
"""Nanoseconds by which steps may differ: a loop counts in binary seconds."""


class PollingDetector:
    """Follow the instants at which a loop's own timers woke it; its start, at 0, counts as one.

    `period` is the longest time, in nanoseconds, at which they did so steadily; 0 if they never did. `began` is the
    instant at which the first steady pace began; -1 if there was none. `quick` has the first few of the times that lay
    between two wakes and may be a period, `first` the time until the first wake, in nanoseconds; -1 if there was none.
    `naps` has the instants at which each of the first short timers was set, and woke the loop.
    """

    def __init__(self) -> None:
        self.period = 0
        self.began = -1
        self.naps: list[tuple[int, int]] = []
        self._due: int | None = None
        self._set_at = 0
        self.quick: list[int] = []
        self.first = -1
        self._last = self._gap = self._other = self._count = self._turns = 0

    def record_sleep(self, now: int, deadline: int | None) -> None:
        """Take note that the loop goes to sleep: its earliest timer, if it is another than before, was set now.

        Args:
            now: the instant, in nanoseconds.
            deadline: when that timer is due; None: there is none.
        """
        if deadline != self._due:
            self._due, self._set_at = deadline, now

    def record_wake(self, now: int) -> None:
        """Take note of a wake.

        Args:
            now: the instant, in nanoseconds.
        """
        if self._due is not None and now >= self._due:
            if 0 < now - self._set_at <= LONGEST_POLLING_PERIOD_NS and len(self.naps) < _MAX_SHORT_SLEEPS_KEPT:
                self.naps.append((self._set_at, now))
            self._due = None
        gap, self._last = now - self._last, now
        self.first = now if self.first < 0 else self.first
        if gap == 0:
            return
        # A deadline is a sum of floats, so steps of one pace differ by some nanoseconds. Exact comparison
        # could miss a pace after some hours of virtual time.
        if abs(gap - self._gap) <= WAKE_GAP_TOLERANCE_NS:
            self._turns = 0
        else:
            self._turns = self._turns + 1 if abs(gap - self._other) <= WAKE_GAP_TOLERANCE_NS else 0
            self._other, self._gap, self._count = self._gap, gap, 0
            if gap <= LONGEST_POLLING_PERIOD_NS and len(self.quick) < _MAX_QUICK_GAPS_KEPT:
                self.quick.append(gap)
        self._count += 1
        for count, step in ((self._count, gap), (self._turns // 2, gap + self._other)):
            if count >= _EQUAL_GAPS_THAT_PROVE_POLLING and step <= LONGEST_POLLING_PERIOD_NS:
                self.period = max(self.period, step)
                self.began = now - step * count if self.began < 0 else self.began


_WAKES_BETWEEN_TIME_CHECKS = 1024
"""The number of wakes after which the time is checked."""

_LONGEST_WAKE_SERIES_SECONDS = 120.0
"""Real seconds for which a loop may wake repeatedly, however little virtual time passes."""

_TIME_UNITS = (
    (3_600_000_000_000, 3_600_000_000_000, "h"),
    (1_000_000_000_000, 60_000_000_000, "min"),
    (1_000_000_000, 1_000_000_000, "s"),
    (1_000_000, 1_000_000, "ms"),
    (1_000, 1_000, "us"),
)
"""From how many nanoseconds on a time is shown in a unit, and how many the unit has."""


class WakeCounter:
    """Count the wakes of a loop in a row.

    A supervisor that polls for what never comes would poll for ever, each time at another instant.

    Args:
        patience: nanoseconds of virtual time for which it may do so.
    """

    def __init__(self, patience: int) -> None:
        self._patience = patience
        self._count = self._since = self._last = self._shortest = self._longest = 0
        self._begun = 0.0

    def reset(self) -> None:
        """Begin anew: something else happened."""
        self._count = 0

    def count_wake(self, now: int) -> None:
        """Take note of a wake.

        Args:
            now: the instant, in nanoseconds of virtual time.

        Raises:
            Hang: there were too many of them.
        """
        gap, self._last = now - self._last, now
        if self._count == 0:
            self._since, self._begun = now, monotonic()
            self._shortest = self._longest = 0
        elif gap:
            self._shortest = min(self._shortest or gap, gap)
            self._longest = max(self._longest, gap)
        self._count += 1
        if self._count % _WAKES_BETWEEN_TIME_CHECKS == 0:
            self._check_wake_limits()

    def _check_wake_limits(self) -> None:
        # Two limits: virtual time for a slow poll, real time for a fast one. A poll every microsecond would need hours
        # to use up a virtual day.
        passed, real = self._last - self._since, monotonic() - self._begun
        if passed <= self._patience and not is_guard_time_over(self._begun, _LONGEST_WAKE_SERIES_SECONDS):
            return
        is_steady = self._longest - self._shortest <= WAKE_GAP_TOLERANCE_NS
        period = _format_duration(self._shortest) + ("" if is_steady else f" to {_format_duration(self._longest)}")
        took = "" if passed > self._patience else f" ({real:.0f} s of real time)"
        raise Hang(
            f"the event loop polled every {period} for {_format_duration(passed)} of virtual time{took}, "
            "and nothing else happened"
        )


def _format_duration(ns: int) -> str:
    """Show nanoseconds with three digits."""
    for least, size, unit in _TIME_UNITS:
        if ns >= least:
            return f"{ns / size:.3g} {unit}"
    return f"{ns} ns"


_ALARMS_PER_GUARD_PERIOD = 4
"""The number of alarms in a guard period."""


class _AlarmedHub(Protocol):
    """The part of a hub that its alarm needs."""

    guard: float
    rings: int
    turns: int
    is_waiting: bool

    def abort_with(self, error: Spin, /) -> None: ...


_BLOCKING_CODE_REMEDY = (
    "code that blocks belongs into a plain function: a test with @pytest.mark.virtual_time, or a plain supervisor"
)


@whole_block
def watch_for_spin(hub: _AlarmedHub) -> Iterator[None]:
    """Raise `Spin` in a host that does not come to the hub for a whole guard period."""
    # The alarm of another program is its limit, such as pytest-timeout's: to replace it would let a test hang.
    free = getsignal(signal.SIGALRM) == SIG_DFL and signal.getitimer(signal.ITIMER_REAL)[0] == 0
    if not free or threading.current_thread() is not threading.main_thread():
        yield
        return
    seen, rounds, period = -1, 0, hub.guard / _ALARMS_PER_GUARD_PERIOD

    def raise_if_spinning(_signum: int, frame: FrameType | None) -> None:
        nonlocal seen, rounds
        hub.rings += 1
        # Turns that do not grow mean that the host has not come to the hub. Several short rings and not one long one,
        # so that a host that comes late is not blamed for the time before.
        rounds = rounds + 1 if seen == hub.turns and not hub.is_waiting else 0
        seen = hub.turns
        if rounds * period >= hub.guard and not is_debugged():
            rounds = 0
            place = f"{frame.f_code.co_filename}:{frame.f_lineno} ({frame.f_code.co_qualname})" if frame else "?"
            what = "the supervising program computes, or waits in a call that blocks its loop"
            error = Spin(f"{what}, for {hub.guard:g} s now, at {place}\n{_BLOCKING_CODE_REMEDY}")
            hub.abort_with(error)
            raise error

    handle(signal.SIGALRM, raise_if_spinning)  # the standard library's own would write every handler out, to no use
    signal.setitimer(signal.ITIMER_REAL, period, period)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        handle(signal.SIGALRM, SIG_DFL)
