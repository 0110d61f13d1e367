"""One agent process behind one epoll descriptor: pipes, exit, descendants. Owns system calls; decides nothing."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
from typing import TYPE_CHECKING

from pytest_agentproc.tree._members import Members

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Child"]

_TERMINATE = (signal.SIGTERM, signal.SIGCONT)
_KILL = (signal.SIGKILL,)


class Child:
    """Start an agent in a session of its own, with three pipes.

    Args:
        argv: the command; the first word is looked up in `env`'s PATH.
        cwd: where it runs; None: here.
        env: its whole environment; None: ours.

    Raises:
        OSError: it could not be started.
    """

    def __init__(self, argv: Sequence[str], cwd: str | None = None, env: Mapping[str, str] | None = None) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            argv, bufsize=0, stdin=pipe, stdout=pipe, stderr=pipe, cwd=cwd, env=env, start_new_session=True
        )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.pid = process.pid
        self._pipes = {"stdin": process.stdin, "stdout": process.stdout, "stderr": process.stderr}
        self._numbers = {name: pipe.fileno() for name, pipe in self._pipes.items()}
        for number in self._numbers.values():
            os.set_blocking(number, False)
        self._pidfd = os.pidfd_open(self.pid)
        self._epoll = select.epoll()
        self._names = {number: name for name, number in self._numbers.items()} | {self._pidfd: "exit"}
        self._epoll.register(self._pidfd, select.EPOLLIN)
        self._members = Members(self.pid, self._watch_member, self._epoll.unregister)
        self._status: int | None = None

    @property
    def descriptor(self) -> int:
        """What is readable whenever `poll` has something to tell."""
        return self._epoll.fileno()

    def poll(self) -> set[str]:
        """Tell what is ready, without waiting: stdin, stdout, stderr, exit, members."""
        return {self._names.get(number, "members") for number, _ in self._epoll.poll(0)}

    def watch(self, name: str, *, wanted: bool) -> None:
        """Have a stream told by `poll`, or no longer."""
        number = self._numbers[name]
        if wanted:
            self._epoll.register(number, select.EPOLLOUT if name == "stdin" else select.EPOLLIN)
        else:
            with contextlib.suppress(FileNotFoundError):
                self._epoll.unregister(number)

    def read(self, name: str, limit: int) -> bytes | None:
        """Read what is there: None would block, b"" is the end."""
        try:
            return os.read(self._numbers[name], limit)
        except BlockingIOError:
            return None

    def write(self, data: bytes | memoryview) -> int | None:
        """Write to stdin what fits: None would block.

        Raises:
            BrokenPipeError: nobody reads any more.
        """
        try:
            return os.write(self._numbers["stdin"], data)
        except BlockingIOError:
            return None

    def close_stdin(self) -> None:
        """End the agent's input."""
        self._names.pop(self._numbers["stdin"], None)
        self._pipes["stdin"].close()

    def status(self) -> int:
        """Tell how the agent exited, without reaping it: a code, or minus a signal's number."""
        if self._status is None:
            result = os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED | os.WNOWAIT)
            assert result is not None
            exited = result.si_code == os.CLD_EXITED
            self._status = result.si_status if exited else -result.si_status
            self._epoll.unregister(self._pidfd)
        return self._status

    def terminate(self, *, tree: bool = True) -> None:
        """Send TERM, and CONT so that a stopped process hears it, to the agent and every descendant."""
        if tree:
            self._members.refresh()
        self._signal_agent(_TERMINATE)
        if tree:
            self._members.send(*_TERMINATE)

    def kill(self, *, tree: bool = True) -> None:
        """Send KILL to the agent and to every descendant, until a walk finds nobody new."""
        if tree:
            self._members.refresh()
        self._signal_agent(_KILL)
        while tree:
            self._members.send(*_KILL)
            if not self._members.refresh():
                break

    def is_alone(self) -> bool:
        """Say whether no descendant is left."""
        return self._members.prune()

    def reap(self) -> None:
        """Take the exit status, so that no zombie stays; call this after the exit only."""
        self._process.wait()

    def abandon(self) -> int:
        """Kill everything, reap the agent at once, and tell how it ended: for a caller that was cancelled."""
        if self._process.returncode is None:
            self.kill()
        status = self._process.wait()
        self.close()
        return status

    def leaks(self) -> list[int]:
        """List the descendants that nobody here may signal, and that lived on when `close` was called."""
        return self._members.leaks

    def close(self) -> None:
        """Give every descriptor back."""
        self._members.close()
        for pipe in self._pipes.values():
            pipe.close()
        if not self._epoll.closed:
            os.close(self._pidfd)
            self._epoll.close()

    def _signal_agent(self, signals: Sequence[signal.Signals]) -> None:
        with contextlib.suppress(ProcessLookupError):
            for signum in signals:
                signal.pidfd_send_signal(self._pidfd, signum)

    def _watch_member(self, pidfd: int) -> None:
        self._epoll.register(pidfd, select.EPOLLIN)
