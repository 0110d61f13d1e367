"""What the host does that the hub must know at once: starting a process, sending a signal. Decides nothing.

It patches the standard library for the time a virtual clock runs.
A start is a window: from the moment `subprocess.Popen` is entered until the child has said hello, is dead, or is found
to be no fake, the caller waits. So a signal that follows a start meets a child that is ready. A program of the kit's
own that says `serves_host` acts only while the host waits for its answer: nobody waits for it, and it is no agent.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pytest_agentproc.clock._cores import keep_apart
from pytest_agentproc.errors import ClockError, Stall

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_agentproc.clock._hub import Hub

__all__ = ["Foreign", "Programs", "end_started", "meet", "watch_host"]

_BETWEEN = ("preexec_fn", "executable", "shell")
"""Options with which it is somebody else's code that is started first."""

_kill = os.kill  # as it is before a host is watched: what the kit does is no signal of the host


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
        if getattr(self, "serves_host", False):
            plain_init(self, *args, **kwargs)
            return
        path = hub.roll.next_root()
        with keep_apart(wanted=_is_plain_start(launchers, args, kwargs)) as part:
            plain_init(self, *args, **kwargs)
            awake = part(self.pid)
            hub.started.add(self)
            programs = Programs(launchers, allowed, kwargs.get("cwd"), kwargs.get("env"))
            _await_child(hub, self.pid, _words(self.args), path, programs, awake=awake)

    def signalling(function: Any) -> Any:
        def wrapped(*args: Any) -> Any:
            try:
                return function(*args)
            finally:
                try:
                    hub.feel_signals()
                except ClockError as error:
                    hub.fail(error)

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


def _is_plain_start(launchers: set[str], args: tuple[Any, ...], options: Mapping[str, Any]) -> bool:
    """Say whether a fake is started by its path, and nobody does anything between the fork and it."""
    words = args[0] if len(args) == 1 and isinstance(args[0], list | tuple) else ()
    return bool(words) and words[0] in launchers and not any(options.get(name) for name in _BETWEEN)


def end_started(hub: Hub) -> None:
    """End and reap what the host started and has not reaped: after a fault nobody else will."""
    for process in tuple(hub.started):
        if process.returncode is None and (hub.fault is not None or hub.roll.is_known(process.pid)):
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout, process.stderr) if hub.fault is not None else ():
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def meet(hub: Hub, pid: int, argv: Sequence[str], programs: Programs) -> None:
    """Hold the window of a start that was not `subprocess`'s, once the process is there."""
    _await_child(hub, pid, _words(argv), hub.roll.next_root(), programs)


class Programs:
    """Who is a fake and who is declared, as one start sees it.

    Args:
        launchers: real paths of the executables that are fakes.
        allowed: names of other programs that the test starts on purpose.
        cwd: where the start takes place; None: here.
        env: the environment that it gives; None: ours.
    """

    def __init__(
        self, launchers: set[str], allowed: tuple[str, ...], cwd: Any = None, env: Mapping[str, str] | None = None
    ) -> None:
        self.launchers = launchers
        self.allowed = allowed
        self.folder = os.path.abspath(os.fsdecode(cwd or "."))
        self.environment = env or os.environ

    def is_fake(self, command: list[str], folder: str) -> bool:
        """Say whether a running command is a fake: one of its first words leads to a launcher."""
        return any(os.path.realpath(os.path.join(folder, word)) in self.launchers for word in command[:4])

    def was_fake(self, command: list[str]) -> bool:
        """Say the same of a command that is gone already, by what was asked for."""
        search = self.environment.get("PATH")
        found = [word if os.sep in word else shutil.which(word, path=search) or word for word in command[:4]]
        return self.is_fake(found, self.folder)


_GLANCE = 4
"""Milliseconds until the first look at who a silent child is; a hello or an end is seen at once."""

