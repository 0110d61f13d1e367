"""Report when processes end for which this process cannot wait, and how long such a death takes here at least."""

from __future__ import annotations

import select
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.process.stand import CEILING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["await_ends", "start_follower"]

FOLLOWER = """
import os, select, sys
poll = select.poll()
poll.register(os.pidfd_open(int(sys.argv[1])), select.POLLIN)
print(flush=True)
poll.poll()
"""


@contextmanager
def start_follower(pid: int) -> Iterator[int]:
    """Start a process that ends when another one does, and does nothing else; give its pid once it waits."""
    command = [sys.executable, "-IS", "-c", FOLLOWER, str(pid)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield process.pid
        finally:
            process.kill()


def await_ends(pidfds: set[int]) -> dict[int, float]:
    """Say when each of some processes ended, as it happens, within the ceiling."""
    poll = select.poll()
    for pidfd in pidfds:
        poll.register(pidfd, select.POLLIN)
    deadline = time.monotonic() + CEILING
    ends: dict[int, float] = {}
    while len(ends) < len(pidfds) and (ready := poll.poll(max(0.0, deadline - time.monotonic()) * 1000)):
        for pidfd, _ in ready:
            ends[pidfd] = time.monotonic()
            poll.unregister(pidfd)
    return ends
