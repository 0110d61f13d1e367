"""The programs that a fake starts beside the fakes, as the real CLI does. Owns processes and pipes; knows no protocol.

A `ChildProgram` is in the fake's group. Its stderr leads nowhere: the real CLI keeps it in a log of its own.
`run_shell_command` waits for a shell command, which has a session of its own. As the fake ends, it ends all of them by
the signals of the real CLI. A fake that dies by SIGKILL leaves them alone: a `ChildProgram` has the end of its stdin
then.
"""

from __future__ import annotations

import _signal
import fcntl
import posix
import select
import time

from pytest_agentproc.fake_agents.program import FATAL_SIGNALS
from pytest_agentproc.fake_agents.stage import STARTED_PROGRAMS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


_FIRST_OWN_DESCRIPTOR = 200
"""The pipes live up here, out of the way of what a scenario or a client does with low numbers."""

_SIGNALS_TO_RESET = [signum for signum in range(1, 32) if signum not in (9, 19)]
"""A fake ignores and blocks some signals, and a program must not inherit that."""

_END_SIGNALS_AND_SECONDS = ((2, 0.1), (15, 0.4), (9, 5.0))
"""The signals that end a child, with the real seconds that each one is given."""

_MAX_POLL_MS = 2**31 - 1
"""The most milliseconds that a poll takes."""

_MAX_STDIN_WAIT_SECONDS = 10.0
"""The real seconds after which a child that does not read its stdin is given up."""


class ChildProgram:
    """A running program, with a pipe to its stdin and one from its stdout.

    Args:
        command: the program, which is looked for on PATH, and its arguments.
        environ: its variables beside those of this process.

    `is_watched` is true once more output wakes the fake: then it need not wait for a line.

    Raises:
        OSError: it cannot be started.
        ValueError: an argument or a variable has a character that none can have.
    """

    is_awaited = False
    """The fake goes on meanwhile."""

    def __init__(self, command: list[bytes], environ: Mapping[bytes, bytes]) -> None:
        stdin, self._input = map(_move_descriptor_up, posix.pipe())
        self.output, stdout = map(_move_descriptor_up, posix.pipe())
        self._data = b""
        self.is_watched = False
        self._readable, self._writable, self._ended = select.poll(), select.poll(), select.poll()
        self._readable.register(self.output, select.POLLIN)
        self._writable.register(self._input, select.POLLOUT)
        posix.set_blocking(self._input, False)
        try:
            pid = posix.posix_spawnp(
                command[0],
                command,
                {**posix.environ, **environ},
                file_actions=[
                    (posix.POSIX_SPAWN_DUP2, stdin, 0),
                    (posix.POSIX_SPAWN_DUP2, stdout, 1),
                    (posix.POSIX_SPAWN_OPEN, 2, "/dev/null", posix.O_WRONLY, 0),
                ],
                setsigmask=(),
                setsigdef=_SIGNALS_TO_RESET,
            )
            self._process = _move_descriptor_up(posix.pidfd_open(pid))
        except (OSError, ValueError):
            posix.close(self._input)
            posix.close(self.output)
            raise
        finally:
            posix.close(stdin)
            posix.close(stdout)
        self._ended.register(self._process, select.POLLIN)
        STARTED_PROGRAMS.append(self)

    def write_stdin(self, data: bytes) -> None:
        """Write all of it.

        Raises:
            OSError: the child has closed its stdin, or does not read it.
        """
        while data:
            if not self._writable.poll(_MAX_STDIN_WAIT_SECONDS * 1000):
                raise TimeoutError
            data = data[posix.write(self._input, data[:4096]) :]

    def read_stdout_line(self, seconds: float | None) -> bytes | None:
        """Give the next line; None: it did not come in these real seconds.

        Raises:
            EOFError: the child has closed its stdout.
        """
        while b"\n" not in self._data:
            if not self._readable.poll(None if seconds is None else seconds * 1000):
                return None
            piece = posix.read(self.output, 65536)
            if not piece:
                raise EOFError
            self._data += piece
        line, _, self._data = self._data.partition(b"\n")
        return line

    def end_by_signals(self) -> None:
        """End it by INT, TERM and KILL, each some time after the one before."""
        for signum, seconds in _END_SIGNALS_AND_SECONDS:
            try:
                _signal.pidfd_send_signal(self._process, signum)
            except ProcessLookupError:
                return
            if self._ended.poll(seconds * 1000):
                return

    def close_inherited_pipes(self) -> None:
        """Close the copies of its pipes that a fork of this process has inherited."""
        for number in (self._input, self.output, self._process):
            posix.close(number)


