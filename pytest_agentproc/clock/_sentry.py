"""Sees a host that runs on for ever without coming back to its loop. Owns a thread and the alarm signal for one run.

The thread only watches; it rings when the host has not come to the hub for a whole guard period, and the alarm's handler
raises in whatever the host does. A timer instead of the thread would wake the loop each time it rings. Where somebody
else uses the alarm (a test's time limit), or off the main thread, theirs is the limit that counts.
"""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pytest_agentproc.errors import Spin

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from pytest_agentproc.clock._hub import Hub

__all__ = ["sentry"]

_ROUNDS = 4
"""The sentry looks so often in a guard period."""


@contextmanager
def sentry(hub: Hub) -> Iterator[None]:
    """Raise `Spin` in a host that does not come to the hub for a whole guard period."""
    host = threading.current_thread()
    if host is not threading.main_thread() or signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL:
        yield
        return

    def ring(signum: int, frame: FrameType | None) -> None:
        place = f"{frame.f_code.co_filename}:{frame.f_lineno} ({frame.f_code.co_qualname})" if frame else "?"
        error = Spin(f"the supervising program has run for {hub.guard:g} s without a pause, now at {place}")
        hub.fail(error)
        raise error

    over = threading.Event()
    thread = threading.Thread(target=_watch, args=(hub, over, host.ident), name="agentproc sentry", daemon=True)
    signal.signal(signal.SIGALRM, ring)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


def _watch(hub: Hub, over: threading.Event, host: int) -> None:
    seen, rounds = -1, 0
    while not over.wait(hub.guard / _ROUNDS):
        rounds = rounds + 1 if seen == hub.turns and not hub.is_waiting else 0
        seen = hub.turns
        if rounds == _ROUNDS:
            rounds = 0
            signal.pthread_kill(host, signal.SIGALRM)
