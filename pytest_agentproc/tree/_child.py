"""One agent process behind one epoll descriptor: pipes, exit, descendants. Owns system calls; decides nothing.

No call waits longer than 50 ms of real time for a tree to die. The next look continues with what is left; an alarm
wakes the reader of the descriptor for it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import signal
from typing import TYPE_CHECKING

from pytest_agentproc.machine import sleep_machine_time
from pytest_agentproc.originals import monotonic
from pytest_agentproc.tree._keeper import Keeper, KeeperDied, KeeperTree, add_cookie, living_keeper_pids
from pytest_agentproc.tree._kernel import (
    is_dead,
    is_out_of_descriptors,
    list_children,
    release_descriptors,
    reserve_descriptors,
)
from pytest_agentproc.tree._members import TreeProcesses
from pytest_agentproc.tree._membership import DescentTree, SubreaperTree
from pytest_agentproc.tree._prctl import Alarm, adopt_orphans, release_orphans
from pytest_agentproc.tree._root import KeeperChild, OwnChild, started_pids

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_agentproc.tree._membership import TreeProcessFinder
    from pytest_agentproc.tree._root import RootProcess


_TERMINATING_SIGNALS = (signal.SIGTERM, signal.SIGCONT)
_KILLING_SIGNALS = (signal.SIGKILL,)
_STREAM_NAMES = ("stdin", "stdout", "stderr")
_SECONDS_PER_KILL_CALL = 0.04
"""Real seconds that one call spends on a tree that does not end."""
_SECONDS_PER_WALK_CALL = 0.01
"""The same for a call that only looks."""
_MS_UNTIL_NEXT_WALK = 5
"""Real milliseconds until the next look at such a tree."""
_SECONDS_PER_KILL_METHOD = 0.5
"""Real seconds of killing processes as they come, then of stopping all first, in turns."""
_SECONDS_AFTER_CANCELLATION = 3.0
"""Real seconds for everything after the caller was cancelled."""


class AgentChild:
    """Start an agent in a session of its own, with three pipes.

    `containment` says which one holds. If this process ignores SIGCHLD, the kernel keeps no exit status of its
    children. A keeper then starts the agent if there can be one. If another part of this program reaps every child, the
    exit is read from the pidfd (Linux 6.15), or not known. It is not known, either, if that part reaped the agent
    before its pidfd was open.

    If a containment is not available, or breaks while the agent runs, the next weaker one replaces it.

    Args:
        argv: the command; the first word is looked up in `env`'s PATH.
        cwd: where it runs; None: here.
        env: its whole environment; None: ours. Beyond `group` the variable AGENTPROC_TREE is added.
        containment: how the tree is held: "group", "subreaper" or "keeper".

    Raises:
        OSError: it could not be started.
    """

    def __init__(
        self,
        argv: Sequence[str],
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        containment: str = "group",
    ) -> None:
        self.containment = "group"
        self._keeper: Keeper | None = None
        self._holds_orphans = False
        self._numbers: dict[str, int] = {}
        self._eventfds: list[int] = []
        """The eventfd that wakes the reader, and one that reserves a descriptor for the alarm."""
        self._finder: TreeProcessFinder
        self._epoll = select.epoll()
        # The descriptors for the end are reserved before the start. Without them the start is refused; with too few at
        # the end, the agent would live on.
        try:
            reserve_descriptors()
        except OSError:
            self._epoll.close()
            raise
        try:
            for _ in range(2):
                self._eventfds.append(os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC))
            # Children that were there before cannot be the agent's. Without this list an unrelated orphan would count
            # as a stranger.
            self._before = list_children(os.getpid()) if containment != "group" else []
            self._root = self._start(argv, cwd, env, containment)
        except BaseException:
            self._close_pipes()
            self._end_containment()
            self._close_polling_descriptors()
            raise
        self.pid = self._root.pid
        self._pidfd = self._root.pidfd
        self._wakeup = self._eventfds[0]
        self._names = {number: name for name, number in self._numbers.items()} | {self._pidfd: "exit"}
        self._epoll.register(self._pidfd, select.EPOLLIN)
        self._epoll.register(self._wakeup, select.EPOLLIN)
        self._alarm: Alarm | None = None
        self._members = TreeProcesses(self._pidfd, self._finder, self._watch_member, self._epoll.unregister)
        self._killed_at: float | None = None
        self._has_ended = False
        self._status: int | None = None
        self._is_reaped = False
        self._owner = os.getpid()

    def __del__(self) -> None:
        """Give the descriptors back if nobody has called `close`; a fork has a copy of this object, and no agent."""
        if getattr(self, "_owner", None) == os.getpid():
            with contextlib.suppress(Exception):  # the interpreter may be ending
                self.close()

    def _start(
        self, argv: Sequence[str], cwd: str | None, env: Mapping[str, str] | None, containment: str
    ) -> RootProcess:
        theirs = []
        try:
            for name in _STREAM_NAMES:
                reader, writer = os.pipe()
                ours, other = (writer, reader) if name == "stdin" else (reader, writer)
                self._numbers[name] = ours
                theirs.append(other)
                os.set_blocking(ours, False)
            stdio = (theirs[0], theirs[1], theirs[2])
            # A handler that ignores SIGCHLD lets the kernel reap each child at once: `wait` then raised
            # ChildProcessError, and five descriptors stayed open.
            is_lost = signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN  # an exit leaves nothing, but to a keeper
            if (containment == "keeper" or is_lost) and (keeper := _start_keeper()) is not None:
                self._keeper = keeper
                with contextlib.suppress(KeeperDied):
                    kept = KeeperChild(keeper, argv, cwd, env, stdio)
                    self.containment, self._finder = "keeper", KeeperTree(keeper, kept.pid)
                    return kept
                self._end_containment()
            if containment != "group" and self._begin_adopting_orphans():
                cookie = secrets.token_hex(8)
                own = OwnChild(argv, cwd, add_cookie(env, cookie), stdio)
                self.containment, self._finder = "subreaper", SubreaperTree(own.pid, cookie, before=self._before)
                return own
            own = OwnChild(argv, cwd, env, stdio)
            self._finder = DescentTree(own.pid)
            return own
        finally:
            for number in theirs:
                os.close(number)

    def _begin_adopting_orphans(self) -> bool:
        with contextlib.suppress(OSError, AttributeError):
            adopt_orphans()
            self._holds_orphans = True
        return self._holds_orphans

    @property
    def is_own_child(self) -> bool:
        """Whether the agent is a child of this process, and not of a keeper."""
        return isinstance(self._root, OwnChild)

    @property
    def descriptor(self) -> int:
        """The descriptor that is readable whenever `poll` has something to report."""
        return self._epoll.fileno()

    def poll(self) -> set[str]:
        """Report what is ready, without waiting: stdin, stdout, stderr, exit, members."""
        # An orphan that this process adopts has no descriptor in the epoll yet. The list of children shows it.
        if isinstance(self._finder, SubreaperTree) and self._has_new_children(self._finder):
            self._members.add_new_members(end=monotonic() + _SECONDS_PER_WALK_CALL)
        ready = [number for number, _ in self._epoll.poll(0)]
        if self._alarm is not None and self._alarm.descriptor in ready:
            self._alarm.clear()
        if self._wakeup in ready:
            os.eventfd_read(self._wakeup)
        return {self._names.get(number, "members") for number in ready}

    def _has_new_children(self, finder: SubreaperTree) -> bool:
        try:
            return finder.has_new_children()
        except OSError as error:
            if not is_out_of_descriptors(error):
                raise
            return False

    def watch_stream(self, name: str, *, wanted: bool) -> None:
        """Add a stream to the reports of `poll`, or remove it."""
        number = self._numbers[name]
        if wanted:
            self._epoll.register(number, select.EPOLLOUT if name == "stdin" else select.EPOLLIN)
        else:
            with contextlib.suppress(FileNotFoundError):
                self._epoll.unregister(number)

    def read(self, name: str, limit: int) -> bytes | None:
        """Read the available bytes: None would block, b"" is the end."""
        try:
            return os.read(self._numbers[name], limit)
        except BlockingIOError:
            return None

    def write(self, data: bytes | memoryview) -> int | None:
        """Write as much to stdin as fits: None would block.

        Raises:
            BrokenPipeError: there is no reader any more.
        """
        try:
            return os.write(self._numbers["stdin"], data)
        except BlockingIOError:
            return None

    def close_stdin(self) -> None:
        """End the agent's input."""
        number = self._numbers.pop("stdin", None)
        if number is not None:
            self._names.pop(number, None)
            os.close(number)

    def read_exit_status(self) -> int | None:
        """Say how the agent exited, without reaping it: a code, or minus a signal's number; None: it is not known."""
        if not self._has_ended:
            self._has_ended = True
            self._status = self._root.read_status()
            self._epoll.unregister(self._pidfd)
        return self._status

    def terminate(self, reach: str = "tree") -> None:
        """Send TERM, and CONT so that a stopped process receives it, to the agent and every descendant.

        Args:
            reach: "tree"; "group" spares processes that left the agent's process group; "agent" reaches the agent
                alone.
        """
        # TERM to a stopped process is only delivered after CONT (measured); KILL is delivered at once.
        self._signal_tree(_TERMINATING_SIGNALS, reach)
        if reach == "tree":
            self._wake_reader_if_empty()

    def kill(self, reach: str = "tree") -> None:
        """Send KILL to the agent and to every descendant, and from then on to each new one; see `terminate`."""
        self._signal_tree(_KILLING_SIGNALS, reach)
        if reach == "tree":
            self._killed_at = self._killed_at or monotonic()
            self._retry_without_keeper(self._kill_members)
            self._wake_reader_if_empty()

    def _signal_tree(self, signals: Sequence[signal.Signals], reach: str) -> None:
        # Look first, signal the agent second: its death turns its children into orphans, which are harder to find.
        if reach != "agent":
            self._retry_without_keeper(lambda: self._members.walk_tree_until_sure(_SECONDS_PER_WALK_CALL))
        self._signal_agent(signals)
        if reach != "agent":
            self._members.send_signals(*signals, group=self.pid if reach == "group" else None)

    def is_alone(self) -> bool:
        """Say whether no descendant is left; after a kill, each process that is found is killed."""
        self._retry_without_keeper(self._kill_members if self._killed_at is not None else self._walk_members)
        # An empty list after an unsure walk proves nothing: a child whose parent died during the walk is not in it.
        self._members.drop_dead_members()
        return self._members.is_empty and self._members.is_sure

    def reap(self) -> None:
        """Reap the agent, so that no zombie stays; call this only after the exit."""
        self._is_reaped = self._root.reap()

    def kill_and_reap(self) -> int | None:
        """Kill everything, reap the agent at once, and say how it ended: for a caller that was cancelled.

        It takes 3 s of real time at most. Of an agent that has not ended by then it is not known how it will end: None.
        """
        if not self._is_reaped:
            # One budget for all steps. Each step with a limit of its own once blocked the event loop for 15 s, when
            # an agent was frozen.
            end = monotonic() + _SECONDS_AFTER_CANCELLATION
            if self._keeper is not None:
                self._keeper.limit_total_time(_SECONDS_AFTER_CANCELLATION)
            try:
                self.kill()
                self._await_agent_and_members(end)
                self._is_reaped = self._root.reap(0)
            finally:
                self.close()
        self.close()
        return self._status

    def list_survivors(self) -> list[int]:
        """List the descendants that may not be signalled, and that lived on when `close` was called."""
        return self._members.survivors

    def list_unknown_children(self) -> list[int]:
        """List the children of this process of unknown origin that came while the agent lived.

        They are orphans, perhaps of the agent, or another part of this program started them. They are never signalled.
        """
        return (
            self._finder.list_unknown_children(started_pids | living_keeper_pids)
            if isinstance(self._finder, SubreaperTree)
            else []
        )

    def close(self) -> None:
        """Close every descriptor, and end the keeper with every process below it."""
        self._close_pipes()
        self._end_containment()
        self._members.close()
        if self._epoll.closed:
            return
        os.close(self._pidfd)
        self._close_polling_descriptors()
        if self._alarm is not None:
            self._alarm.close()

    def _close_polling_descriptors(self) -> None:
        while self._eventfds:
            os.close(self._eventfds.pop())
        self._epoll.close()
        release_descriptors()

    def _close_pipes(self) -> None:
        while self._numbers:
            os.close(self._numbers.popitem()[1])

    def _end_containment(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.close()
        if self._holds_orphans:
            self._holds_orphans = False
            release_orphans()

    def _walk_members(self) -> None:
        self._members.walk_tree_until_sure(_SECONDS_PER_WALK_CALL)
        if self._members.has_unwatched_members or not self._members.is_sure:
            self._schedule_wakeup()

    def _kill_members(self) -> None:
        """Kill each process that is found, by own descriptors or by the keeper, which continues by itself."""
        members, keeper = self._members, self._keeper
        if keeper is not None and self.containment == "keeper":
            is_over = keeper.kill_all(_SECONDS_PER_KILL_CALL / 2)
            members.walk_tree_until_sure(_SECONDS_PER_WALK_CALL)
            members.send_signals(*_KILLING_SIGNALS)
        else:
            assert self._killed_at is not None
            # The turns alternate between killing at once and stopping first: see `Keeper._end_orphans`.
            turn = int((monotonic() - self._killed_at) / _SECONDS_PER_KILL_METHOD)
            is_over = members.kill_all(_SECONDS_PER_KILL_CALL, freeze=turn % 2 == 1)
        if members.has_unwatched_members or not (is_over and members.is_sure):
            self._schedule_wakeup()

    def _wake_reader_if_empty(self) -> None:
        """Wake the reader of the descriptor at once if no process is left whose end would wake it."""
        if self._has_ended and self._members.is_empty:
            os.eventfd_write(self._wakeup, 1)

    def _schedule_wakeup(self) -> None:
        """Wake the reader soon, since no death of an unheld process does; at once after a walk that was cut."""
        if self._members.is_walk_cut:
            os.eventfd_write(self._wakeup, 1)
            return
        alarm = self._alarm or self._create_alarm()
        if alarm is None:
            os.eventfd_write(self._wakeup, 1)
        else:
            alarm.set(_MS_UNTIL_NEXT_WALK)

    def _create_alarm(self) -> Alarm | None:
        """Make the alarm in its reserved place; give None if another thread took that place."""
        while len(self._eventfds) > 1:
            os.close(self._eventfds.pop())
        with contextlib.suppress(OSError):
            self._alarm = Alarm()
            self._epoll.register(self._alarm.descriptor, select.EPOLLIN)
        return self._alarm

    def _retry_without_keeper(self, action: Callable[[], None]) -> None:
        """Run an action that may need the keeper; once the keeper is dead, its children are ours and held as such."""
        try:
            action()
        except KeeperDied:
            assert self._keeper is not None
            self.containment = "subreaper"
            # The cookie and the mark identify the orphans. Without them they would be strangers, and live on.
            self._finder = self._members.finder = SubreaperTree(
                self.pid, self._keeper.cookie, self._keeper.mark, self._before
            )
            action()

    def _await_agent_and_members(self, end: float) -> None:
        news = select.poll()
        news.register(self._pidfd, select.POLLIN)
        while monotonic() < end:
            if self._has_ended:
                if self.is_alone():
                    return
                sleep_machine_time(_MS_UNTIL_NEXT_WALK)
            elif news.poll(_MS_UNTIL_NEXT_WALK):
                self.read_exit_status()

    def _signal_agent(self, signals: Sequence[signal.Signals]) -> None:
        if is_dead(self._pidfd):
            return
        with contextlib.suppress(ProcessLookupError):
            for signum in signals:
                signal.pidfd_send_signal(self._pidfd, signum)

    def _watch_member(self, pidfd: int) -> None:
        self._epoll.register(pidfd, select.EPOLLIN)


def _start_keeper() -> Keeper | None:
    """Start a keeper, if this system can have one."""
    with contextlib.suppress(OSError, AttributeError, KeeperDied):
        return Keeper()
    return None
