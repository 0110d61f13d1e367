"""Membership in the tree of an agent: by descent, session, adoption, or a keeper's report. Sends and reaps nothing.

`DescentTree` is the containment `group`, `SubreaperTree` is `subreaper`; the third one is in `_keeper`. The number of a
session proves kinship as long as a process of the tree pins it. The kernel reuses a number only when no process has it
as pid, group or session. A zombie has it until it is reaped.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

from pytest_agentproc.originals import monotonic
from pytest_agentproc.tree._kernel import is_dead, list_children, read_parent, read_state
from pytest_agentproc.tree._walk import (
    has_word_in_environment,
    list_descendants,
    list_session_members,
    read_queue_limit,
    read_session,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


_PROCESSES_BETWEEN_TIME_CHECKS = 64


class KnownTreeProcesses(Protocol):
    """The members that were found so far, zombies too."""

    def __contains__(self, pid: int, /) -> bool:
        """Say whether the process of a pid is a known member."""

    def is_alive(self, pid: int) -> bool:
        """Say whether it is a known member, and alive."""

    def list_kernel_sessions(self) -> set[int]:
        """Give the sessions of the members that are not reaped yet."""


class TreeProcessFinder(Protocol):
    """Find the members of a tree.

    `adopts` says that orphans of the tree become children of this process, which then must reap them. `is_sure` is
    False if the last `find_candidates` may have missed a process. `is_cut` is True if it stopped because its time was
    over.
    """

    adopts: bool
    is_sure: bool
    is_cut: bool

    def find_candidates(self, known: KnownTreeProcesses, end: float) -> Iterator[int]:
        """Give possible members, zombies too.

        Args:
            known: the members that were found; more may be added meanwhile.
            end: the real, monotonic instant after which to look at no more than a few of many orphans.
        """

    def confirm_member(self, pid: int, pidfd: int) -> bool:
        """Say whether a pid that `find_candidates` gave belongs to a new member; asked once its pidfd is open."""

    def pin_session(self, pid: int) -> bool:
        """Say whether the session of a confirmed orphan is pinned already; from now on it is."""


class DescentTree:
    """The descendants of an agent, and those of the members of the session that it leads.

    The session finds processes that the walk of a dead root cannot find. A process that left both is out of reach.

    Args:
        root: the agent's pid; it is unreaped as long as this is used.
    """

    adopts = is_cut = False
    is_sure = True

    def __init__(self, root: int) -> None:
        self._root = root

    def find_candidates(self, known: KnownTreeProcesses, end: float) -> Iterator[int]:
        """See `TreeProcessFinder`."""
        yield from (found := list_descendants(self._root))
        seen = {self._root, *found}
        members = list_session_members(self._root)
        above = {pid: read_parent(pid) for pid in members}
        tops = [pid for pid in members if above[pid] not in above]
        for pid in (*tops, *members):  # a parent's pid may be the greater: below a top, births give the order
            if pid not in seen:
                yield from (found := [pid, *list_descendants(pid)])
                seen.update(found)

    def confirm_member(self, pid: int, pidfd: int) -> bool:
        """See `TreeProcessFinder`."""
        while pid > 1:
            if read_session(pid) == self._root:
                return True
            pid = read_parent(pid)
        return False

    def pin_session(self, pid: int) -> bool:
        """See `TreeProcessFinder`."""
        return True


class SubreaperTree:
    """The descendants of an agent, and the children of this process that belong to the agent.

    A child belongs if it is in a session that a held member pins, or carries the cookie, or has the mark. A child with
    none of these is of unknown origin: `list_unknown_children` lists it, and it is neither signalled nor reaped.

    Args:
        root: the agent's pid; it is unreaped as long as this is used.
        cookie: the word in the environment of the agent.
        mark: the soft limit for message queues that a keeper gave it; None: it gave none.
        before: the children of this process that were there first.
    """

    adopts = True

    def __init__(self, root: int, cookie: str, mark: int | None = None, before: Iterable[int] = ()) -> None:
        self.is_sure, self.is_cut = True, False
        self._root = root
        self._cookie = cookie
        self._mark = mark
        self._before = frozenset(before)
        self._known: KnownTreeProcesses | None = None
        self._sessions = {root}
        self._seen: list[int] = []
        self._strange: set[int] = set()
        self._last = 0

    def find_candidates(self, known: KnownTreeProcesses, end: float) -> Iterator[int]:
        """See `TreeProcessFinder`.

        Descendants come first: an orphan leaves their list before it enters the list of our children.
        """
        self._known = known
        self._sessions = {self._root, *known.list_kernel_sessions()}
        yield from list_descendants(self._root)
        self._seen = list_children(os.getpid())
        self.is_sure, self.is_cut = True, False
        # The youngest first: a tree that forks and dies quickly leaves thousands of zombies, and only the last orphans
        # live. An oldest-first walk took seconds under load, and lost the race.
        for count, pid in enumerate(reversed(self._seen), 1):  # the last may live yet
            if count % _PROCESSES_BETWEEN_TIME_CHECKS == 0 and monotonic() > end:
                self.is_sure, self.is_cut = False, True
                return
            if pid != self._root and not self._is_unknown_zombie(pid):
                self._last = 0
                yield pid
                if pid == self._last or pid in known:
                    yield from list_descendants(pid)

    def confirm_member(self, pid: int, pidfd: int) -> bool:
        """See `TreeProcessFinder`."""
        # A child of ours is judged by its marks. Any other has to lead up to the agent, or to a living member: a dead
        # one says nothing, its pid may be reused.
        if _is_own_zombie(pidfd) is not None:
            return self._judge_unknown_child(pid)
        mine, above = os.getpid(), pid
        while above > 1:
            if above == self._root or (self._known is not None and self._known.is_alive(above)):
                return True
            parent = read_parent(above)
            if parent == mine:
                return self._has_mark_of_agent(above)
            above = parent
        return False

    def _judge_unknown_child(self, child: int) -> bool:
        is_ours = self._has_mark_of_agent(child)
        self._last = child if is_ours else 0
        if not is_ours:
            self._strange.add(child)
        return is_ours

    def pin_session(self, pid: int) -> bool:
        """See `TreeProcessFinder`."""
        session = read_session(pid)
        if session is None or session in self._sessions:
            return True
        self._sessions.add(session)
        return False

    def has_new_children(self) -> bool:
        """Say whether this process has other children than at the last walk."""
        return list_children(os.getpid()) != self._seen

    def list_unknown_children(self, known: Iterable[int]) -> list[int]:
        """List children of this process of unknown origin that came while the agent lived, without the `known` ones."""
        # Named and never signalled: another part of the program may have started them.
        found: KnownTreeProcesses | tuple[()] = self._known or ()
        self._sessions = {self._root, *(found.list_kernel_sessions() if found else ())}
        new = set(list_children(os.getpid())) - self._before - set(known) - {self._root}
        return sorted(pid for pid in new if pid not in found and not self._has_mark_of_agent(pid))

    def _has_mark_of_agent(self, pid: int) -> bool:
        # Each mark alone can be lost: a daemon leaves the session, or clears its environment. It would have to lose
        # all.
        return (
            read_session(pid) in self._sessions
            or has_word_in_environment(pid, self._cookie)
            or (self._mark is not None and read_queue_limit(pid) == self._mark)
        )

    def _is_unknown_zombie(self, pid: int) -> bool:
        """Say whether a child is a zombie of unknown origin, and still is."""
        if pid not in self._strange:
            return False
        # A later member may pin its session, and a process that only executes a program shows its cookie a moment
        # later.
        if read_session(pid) in self._sessions or read_state(pid) != "Z":
            self._strange.discard(pid)
            return False
        return True


def list_pinned_sessions(held: Mapping[int, int]) -> set[int]:
    """Give the sessions of held processes that are not reaped yet: until then no other process gets the number."""
    sessions = set()
    for pid, pidfd in held.items():
        session = read_session(pid)
        if session is not None and not (is_dead(pidfd) and _is_own_zombie(pidfd) is None):
            sessions.add(session)
    return sessions


def _is_own_zombie(pidfd: int) -> bool | None:
    """Say whether a child of this process is a zombie; None: it is no child of ours."""
    try:
        return os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
    except ChildProcessError:
        return None
