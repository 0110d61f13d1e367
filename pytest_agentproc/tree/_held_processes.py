"""Processes held by pidfd while they are signalled and awaited. Owns system calls; chooses no process.

A pid is only ever used to open a pidfd, and then the process is looked at again. So the signal reaches the process that
was seen.
"""

from __future__ import annotations

import os
import select
import signal
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from pytest_agentproc.tree._kernel import open_pidfd
from pytest_agentproc.tree._snapshots import take_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_agentproc.tree._snapshots import ProcessState


@contextmanager
def open_pidfds_while_same(wanted: Iterable[ProcessState]) -> Iterator[dict[int, int]]:
    """Hold processes by pidfd, if they are still the processes that were seen: (pid, pidfd)."""
    grips: dict[int, int] = {}
    try:
        for process in wanted:
            pidfd = open_pidfd(process.pid)
            if pidfd is None:
                continue
            now = take_snapshot(process.pid)
            # A reused pid shows another birth or parent. The parent may have become this process meanwhile: it adopts
            # orphans. Without this second look a kill once hit an innocent process.
            if now is None or now.born != process.born or now.parent not in (process.parent, os.getpid()):
                os.close(pidfd)
            else:
                grips[process.pid] = pidfd
        yield grips
    finally:
        for pidfd in grips.values():
            os.close(pidfd)


def wait_for_death(pidfds: Iterable[int], timeout: int) -> list[int]:
    """Wait until one process is dead, at most the given milliseconds; give the pidfds of the dead."""
    poll = select.poll()
    for pidfd in pidfds:
        poll.register(pidfd, select.POLLIN)
    return [pidfd for pidfd, _ in poll.poll(timeout)]


def kill(pidfd: int) -> bool:
    """Send KILL; return whether it was allowed."""
    try:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except ProcessLookupError:
        return True
    except PermissionError:
        # EPERM is reported and not retried: a process of another real uid would be a loop without an end.
        return False
    return True


def reap(pid: int) -> None:
    """Reap a dead child, if it is one and nothing else reaped it."""
    # This pid alone, never `waitpid(-1)`: that would take the exit of children that the tested program waits for.
    with suppress(ChildProcessError):
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG)
