"""The agent's own process: its parent, its end, its reaping. Owns its pidfd; knows no process below it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import struct
import threading
from subprocess import TimeoutExpired
from typing import TYPE_CHECKING, Protocol

from pytest_agentproc.originals import Popen, monotonic
from pytest_agentproc.tree._keeper import KeeperDied

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_agentproc.tree._keeper import Keeper


started_pids: set[int] = set()
"""The pids that this module started and has not reaped."""

_PIDFD_GET_INFO_REQUEST = 0xC048FF0B
"""The request for the kernel's facts about a pidfd: 72 bytes, a mask of the wanted facts first."""
_PIDFD_EXIT_INFO_FLAG = 1 << 3
_EXIT_STATUS_OFFSET_BYTES = 60

_PROCESS_END_TIMEOUT_SECONDS = 1.0
"""Real seconds between the end of a process's threads and the end of the process itself."""


class RootProcess(Protocol):
    """A process that leads its own session.

    `pid` is its own until `reap`. `pidfd` is readable once it is dead, and its user closes it. The pidfd of a process
    that was reaped at once is a stand-in, which takes no signal.
    """

    pid: int
    pidfd: int

    def read_status(self) -> int | None:
        """Say how it ended, without reaping it; call this once it is dead.

        None: another part of this program reaped it, and the kernel does not tell.
        """

    def reap(self, seconds: float | None = None) -> bool:
        """Leave no zombie of it; return False if it has not ended within the real seconds; None: wait for it.

        After False a thread waits for it, if it is a child of this process.
        """


class OwnChild:
    """A child of this process.

    Args:
        argv: the command; the first word is looked up in `env`'s PATH.
        cwd: where it runs; None: here.
        env: its whole environment; None: ours.
        stdio: its standard descriptors; they stay open here.

    Raises:
        OSError: it could not be started.
    """

    def __init__(
        self, argv: Sequence[str], cwd: str | None, env: Mapping[str, str] | None, stdio: tuple[int, int, int]
    ) -> None:
        stdin, stdout, stderr = stdio
        # A descriptor is reserved for the pidfd before the start. A process that runs without one could not be watched
        # or ended.
        room = _reserve_pidfd_place()
        try:
            self._process = Popen(
                argv, stdin=stdin, stdout=stdout, stderr=stderr, cwd=cwd, env=env, start_new_session=True
            )
        finally:
            os.close(room)
        self.pid = self._process.pid
        self._is_known = True
        try:
            self.pidfd = os.pidfd_open(self.pid)
        # A handler of SIGCHLD that waits for every child can be faster than this line. The run was then a spawn_failed
        # although the agent ran, and its descendants lived on.
        except ProcessLookupError:  # it has ended, and another part of this program has reaped it
            self.pidfd = os.eventfd(1, os.EFD_CLOEXEC)  # readable, as that of a dead process is
            self._is_known = False
        except OSError:
            # Its session is its own, so its group can be killed: it is the only way left to reach what it has started.
            os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()
            raise
        started_pids.add(self.pid)

    def read_status(self) -> int | None:
        """See `RootProcess`."""
        return _read_status(self.pidfd) if self._is_known else None

    def reap(self, seconds: float | None = None) -> bool:
        """See `RootProcess`."""
        try:
            self._process.wait(seconds)
        except TimeoutExpired:
            threading.Thread(target=self.reap, name="agentproc-reap", daemon=True).start()
            return False
        started_pids.discard(self.pid)
        return True


class KeeperChild:
    """A child of a keeper; of this process, once the keeper is dead.

    Args:
        keeper: the keeper that starts it; the others are as of `OwnChild`.

    Raises:
        OSError: it could not be started.
        KeeperDied: the keeper has ended.
    """

    def __init__(
        self,
        keeper: Keeper,
        argv: Sequence[str],
        cwd: str | None,
        env: Mapping[str, str] | None,
        stdio: tuple[int, int, int],
    ) -> None:
        self._keeper = keeper
        room = _reserve_pidfd_place()
        try:
            self.pid = keeper.start(argv, cwd, env, stdio)
        finally:
            os.close(room)
        self.pidfd = os.pidfd_open(self.pid)
        started_pids.add(self.pid)

    def read_status(self) -> int | None:
        """See `RootProcess`."""
        # The pidfd is readable when the last thread has ended, a moment before the keeper can see the exit.
        end = monotonic() + _PROCESS_END_TIMEOUT_SECONDS
        with contextlib.suppress(KeeperDied):
            while monotonic() < end:
                status = self._keeper.read_status(self.pid)
                if status is not None:
                    return status
        return _read_status(self.pidfd)

    def reap(self, seconds: float | None = None) -> bool:
        """See `RootProcess`."""
        started_pids.discard(self.pid)
        with contextlib.suppress(KeeperDied):
            return self._keeper.reap(self.pid) is not None
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED | os.WNOHANG)
        return True


def _reserve_pidfd_place() -> int:
    """Take the place of the descriptor that a process will need at once when it is started."""
    return os.eventfd(0, os.EFD_CLOEXEC)


def _read_status(pidfd: int) -> int | None:
    """Say how a process ended; None if another part of this program reaped it, and the kernel does not tell."""
    try:
        result = os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOWAIT)
    except ChildProcessError:
        return _read_reaped_status(pidfd)
    assert result is not None
    return result.si_status if result.si_code == os.CLD_EXITED else -result.si_status


def _read_reaped_status(pidfd: int) -> int | None:
    """Ask the kernel how a reaped process ended; Linux has known that since 6.15."""
    words = bytearray(struct.pack("Q64x", _PIDFD_EXIT_INFO_FLAG))
    try:
        fcntl.ioctl(pidfd, _PIDFD_GET_INFO_REQUEST, words)
    except OSError:
        return None
    known: int = struct.unpack_from("Q", words)[0]
    status: int = struct.unpack_from("i", words, _EXIT_STATUS_OFFSET_BYTES)[0]
    return os.waitstatus_to_exitcode(status) if known & _PIDFD_EXIT_INFO_FLAG else None
