"""Who is where right now, read from /proc: descent, sessions, marks. Owns the reading; judges and sends nothing.

What is read here is old when it is used: whoever signals holds a pidfd, reads again, and sees the process live on.
"""

from __future__ import annotations

import contextlib
import os

import psutil

from pytest_agentproc.tree._kernel import children, read_file

__all__ = ["carries", "command_of", "descendants", "group_of", "limit_of", "session_members", "session_of"]

_LIMIT = b"Max msgqueue size"


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
    for name in os.listdir("/proc"):
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


def carries(pid: int, word: str) -> bool:
    """Say whether a word is in the environment that a living process was given, as far as we may read it."""
    sought, seen = word.encode(), b""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
        while sought not in seen and (part := file.read(4096)):
            seen = seen[-len(sought) :] + part
    return sought in seen


def limit_of(pid: int) -> int | None:
    """Give a process's soft limit for message queues, in bytes, a zombie's too; None if it has none or is gone."""
    with contextlib.suppress(OSError):
        for line in read_file(f"/proc/{pid}/limits").splitlines():
            if line.startswith(_LIMIT):
                soft = line.removeprefix(_LIMIT).split()[0]
                return int(soft) if soft.isdigit() else None
    return None


def command_of(pid: int) -> str:
    """Give a process's command line for a message, or its name, or nothing once it is gone."""
    try:
        process = psutil.Process(pid)
        return " ".join(process.cmdline()) or process.name()
    except psutil.Error:
        return ""
