"""The descendants of one agent, held by pidfd. Owns their descriptors and signals; knows no reason to send one.

A pid is only ever used to open a pidfd. Then the kinship is read, and the process must have lived on: so the signal
reaches the process that was found. A walk during which a process died or vanished is no proof: the dead process may
have left a child in a place that the walk had passed.

If no descriptor is left, a member is known by its pid and birth: see `ProcessesWithoutPidfd`.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import threading
from typing import TYPE_CHECKING

from pytest_agentproc.originals import monotonic
from pytest_agentproc.tree._kernel import call_with_spare_descriptor, is_dead, is_out_of_descriptors, open_pidfd
from pytest_agentproc.tree._known_processes import ProcessesWithoutPidfd
from pytest_agentproc.tree._membership import list_pinned_sessions
from pytest_agentproc.tree._walk import read_group, read_session

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.tree._membership import TreeProcessFinder


_LEAST_WALKS_PER_SURVEY = 4
"""The least number of walks in a survey, unless one is sure."""


class TreeProcesses:
    """Find, signal and outlive the descendants of an agent.

    `is_sure` says that the last walk missed no process within its reach.

    Args:
        root: the pidfd of the agent, which stays open as long as this object is used; None: there is no agent.
        finder: decides which processes belong to it; may be replaced.
        watch: called with the descriptor of each member found: readable once it is dead.
        forget: called before such a descriptor is closed.
    """

    def __init__(
        self,
        root: int | None,
        finder: TreeProcessFinder,
        watch: Callable[[int], None],
        forget: Callable[[int], None],
    ) -> None:
        self.finder = finder
        self.is_sure = False
        self.survivors: list[int] = []
        self._root = root
        self._watch = watch
        self._forget = forget
        self._pidfds: dict[int, int] = {}
        self._loose = ProcessesWithoutPidfd()
        self._unreaped: set[int] = set()
        """The dead among these that pin their session, or that another process reaps first."""
        self._untouchable: dict[int, int] = {}
        self._gone: set[int] = set()
        self._strange: set[int] = set()
        self._before: set[int] = set()
        """The processes that the last two walks found dead and did not hold."""

    @property
    def is_empty(self) -> bool:
        """Whether no living member is known that may be signalled."""
        return self._pidfds.keys() <= self._unreaped and not self._loose.births

    @property
    def has_unwatched_members(self) -> bool:
        """Whether a member is known whose death wakes no reader."""
        return bool(self._loose.births)

    def __contains__(self, pid: int) -> bool:
        """See `KnownTreeProcesses`."""
        return pid in self._pidfds or pid in self._loose

    def is_alive(self, pid: int) -> bool:
        """See `KnownTreeProcesses`."""
        return not is_dead(self._pidfds[pid]) if pid in self._pidfds else pid in self._loose.births

    def list_kernel_sessions(self) -> set[int]:
        """See `KnownTreeProcesses`."""
        return list_pinned_sessions(self._pidfds) | self._loose.list_kernel_sessions()

    def walk_tree_until_sure(self, seconds: float) -> None:
        """Walk the tree until a walk is sure, or the real seconds are over, however slow the machine is."""
        end = monotonic() + seconds
        walks = 0
        while walks < _LEAST_WALKS_PER_SURVEY or (not self.is_sure and monotonic() < end):
            self.add_new_members(end=end)
            walks += _LEAST_WALKS_PER_SURVEY if self.is_sure or self.finder.is_cut else 1

    def kill_all(self, seconds: float, *, freeze: bool = False) -> bool:
        """Kill every member as soon as it is found, until a sure walk finds no new one.

        Args:
            seconds: real seconds, about, after which to give up for now.
            freeze: stop all before the first is killed, and reap nothing meanwhile: against a tree that grows faster
                than it dies, or that refills each slot that a death frees.

        Returns:
            Whether a sure walk found no new member.
        """
        end = monotonic() + seconds
        signum = signal.SIGSTOP if freeze else signal.SIGKILL
        # First the known ones: each that lives on may fork while the walk is under way.
        self.send_signals(signum)
        while self.add_new_members(signum, end) or not self.is_sure:
            if monotonic() >= end:
                return False
        if freeze:
            self.send_signals(signal.SIGKILL)
        return not freeze

    def add_new_members(self, signum: signal.Signals | None = None, end: float = math.inf) -> bool:
        """Add new members; return whether there were any.

        Args:
            signum: sent to each new member when it is found; after STOP nothing is reaped.
            end: the real, monotonic instant after which to look at no more than a few of many orphans.
        """
        # The dead are noted before the walk and compared after it. A daemon whose parent ended between two reads of
        # one walk was once not seen, and its test was green.
        dead, root_is_dead, finder = self._list_dead_members(), self._is_root_dead(), self.finder
        self._forget_dead_refused_pids()
        self._strange, self._before = set(), self._strange
        is_new = False
        try:
            # A loose member that died is a death like any other: the walk is not sure.
            self.is_sure = not self._loose.reap_old_zombies()
            for pid in finder.find_candidates(self, end):
                if pid not in self._pidfds and pid not in self._untouchable and pid not in self._loose.refused:
                    is_new = self._hold_member(pid, signum) or is_new
        except OSError as error:
            if not is_out_of_descriptors(error):
                raise
            self.is_sure = False  # another thread took the last descriptor: the next walk sees more
        is_same = self._list_dead_members() == dead and self._is_root_dead() == root_is_dead
        self.is_sure = self.is_sure and finder.is_sure and is_same
        # Zombies pin their session, and the session identifies orphans that appear later. So they are dropped only
        # after a sure walk; until then one of each session is kept.
        is_over = (self.is_sure and not is_new) or not finder.adopts
        self._gone = set() if signum is signal.SIGSTOP else dead if is_over else _select_reapable_zombies(dead)
        return is_new

    def _hold_member(self, pid: int, signum: signal.Signals | None) -> bool:
        """Hold a process if it is a living member; return whether it is and was unknown."""
        try:
            pidfd = open_pidfd(pid)
        except OSError as error:
            if not is_out_of_descriptors(error):
                raise
            return call_with_spare_descriptor(self._add_unheld_member, pid, signum)
        if pidfd is None:
            self.is_sure = False
            return False
        was_known = pid in self._loose
        is_new = self._keep_or_close_pidfd(pid, pidfd, signum, was_known=was_known) and not was_known
        if pid in self._pidfds:
            self._loose.forget(pid)
        return is_new

    def _add_unheld_member(self, pid: int, signum: signal.Signals | None) -> bool:
        """Add a process for which no descriptor can be kept; return whether it is a new, living member."""
        pidfd = open_pidfd(pid)
        if pidfd is None:
            self.is_sure = False
            return False
        try:
            finder = self.finder
            is_member, lives = pid in self._loose or finder.confirm_member(pid, pidfd), not is_dead(pidfd)
            if is_member and lives:
                is_new = self._loose.add(pid)
                if is_new and signum is not None:
                    self._loose.send_signals(pid, signum)
                return is_new
            if not lives:
                self._strange.add(pid)
            self.is_sure = self.is_sure and (lives or pid in self._before) and (is_member or finder.adopts)
            if is_member and signum is not signal.SIGSTOP:
                self._reap(pidfd)
            return False
        finally:
            os.close(pidfd)

    def _keep_or_close_pidfd(self, pid: int, pidfd: int, signum: signal.Signals | None, *, was_known: bool) -> bool:
        """Keep the descriptor of a process that is a living member, or that pins a session; close any other."""
        # Kinship first, life second. A process that still lives after its kinship was read had that kinship; the other
        # order would accept a reused pid.
        finder = self.finder
        is_member, lives = was_known or finder.confirm_member(pid, pidfd), not is_dead(pidfd)
        if is_member and lives:
            self._pidfds[pid] = pidfd
            self._watch(pidfd)
            finder.pin_session(pid)
            if signum is not None:
                self._send_signals(pid, signum)
            return True
        # Its zombie is the only proof for its session, so it stays unreaped until the walks are sure.
        if is_member and finder.adopts and not finder.pin_session(pid):
            self._pidfds[pid] = pidfd
            self._unreaped.add(pid)
            self.is_sure = False
            return False
        if not lives:
            self._strange.add(pid)
        # A dead process that was no member by its marks may have been one: only at the second sight in a row is it old.
        self.is_sure = self.is_sure and (lives or pid in self._before) and (is_member or finder.adopts)
        if is_member and signum is not signal.SIGSTOP:
            self._reap(pidfd)
        os.close(pidfd)
        return False

    @property
    def is_walk_cut(self) -> bool:
        """Whether the last walk stopped because its time was over."""
        return self.finder.is_cut

    def drop_dead_members(self) -> None:
        """Drop the members that were dead before the last walk, unless their zombies help to find others."""
        for pid in self._gone & self._pidfds.keys():
            self._drop_member(pid)

    def send_signals(self, *signals: signal.Signals, group: int | None = None) -> None:
        """Send signals to every member; a member that may not be signalled is a leak if it lives on.

        Args:
            signals: one after the other.
            group: send to the members of this process group only.
        """
        for pid in [pid for pid in self._pidfds if pid not in self._unreaped]:
            if group is None or read_group(pid) == group:
                self._send_signals(pid, *signals)
        for pid in list(self._loose.births):
            if group is None or read_group(pid) == group:
                self._loose.send_signals(pid, *signals)

    def _send_signals(self, pid: int, *signals: signal.Signals) -> None:
        try:
            for signum in signals:
                signal.pidfd_send_signal(self._pidfds[pid], signum)
        except ProcessLookupError:
            return
        # Not retried: a process of another real uid refuses every signal, and the hunt would never end.
        except PermissionError:
            pidfd = self._untouchable[pid] = self._pidfds.pop(pid)
            self._forget(pidfd)

    def close(self) -> None:
        """Close the descriptors; `survivors` then lists the living processes that may not be signalled.

        A thread waits for a member that the kernel does not let die yet, and reaps it.
        """
        late = []
        for pid, pidfd in self._pidfds.items():
            if pid not in self._unreaped:
                self._forget(pidfd)
            self._reap(pidfd)
            if self.finder.adopts and not is_dead(pidfd):
                late.append(pidfd)
            else:
                os.close(pidfd)
        if late:
            threading.Thread(target=_wait_and_reap, args=(late,), name="agentproc-reap", daemon=True).start()
        self._pidfds.clear()
        self._unreaped.clear()
        self._forget_dead_refused_pids()
        for pid, pidfd in self._untouchable.items():
            self.survivors.append(pid)
            os.close(pidfd)
        self._untouchable.clear()
        self.survivors += self._loose.take_refused_pids()

    def _is_root_dead(self) -> bool:
        return self._root is not None and is_dead(self._root)

    def _list_dead_members(self) -> set[int]:
        return {pid for pid, pidfd in self._pidfds.items() if is_dead(pidfd)}

    def _forget_dead_refused_pids(self) -> None:
        """Forget the dead ones: their pid may belong to another process now."""
        for pid, pidfd in list(self._untouchable.items()):
            if is_dead(pidfd):
                self._reap(pidfd)
                os.close(self._untouchable.pop(pid))

    def _drop_member(self, pid: int) -> None:
        """Drop a dead member; if this process has to reap it later, it stays until then."""
        pidfd = self._pidfds[pid]
        if pid not in self._unreaped:
            self._forget(pidfd)
        if self._reap(pidfd):
            self._unreaped.discard(pid)
            os.close(self._pidfds.pop(pid))
        else:
            self._unreaped.add(pid)

    def _reap(self, pidfd: int) -> bool:
        """Leave no zombie of an adopted orphan, which no other process reaps; return whether none is left.

        As the first process of a namespace this process adopts orphans at every containment.
        """
        try:
            os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG)
        # Not our child now. It may become ours when its own parent ends, so signal 0 shows whether the zombie still
        # exists.
        except ChildProcessError:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(pidfd, 0)
                return False
        return True


def _wait_and_reap(pidfds: list[int]) -> None:
    """Wait for the end of killed processes; only then reap: when a parent ends, its zombies become ours."""
    for pidfd in pidfds:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        poll.poll()
    for pidfd in pidfds:
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG)
        os.close(pidfd)


def _select_reapable_zombies(zombies: set[int]) -> set[int]:
    """Leave out one zombie of each session: that one pins the session for later orphans."""
    sessions = {read_session(pid): pid for pid in zombies}
    return zombies - set(sessions.values())
