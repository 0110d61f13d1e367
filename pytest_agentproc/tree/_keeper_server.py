"""The keeper: a process between a host and the trees that it starts. Owns every process below it; judges nothing.

It is a child subreaper and the sole reaper of its subtree. Everything that it starts, with all descendants, stays below
it. So "no child left" proves an empty tree. An orphan is reaped when it dies; a started process when the host says so.
When the host is dead, the keeper ends the subtree and then itself.

Standard library only: its start is waited for, so it imports C modules and nothing else. It is not imported either: the
host compiles it, with `_kernel` before it, and `python -I -S` runs what it finds on descriptor 0. `argv[1]` is the
descriptor of a socket to the host, `argv[2]` the host's pid. Each message is `(op, arguments)` in marshal, and the
answer `(True, value)` or `(False, words)`.
"""

from __future__ import annotations

import _signal
import _socket
import marshal
import posix
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pytest_agentproc.tree._kernel import (
        call_libc,
        execute_program,
        is_out_of_descriptors,
        list_children,
        open_pidfd,
        read_command_label,
        read_state,
        reserve_descriptors,
        try_to_call,
    )

_PR_SET_CHILD_SUBREAPER = 36
_RLIMIT_MSGQUEUE = 12
_MSG_CMSG_CLOEXEC = 0x40000000
_P_ALL, _P_PID = 0, 1
_WAITID_WITHOUT_REAPING = posix.WEXITED | posix.WNOHANG | posix.WNOWAIT
_SECONDS_BEFORE_STOPPING_ALL = 0.5
"""Real seconds of killing children as they come; after that all are stopped before any is killed."""
_SECONDS_OF_STOPPING_ALL = 0.5
"""Real seconds for stopping all until no new process is found; then the stopped processes are killed."""
_MAX_PROCESSES_PER_ANSWER = 500
"""The most processes that one answer lists."""
_MAX_WALKS_PER_ANSWER = 20
_EINVAL = 22


