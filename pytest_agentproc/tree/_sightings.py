"""One process as /proc shows it at one moment. Owns the reading; judges nobody."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from typing import NamedTuple

from pytest_agentproc.procfs import read_proc, stat_of, words_of
from pytest_agentproc.tree._walk import environment_of

__all__ = ["Sighting", "children", "command_line", "has_children", "sight", "variable_of"]

_STATES = {"Z": "zombie", "T": "stopped", "t": "stopped"}
_NANOSECONDS = 1_000_000_000


class Sighting(NamedTuple):
    """What was seen of a process.

    Args:
        pid: its number.
        parent: the number of its parent.
        session: its session.
        state: `alive`, `stopped` or `zombie`.
        born: when it began, in nanoseconds of the clock BOOTTIME, which the kernel counts in hundredths of a second.
        command: its command line, or its short name in brackets where it has none (a zombie has none).
    """

    pid: int
    parent: int
    session: int
    state: str
    born: int
    command: str


def sight(pid: int) -> Sighting | None:
    """Look at a process; None: it is gone."""
    seen = stat_of(pid)
    if seen is None or seen.state in "Xx":
        return None
    state = _STATES.get(seen.state, "alive")
    command = "" if state == "zombie" else command_line(pid)
    return Sighting(pid, seen.parent, seen.session, state, seen.started * _tick(), command or f"[{seen.name}]")


def command_line(pid: int) -> str:
    """Give a process's command line, its words apart by spaces; empty if it has none or is gone."""
    return " ".join(words_of(pid)).rstrip()


def variable_of(pid: int, name: str) -> str:
    """Give a variable of the environment with which a process's program began; empty if it has none or hides it."""
    prefix = os.fsencode(name) + b"="
    for entry in environment_of(pid).split(b"\0"):
        if entry.startswith(prefix):
            return os.fsdecode(entry[len(prefix) :])
    return ""


def has_children() -> bool:
    """Ask the kernel with a single call whether this process has children; zombies count."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def children() -> set[int]:
    """List the children of this process by pid, zombies too; empty where the kernel does not tell."""
    found: set[int] = set()
    with suppress(OSError):
        for task in os.listdir("/proc/self/task"):
            found.update(int(child) for child in read_proc(f"self/task/{task}/children").split())
    return found


@cache
def _tick() -> int:
    return _NANOSECONDS // os.sysconf("SC_CLK_TCK")
