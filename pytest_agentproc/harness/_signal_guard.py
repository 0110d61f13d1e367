"""Signals of the supervising program: decoys and unrelated processes that must get none.

One decoy is in the process group of pytest, one in a session of its own. Both are children of this process, as a server
of another test is. A hit counts against a run if the kernel names this process or a descendant of it as the sender. A
hit without a known sender (it had ended, or the signal was KILL or STOP) counts as well. It does not count beside other
workers of pytest-xdist: it may be theirs.

It patches `os.kill`, `os.killpg` and `signal.pidfd_send_signal`, which all of the standard library uses, while a
supervisor runs. Signals of C code or of another program are not seen here; the decoys see them.
"""

from __future__ import annotations

import io
import os
import select
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_agentproc.errors import KitError
from pytest_agentproc.events import SignalStrayed, Trace
from pytest_agentproc.files import shorten_path
from pytest_agentproc.harness._unrelated_processes import (
    is_unrelated_process,
    iterate_group_members,
    read_alive_or_stopped,
    read_boot_ticks,
)
from pytest_agentproc.interrupts import hold_interrupts, read_handler, whole_block
from pytest_agentproc.originals import Popen
from pytest_agentproc.procfs import read_stat
from pytest_agentproc.tree import exclude_from_tracking, find_interpreter
from pytest_agentproc.vocabulary import format_signal_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import FrameType

    from pytest_agentproc.clock import VirtualClock


_DECOY_ANSWER_TIMEOUT_SECONDS = 10.0
"""Real seconds in which a decoy that can answer must have answered."""


@dataclass(frozen=True, slots=True)
class DecoyHit:
    """A signal that a decoy got.

    Args:
        signal: its name.
        decoy: the place of that decoy.
        origin: `run` if this process or a descendant of it sent it, `unknown` if the sender is not known.
    """

    signal: str
    decoy: str
    origin: str


class Decoys:
    """Two decoys.

    Args:
        names: words that stand among their arguments, so that they look like agents.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._command = [
            find_interpreter(),
            "-IS",
            str(Path(__file__).with_name("_decoy.py")),
            str(os.getpid()),
            *names,
        ]
        self._processes: dict[str, Popen[bytes]] = {}
        self._are_alone = "PYTEST_XDIST_WORKER" not in os.environ

    def start_missing(self) -> None:
        """Start the missing decoys, and forget their earlier signals: they were not this run's."""
        self.collect_hits()
        missing = [decoy for decoy in _DECOY_PLACES if decoy not in self._processes]
        for decoy in missing:
            with hold_interrupts():
                self._processes[decoy] = self._start(is_apart=decoy == _PLACE_IN_OWN_SESSION)
        for decoy in missing:
            if _ask_decoy_for_signals(self._processes[decoy]) is None:
                raise KitError(
                    "a decoy process does not answer, so nothing shows whether unrelated processes are harmed"
                )

    def collect_hits(self) -> list[DecoyHit]:
        """Ask each for its signals since the last question; `start_missing` replaces a dead or stopped decoy."""
        found: list[DecoyHit] = []
        for decoy, process in tuple(self._processes.items()):
            noted = _ask_decoy_for_signals(process)
            if noted is None:
                noted = [f"{_find_silencing_signal(process)}:unknown"]
                self._kill_decoy(decoy)
            pairs = [note.split(":") for note in noted]
            found += [
                DecoyHit(format_signal_name(int(signum)), decoy, origin)
                for signum, origin in pairs
                if self._is_from_run(origin)
            ]
        return found

    def close(self) -> None:
        """End them."""
        for decoy in tuple(self._processes):
            self._kill_decoy(decoy)

    def _is_from_run(self, origin: str) -> bool:
        return origin == "run" or (origin == "unknown" and self._are_alone)

    def _start(self, *, is_apart: bool) -> Popen[bytes]:
        pipe = subprocess.PIPE
        process = Popen(self._command, stdin=pipe, stdout=pipe, bufsize=0, start_new_session=is_apart)
        exclude_from_tracking(process.pid)
        return process

    def _kill_decoy(self, decoy: str) -> None:
        with self._processes.pop(decoy) as process:
            process.kill()


_PLACE_IN_PYTEST_GROUP, _PLACE_IN_OWN_SESSION = "in the process group of pytest", "in a session of its own"
_DECOY_PLACES = (_PLACE_IN_PYTEST_GROUP, _PLACE_IN_OWN_SESSION)


