"""The descendants of one agent, held by pidfd. Owns their descriptors and signals; knows no reason to send one.

A pid is only ever used to open a pidfd, and the kinship is read again afterwards: what is signalled is what was found.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from typing import TYPE_CHECKING

from pytest_agentproc.tree._walk import descendants, session_members

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Members"]


class Members:
    """Know, signal and outwait the descendants of an agent.

    Args:
        root: the pid of the agent, which leads its own session; unreaped as long as this object is used.
        watch: called with the descriptor of each member found: readable once it is dead.
        forget: called before such a descriptor is closed.
    """

    def __init__(self, root: int, watch: Callable[[int], None], forget: Callable[[int], None]) -> None:
        self._root = root
        self._watch = watch
        self._forget = forget
        self._pidfds: dict[int, int] = {}
        self._untouchable: dict[int, int] = {}
        self.leaks: list[int] = []

    def refresh(self) -> bool:
        """Walk the tree; return whether members were found that were not known."""
        found = False
        for pid in dict.fromkeys([*descendants(self._root), *session_members(self._root)]):
            if pid not in self._pidfds and pid not in self._untouchable and self._adopt(pid):
                found = True
        return found

    def _adopt(self, pid: int) -> bool:
        try:
            pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            return False
        if _is_dead(pidfd) or not self._is_kin(pid):
            os.close(pidfd)
            return False
        self._pidfds[pid] = pidfd
        self._watch(pidfd)
        return True

    def _is_kin(self, pid: int) -> bool:
        with contextlib.suppress(ProcessLookupError):
            if os.getsid(pid) == self._root:
                return True
        return pid in descendants(self._root)

    def send(self, *signals: signal.Signals) -> None:
        """Send signals to every member; one that may not be signalled is set apart, and is a leak if it lives on."""
        for pid, pidfd in list(self._pidfds.items()):
            try:
                for signum in signals:
                    signal.pidfd_send_signal(pidfd, signum)
            except ProcessLookupError:
                continue
            except PermissionError:
                self._untouchable[pid] = self._pidfds.pop(pid)
                self._forget(pidfd)

    def prune(self) -> bool:
        """Forget the dead; return whether nobody is left, also after another walk."""
        for pid, pidfd in list(self._pidfds.items()):
            if _is_dead(pidfd):
                self._drop(pid)
        return not self._pidfds and not self.refresh()

    def close(self) -> None:
        """Give the descriptors back; `leaks` then lists who may not be signalled, and lives on."""
        for pid in list(self._pidfds):
            self._drop(pid)
        for pid, pidfd in self._untouchable.items():
            if not _is_dead(pidfd):
                self.leaks.append(pid)
            os.close(pidfd)
        self._untouchable.clear()

    def _drop(self, pid: int) -> None:
        pidfd = self._pidfds.pop(pid)
        self._forget(pidfd)
        os.close(pidfd)


def _is_dead(pidfd: int) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))
