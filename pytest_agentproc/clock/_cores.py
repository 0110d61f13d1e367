"""Where a child comes to life: on another core than its host, if one is idle. Owns affinities; knows no hub.

Left alone, a child begins on its host's core, and the host, which wakes when the child has become another program, is
moved to the next one: it leaves its caches behind, and the child's start fills them. Whoever is watched does not see
this: the host has its cores back before it goes on, the child before it does anything.
"""

from __future__ import annotations

import os
from collections import deque
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["apart"]

_PROCESSOR = 36
"""Where in `stat`, from the state on, the kernel says on which core a thread ran last."""

_LATELY = 5
"""Starts in a row that count: one may fall into the end of the agent before; two workers are hardly ever still."""


@contextmanager
def apart() -> Iterator[Callable[[int], bool]]:
    """Keep this thread on its core until it has called what this gives with the pid of the child that it started.

    The child is kept on the others until the end of the block; the answer is whether it is. Nothing is done where there
    is one core, or no start of late found all but its own idle: others need them.
    """
    cores = os.sched_getaffinity(0)
    others = cores - {_core()} if len(cores) > 1 and _are_idle() else cores
    born = 0

    def part(pid: int) -> bool:
        nonlocal born
        born = pid
        _place(0, cores)
        _place(pid, others)
        return True

    if others == cores:
        yield _leave
        return
    _place(0, cores - others)
    try:
        yield part
    finally:
        if not born:
            _place(0, cores)
        elif _place_of(born) == others:  # else it has chosen for itself meanwhile
            _place(born, cores)


def _leave(_pid: int) -> bool:
    """Do nothing with a child."""
    return False


def _place(pid: int, cores: set[int]) -> None:
    with suppress(OSError):
        os.sched_setaffinity(pid, cores)


def _place_of(pid: int) -> set[int]:
    with suppress(OSError):
        return os.sched_getaffinity(pid)
    return set()


def _core() -> int:
    """Give the core on which this thread runs."""
    return int(_read("/proc/thread-self/stat").rpartition(b")")[2].split()[_PROCESSOR])


_last_idle = deque((False,), maxlen=_LATELY)


def _are_idle() -> bool:
    """Say whether nobody but this thread ran or wanted to, on the whole machine, now or at one of the last starts."""
    _last_idle.append(_read("/proc/loadavg").split()[3].startswith(b"1/"))
    return any(_last_idle)


def _read(path: str) -> bytes:
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(number, 4096)
    finally:
        os.close(number)
