"""Has `subprocess` keep its own limits exactly. Owns two methods of `Popen` while a sync test is in virtual time.

CPython looks for the end of a child every 50 ms, and for the end of a limit until it is over by a moment. Both are
steps of virtual time: an agent that ends after an hour would be waited for until a millisecond later, in 72,000 steps.
What a child does at the very instant of the limit comes before the limit, as everywhere in virtual time.
"""

from __future__ import annotations

import os
import select
import threading
from subprocess import TimeoutExpired
from typing import TYPE_CHECKING, Any

from pytest_agentproc.interrupts import whole_block
from pytest_agentproc.machine import find_preload_shim
from pytest_agentproc.originals import Popen

if TYPE_CHECKING:
    from collections.abc import Iterator


@whole_block
def make_popen_limits_exact() -> Iterator[None]:
    """Have each `Popen` of this process see its child's end, and the end of a limit, at that instant."""
    # There is no public way to them, and they are the same in every CPython from 3.11 to 3.14.
    wait = Popen._wait  # type: ignore[attr-defined]  # noqa: SLF001
    remaining = Popen._remaining_time  # type: ignore[attr-defined]  # noqa: SLF001

    def wait_exactly(self: Popen[Any], timeout: float | None) -> int:
        if timeout is None or self.returncode is not None:
            return int(wait(self, timeout))
        try:
            pidfd = os.pidfd_open(self.pid)
        except OSError:  # it was waited for already
            return int(wait(self, timeout))
        try:
            if timeout <= 0:
                find_preload_shim().agentproc_settle()
            ended = _await_readable(pidfd, min(max(timeout, 0), threading.TIMEOUT_MAX))  # it may be infinite
        finally:
            os.close(pidfd)
        if not ended:
            raise TimeoutExpired(self.args, timeout)
        return int(wait(self, None))

    def compute_exact_remaining(self: Popen[Any], endtime: float | None) -> float | None:
        left: float | None = remaining(self, endtime)
        if left != 0:
            return left
        find_preload_shim().agentproc_settle()
        pipes = getattr(self, "_fileobj2output", {})
        seen = endtime, getattr(self, "_input_offset", 0), [(pipe.closed, len(read)) for pipe, read in pipes.items()]
        # `communicate` looks again after each 0, and gives up once this is less than 0.
        is_new, self.__dict__["_agentproc_seen"] = self.__dict__.get("_agentproc_seen") != seen, seen
        return left if is_new else -1

    Popen._wait = wait_exactly  # type: ignore[attr-defined]  # noqa: SLF001
    Popen._remaining_time = compute_exact_remaining  # type: ignore[attr-defined]  # noqa: SLF001
    try:
        yield
    finally:
        Popen._wait = wait  # type: ignore[attr-defined]  # noqa: SLF001
        Popen._remaining_time = remaining  # type: ignore[attr-defined]  # noqa: SLF001


def _await_readable(number: int, seconds: float) -> bool:
    """Wait until a descriptor can be read, or until a time is over; say whether it can."""
    if number < _SELECT_DESCRIPTOR_LIMIT:
        return bool(select.select([number], [], [], seconds)[0])
    waits = select.poll()  # it counts whole milliseconds, so it is not as exact
    waits.register(number, select.POLLIN)
    return bool(waits.poll(seconds * 1000 if seconds < _LONGEST_POLL_SECONDS else None))


_SELECT_DESCRIPTOR_LIMIT = 1024
"""`select` takes no descriptor from this number on."""

_LONGEST_POLL_SECONDS = 2_000_000
"""Seconds. `poll` takes 24 days at most, so a longer limit is none."""
