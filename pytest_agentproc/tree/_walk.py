"""Who is where right now, read from /proc: descent, sessions, marks. Owns the reading; judges and sends nothing.

What is read here is old when it is used: whoever signals holds a pidfd, reads again, and sees the process live on.
"""

from __future__ import annotations

import contextlib
import os
import select

import psutil

from pytest_agentproc.tree._kernel import children, is_exhausted, read_file, spared, stat_of

__all__ = [
    "carries",
    "command_of",
    "descendants",
    "environment_of",
    "group_of",
    "limit_of",
    "session_members",
    "session_of",
]

_LIMIT = b"Max msgqueue size"
_DEAD = (b"Z", b"X", b"x")
_CODE, _STACK = 23, 25
"""Where, from the state on, the kernel says at which addresses the program and its stack begin."""
_BECOMING = b"0"
"""Where it says that the program begins until the environment is in place."""
_TRIES = 1000
"""Looks at a process that is becoming another program, a millisecond apart."""


def descendants(pid: int) -> list[int]:
    """List the descendants of a process, parents before children."""
    found: dict[int, None] = {}
    frontier = [pid]
    while frontier:
        parent = frontier.pop(0)
        for child in children(parent):
            if child not in found:
                found[child] = None
                frontier.append(child)
    return list(found)


def session_members(session: int) -> list[int]:
    """List the processes of a session, its leader left out: one system call a process of the machine."""
    found = []
    for name in spared(os.listdir, "/proc"):
        if name.isdecimal():
            pid = int(name)
            try:  # so many are asked that a call or a context manager for each would cost more than the answers
                if os.getsid(pid) == session and pid != session:
                    found.append(pid)
            except (ProcessLookupError, PermissionError):
                pass
    return found


def group_of(pid: int) -> int | None:
    """Give the process group of a process, a zombie's too; None once it is gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        return os.getpgid(pid)
    return None


def session_of(pid: int) -> int | None:
    """Give the session of a process, a zombie's too; None once it is gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        return os.getsid(pid)
    return None


def environment_of(pid: int) -> bytes:
    """Give the environment with which a process's program began; nothing if it has none, hides it or is gone.

    A process that is just becoming another program shows none: it is asked again, for a second of real time at most.
    """
    before: tuple[bytes, ...] = ()
    for _ in range(_TRIES):
        try:
            found = read_file(f"/proc/{pid}/environ")
        except OSError as error:
            if is_exhausted(error):
                raise
            return b""
        if found or not (now := _program(pid)) or (now == before and now[0] != _BECOMING):
            return found
        if now[0] == _BECOMING:
            select.poll().poll(1)
        before = now
    return b""


def _program(pid: int) -> tuple[bytes, ...]:
    """Say where a process's program is, and its stack, which tells two of the same apart; nothing: it is dead."""
    fields = stat_of(pid)
    return (fields[_CODE], fields[_STACK]) if fields and fields[0] not in _DEAD else ()


def carries(pid: int, word: str) -> bool:
    """Say whether a word is in the environment that a living process was given, as far as we may read it."""
    return word.encode() in environment_of(pid)


def limit_of(pid: int) -> int | None:
    """Give a process's soft limit for message queues, in bytes, a zombie's too; None if it has none or is gone."""
    try:
        lines = read_file(f"/proc/{pid}/limits").splitlines()
    except OSError as error:
        if is_exhausted(error):
            raise
        return None
    soft = next((line.removeprefix(_LIMIT).split()[0] for line in lines if line.startswith(_LIMIT)), b"")
    return int(soft) if soft.isdigit() else None


def command_of(pid: int) -> str:
    """Give a process's command line for a message, or its name, or nothing once it is gone."""
    try:
        process = psutil.Process(pid)
        return " ".join(process.cmdline()) or process.name()
    except psutil.Error:
        return ""