def _find_silencing_signal(process: Popen[bytes]) -> int:
    """Give the signal that ended or stopped a silent decoy; its pipes end before it can be waited for."""
    if read_alive_or_stopped(process.pid) == "stopped":
        return signal.SIGSTOP
    try:
        return -process.wait(_DECOY_ANSWER_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        return signal.SIGSTOP


def _ask_decoy_for_signals(process: Popen[bytes]) -> list[str] | None:
    """Give the notes of a decoy; None if it does not answer: it is dead, or stopped."""
    assert process.stdin is not None
    assert process.stdout is not None
    if read_alive_or_stopped(process.pid) == "stopped":
        return None
    try:
        process.stdin.write(b"?")
    except BrokenPipeError:
        return None
    answers = select.poll()
    answers.register(process.stdout, select.POLLIN)
    line = process.stdout.readline() if answers.poll(_DECOY_ANSWER_TIMEOUT_SECONDS * 1000) else b""
    return line.decode().split() if line else None


_unpatched_pidfd_send_signal = signal.pidfd_send_signal  # as it is before it is patched
_PROGRAM_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_SIGNALS_WITHOUT_DEFAULT_EFFECT = frozenset({signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH})
"""The signals that do nothing to a running process without a handler."""
_FAULTHANDLER_SIGNALS = frozenset({signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV})
"""The signals with a handler of faulthandler, which does not save a process."""
_SIGNAL_METHODS_OF_PROCESS_OBJECTS = (("subprocess.py", "send_signal"), ("popen_fork.py", "_send_signal"))
"""Where `subprocess` and `multiprocessing` signal a process of which the caller has the object: it is its own."""
_STDLIB_FOLDER_PREFIX = os.path.dirname(os.__file__) + os.sep
_SIGNAL_FORWARDING_LIBRARIES = ("anyio", "psutil", "trio")


_signal_patch_lock = threading.Lock()
"""Two patches that end in any order would leave one of them in place."""


class _KnownProcess(NamedTuple):
    """A process that is or was of the run.

    Args:
        name: its name in the record.
        is_reaped: whether its pid is free for others by now.
        is_agent: whether the supervisor started it: init may free the pid of a descendant much later.
    """

    name: str
    is_reaped: bool
    is_agent: bool


class _SignalTarget(NamedTuple):
    """Whom a signal goes to that is not meant for the run; `to` is a word of the record's, `pid` may be a group's."""

    to: str
    pid: int
    who: str = ""


def make_participant_finder(clock: VirtualClock) -> Callable[[int], _KnownProcess | None]:
    """Give what knows the fakes of a virtual clock by their pids."""

    def find_participant(pid: int) -> _KnownProcess | None:
        found = [
            participant for participant in tuple(clock.hub.registry.participants.values()) if participant.pid == pid
        ]
        if not found:
            return _KnownProcess("", is_reaped=False, is_agent=True) if pid in clock.hub.registry.expected else None
        participant, is_reaped = found[-1], False
        with suppress(PermissionError):
            is_reaped = participant.is_reaped()
        return _KnownProcess(participant.name, is_reaped=is_reaped, is_agent=len(participant.path) == 1)

    return find_participant


def _find_no_participant(_pid: int) -> None:
    """Know no process: in real time births are not reported."""


@whole_block
def guard_signals(
    note: Trace, now: Callable[[], int], known: Callable[[int], _KnownProcess | None] = _find_no_participant
) -> Iterator[None]:
    """Judge every signal that this process sends while the block runs.

    A signal for an unrelated process, for pytest itself, or for a group that contains one is not delivered. A signal
    for a pid that the run used and that is free by now hits no process; for an agent's pid it is noted too. If several
    runs overlap, in threads, the first is watched.

    Args:
        note: receives each.
        now: gives the instant of the run.
        known: finds processes of the run by their pids.
    """
    if not _signal_patch_lock.acquire(blocking=False):
        yield
        return
    judge = _TargetFinder(known)
    plain = {(os, "kill"): os.kill, (os, "killpg"): os.killpg, (signal, "pidfd_send_signal"): signal.pidfd_send_signal}

    def wrap_signal_function(function: Any, find: Callable[[int], _SignalTarget | None]) -> Any:
        def send_if_allowed(*args: Any) -> Any:
            frame = sys._getframe(1)  # noqa: SLF001  # the sender is a line of the subject's own code
            target = find(args[0]) if judge.is_judged_call(args, frame) else None
            if target is None or judge.may_signal_itself(target, args[1]):
                return function(*args)
            name, place = format_signal_name(args[1]), _format_caller_place(frame)
            note(SignalStrayed(now(), "supervisor", name, target.to, target.who, target.pid, place))
            return function(*args) if target.to == "freed" else None

        return send_if_allowed

    finders = {
        "kill": judge.find_kill_target,
        "killpg": judge.find_group_target,
        "pidfd_send_signal": judge.find_pidfd_target,
    }
    for (module, name), function in plain.items():
        setattr(module, name, wrap_signal_function(function, finders[name]))
    try:
        yield
    finally:
        for (module, name), function in plain.items():
            setattr(module, name, function)
        _signal_patch_lock.release()


class _TargetFinder:
    """Find the process that a signal would hit."""

    def __init__(self, known: Callable[[int], _KnownProcess | None]) -> None:
        self._known = known
        self._begun = read_boot_ticks()
        self._handlers: dict[int, Any] = {signum: read_handler(signum) for signum in _PROGRAM_ENDING_SIGNALS}
        self._threads = {thread.ident for thread in threading.enumerate()} - {threading.get_ident()}

    def is_judged_call(self, args: tuple[Any, ...], frame: FrameType) -> bool:
        """Say whether a call is to be judged: no probe, no mistake, no older thread's, not by a process's handle."""
        if (
            not all(isinstance(argument, int) for argument in args[:2])
            or args[1:2] == ()
            or args[1] not in _VALID_SIGNALS
        ):
            return False
        code = frame.f_code
        is_handle = (
            os.path.basename(code.co_filename),
            code.co_name,
        ) in _SIGNAL_METHODS_OF_PROCESS_OBJECTS and _is_library_file(code.co_filename)
        return threading.get_ident() not in self._threads and not is_handle

    def find_kill_target(self, pid: int) -> _SignalTarget | None:
        """Find whom `os.kill` would hit; None: whom it may."""
        if pid == -1:
            return _SignalTarget("everything", pid)
        if pid <= 0:
            return self.find_group_target(-pid)
        return _SignalTarget("itself", pid) if pid == os.getpid() else self._find_process_target(pid)

    def find_pidfd_target(self, pidfd: int) -> _SignalTarget | None:
        """Find the process that `signal.pidfd_send_signal` would hit; it never hits a new process with the same pid.

        So a signal to a process that was reaped just then is no stray: a descriptor can be right and too late. An
        observation of the pid is true only if the pid still belongs to the descriptor.
        """
        pid = _read_pid_of_pidfd(pidfd)
        target = self.find_kill_target(pid) if pid > 0 else None
        return target if _read_pid_of_pidfd(pidfd) == pid else None

    def find_group_target(self, group: int) -> _SignalTarget | None:
        """Find whom `os.killpg` would hit; group 1 is everything to the kernel."""
        if group == 1:
            return _SignalTarget("everything", group)
        if group in (0, os.getpgrp()):
            return _SignalTarget("own group", group)
        leader = self._known(group)
        if leader is not None and not leader.is_reaped:
            return None
        me, members = os.getpid(), list(iterate_group_members(group))
        if members:
            first = read_stat(members[0])
            is_others = all(self._known(pid) is None and is_unrelated_process(pid, self._begun, me) for pid in members)
            return _SignalTarget("group", group, first.name if first is not None else "") if is_others else None
        return _find_freed_pid_target(group, leader)

    def _find_process_target(self, pid: int) -> _SignalTarget | None:
        known = self._known(pid)
        if known is not None and not known.is_reaped:
            return None
        seen = read_stat(pid)
        if seen is None:
            return _find_freed_pid_target(pid, known)
        if not is_unrelated_process(pid, self._begun, os.getpid()):
            return None
        if known is None:
            return _SignalTarget("process", pid, seen.name)
        return _SignalTarget("reused", pid, f"{seen.name}, once {known.name}")

    def may_signal_itself(self, target: _SignalTarget, signum: int) -> bool:
        """Say whether a program may signal itself so: it has a handler for that, or it does nothing.

        Signals that end a program had handlers before the run, which were pytest's or the loop's.
        """
        if target.to != "itself" or signum in (signal.SIGKILL, signal.SIGSTOP):
            return False
        handler = read_handler(signum)
        if handler == signal.SIG_DFL:
            return signum in _SIGNALS_WITHOUT_DEFAULT_EFFECT or (
                signum not in _FAULTHANDLER_SIGNALS and _is_signal_caught(signum)
            )
        return signum not in _PROGRAM_ENDING_SIGNALS or handler == signal.SIG_IGN or handler != self._handlers[signum]


_VALID_SIGNALS = signal.valid_signals()


def _is_signal_caught(signum: int) -> bool:
    """Say whether C code has a handler for a signal, which psutil does not tell."""
    with io.open("/proc/self/status", "rb") as file:
        mask = next(line for line in file if line.startswith(b"SigCgt:")).split()[1]
    return bool(int(mask, 16) >> (signum - 1) & 1)


def _read_pid_of_pidfd(pidfd: int) -> int:
    """Give the pid of a pidfd; -1 if its process is reaped, or it is no pidfd."""
    try:
        with io.open(f"/proc/self/fdinfo/{pidfd}", "rb", buffering=0) as file:
            lines = file.read(4096).splitlines()
    except FileNotFoundError:
        return -1
    return next((int(line.split()[1]) for line in lines if line.startswith(b"Pid:")), -1)


def _format_caller_place(frame: FrameType) -> str:
    """Give file and line of the caller, without the libraries that pass a call on."""
    caller: FrameType | None = frame
    while caller is not None and _is_library_file(caller.f_code.co_filename):
        caller = caller.f_back
    caller = caller or frame
    return f"{shorten_path(caller.f_code.co_filename)}:{caller.f_lineno}"


def _find_freed_pid_target(pid: int, known: _KnownProcess | None) -> _SignalTarget | None:
    return _SignalTarget("freed", pid, known.name) if known is not None and known.is_agent else None


def _is_library_file(file: str) -> bool:
    is_installed = "site-packages" in file or "dist-packages" in file
    if is_installed:
        return any(f"{os.sep}{name}{os.sep}" in file for name in _SIGNAL_FORWARDING_LIBRARIES)
    return file.startswith((_STDLIB_FOLDER_PREFIX, "<frozen "))
