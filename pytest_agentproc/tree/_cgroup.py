"""A cgroup of one tree, where this process may make one: it kills faster than anything else. Never required.

Owns the folder's name and its end; the starter of the tree makes it, and each process enters it by itself.
"""

from __future__ import annotations

import os
import secrets
import time

from pytest_agentproc.tree._kernel import attempt, write_file

_PATIENCE = 0.2
"""Real seconds that the dying may take to leave a cgroup."""


def new_cgroup() -> str:
    """Name a folder in which a cgroup of version 2 can be made; "" if there is none that we may write to."""
    # The mount may show a part of the hierarchy only, so the path of this process is taken below the mount's root. In
    # most containers it is read-only: then there is no cgroup, and nothing depends on it.
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            own = next(line[3:].rstrip("\n") for line in file if line.startswith("0::"))
        with open("/proc/self/mountinfo", encoding="utf-8") as file:
            mounts = [line.split() for line in file if " - cgroup2 " in line]
    except (OSError, StopIteration):
        return ""
    for mount in mounts:
        root, point = mount[3], mount[4]
        if ".." not in own and (own == root or own.startswith(root.rstrip("/") + "/")):
            folder = os.path.normpath(f"{point}/{own[len(root) :].lstrip('/')}")
            if os.access(folder, os.W_OK) and os.access(f"{folder}/cgroup.procs", os.W_OK):
                return f"{folder}/agentproc-{os.getpid()}-{secrets.token_hex(4)}"
    return ""


def end_cgroup(folder: str) -> None:
    """Kill all members of a cgroup and remove it, if it is there."""
    if not folder or not os.path.isdir(folder):
        return
    # One write kills every member at once, forks in progress too. That is why it is tried although the pidfds would do.
    attempt(write_file, f"{folder}/cgroup.kill", b"1")
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        try:
            os.rmdir(folder)
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.002)
        else:
            return
