"""Sees the signals that the supervising program sends, and holds back those for bystanders. Owns the patch of one run.

It patches `os.kill`, `os.killpg` and `signal.pidfd_send_signal`, which all of the standard library goes through, while
a subject has its run. What C code or another program sends is not seen here; the canaries are for that.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from _signal import getsignal  # that of `signal` tries to make each handler a word, and writes it out when it is none
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_agentproc.clock import signal_name
from pytest_agentproc.harness._bystanders import is_bystander, members_of, ticks
from pytest_agentproc.procfs import stat_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from pytest_agentproc.clock import VirtualClock

__all__ = ["participants_of", "warden"]

_send_signal = signal.pidfd_send_signal  # as it is before anybody patches it
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_HARMLESS = frozenset({signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH})
"""What does nothing to who has no handler for it, and runs."""
_FATAL = frozenset({signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV})
"""What faulthandler has a handler for that does not save anybody."""
_HANDLES = (("subprocess.py", "send_signal"), ("popen_fork.py", "_send_signal"))
"""Where `subprocess` and `multiprocessing` signal a process of which the caller has the object: it is its own."""
_STDLIB = os.path.dirname(os.__file__) + os.sep
_MIDDLEMEN = ("anyio", "psutil", "trio")


_watching = threading.Lock()
"""Two patches that end in any order would leave one of them in place."""


class _Known(NamedTuple):
    """A process that is or was of the run.

    Args:
        name: what the record calls it.
        is_reaped: whether its pid is free for others by now.
        is_agent: whether the supervisor started it: when a descendant's pid is free may be for init to say, at leisure.
    """

    name: str
    is_reaped: bool
    is_agent: bool


class _Target(NamedTuple):
    """Whom a signal goes to that is not meant for the run; `to` is a word of the record's, `pid` may be a group's."""

    to: str
    pid: int
    who: str = ""


def participants_of(clock: VirtualClock) -> Callable[[int], _Known | None]:
    """Give what knows the fakes of a virtual clock by their pids."""

    def known(pid: int) -> _Known | None:
        found = [one for one in tuple(clock.hub.roll.participants.values()) if one.pid == pid]
        if not found:
            return _Known("", is_reaped=False, is_agent=True) if pid in clock.hub.roll.expected else None
        one, is_reaped = found[-1], False
        with suppress(PermissionError):
            is_reaped = one.is_forgotten()
        return _Known(one.name, is_reaped=is_reaped, is_agent=len(one.path) == 1)

    return known


def _nobody(_pid: int) -> None:
    """Know no process: in real time nobody tells of births."""


@contextmanager
def warden(note: Callable[[dict[str, Any]], None], known: Callable[[int], _Known | None] = _nobody) -> Iterator[None]:
    """Judge every signal that this process sends while the block runs.

    One for a bystander, for pytest itself, or for a group with it is not delivered. One for a pid that was of the run
    and is free by now hits nobody; an agent's is noted too. Of runs at a time, in threads, the first is watched.

    Args:
        note: takes the data of a marker for each.
        known: tells of processes of the run by their pids.
    """
    if not _watching.acquire(blocking=False):
        yield
        return
    judge = _Judge(known)
    plain = {(os, "kill"): os.kill, (os, "killpg"): os.killpg, (signal, "pidfd_send_signal"): signal.pidfd_send_signal}

    def judged(function: Any, find: Callable[[int], _Target | None]) -> Any:
        def wrapped(*args: Any) -> Any:
            frame = sys._getframe(1)  # noqa: SLF001  # who sends it is a line of the subject's own code
            target = find(args[0]) if judge.is_asked(args, frame) else None
            if target is None or judge.is_for_itself(target, args[1]):
                return function(*args)
            note(
                {
                    "stray": signal_name(args[1]),
                    "to": target.to,
                    "who": target.who,
                    "pid": target.pid,
                    "place": _place(frame),
                }
            )
            return function(*args) if target.to == "freed" else None

        return wrapped

    finders = {"kill": judge.of_kill, "killpg": judge.of_group, "pidfd_send_signal": judge.of_pidfd}
    for (module, name), function in plain.items():
        setattr(module, name, judged(function, finders[name]))
    try:
        yield
    finally:
        for (module, name), function in plain.items():
            setattr(module, name, function)
        _watching.release()


class _Judge:
    """Finds out whom a signal would hit.

    Args:
        known: tells of processes of the run.
    """

    def __init__(self, known: Callable[[int], _Known | None]) -> None:
        self._known = known
        self._begun = ticks()
        self._handlers: dict[int, Any] = {signum: getsignal(signum) for signum in _ENDING}
        self._threads = {one.ident for one in threading.enumerate()} - {threading.get_ident()}

    def is_asked(self, args: tuple[Any, ...], frame: FrameType) -> bool:
        """Say whether a call is to be judged: no probe, no mistake, no older thread's, not by a process's handle."""
        if not all(isinstance(one, int) for one in args[:2]) or args[1:2] == () or args[1] not in _SIGNALS:
            return False
        code = frame.f_code
        is_handle = (os.path.basename(code.co_filename), code.co_name) in _HANDLES and _passes_on(code.co_filename)
        return threading.get_ident() not in self._threads and not is_handle

    def of_kill(self, pid: int) -> _Target | None:
        """Find whom `os.kill` would hit; None: whom it may."""
        if pid == -1:
            return _Target("everything", pid)
        if pid <= 0:
            return self.of_group(-pid)
        return _Target("itself", pid) if pid == os.getpid() else self._of_process(pid)

    def of_pidfd(self, pidfd: int) -> _Target | None:
        """Find whom `signal.pidfd_send_signal` would hit; it never hits who has a pid of the dead.

        So who is reaped by somebody else just then is no stray: a descriptor can be right and too late, and what was
        seen of the pid is true only if it is the descriptor's still.
        """
        pid = _pid_of(pidfd)
        target = self.of_kill(pid) if pid > 0 else None
        return target if _pid_of(pidfd) == pid else None

    def of_group(self, group: int) -> _Target | None:
        """Find whom `os.killpg` would hit; group 1 is everything to the kernel."""
        if group == 1:
            return _Target("everything", group)
        if group in (0, os.getpgrp()):
            return _Target("own group", group)
        leader = self._known(group)
        if leader is not None and not leader.is_reaped:
            return None
        me, members = os.getpid(), list(members_of(group))
        if members:
            first = stat_of(members[0])
            is_others = all(self._known(pid) is None and is_bystander(pid, self._begun, me) for pid in members)
            return _Target("group", group, first.name if first is not None else "") if is_others else None
        return _freed(group, leader)

    def _of_process(self, pid: int) -> _Target | None:
        known = self._known(pid)
        if known is not None and not known.is_reaped:
            return None
        seen = stat_of(pid)
        if seen is None:
            return _freed(pid, known)
        if not is_bystander(pid, self._begun, os.getpid()):
            return None
        if known is None:
            return _Target("process", pid, seen.name)
        return _Target("reused", pid, f"{seen.name}, once {known.name}")

    def is_for_itself(self, target: _Target, signum: int) -> bool:
        """Say whether a program may signal itself so: it has a handler for that, or it does nothing.

        Signals that end a program had handlers before the run, which were pytest's or the loop's.
        """
        if target.to != "itself" or signum in (signal.SIGKILL, signal.SIGSTOP):
            return False
        handler = getsignal(signum)
        if handler == signal.SIG_DFL:
            return signum in _HARMLESS or (signum not in _FATAL and _is_caught(signum))
        return signum not in _ENDING or handler == signal.SIG_IGN or handler != self._handlers[signum]


_SIGNALS = signal.valid_signals()


def _is_caught(signum: int) -> bool:
    """Say whether C code has a handler for a signal."""
    with open("/proc/self/status", "rb") as file:
        mask = next(line for line in file if line.startswith(b"SigCgt:")).split()[1]
    return bool(int(mask, 16) >> (signum - 1) & 1)


def _pid_of(pidfd: int) -> int:
    """Give the pid behind a pidfd; -1 if its process is reaped, or it is none."""
    try:
        with open(f"/proc/self/fdinfo/{pidfd}", "rb", buffering=0) as file:
            lines = file.read(4096).splitlines()
    except FileNotFoundError:
        return -1
    return next((int(line.split()[1]) for line in lines if line.startswith(b"Pid:")), -1)


def _place(frame: FrameType) -> str:
    """Give file and line of who called, behind the libraries that pass a call on."""
    caller: FrameType | None = frame
    while caller is not None and _passes_on(caller.f_code.co_filename):
        caller = caller.f_back
    caller = caller or frame
    file = caller.f_code.co_filename
    inside = os.path.relpath(file)
    return f"{file if inside.startswith('..') else inside}:{caller.f_lineno}"


def _freed(pid: int, known: _Known | None) -> _Target | None:
    return _Target("freed", pid, known.name) if known is not None and known.is_agent else None


def _passes_on(file: str) -> bool:
    is_installed = "site-packages" in file or "dist-packages" in file
    if is_installed:
        return any(f"{os.sep}{name}{os.sep}" in file for name in _MIDDLEMEN)
    return file.startswith((_STDLIB, "<frozen "))
