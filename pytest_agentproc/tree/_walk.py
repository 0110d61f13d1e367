"""Who belongs to a tree right now, read from /proc. Owns the walk; sends nothing.

A process belongs to the tree of an agent if it descends from it, or if it is in the session that the agent leads: the
second finds what the walk of a dead root cannot. What left the session and was re-parented is out of reach here.
"""

from __future__ import annotations

import contextlib
import os

import psutil

__all__ = ["command_of", "descendants", "session_members"]


def descendants(pid: int) -> list[int]:
    """List the descendants of a process, parents before children."""
    found: list[int] = []
    frontier = [pid]
    while frontier:
        parent = frontier.pop(0)
        for child in _children(parent):
            if child not in found:
                found.append(child)
                frontier.append(child)
    return found


def session_members(session: int) -> list[int]:
    """List the processes of a session, its leader left out: one system call a process of the machine."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal() and name != str(session):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if os.getsid(int(name)) == session:
                    found.append(int(name))
    return found


def command_of(pid: int) -> str:
    """Give a process's command line for a message, or its name, or nothing once it is gone."""
    try:
        process = psutil.Process(pid)
        return " ".join(process.cmdline()) or process.name()
    except psutil.Error:
        return ""


def _children(pid: int) -> list[int]:
    children: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", "rb", buffering=0) as file:
                children += [int(child) for child in file.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        if os.path.exists(f"/proc/{pid}/task/{pid}/children") or not os.path.exists(f"/proc/{pid}"):
            return children
        with contextlib.suppress(psutil.Error):  # a kernel without these files
            return [child.pid for child in psutil.Process(pid).children()]
    return children
