"""The processes that are started while it lasts and are left. Owns adoption, the cookie's word, and ending the rest.

The pure judgement is in `_ownership`. This file collects the facts for it, and acts on the result.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from pytest_agentproc.foreign import read_attribute
from pytest_agentproc.interrupts import hold_interrupts, whole_block
from pytest_agentproc.originals import monotonic_ns
from pytest_agentproc.places import find_call_lines
from pytest_agentproc.tree._held_processes import kill, open_pidfds_while_same, reap, wait_for_death
from pytest_agentproc.tree._kernel import list_children
from pytest_agentproc.tree._ownership import OwnedProcess, Ownership, OwnershipFacts, attribute_processes
from pytest_agentproc.tree._prctl import adopt_orphans_in_block
from pytest_agentproc.tree._snapshots import (
    ProcessState,
    has_children,
    read_environment_variable,
    require_own_proc,
    take_snapshot,
)
from pytest_agentproc.tree._starts import (
    START_COOKIE_VARIABLE,
    ProcessStart,
    is_start_under_way,
    listen_to_starts,
    publish_cookie,
)
from pytest_agentproc.tree._walk import list_descendants

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from types import FrameType


_NANOSECONDS_PER_SECOND = 1_000_000_000
_ZOMBIE_POLL_PERIOD_MS = 5
"""Milliseconds between two looks at a dead child: no event shows that a thread has waited for it."""
_DEATH_TIMEOUT_NS = 2 * _NANOSECONDS_PER_SECOND
"""Real nanoseconds that killed processes may take to be dead."""

_MAX_TREE_WALKS = 50
"""Walks of a tree in which a process ends each time: more than happen unless a test makes them happen."""

_TRIO_THREAD_NAME_PREFIX = "Trio thread"
"""The name of a thread that trio keeps for the next task that needs one."""

_birth_by_excluded_pid: dict[int, int] = {}

_process_look_lock = threading.RLock()
"""Held during a look: of two threads that reap one orphan, the second could meet a child with the same pid."""


def exclude_from_tracking(pid: int) -> None:
    """Mark a child as the kit's own: no leak tracker ever counts it, and it is known to start no process.

    Args:
        pid: the child, unreaped.
    """
    # The kernel reuses pids, so the birth is kept as well. Without it a new process could inherit the exemption.
    for process, born in list(_birth_by_excluded_pid.items()):
        if (old := take_snapshot(process)) is None or old.born != born:
            del _birth_by_excluded_pid[process]
    seen = take_snapshot(pid)
    if seen is not None:
        _birth_by_excluded_pid[pid] = seen.born


class LeakTracker:
    """Track the processes that the current thread, and threads that it starts, start from `begin` to `close`.

    Args:
        adopts: whether orphans become this process's children meanwhile; else they are out of reach.
        home: the file whose lines are named beside the nearest of the user's own, such as the test's.
        counts: decides by its frame whether a start in the current thread counts; None: all do.
        excuses: decides by (pid, command) whether a process is allowed to be there.
    """

    def __init__(
        self,
        *,
        adopts: bool = True,
        home: str = "",
        counts: Callable[[FrameType], bool] | None = None,
        excuses: Callable[[int, str], bool] = lambda _pid, _command: False,
    ) -> None:
        self.cookie_word = ""
        self._secret = os.urandom(8).hex()
        self._adopts = adopts
        self._home = home
        self._counts = counts
        self._excuses = excuses
        self._stack = ExitStack()
        self._adoption = ExitStack()
        self._pauses = 0
        self._thread = threading.current_thread()
        self._strangers: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
        self._before: dict[tuple[int, int], int] = {}
        self._numbered: list[ProcessStart] = []
        self._starts: dict[int, ProcessStart] = {}
        self._sessions: dict[int, ProcessStart | None] = {}
        self._claimed: dict[tuple[int, int], OwnedProcess] = {}
        self._has_company = False

    def begin(self) -> None:
        """Count what is started from here on.

        Raises:
            UsageError: /proc does not show the pid namespace of this process.
        """
        require_own_proc()
        # Threads that run already may start processes for other tests or plugins. Trio's cached threads are exempt:
        # they are idle now, and work for the next task that needs them.
        threads = (thread for thread in threading.enumerate() if thread is not self._thread)
        self._strangers.update(thread for thread in threads if not thread.name.startswith(_TRIO_THREAD_NAME_PREFIX))
        self._mark_processes_foreign(() if self._has_no_new_child() else _snapshot_descendants())
        self.cookie_word = self._secret
        if self._adopts:
            self._adoption.enter_context(adopt_orphans_in_block())
        self._stack.enter_context(listen_to_starts(self))

    def _mark_processes_foreign(self, strangers: Sequence[ProcessState]) -> None:
        """Treat processes as foreign to this tracker."""
        helpers = _list_multiprocessing_helpers()
        for stranger in strangers:
            self._before[stranger.pid, stranger.born] = stranger.parent
            is_idle = (
                stranger.state == "zombie"
                or stranger.pid in helpers
                or _birth_by_excluded_pid.get(stranger.pid) == stranger.born
            )
            self._has_company = self._has_company or not (is_idle or self._excuses(stranger.pid, stranger.command))

    def has_started_process(self, pid: int) -> bool:
        """Say whether this process started a process since the beginning."""
        return pid in self._starts

    def close(self) -> None:
        """Stop counting."""
        with hold_interrupts():
            self.cookie_word = ""
            self._stack.close()
            self._adoption.close()

    @whole_block
    def pause(self) -> Iterator[None]:
        """Treat processes that are started while the block runs as foreign."""
        if self._pauses:
            yield
            return
        # Adoption ends for the pause as well. Otherwise a fixture's daemon that starts in the pause would be adopted,
        # and look like a leak of the test.
        known = {(process.pid, process.born) for process in _snapshot_descendants()}
        self._pauses += 1
        self.cookie_word = ""
        publish_cookie()
        self._adoption.close()
        try:
            yield
        finally:
            if self._adopts:
                self._adoption.enter_context(adopt_orphans_in_block())
            self._pauses -= 1
            self.cookie_word = self._secret
            publish_cookie()
            self._mark_new_as_foreign(known)

    def _mark_new_as_foreign(self, known: Collection[tuple[int, int]]) -> None:
        """Treat each process as foreign that came during a pause and was not started by a thread of ours."""
        seen = _snapshot_descendants()
        mine = {
            process.snapshot.pid
            for process in attribute_processes(seen, self._gather_ownership_facts(seen, has_company=True)).mine
        }
        self._mark_processes_foreign(
            [process for process in seen if (process.pid, process.born) not in known and process.pid not in mine]
        )

    # Reports of the patches.

    def before_start(self, command: str, frame: FrameType) -> ProcessStart:
        """See `StartListener`."""
        start = ProcessStart(
            len(self._numbered), command, find_call_lines(frame, self._home), self._is_own_frame(frame)
        )
        self._numbered.append(start)
        return start

    def after_start(self, start: ProcessStart) -> None:
        """See `StartListener`."""
        self._starts[start.pid] = start
        if read_attribute(start.handle(), "serves_host", default=False):
            exclude_from_tracking(start.pid)

    def before_thread_start(self, thread: threading.Thread) -> None:
        """See `StartListener`."""
        if not self._is_tracked_thread(threading.current_thread()):
            self._strangers.add(thread)

    def before_signal(self) -> None:
        """See `StartListener`: learn the living descendants, later known as adopted, and reap the dead ones."""
        if self._adopts:
            self.find_owned()

    def _is_tracked_thread(self, thread: threading.Thread) -> bool:
        # The own thread counts only outside of pauses. Others count if a thread that counts started them.
        if thread is self._thread:
            return not self._pauses
        return thread not in self._strangers

    def _is_own_frame(self, frame: FrameType) -> bool:
        thread = threading.current_thread()
        judged = self._counts is not None and thread is self._thread
        return self._is_tracked_thread(thread) and (not judged or self._counts is None or self._counts(frame))

    # Processes that are there.

    def find_owned(self) -> Ownership:
        """Find the processes that are there now. Without a new child this costs one system call or one look."""
        with _process_look_lock:
            return self._find_owned()

    def _find_owned(self) -> Ownership:
        found = Ownership()
        for _ in range(_MAX_TREE_WALKS):
            if self._has_no_new_child():
                return Ownership()
            pids = list_descendants(os.getpid())
            seen = _snapshot_processes(pids)
            # The order counts. A child that was seen, and whose start is unknown to the judgement below, is of a start
            # that is under way here: its starter will wait for it.
            is_early = is_start_under_way()
            found = attribute_processes(seen, self._gather_ownership_facts(seen, has_company=self._has_company))
            for process in found.mine:
                # Claims are remembered: once its parent and its session are dead, nothing else shows to whom a process
                # belongs.
                self._claimed[process.snapshot.pid, process.snapshot.born] = process
                if process.snapshot.session != os.getsid(0):
                    self._sessions[process.snapshot.session] = process.start
            spent = () if is_early else found.spent
            for pid in spent:
                reap(pid)
            if found.mine or (len(seen) == len(pids) and not spent):
                break  # a process that ended during the walk may have left a child that was not seen
        return found

    def _has_no_new_child(self) -> bool:
        """Say whether every child was there before, or is the kit's own."""
        if not has_children():
            return True
        now: set[int] = set()
        with suppress(OSError):  # no descriptor is left
            now.update(list_children(os.getpid()))
        # A pid that was started here may be the reused one of a process from before, so it is always looked at.
        old = {*_birth_by_excluded_pid, *(pid for pid, _ in self._before)}
        return bool(now) and now <= old and not any(pid in self._starts for pid in now - _birth_by_excluded_pid.keys())

    def wait_until_none_left(self, timeout: int, *, zombies: bool = True) -> Ownership:
        """Wait until no process is left, or the time is up; give the rest.

        Args:
            timeout: real nanoseconds.
            zombies: whether children that are dead must have been waited for as well.
        """
        deadline = monotonic_ns() + timeout
        # Processes that end by themselves need a moment: without it 9 of 15 clean supervisors were reported as leaking.
        while True:
            found = self.find_owned()
            left = deadline - monotonic_ns()
            is_dead = any(process.snapshot.state == "zombie" for process in found.mine)
            awaited = [process for process in found.mine if zombies or process.snapshot.state != "zombie"]
            if not awaited or left <= 0:
                return found
            milliseconds = -(-left // 1_000_000)
            with open_pidfds_while_same(
                process.snapshot for process in found.mine if process.snapshot.state != "zombie"
            ) as grips:
                wait_for_death(
                    grips.values(), min(milliseconds, _ZOMBIE_POLL_PERIOD_MS) if is_dead or not grips else milliseconds
                )

    def end_owned_processes(self, found: Sequence[OwnedProcess]) -> list[ProcessState]:
        """Kill and reap until no owned process is left; give the processes that cannot be ended.

        Args:
            found: the processes to begin with; those that turn up among their children follow.
        """
        deadline = monotonic_ns() + _DEATH_TIMEOUT_NS
        refused: dict[tuple[int, int], ProcessState] = {}
        while found and monotonic_ns() < deadline:
            # Held by pidfd and seen again before the signal, so a reused pid is never hit.
            living = [process.snapshot for process in found if process.snapshot.state != "zombie"]
            with open_pidfds_while_same(living) as grips:
                for process in living:
                    if process.pid in grips and not kill(grips[process.pid]):
                        refused[process.pid, process.born] = process
                        os.close(grips.pop(process.pid))
                while grips and monotonic_ns() < deadline:
                    dead = wait_for_death(grips.values(), 100)
                    for pid in [pid for pid, pidfd in grips.items() if pidfd in dead]:
                        os.close(grips.pop(pid))
            self._reap_owned_processes(found)
            # Killed processes leave their children to this process. Each round looks again until none turns up.
            found = [
                process
                for process in self.find_owned().mine
                if (process.snapshot.pid, process.snapshot.born) not in refused
            ]
        return [*refused.values(), *(process.snapshot for process in found)]

    def _reap_owned_processes(self, found: Sequence[OwnedProcess]) -> None:
        wait_for_death(
            (), _ZOMBIE_POLL_PERIOD_MS
        )  # a thread that waits for a process, as asyncio has them, comes first
        # It notes how its processes ended.
        read_attribute(sys.modules.get("multiprocessing.process"), "active_children", list)()
        # A `Popen` object has to reap its process itself: after any other wait it reports exit code 0.
        for process in found:
            pid = process.snapshot.pid
            handle = process.start.handle() if process.start is not None and process.start.pid == pid else None
            if handle is not None:
                handle.poll()
            else:
                reap(pid)

    def _gather_ownership_facts(self, observed: Sequence[ProcessState], *, has_company: bool) -> OwnershipFacts:
        # Only adopted children without a known start need the cookie. To read it costs a file for each process.
        me = os.getpid()
        before = {**self._before, **dict.fromkeys(_birth_by_excluded_pid.items(), me)}
        helpers = _list_multiprocessing_helpers()
        own = [start for start in self._numbered if start.is_own]
        strange = any(
            start.pid and start.pid not in _birth_by_excluded_pid for start in self._numbered if not start.is_own
        )
        cookies = {}
        for process in observed:
            if process.parent == me and not (process.pid in self._starts or (process.pid, process.born) in before):
                cookies.update(self._read_cookie_starts(process.pid))
        return OwnershipFacts(
            me=me,
            session=os.getsid(0),
            before=before,
            helpers=helpers,
            starts=dict(self._starts),  # another thread may start a process meanwhile
            cookies=cookies,
            sessions=self._sessions,
            claimed=self._claimed,
            candidates=own,
            others=has_company or strange or _find_forkserver_pid() != 0,
            excuses=self._excuses,
        )

    def _read_cookie_starts(self, pid: int) -> dict[int, ProcessStart | None]:
        for word in read_environment_variable(pid, START_COOKIE_VARIABLE).split():
            secret, _, number = word.partition(".")
            if secret == self._secret:
                return {pid: self._numbered[int(number)] if number else None}
        return {}


def _snapshot_descendants() -> list[ProcessState]:
    """See all descendants of this process, parents before children."""
    if not has_children():
        return []
    return _snapshot_processes(list_descendants(os.getpid()))


def _snapshot_processes(pids: Sequence[int]) -> list[ProcessState]:
    return [seen for pid in pids if (seen := take_snapshot(pid)) is not None]


def _list_multiprocessing_helpers() -> set[int]:
    """List the helper processes of multiprocessing: they belong to no test."""
    return {
        *filter(
            None, [_find_multiprocessing_pid("resource_tracker", "_resource_tracker", "_pid"), _find_forkserver_pid()]
        )
    }


def _find_forkserver_pid() -> int:
    return _find_multiprocessing_pid("forkserver", "_forkserver", "_forkserver_pid")


def _find_multiprocessing_pid(module: str, name: str, attribute: str) -> int:
    pid = read_attribute(read_attribute(sys.modules.get(f"multiprocessing.{module}"), name), attribute)
    return pid if type(pid) is int else 0
