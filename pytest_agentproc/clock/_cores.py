"""Where a child comes to life: on another core than its host, if one is idle. Owns affinities; knows no hub.

Left alone, a child begins on its host's core, and the host, which wakes when the child has become another program, is
moved to the next one: it leaves its caches behind, and the child's start fills them. This is for fakes alone, which do
not ask how many cores they have: the host has its own back before it goes on, the fake when it has said hello.
"""

from __future__ import annotations

import os
from collections import deque
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["keep_apart"]

_PROCESSOR = 36
"""Where in `stat`, from the state on, the kernel says on which core a thread ran last."""

_LATELY = 5
"""Starts in a row that count: one may fall into the end of the agent before; two workers are hardly ever still."""


@contextmanager
def keep_apart(*, wanted: bool = True) -> Iterator[Callable[[int], bool]]:
    """Keep this thread on its core until it has called what this gives with the pid of the child that it started.

    The child is kept on the others until the end of the block; the answer is whether it is. Nothing is done where there
    is one core, or no start of late found all but its own idle: others need them.

    Args:
        wanted: False: nothing is done at all.
    """
    if not wanted:
        yield _leave
        return
    cores = os.sched_getaffinity(0)
    others = cores - {_core()} if len(cores) > 1 and _look_for_idle() else cores
    born = 0

    def part(pid: int) -> bool:
        nonlocal born
        _place(0, cores)
        born = pid
        _move(pid, cores - others, others)
        return True

    if others == cores:
        yield _leave
        return
    try:
        _place(0, cores - others)
        yield part
    finally:
        if born:
            _move(born, others, cores)
        else:
            _place(0, cores)


def _leave(_pid: int) -> bool:
    """Do nothing with a child."""
    return False


def _place(pid: int, cores: set[int]) -> None:
    with suppress(OSError):
        os.sched_setaffinity(pid, cores)


def _move(pid: int, before: set[int], after: set[int]) -> None:
    """Place a child that is where it was put last; one that has chosen for itself stays there."""
    with suppress(OSError):
        if os.sched_getaffinity(pid) == before:
            os.sched_setaffinity(pid, after)


def _core() -> int:
    """Give the core on which this thread runs."""
    return int(_read("/proc/thread-self/stat").rpartition(b")")[2].split()[_PROCESSOR])


_last_idle: deque[bool] = deque(maxlen=_LATELY)


def _look_for_idle() -> bool:
    """Say whether nobody but this thread ran or wanted to, on the whole machine, now or at one of the last starts."""
    _last_idle.append(_read("/proc/loadavg").split()[3].startswith(b"1/"))
    return any(_last_idle)


def _read(path: str) -> bytes:
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(number, 4096)
    finally:
        os.close(number)
