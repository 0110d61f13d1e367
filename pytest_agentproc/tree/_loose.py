"""Members of a tree for which no descriptor is left, known by pid and birth. Signals them; knows no reason to.

Descriptors may run out: a tree has more members than this process may open files, or many runs share them. A pid alone
proves nothing, but no two processes have the same pid and the same birth. So a signal opens the process with a
descriptor that was set aside, reads the birth again, and gives the descriptor back.
"""

from __future__ import annotations

import contextlib
import os
import signal

from pytest_agentproc.tree._kernel import attempt, is_exhausted, pidfd_of, spared, stat_of

__all__ = ["Loose"]

_BORN = 19
"""Where, from the state on, the kernel says when a process was born."""


class Loose:
    """Hold pids with births: `births` of members that may be signalled, `refused` of those that may not."""

    def __init__(self) -> None:
        self.births: dict[int, bytes] = {}
        self.refused: dict[int, bytes] = {}

    def add(self, pid: int) -> bool:
        """Take in a living process; return whether it was unknown."""
        born = _birth(pid)
        is_new = bool(born) and self.births.get(pid) != born
        if is_new:
            self.births[pid] = born
        return is_new

    def send(self, pid: int, *signals: signal.Signals) -> None:
        """Send signals to a member, one after the other; without any descriptor the next call may do it."""
        try:
            spared(self._send, pid, signals)
        except OSError as error:
            if not is_exhausted(error):
                raise

    def prune(self) -> bool:
        """Forget those who are dead, and leave no zombie of ours; return whether a member was."""
        self.refused = {pid: born for pid, born in self.refused.items() if _birth(pid) == born}
        dead = [pid for pid, born in self.births.items() if _birth(pid) != born]
        for pid in dead:
            del self.births[pid]
            attempt(os.waitid, os.P_PID, pid, os.WEXITED | os.WNOHANG)
        return bool(dead)

    def left(self) -> list[int]:
        """List those who may not be signalled, and forget everybody."""
        with contextlib.suppress(OSError):  # a list that may be too long is better than none
            self.prune()
        left = list(self.refused)
        self.births.clear()
        self.refused.clear()
        return left

    def _send(self, pid: int, signals: tuple[signal.Signals, ...]) -> None:
        pidfd = pidfd_of(pid)
        if pidfd is None:
            return
        try:
            if _birth(pid) == self.births[pid]:
                for signum in signals:
                    signal.pidfd_send_signal(pidfd, signum)
        except ProcessLookupError:
            return
        except PermissionError:
            self.refused[pid] = self.births.pop(pid)
        finally:
            os.close(pidfd)


def _birth(pid: int) -> bytes:
    """Give the kernel's number for the birth of a living process; nothing for a dead one."""
    fields = stat_of(pid)
    return fields[_BORN] if fields and fields[0] not in (b"Z", b"X") else b""
