"""Members of a tree without a descriptor, known by pid and birth. Signals them; knows no reason to.

Descriptors may run out: a tree has more members than this process may open files, or many runs share them. A pid alone
proves nothing, but pid and birth together identify a member. So a signal opens the process with a reserved descriptor,
reads the birth again, and closes the descriptor.
"""

from __future__ import annotations

import contextlib
import os
import signal

from pytest_agentproc.tree._kernel import call_with_spare_descriptor, is_out_of_descriptors, open_pidfd, read_stat
from pytest_agentproc.tree._walk import read_session

_BIRTH_TIME_FIELD_INDEX = 19
"""Where, from the state on, the kernel says when a process was born."""


class ProcessesWithoutPidfd:
    """Hold pids with births: `births` of members that may be signalled, `refused` of the others.

    A dead member is known until its parent or `reap_old_zombies` reaps its zombie: nothing else shows to whom an
    orphan's zombie belongs.
    """

    def __init__(self) -> None:
        self.births: dict[int, bytes] = {}
        self.refused: dict[int, bytes] = {}
        self._corpses: dict[int, bytes] = {}

    def __contains__(self, pid: int) -> bool:
        """Say whether a process is a member that may be signalled, or its zombie."""
        born = self.births.get(pid) or self._corpses.get(pid)
        return born is not None and _read_birth_time(pid) == born

    def add(self, pid: int) -> bool:
        """Take in a living process; return whether it was unknown."""
        born = _read_birth_time(pid, living=True)
        is_new = bool(born) and self.births.get(pid) != born
        if is_new:
            self.births[pid] = born
        return is_new

    def forget(self, pid: int) -> None:
        """Drop a member for which a descriptor was found."""
        self.births.pop(pid, None)
        self._corpses.pop(pid, None)

    def list_kernel_sessions(self) -> set[int]:
        """Give the sessions of the members that are not reaped yet."""
        found = {pid: read_session(pid) for pid in (*self.births, *self._corpses)}
        return {session for pid, session in found.items() if session is not None and pid in self}

    def send_signals(self, pid: int, *signals: signal.Signals) -> None:
        """Send signals to a member, one after the other; if no descriptor is free, the next call may succeed."""
        try:
            call_with_spare_descriptor(self._send_signals, pid, signals)
        except OSError as error:
            if not is_out_of_descriptors(error):
                raise

    def reap_old_zombies(self) -> bool:
        """Reap the zombies that were there at the last call; return whether there are new ones."""
        self.refused = {pid: born for pid, born in self.refused.items() if _read_birth_time(pid, living=True) == born}
        # One call later, not at once: the session of the zombie still identifies orphans of the same tree. When zombies
        # were forgotten at once, 2 of 100 runs with few descriptors left a process behind.
        self._reap_zombies()
        dead = {pid: born for pid, born in self.births.items() if _read_birth_time(pid, living=True) != born}
        for pid in dead:
            del self.births[pid]
        self._corpses |= dead
        return bool(dead)

    def take_refused_pids(self) -> list[int]:
        """List the processes that may not be signalled, and forget all; no zombie of a child is left."""
        with contextlib.suppress(OSError):  # a list that may be too long is better than none
            self.reap_old_zombies()
            self._reap_zombies()
        left = list(self.refused)
        for known in (self.births, self.refused, self._corpses):
            known.clear()
        return left

    def _reap_zombies(self) -> None:
        """Reap the zombies that are children of this process; forget those that have disappeared."""
        for pid, born in list(self._corpses.items()):
            if _read_birth_time(pid) != born or _reap_child(pid):
                del self._corpses[pid]

    def _send_signals(self, pid: int, signals: tuple[signal.Signals, ...]) -> None:
        pidfd = open_pidfd(pid)
        if pidfd is None:
            return
        try:
            # The pidfd is open, so from here on the pid cannot be reused. The birth shows whether it was before.
            if _read_birth_time(pid, living=True) == self.births[pid]:
                for signum in signals:
                    signal.pidfd_send_signal(pidfd, signum)
        except ProcessLookupError:
            return
        except PermissionError:
            self.refused[pid] = self.births.pop(pid)
        finally:
            os.close(pidfd)


def _reap_child(pid: int) -> bool:
    """Reap a child of this process; return whether it was one, and the last of its threads has ended."""
    with contextlib.suppress(ChildProcessError):
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG) is not None
    return False


def _read_birth_time(pid: int, *, living: bool = False) -> bytes:
    """Give the kernel's number for the birth of a process; nothing if it has disappeared or is not `living`."""
    fields = read_stat(pid)
    return fields[_BIRTH_TIME_FIELD_INDEX] if fields and not (living and fields[0] in (b"Z", b"X")) else b""