_MOMENT = 1
"""Milliseconds between the looks after that: the loop's own thread may have taken the hello, which wakes no other."""

_AWAKE = 5
"""Milliseconds for which a fake's hello is looked out for, after that, without a sleep: longer than most need."""


def _await_child(
    hub: Hub, pid: int, asked: list[str], path: tuple[int, ...], programs: Programs, *, awake: bool = False
) -> None:
    """Wait until a child has said hello, is dead, or is found to be no fake; awake near the end, if nobody minds."""
    hub.roll.expect(pid, path)
    pidfd = os.pidfd_open(pid)
    news = select.poll()
    news.register(pidfd, select.POLLIN)
    news.register(hub.roll.door, select.POLLIN)
    start = time.monotonic()
    is_fake = False
    try:
        while not hub.roll.is_known(pid):
            heard = _look_out(news) if is_fake and awake else news.poll(_MOMENT if is_fake else _GLANCE)
            awake = awake and not is_fake
            found = [descriptor for descriptor, _ in heard]
            if pidfd in found:
                hub.roll.unexpect(pid)
                if not programs.was_fake(asked):
                    _judge_foreign(hub, pid, asked[0], programs.allowed)
                return
            if found:
                hub.poller.poll()
                continue
            command, folder = ([], "") if is_fake else _command(pid)
            is_fake = is_fake or bool(command and folder and programs.is_fake(command, folder))
            if command and folder and not is_fake:
                hub.roll.unexpect(pid)
                _judge_foreign(hub, pid, command[0], programs.allowed)
                return
            hub.turns += 1
            if time.monotonic() - start > hub.guard:
                _end(pid, hub.guard)
                hub.roll.unexpect(pid)
                hub.fail(Stall(f"process {pid} was started but never said hello within {hub.guard:g} s"))
                return
    finally:
        os.close(pidfd)


def _look_out(news: select.poll) -> list[tuple[int, int]]:
    """Look out for a while: who sleeps is late, and comes back to a core that has gone to sleep as well."""
    end = time.monotonic() + _AWAKE / 1000
    while time.monotonic() < end:
        if found := news.poll(0):
            return found
    return news.poll(_MOMENT)


def _command(pid: int) -> tuple[list[str], str]:
    """Give argv and folder of a process; empty while the kernel has yet to lay them out, or when it is just going."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb", buffering=0) as file:
            command = [os.fsdecode(part) for part in file.read(65536).split(b"\0")[:-1]]
        return command, os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return [], ""


def _words(args: Any) -> list[str]:
    """Give the words of what `Popen` was asked to start; a shell's line is the shell's."""
    if isinstance(args, (str, bytes, os.PathLike)):
        return [os.fsdecode(args)]
    return [os.fsdecode(word) for word in args]


def _end(pid: int, patience: float) -> None:
    """Kill a child that nobody has waited for, so the pid is still its own, and see it dead before the host goes on."""
    pidfd = os.pidfd_open(pid)
    _kill(pid, signal.SIGKILL)
    gone = select.poll()
    gone.register(pidfd, select.POLLIN)
    gone.poll(patience * 1000)
    os.close(pidfd)


def _judge_foreign(hub: Hub, pid: int, program: str, allowed: tuple[str, ...]) -> None:
    name = os.path.basename(program)
    if name not in allowed:
        _end(pid, hub.guard)
        hub.fail(
            Foreign(
                f"{name!r} (pid {pid}) is no fake agent, and virtual time cannot see what it does\n"
                f"declare it: virtual_clock(allow=[{name!r}]) holds time while it runs"
            )
        )
        return
    pidfd = os.pidfd_open(pid)  # a zombie has one too, and lets go at the next look
    hub.held[pidfd] = f"the declared program {name!r} (pid {pid})"

    def over() -> None:
        hub.poller.forget(pidfd)
        hub.held.pop(pidfd, None)
        os.close(pidfd)

    hub.poller.watch(pidfd, over)
