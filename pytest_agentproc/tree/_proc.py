"""Whether /proc shows this process's own pid namespace. Refuses to supervise with any other; reads nothing else.

A container without a /proc of its own shows none, or that of its host. There a pid names another process: no tree can
be walked, and an empty list of children proves nothing.
"""

from __future__ import annotations

import os

from pytest_agentproc.errors import UsageError
from pytest_agentproc.tree._kernel import read_file

__all__ = ["check_proc"]

_NAMES = b"NSpid:"
_REMEDY = "mount one in this pid namespace: `mount -t proc proc /proc`, `bwrap --proc /proc`, `unshare --mount-proc`"


def check_proc(folder: str = "/proc") -> None:
    """Refuse to start an agent where its tree cannot be seen.

    Args:
        folder: where the file system of processes is mounted.

    Raises:
        UsageError: there is none, or it shows the processes of another pid namespace.
    """
    if not os.path.lexists(f"{folder}/self"):
        raise UsageError(f"{folder} shows no processes, but a tree is found there", _REMEDY)
    try:
        shown = os.readlink(f"{folder}/self")
    except OSError:
        shown = "no process"
    if shown != str(os.getpid()) or _is_outer(folder):
        raise UsageError(f"{folder} shows another pid namespace: process {os.getpid()} is {shown} there", _REMEDY)


def _is_outer(folder: str) -> bool:
    """Say whether a process has a further pid here beside the one that is shown."""
    try:
        lines = read_file(f"{folder}/self/status").splitlines()
    except OSError:  # no descriptor is left: the spawn will report that
        return False
    return any(len(line.split()) > 2 for line in lines if line.startswith(_NAMES))  # noqa: PLR2004  # a name and a pid
