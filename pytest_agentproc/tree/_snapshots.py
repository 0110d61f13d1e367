"""One process as /proc shows it at one moment, and whether /proc shows this process's own namespace.

A container without a /proc of its own shows none, or that of its host. There a pid names another process: a tree cannot
be walked, and an empty list of children proves nothing.
"""

from __future__ import annotations

import os
from functools import cache
from typing import NamedTuple

from pytest_agentproc.errors import UsageError
from pytest_agentproc.procfs import read_command_words, read_stat
from pytest_agentproc.tree._kernel import read_file
from pytest_agentproc.tree._walk import read_environment

_NAMESPACE_PIDS_LINE_PREFIX = b"NSpid:"
_MOUNT_PROC_REMEDY = (
    "mount one in this pid namespace: `mount -t proc proc /proc`, `bwrap --proc /proc`, `unshare --mount-proc`"
)


def require_own_proc(folder: str = "/proc") -> None:
    """Refuse to start an agent if its tree cannot be seen.

    Args:
        folder: where the file system of processes is mounted.

    Raises:
        UsageError: there is none, or it shows the processes of another pid namespace.
    """
    if not os.path.lexists(f"{folder}/self"):
        raise UsageError(f"{folder} shows no processes, but a tree is found there", _MOUNT_PROC_REMEDY)
    try:
        shown = os.readlink(f"{folder}/self")
    except OSError:
        shown = "no process"
    # Without this check a run in a foreign namespace listed no descendants, and its tree check passed every test.
    if shown != str(os.getpid()) or _is_proc_of_outer_namespace(folder):
        raise UsageError(
            f"{folder} shows another pid namespace: process {os.getpid()} is {shown} there", _MOUNT_PROC_REMEDY
        )


def _is_proc_of_outer_namespace(folder: str) -> bool:
    """Say whether a process has a further pid here beside the pid that is shown."""
    try:
        lines = read_file(f"{folder}/self/status").splitlines()
    except OSError:  # no descriptor is left: the spawn will report that
        return False
    return any(len(line.split()) > 2 for line in lines if line.startswith(_NAMESPACE_PIDS_LINE_PREFIX))  # noqa: PLR2004  # a name and a pid


_STATE_NAME_BY_LETTER = {"Z": "zombie", "T": "stopped", "t": "stopped"}
_NANOSECONDS_PER_SECOND = 1_000_000_000


class ProcessState(NamedTuple):
    """One look at a process.

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

    @property
    def started(self) -> int:
        """Its birth as `ProcessStat.started` counts."""
        return self.born // _compute_tick_nanoseconds()


def take_snapshot(pid: int) -> ProcessState | None:
    """Look at a process; None: it has disappeared."""
    seen = read_stat(pid)
    if seen is None or seen.state in "Xx":
        return None
    state = _STATE_NAME_BY_LETTER.get(seen.state, "alive")
    command = "" if state == "zombie" else read_command_line(pid)
    return ProcessState(
        pid, seen.parent, seen.session, state, seen.started * _compute_tick_nanoseconds(), command or f"[{seen.name}]"
    )


def read_command_line(pid: int) -> str:
    """Give a process's command line, its words separated by spaces; empty if it has none or has disappeared."""
    return " ".join(read_command_words(pid)).rstrip()


def read_environment_variable(pid: int, name: str) -> str:
    """Give a variable of a process's initial environment; empty if it has none or hides it."""
    prefix = os.fsencode(name) + b"="
    for entry in read_environment(pid).split(b"\0"):
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


@cache
def _compute_tick_nanoseconds() -> int:
    return _NANOSECONDS_PER_SECOND // os.sysconf("SC_CLK_TCK")
