"""Supervise one agent after the other while only a given number of descriptors is free, and report each result.

Usage: descriptors.py CONTAINMENT KIND NUMBERS..., where KIND is run, cancel, session or crowd. One line of JSON for
each number of free descriptors: the number, the outcome, its error, descriptors kept, and commands of processes left.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from pytest_agentproc.supervisor import Policy, open_session, run_once

if TYPE_CHECKING:
    from collections.abc import Iterator

_LIMIT = 128
_MARK = f"attack-{os.getpid()}"
_CHILDREN = {"crowd": 150}


def _build_agent_command(kind: str) -> list[str]:
    """Give an agent with many children, none of which obeys TERM: half of them lead sessions of their own.

    It prints a line for each, so that it is silent, and ended, only when all are there.
    """
    count = _CHILDREN.get(kind, 8)
    start = "for i in $(seq $0); do sleep 60 & [ $((i % 2)) = 0 ] || setsid sleep 60 & echo; done"
    return ["bash", "-c", f"trap '' TERM; {start}; echo hi; wait", str(count)]


async def _supervise_agent(kind: str, containment: str) -> tuple[str, str]:
    environment = {**os.environ, "ATTACK": _MARK}
    limits = {"kill_grace": 0.05, "containment": containment}
    if kind == "session":
        policy = Policy(handshake_timeout=0.15, close_grace=0.05, **limits)  # type: ignore[arg-type]
        async with open_session(_build_agent_command(kind), dialect="pi", policy=policy, env=environment) as session:
            turn = await session.prompt("hi")
            return turn.outcome.value, turn.error
    if kind == "cancel":
        result = None
        with anyio.move_on_after(0.15):
            policy = Policy(**limits)  # type: ignore[arg-type]
            result = await run_once(_build_agent_command(kind), policy=policy, env=environment)
        return ("cancelled", "") if result is None else (result.outcome.value, result.error)
    policy = Policy(inactivity_timeout=0.15, **limits)  # type: ignore[arg-type]
    result = await run_once(_build_agent_command(kind), policy=policy, env=environment)
    return result.outcome.value, result.error


@contextmanager
def leave_descriptors_free(count: int, limit: int = _LIMIT) -> Iterator[None]:
    """Leave this number of descriptors free, of so many that the process may open, while the block runs."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, before[1]))
    taken: list[int] = []
    try:
        while len(taken) < limit:
            taken.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    while taken[-1:] and count:
        os.close(taken.pop())
        count -= 1
    try:
        yield
    finally:
        for number in taken:
            os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def _count_open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _end_leftover_processes() -> list[str]:
    """Give the commands of our agents and their children, zombies too; and end them, so that each trial is alone."""
    left = []
    for folder in Path("/proc").iterdir():
        try:
            is_ours = folder.name.isdecimal() and _MARK.encode() in (folder / "environ").read_bytes()
            if is_ours and int(folder.name) != os.getpid():
                left.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
                os.kill(int(folder.name), 9)
        except OSError:
            continue
    try:
        while True:
            pid, _ = os.waitpid(-1, os.WNOHANG)
            left.append(f"a child of ours, pid {pid}")
            if not pid:
                os.waitpid(-1, 0)
    except ChildProcessError:
        return left


async def _supervise_with_few_descriptors(kind: str, containment: str, count: int) -> tuple[str, str]:
    with leave_descriptors_free(count):
        try:
            return await _supervise_agent(kind, containment)
        except Exception as error:  # noqa: BLE001  # what is raised is what this looks for
            return "raised", repr(error)


def main() -> None:
    """Make the trials; a first one, with descriptors enough, loads whatever is loaded late."""
    containment, kind, *numbers = sys.argv[1:]
    anyio.run(_supervise_agent, kind, containment)
    _end_leftover_processes()
    for count in map(int, numbers):
        before = _count_open_descriptors()
        outcome, error = anyio.run(_supervise_with_few_descriptors, kind, containment, count)
        kept = _count_open_descriptors() - before
        line = {"free": count, "outcome": outcome, "error": error, "kept": kept, "left": _end_leftover_processes()}
        sys.stdout.write(f"{json.dumps(line)}\n")


if __name__ == "__main__":
    main()
