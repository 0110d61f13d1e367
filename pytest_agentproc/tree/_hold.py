"""Processes held by pidfd while they are signalled and waited for. Owns system calls; chooses nobody.

A pid is only ever used to open a pidfd, and the process is looked at again afterwards: what
is signalled is what was seen.
"""

from __future__ import annotations

import os
import select
import signal
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from pytest_agentproc.tree._kernel import pidfd_of
from pytest_agentproc.tree._snapshots import sight

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_agentproc.tree._snapshots import ProcessSnapshot

__all__ = ["held", "kill", "reap", "wait"]


@contextmanager
def held(wanted: Iterable[ProcessSnapshot]) -> Iterator[dict[int, int]]:
    """Hold processes by pidfd, those that are still what was seen: (pid, pidfd)."""
    grips: dict[int, int] = {}
    try:
        for one in wanted:
            pidfd = pidfd_of(one.pid)
            if pidfd is None:
                continue
            now = sight(one.pid)
            if now is None or now.born != one.born or now.parent not in (one.parent, os.getpid()):
                os.close(pidfd)
            else:
                grips[one.pid] = pidfd
        yield grips
    finally:
        for pidfd in grips.values():
            os.close(pidfd)


def wait(pidfds: Iterable[int], timeout: int) -> list[int]:
    """Wait until one of them is dead, so many milliseconds at most; give those that are."""
    poll = select.poll()
    for pidfd in pidfds:
        poll.register(pidfd, select.POLLIN)
    return [pidfd for pidfd, _ in poll.poll(timeout)]


def kill(pidfd: int) -> bool:
    """Send KILL; return whether that was allowed."""
    try:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


def reap(pid: int) -> None:
    """Take the status of a dead child, if it is one and nobody else took it."""
    with suppress(ChildProcessError):
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG)
