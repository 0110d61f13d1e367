"""Supervise agents in a program in which other code reaps, and report each outcome as one line of JSON.

Usage: reaping.py HOW CONTAINMENT. HOW is `nobody` (no other code reaps), handler (a handler of SIGCHLD reaps every
child) or ignored. The last line counts the descriptors that were kept, and the zombies.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import anyio

from pytest_agentproc.supervisor import Policy, run_once

COMMANDS = ("sleep 0.1; exit 3", "sleep 50 & sleep 51 & sleep 52")


def reap_all(*_: object) -> None:
    """Reap every child that has ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


async def _supervise_command(command: str, containment: str) -> list[object]:
    policy = Policy(inactivity_timeout=0.5, kill_grace=0.3, containment=containment)
    result = await run_once(["bash", "-c", command], policy=policy)
    words = result.error.partition(" for ")[0].partition(",")[0]
    return [result.outcome.value, result.exit_code, result.agent_status, words, *result.warnings]


def _count_zombies() -> int:
    return sum(_is_zombie(file) for file in Path("/proc").glob("[0-9]*/stat"))


def _is_zombie(file: Path) -> bool:
    try:
        state, parent = file.read_text().rpartition(")")[2].split()[:2]
    except OSError:
        return False
    return state == "Z" and int(parent) == os.getpid()


def main() -> None:
    """Make the runs."""
    how, containment = sys.argv[1:]
    if how != "nobody":
        signal.signal(signal.SIGCHLD, signal.SIG_IGN if how == "ignored" else reap_all)
    found = [anyio.run(_supervise_command, command, containment) for command in (*COMMANDS, *COMMANDS)]
    before = len(list(Path("/proc/self/fd").iterdir()))
    anyio.run(_supervise_command, COMMANDS[0], containment)
    kept = len(list(Path("/proc/self/fd").iterdir())) - before
    sys.stdout.write(json.dumps({"runs": found[2:], "kept": kept, "zombies": _count_zombies()}))


if __name__ == "__main__":
    main()