class KeeperServer:
    """Keep one subtree.

    Args:
        host: the socket to the host.
        plain: the signals that this program treats in its own way, and how they were before.
        wake: the descriptor that is readable once a child has died.
    """

    def __init__(self, host: _socket.socket, plain: dict[int, object], wake: int) -> None:
        self.host = host
        self.pid = posix.getpid()
        self.started: dict[int, int | None] = {}
        """The started, unreaped processes by pid: how each ended, None while it lives."""
        self.ended: dict[int, int] = {}
        self.refused: set[int] = set()
        self.killed: dict[int, str] = {}
        self.since: float | None = None
        """When the killing began; None: there is nothing to kill."""
        self.frozen: dict[int, int] = {}
        """The processes that were stopped to be killed, by pid: their pidfds, -1 for children."""
        self.corpses: set[int] = set()
        self.is_holding = False
        self.plain = plain
        self.wake = wake
        self._deaths = select.poll()
        self._deaths.register(wake, select.POLLIN)

    # Starting.

    def handle_start(self, task: int, stdin: int, stdout: int, stderr: int) -> tuple[int, int, str]:
        """Start a program: `task` is a file of (argv, cwd, environment, mark); answer pid, errno, what failed."""
        with open(task, "rb", closefd=False) as file:
            argv, cwd, environment, mark = marshal.loads(file.read())
        # EOF on this pipe means success: exec closes it. Only a failed fork writes to it. So the host learns the error
        # of the exec itself, and not a later exit code of 127.
        read_end, write_end = posix.pipe()
        pid = posix.fork()
        if pid == 0:
            failed = "cwd"
            try:
                self._prepare_child((stdin, stdout, stderr), mark)
                if cwd is not None:
                    posix.chdir(cwd)
                failed = "argv"
                execute_program(argv, environment)
            except BaseException as error:  # noqa: BLE001  # whatever it is, this fork must not live on
                posix.write(write_end, marshal.dumps((getattr(error, "errno", None) or _EINVAL, failed)))
            finally:
                posix._exit(127)
        posix.close(write_end)
        with open(read_end, "rb") as file:
            word = file.read()
        if word:
            posix.waitpid(pid, 0)
            number, failed = marshal.loads(word)
            return 0, number, failed
        self.started[pid] = None
        self.since = None
        return pid, 0, ""

    def _prepare_child(self, streams: tuple[int, int, int], mark: bytes | None) -> None:
        """Make this fork what a child of the host would be, with a session and a mark of its own."""
        # A session of its own, so that an agent that signals its group cannot end the keeper.
        posix.setsid()
        # The keeper ignores TERM and INT. An agent that inherited that would seem to resist the supervisor's
        # signals.
        for signum, before in self.plain.items():
            _signal.signal(signum, before)
        if mark is not None:
            call_libc("setrlimit", _RLIMIT_MSGQUEUE, mark)
        for number, stream in enumerate(streams):
            posix.dup2(stream, number)

    # Looking.

    def reap(self) -> None:
        """Reap every dead orphan; record how started processes ended, which stay until the host reaps them."""
        # While the tree is frozen no zombie is reaped: a freed pid or process slot is what a fork bomb waits for.
        for pid in list_children(self.pid):
            if pid not in self.started and not self.is_holding:
                posix.waitpid(pid, posix.WNOHANG)
            elif self.started.get(pid, 0) is None:
                # Peek only. An unreaped child keeps its pid, so a signal to it can never hit another process.
                result = posix.waitid(_P_PID, pid, _WAITID_WITHOUT_REAPING)
                if result is not None:
                    exited = result.si_code == posix.CLD_EXITED
                    self.started[pid] = result.si_status if exited else -result.si_status

    def find_living_descendants(self) -> tuple[list[int], bool]:
        """List the living processes, parents before children; say whether an empty list is a proof."""
        # A walk can miss a process that moved to a place it has passed. The list of own children cannot: only this
        # process shortens it. So emptiness is proven there, and the walk only finds members.
        for _ in range(_MAX_WALKS_PER_ANSWER):
            self.reap()
            dead = {pid for pid, status in self.started.items() if status is not None}
            if dead.issuperset(list_children(self.pid)):  # a list that only this process can shorten
                return [], True
            living = self.list_living_descendants()
            if living:
                self.refused.intersection_update(living)
                return living, True
        return [], False

    def list_living_descendants(self, corpses: frozenset[int] | set[int] = frozenset()) -> list[int]:
        """List the descendants that are no zombies, parents before children, without the known corpses."""
        found: dict[int, None] = {}
        frontier = list_children(self.pid)
        for pid in frontier:
            if pid not in found and pid not in corpses and read_state(pid) not in ("Z", "X", ""):
                found[pid] = None
                frontier += list_children(pid)
        return list(found)

    # Killing.

    def handle_kill(self, seconds: float) -> bool:
        """Begin to kill everything; say whether nothing is left after the given seconds. The killing continues."""
        if self.since is None:
            self.since = time.monotonic()
        end = time.monotonic() + seconds
        while self.kill_living_children() and time.monotonic() < end:
            self.wait_for_death()
        return self.since is None

    def wait_for_death(self) -> None:
        """Wait for the next death, or a millisecond."""
        if self._deaths.poll(1):
            posix.read(self.wake, 4096)

    def kill_living_children(self) -> bool:
        """Kill the living children; return whether a process was left."""
        if self.since is None:
            return False
        age = time.monotonic() - self.since
        if age > _SECONDS_BEFORE_STOPPING_ALL:
            # Half a second of killing did not help: the tree forks faster than it dies. From here all are stopped
            # first. A fork bomb at its process limit showed why: each kill frees a slot, and the bomb refills it.
            if self.stop_new_processes() and age < _SECONDS_BEFORE_STOPPING_ALL + _SECONDS_OF_STOPPING_ALL:
                return True
            self.kill_stopped_descendants()
            self.since = time.monotonic()
        orphans = [pid for pid in list_children(self.pid) if self.started.get(pid) is None and pid not in self.refused]
        # Only children are killed here. Their pids are safe, and what they leave becomes a child: the tree comes up by
        # itself.
        if orphans:
            self.kill_children(orphans)
            self.reap()
            return True
        living, is_sure = self.find_living_descendants()
        # A process of another real uid cannot be signalled. To wait for it was a spin of 29,000 rounds up to the
        # deadline; now it is reported.
        if is_sure and self.refused.issuperset(living):
            self.since = None
        return self.since is not None

    def kill_children(self, orphans: list[int]) -> None:
        """Kill children: their pids are safe until this process reaps them. Their own children become ours."""
        for pid in orphans:
            if len(self.killed) < _MAX_PROCESSES_PER_ANSWER:
                self.killed.setdefault(pid, read_command_label(pid))
            try:
                posix.kill(pid, _signal.SIGKILL)
            except PermissionError:
                self.refused.add(pid)

    def stop_new_processes(self) -> bool:
        """Stop new processes, the youngest first; return whether there were any.

        Nothing is reaped until `kill_stopped_descendants`. If no descriptor is left to hold a further process, the
        stopped processes are killed first: they make room.
        """
        # Zombies are held here. A freeze that reaped in between failed in 3 of 4 trials with 16 forking processes.
        self.is_holding = True
        before = len(self.frozen) + len(self.corpses)
        for pid in reversed(list_children(self.pid)):
            if pid in self.corpses or pid in self.refused or self.started.get(pid) is not None:
                continue
            try:
                posix.kill(pid, _signal.SIGSTOP)
            except PermissionError:
                self.refused.add(pid)
                continue
            # It died before the signal came. Its pid stays its own as long as the zombie is held.
            if read_state(pid) == "Z":
                self.corpses.add(pid)
            else:
                self.frozen.setdefault(pid, -1)
        is_new = len(self.frozen) + len(self.corpses) > before
        for pid in self.list_unstopped_descendants():
            try:
                pidfd = open_pidfd(pid)
            except OSError as error:
                if not is_out_of_descriptors(error):
                    raise
                return False
            if pidfd is None:
                is_new = True  # its parent reaped it, and may have started another
            # Opened first, then looked at again: only then is the pidfd that of a member, and not of a process with a
            # reused pid.
            elif pid in self.list_unstopped_descendants() and self.send_signal(pid, pidfd, _signal.SIGSTOP):
                self.frozen[pid] = pidfd
                is_new = True
            else:
                posix.close(pidfd)
        return is_new

    def list_unstopped_descendants(self) -> list[int]:
        """List the living descendants that are no children and are not stopped yet."""
        mine = set(list_children(self.pid))
        living = self.list_living_descendants(self.corpses)
        return [pid for pid in living if pid not in mine and pid not in self.frozen and pid not in self.refused]

    def kill_stopped_descendants(self) -> None:
        """Kill all stopped processes: children are unreaped, the others are held by pidfd."""
        while self.frozen:
            pid, pidfd = self.frozen.popitem()
            if pidfd < 0:
                posix.kill(pid, _signal.SIGKILL)
            else:
                self.send_signal(pid, pidfd, _signal.SIGKILL)
                posix.close(pidfd)
        self.corpses.clear()
        self.is_holding = False

    def send_signal(self, pid: int, pidfd: int, signum: int) -> bool:
        """Signal a process that is held; return whether that is allowed."""
        try:
            _signal.pidfd_send_signal(pidfd, signum)
        except PermissionError:
            self.refused.add(pid)
            return False
        except ProcessLookupError:
            pass
        return True

    # Requests of the host.

    def handle_status(self, pid: int) -> int | None:
        """Say how a started process ended; None while it lives."""
        self.reap()
        return self.started[pid] if pid in self.started else self.ended[pid]

    def handle_reap(self, pid: int) -> int | None:
        """Reap a started process if it is a zombie."""
        status = self.handle_status(pid)
        if status is not None and pid in self.started:
            posix.waitpid(pid, 0)
            self.ended[pid] = status
            del self.started[pid]
        return status

    def handle_remaining(self) -> tuple[list[tuple[int, str]], bool]:
        """List the living processes with commands; say whether the list is complete."""
        living, is_sure = self.find_living_descendants()
        return [(pid, read_command_label(pid)) for pid in living[:_MAX_PROCESSES_PER_ANSWER]], is_sure

    def handle_end(self, seconds: float) -> tuple[list[tuple[int, str]], list[tuple[int, str]], bool]:
        """Kill and reap everything: give the killed and the refused processes, and whether the time was enough."""
        self.handle_kill(seconds)
        for pid in list(self.started):
            # The started ones stayed zombies until now, so that their pids remained valid for the host's signals.
            self.handle_reap(pid)
        refused = [(pid, read_command_label(pid)) for pid in self.refused]
        return list(self.killed.items()), refused, self.since is None

    def answer_message(self) -> bool:
        """Answer one message; return whether the host is still there."""
        try:
            message, more, _, _ = self.host.recvmsg(65536, _socket.CMSG_SPACE(16), _MSG_CMSG_CLOEXEC)
        except ConnectionError:
            return False
        if not message:
            return False
        data = b"".join(part for _, _, part in more)
        numbers = [int.from_bytes(data[at : at + 4], sys.byteorder) for at in range(0, len(data), 4)]
        # The message may carry descriptors. They are closed below whatever the answer is, or each question would leak
        # them.
        op, arguments = marshal.loads(message)
        try:
            answer = (True, getattr(self, "handle_" + op)(*arguments, *numbers))
        except Exception as error:  # noqa: BLE001  # the trees must not end because one question has no answer
            answer = (False, repr(error))
        for number in numbers:
            posix.close(number)
        return try_to_call(self.host.send, marshal.dumps(answer))

    def serve_until_host_dies(self, host_pid: int) -> None:
        """Serve until the host is dead; then end everything."""
        # The pidfd sees the death of the host even while a fork of the host still holds the socket open.
        host = open_pidfd(host_pid)
        news = select.poll()
        for number in (self.host.fileno(), self.wake, *([] if host is None else [host])):
            news.register(number, select.POLLIN)
        # The host may have died before the pidfd was opened. Its pid could then belong to another process, but the
        # parent of the keeper has changed.
        is_served = host is not None and posix.getppid() == host_pid
        while is_served:
            ready = [number for number, _ in news.poll(None if self.since is None else 1)]
            # Without a kill in progress the keeper sleeps until a message or a death, so it costs no processor time.
            if self.wake in ready:
                posix.read(self.wake, 4096)
            if self.host.fileno() in ready:
                is_served = self.answer_message()
            is_served = is_served and host not in ready
            self.reap()
            self.kill_living_children()
        # No limit here: the host is dead, and what is left now would be left for ever.
        while not self.handle_kill(1.0):
            self.wait_for_death()


