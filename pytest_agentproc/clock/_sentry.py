"""Sees a host that runs on for ever without coming back to its loop. Owns the process's real-time alarm for one run.

The alarm rings several times in a guard period; when the host has not come to the hub for a whole one, it is raised out
of whatever the host does. Where somebody else uses the alarm (a test's time limit), or off the main thread, theirs is
the limit that counts. A ring wakes a loop that listens for signals, as trio does: the hub is told of each. (A thread
that watches instead would cost each run milliseconds for its start and end.)
"""

from __future__ import annotations

import signal
import threading
from _signal import SIG_DFL, getsignal
from _signal import signal as handle
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pytest_agentproc.clock._debugger import is_debugged
from pytest_agentproc.errors import Spin

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from pytest_agentproc.clock._hub import Hub

__all__ = ["sentry"]

_ROUNDS = 4
"""The alarm rings so often in a guard period."""


@contextmanager
def sentry(hub: Hub) -> Iterator[None]:
    """Raise `Spin` in a host that does not come to the hub for a whole guard period."""
    free = getsignal(signal.SIGALRM) == SIG_DFL and signal.getitimer(signal.ITIMER_REAL)[0] == 0
    if not free or threading.current_thread() is not threading.main_thread():
        yield
        return
    seen, rounds, period = -1, 0, hub.guard / _ROUNDS

    def ring(_signum: int, frame: FrameType | None) -> None:
        nonlocal seen, rounds
        hub.rings += 1
        rounds = rounds + 1 if seen == hub.turns and not hub.is_waiting else 0
        seen = hub.turns
        if rounds * period >= hub.guard and not is_debugged():
            rounds = 0
            place = f"{frame.f_code.co_filename}:{frame.f_lineno} ({frame.f_code.co_qualname})" if frame else "?"
            what = "the supervising program computes, or waits in a call that blocks its loop"
            error = Spin(f"{what}, for {hub.guard:g} s now, at {place}")
            hub.fail(error)
            raise error

    handle(signal.SIGALRM, ring)  # the standard library's own would write every handler out, to no use
    signal.setitimer(signal.ITIMER_REAL, period, period)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        handle(signal.SIGALRM, SIG_DFL)
