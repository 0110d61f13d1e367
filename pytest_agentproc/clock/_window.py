"""What the host does that the hub must know at once: starting a process, sending a signal. Decides nothing.

It patches the standard library for the time a virtual clock runs.
A start is a window: from the moment `subprocess.Popen` is entered until the child has said hello, is dead, or is found
to be no fake, the caller waits. So a signal that follows a start meets a child that is ready.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pytest_agentproc.errors import ClockError, Stall

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_agentproc.clock._hub import Hub

__all__ = ["Foreign", "end_started", "watch_host"]


class Foreign(ClockError):
    """A process that is no fake was started under the virtual clock without being declared."""

    reason = "foreign process"


@contextmanager
def watch_host(hub: Hub, launchers: set[str], allowed: tuple[str, ...]) -> Iterator[None]:
    """Tell the hub of starts and signals while the block runs.

    Args:
        hub: who is told.
        launchers: real paths of the executables that are fakes.
        allowed: names of other programs that the test starts on purpose; time is held while they run.
    """
    plain_init = subprocess.Popen.__init__
    plain = {(os, "kill"): os.kill, (os, "killpg"): os.killpg, (signal, "pidfd_send_signal"): signal.pidfd_send_signal}

    def init(self: subprocess.Popen[Any], *args: Any, **kwargs: Any) -> None:
        path = hub.roll.next_root()
        plain_init(self, *args, **kwargs)
        hub.started.add(self)
        _await_child(hub, self.pid, path, launchers, allowed)

    def signalling(function: Any) -> Any:
        def wrapped(*args: Any) -> Any:
            try:
                return function(*args)
            finally:
                hub.feel_signals()

        return wrapped

    subprocess.Popen.__init__ = init  # type: ignore[method-assign]
    for (module, name), function in plain.items():
        setattr(module, name, signalling(function))
    try:
        yield
    finally:
        subprocess.Popen.__init__ = plain_init  # type: ignore[method-assign]
        for (module, name), function in plain.items():
            setattr(module, name, function)
        if hub.fault is not None:
            end_started(hub)


def end_started(hub: Hub) -> None:
    """End and reap what the host started and has not reaped: after a fault nobody else will."""
    for process in tuple(hub.started):
        if process.returncode is None and (hub.fault is not None or hub.roll.is_known(process.pid)):
            process.kill()
            process.wait()


def _await_child(hub: Hub, pid: int, path: tuple[int, ...], launchers: set[str], allowed: tuple[str, ...]) -> None:
    hub.roll.expect(pid, path)
    pidfd = os.pidfd_open(pid)
    gone = select.poll()
    gone.register(pidfd, select.POLLIN)
    start = time.monotonic()
    pause = 0
    try:
        while not hub.roll.is_known(pid):
            hub.poller.poll()
            if hub.roll.is_known(pid):
                return
            if gone.poll(pause):
                hub.roll.unexpect(pid)
                return
            pause = 1
            command = _command(pid)
            if command and not _is_fake(pid, command, launchers):
                hub.roll.unexpect(pid)
                _judge_foreign(hub, pid, command, allowed)
                return
            if time.monotonic() - start > hub.guard:
                raise Stall(f"process {pid} was started but never said hello within {hub.guard:g} s")
    finally:
        os.close(pidfd)


def _command(pid: int) -> list[str]:
    """Give the argv of a process; empty while the kernel has yet to lay it out."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb", buffering=0) as file:
            return [os.fsdecode(part) for part in file.read(65536).split(b"\0")[:-1]]
    except OSError:
        return []


def _is_fake(pid: int, command: list[str], launchers: set[str]) -> bool:
    try:
        folder = os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return True  # it is just going: the caller sees the exit
    return any(os.path.realpath(os.path.join(folder, part)) in launchers for part in command[:4])


def _judge_foreign(hub: Hub, pid: int, command: list[str], allowed: tuple[str, ...]) -> None:
    name = os.path.basename(command[0])
    if name not in allowed:
        hub.fail(
            Foreign(
                f"{name!r} (pid {pid}) is no fake agent, and virtual time cannot see what it does\n"
                f"declare it: virtual_clock(allow=[{name!r}]) holds time while it runs"
            )
        )
        return
    pidfd = os.pidfd_open(pid)
    hub.held.add(pidfd)

    def over() -> None:
        hub.poller.forget(pidfd)
        hub.held.discard(pidfd)
        os.close(pidfd)

    hub.poller.watch(pidfd, over)