class _ShellCommand:
    """A shell command that runs, as the leader of a session.

    Args:
        pid: the shell.
    """

    is_awaited = True
    """Whether the fake does nothing else until it has ended."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def end_by_signals(self) -> None:
        """End its group by TERM, and by KILL a second later."""
        deadline = time.monotonic() + 1
        try:
            posix.killpg(self._pid, 15)
            while time.monotonic() < deadline:
                posix.killpg(self._pid, 0)
                time.sleep(_POLL_INTERVAL_SECONDS)
            posix.killpg(self._pid, 9)
        except ProcessLookupError:  # all of it has ended
            return


_POLL_INTERVAL_SECONDS = 0.005
"""The real seconds between two looks at a group that is ending."""

_EXIT_CODE_SCRIPT = '/bin/sh -c "$1" 3>&-; echo $? >&3'
"""Runs a command and writes its exit code: the fake ignores the ends of its children, so no wait gives the code."""


def run_shell_command(
    command: str, given: bytes, environ: Mapping[bytes, bytes], seconds: float
) -> tuple[int, str, str] | None:
    """Run a shell command; give its exit code, stdout and stderr; None: it was killed, as it took too long.

    Args:
        command: the command.
        given: its stdin.
        environ: its variables beside those of this process.
        seconds: the real seconds that it may take.
    """
    ours, theirs = map(list, zip(*(map(_move_descriptor_up, posix.pipe()) for _ in range(4)), strict=True))
    theirs[0], ours[0] = ours[0], theirs[0]  # its stdin goes the other way
    actions = [(posix.POSIX_SPAWN_DUP2, number, place) for place, number in enumerate(theirs)]
    before = _signal.pthread_sigmask(_signal.SIG_BLOCK, FATAL_SIGNALS)  # one that came now would not end the command
    pid = posix.posix_spawn(
        "/bin/sh",
        ["/bin/sh", "-c", _EXIT_CODE_SCRIPT, "sh", command],
        {**posix.environ, **environ},
        file_actions=actions,
        setsid=True,
        setsigmask=(),
        setsigdef=_SIGNALS_TO_RESET,
    )
    running = _ShellCommand(pid)
    STARTED_PROGRAMS.append(running)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, before)
    for number in theirs:
        posix.close(number)
    stdin, *outputs = ours
    printed = _feed_and_read_command(stdin, given, outputs, seconds)
    STARTED_PROGRAMS.remove(running)
    for number in outputs:
        posix.close(number)
    if printed is None:
        running.end_by_signals()
        return None
    stdout, stderr, code = (data.decode("utf-8", "replace") for data in printed)
    return int(code or 1), stdout, stderr


def _feed_and_read_command(stdin: int, given: bytes, outputs: list[int], seconds: float) -> list[bytes] | None:
    """Write all to stdin, close it, and read the outputs until the last one has ended; None: it took too long."""
    printed = dict.fromkeys(outputs, b"")
    ready = select.poll()
    posix.set_blocking(stdin, False)
    ready.register(stdin, select.POLLOUT)
    for number in outputs:
        ready.register(number, select.POLLIN)
    deadline, code, is_over = time.monotonic() + seconds, outputs[-1], False
    while not is_over and (left := deadline - time.monotonic()) > 0:
        for number, _ in ready.poll(min(left * 1000, _MAX_POLL_MS)):
            if number == stdin:
                given = _write_piece(stdin, given)
                is_done = not given
            else:
                piece = posix.read(number, 65536)
                printed[number] += piece
                is_done = not piece
                is_over = is_over or (is_done and number == code)
            if is_done:
                ready.unregister(number)
            if is_done and number == stdin:
                posix.close(stdin)
    if given:
        ready.unregister(stdin)
        posix.close(stdin)
    # All that it printed is in the pipes, which hold no more than this. A process that it has left behind may print on.
    for number, _ in ready.poll(0) if is_over else ():
        printed[number] += posix.read(number, 65536)
    return list(printed.values()) if is_over else None


def _write_piece(number: int, data: bytes) -> bytes:
    """Write a piece; give what is left of it: nothing if there is no reader."""
    try:
        return data[posix.write(number, data[:4096]) :]
    except BrokenPipeError:
        return b""


def _move_descriptor_up(low: int) -> int:
    high = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, _FIRST_OWN_DESCRIPTOR)
    posix.close(low)
    return high