def main() -> None:
    """Become a keeper."""
    host = _socket.socket(fileno=int(sys.argv[1]))
    posix.set_inheritable(host.fileno(), False)
    failed = call_libc("prctl", _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # Signals to the group of the terminal must not end the keeper. How they were before is kept for the started
    # programs.
    plain: dict[int, object] = {_signal.SIGPIPE: _signal.SIG_DFL, _signal.SIGXFSZ: _signal.SIG_DFL}
    for signum in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGCHLD):
        is_ignored = _signal.getsignal(signum) == _signal.SIG_IGN
        plain[signum] = _signal.SIG_IGN if is_ignored else _signal.SIG_DFL
        _signal.signal(signum, _signal.SIG_IGN)
    wake, ring = posix.pipe()
    posix.set_blocking(wake, False)
    posix.set_blocking(ring, False)
    _signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
    _signal.signal(_signal.SIGCHLD, _ignore_signal)
    reserve_descriptors()
    keeper = KeeperServer(host, plain, wake)
    try_to_call(host.send, marshal.dumps((failed == 0, "prctl failed" if failed else "")))  # the host may be gone
    keeper.serve_until_host_dies(int(sys.argv[2]))
    posix._exit(0)


def _ignore_signal(signum: int, frame: object) -> None:
    """Do nothing: Python writes to the wake-up descriptor only for signals that have a handler."""
