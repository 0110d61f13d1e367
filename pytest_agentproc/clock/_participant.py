"""A process that virtual time waits for, as the hub sees it. Owns its socket, state and words; decides nothing."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import stat
from enum import Enum
from typing import TYPE_CHECKING

from pytest_agentproc.clock._waiting_words import describe_endless_wait, describe_waiting_fake
from pytest_agentproc.fake_agents import wire

if TYPE_CHECKING:
    import _socket
    from collections.abc import Iterator

    from pytest_agentproc.clock._jump import SpawnPath


# The original function: the host's patched one reports each signal to the hub, and a signal of the kit is none of the
# host's.
_unpatched_pidfd_send_signal = (
    signal.pidfd_send_signal
)  # as it is before a host is watched: what the kit does is no signal of the host
_OUTPUT_STREAMS = {1: "stdout", 2: "stderr"}
_READ_TIMEOUT_SECONDS = 0.5
"""Real seconds that a read of a participant's word waits, whatever signals interrupt it."""


class ParticipantState(Enum):
    """Where a participant stands.

    RUNNING --says it waits--> PARKED --grant--> RUNNING; either --its socket ends--> DYING --its pidfd--> GONE.
    STOPPED is PARKED or RUNNING under SIGSTOP.
    """

    RUNNING = "running"
    PARKED = "parked"
    DYING = "dying"
    GONE = "gone"


class Participant:
    """One connected fake process.

    Args:
        link: the connected socket.
        pid: the process at the other end, as the kernel says.
        stage: its epoll descriptor: readable when a stream that it waits for is ready.
        path: its place in spawn order.
        name: its name in the record.
        line: the scenario line that spawned it, 0 if none.
        token: the token of its fake.
    """

    def __init__(
        self, link: _socket.socket, pid: int, stage: int, path: SpawnPath, name: str, line: int, token: bytes
    ) -> None:
        self.link = link
        self.pid = pid
        self.stage = stage
        self.path = path
        self.name = name
        self.line = line
        self.token = token
        self.pidfd = os.pidfd_open(pid)
        link.settimeout(_READ_TIMEOUT_SECONDS)
        self._number = link.fileno()
        """A write to it asks the kernel once, where a send of a socket with a timeout first asks whether it may."""
        self.state = ParticipantState.PARKED
        self.stopped = False
        self.woken = False
        """Whether it has said its last word."""
        self.until: int | None = None
        self.wants = (False, False, False)
        self.doing: tuple[int, str] = (line, "start")
        self.code: int | None = None
        self.signal: int | None = None
        self.status = 0
        """Its exit code, or minus the number of the signal that ended it; known once it is dead."""

    @property
    def is_alive(self) -> bool:
        """Whether the process has not been seen to end."""
        return self.state in (ParticipantState.RUNNING, ParticipantState.PARKED)

    def grant(self, now: int, *, ready: bool) -> None:
        """Let it run; if it dies meanwhile, its socket's end shows that.

        Args:
            now: the instant.
            ready: whether a stream that it waits for is ready.
        """
        self.state = ParticipantState.RUNNING
        try:  # noqa: SIM105  # this is done at every step, and a context manager counts there
            os.write(self._number, wire.encode_grant_message(now, ready=ready))
        except OSError:
            pass

    def record_end(self) -> None:
        """Record that it is dead, and how it ended: its parent may reap it at once."""
        # The status must be read now. A parent that reaps right after its signal removes it from the kernel.
        self.state = ParticipantState.GONE
        self.status = self._read_status()

    def _read_status(self) -> int:
        """Say how it ended, as its parent (this process) or its own last word reports it."""
        # WNOWAIT reads the status and leaves the zombie. To reap it here would take the status from the supervisor's
        # own wait.
        try:
            result = os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        except ChildProcessError:
            result = None
        if result is not None:
            exited = result.si_code == os.CLD_EXITED
            return result.si_status if exited else -result.si_status
        return (
            -(self.signal or signal.SIGKILL) if self.code is None else self.code
        )  # KILL alone leaves no time for a word

    def is_own_zombie(self) -> bool:
        """Say whether it ended and this process, its parent by birth or adoption, has not waited for it."""
        # Only a dead process of this process's children can be one; others answer with ChildProcessError.
        if self.state is not ParticipantState.GONE or self.is_closed:
            return False
        try:
            result = os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        except ChildProcessError:
            return False
        return result is not None

    @property
    def is_closed(self) -> bool:
        """Whether `close` has been called."""
        return self.pidfd < 0

    def is_reaped(self) -> bool:
        """Say whether the kernel has forgotten it: it is dead, and its parent has reaped it."""
        # Signal 0 through the pidfd asks for this very process. `kill(pid, 0)` would also succeed for a new process
        # with the same number.
        try:
            _unpatched_pidfd_send_signal(self.pidfd, 0)
        except ProcessLookupError:
            return True
        return False

    def kill(self) -> None:
        """End it for good, from outside the experiment."""
        # Through the pidfd, so no other process with a reused pid can be hit.
        with contextlib.suppress(ProcessLookupError):
            _unpatched_pidfd_send_signal(self.pidfd, signal.SIGKILL)

    def reap(self) -> None:
        """Leave no zombie of a child of this process; call this once it is dead or killed."""
        if not self.is_closed:
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED)

    def describe(self) -> str:
        """Say what it waits for and where in its script it stands."""
        if self.stopped:
            waits = "is stopped"
        elif self.state is ParticipantState.RUNNING:
            waits = "runs on"
        elif self.until is not None:
            waits = f"waits until {self.until / 1e9:g} s"
        else:
            waits = describe_endless_wait(self.wants)
        return describe_waiting_fake(self.name, self.pid, waits, self.doing)

    def close_connection(self) -> None:
        """Close its socket and its epoll descriptor."""
        self._number = -1  # by then the kernel may have given the number to another file
        self.link.close()
        if self.stage >= 0:
            os.close(self.stage)
            self.stage = -1

    def close(self) -> None:
        """Give its descriptors back."""
        self.close_connection()
        if not self.is_closed:
            os.close(self.pidfd)
            self.pidfd = -1


def describe_held_streams(pid: int) -> str:
    """Say which of its output streams a process holds open for a reader in this process; empty: none."""
    read = {_identify_pipe(f"/proc/self/fd/{number}") for number in _list_readable_descriptors()} - {None}
    streams = [name for number, name in _OUTPUT_STREAMS.items() if _identify_pipe(f"/proc/{pid}/fd/{number}") in read]
    return f"holds {' and '.join(streams)} open, which the supervising program reads" if streams else ""


def _list_readable_descriptors() -> Iterator[int]:
    names: list[str] = []
    with contextlib.suppress(OSError):  # a test may have put another file system in the place of this one
        names = os.listdir("/proc/self/fd")
    for name in names:
        with contextlib.suppress(OSError):  # it was closed meanwhile, as that of the folder itself
            if fcntl.fcntl(int(name), fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
                yield int(name)


def _identify_pipe(path: str) -> tuple[int, int] | None:
    """Give what both ends of a pipe have in common; None: it is no pipe, or it is closed or hidden."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISFIFO(found.st_mode) else None


def read_process_state(pid: int) -> str:
    """Give the kernel's letter for a process: R running, S blocked, T stopped, Z gone, "" no such process."""
    try:
        number = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return ""
    try:
        return os.read(number, 512).rpartition(b")")[2][1:2].decode()
    except ProcessLookupError:
        return ""
    finally:
        os.close(number)
