"""What /proc says of a process, for the looks that a run waits for. A process that is gone, or hides, says nothing.

`processes` asks psutil for what users and messages want to know. A walk at each step of a run, a look at all processes
of the machine, and a birth in ticks are read here: that takes a quarter of psutil's time, and loads nothing.
`tree._kernel` reads by itself, since a keeper is made of it alone, and so do the programs that stand by themselves.
"""

from __future__ import annotations

import io
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "ProcessStat",
    "has_memory",
    "iterate_pids",
    "list_threads",
    "read_command_words",
    "read_nanoseconds_since_boot",
    "read_proc",
    "read_stat",
    "read_switches",
    "read_watched_descriptors",
]

_CLOCK_BOOTTIME_ALARM = 9
"""Below a coordinator BOOTTIME is virtual, and births are not: `shim_waits.c` keeps this clock for them."""


def read_nanoseconds_since_boot() -> int:
    """Give the nanoseconds since the machine was started, in virtual time too; `ProcessStat.started` has the ticks."""
    try:
        return time.clock_gettime_ns(_CLOCK_BOOTTIME_ALARM)
    except OSError:  # no coordinator, and a machine that cannot wake itself
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class ProcessStat(NamedTuple):
    """One line of the kernel's about a process.

    Args:
        name: its command's name, as the kernel cuts it.
        state: the kernel's letter: R running, S blocked, T stopped, Z gone.
        parent: the pid of its parent; 0 for who has none.
        group: its process group.
        session: its session.
        started: when it was started, in the kernel's ticks since the machine was.
    """

    name: str
    state: str
    parent: int
    group: int
    session: int
    started: int


def read_proc(file: str) -> bytes:
    """Read a file below /proc whole; empty if there is none, or not for us."""
    with suppress(OSError), io.open(f"/proc/{file}", "rb", buffering=0) as opened:
        return opened.read()
    return b""


def read_stat(pid: int) -> ProcessStat | None:
    """Look at a process; None: there is none of that pid."""
    head, _, tail = read_proc(f"{pid}/stat").rpartition(b")")
    fields = tail.split()
    if not fields:
        return None
    numbers = (int(fields[place]) for place in (1, 2, 3, 19))
    return ProcessStat(os.fsdecode(head.partition(b"(")[2]), fields[0].decode(), *numbers)


def read_command_words(pid: int) -> list[str]:
    """Give the words of a process's command; none for a zombie, or while the kernel has yet to lay them out.

    Who has given itself a title may have left the zero behind the last word away.
    """
    found = read_proc(f"{pid}/cmdline")
    return [os.fsdecode(word) for word in found.removesuffix(b"\0").split(b"\0")] if found else []


def has_memory(pid: int) -> bool:
    """Say whether a process has memory of its own: a zombie has none, nor has a thread of the kernel's."""
    return read_proc(f"{pid}/statm").split()[:1] not in ([], [b"0"])


def list_threads(pid: int) -> list[int]:
    """List the threads of a process; none of one that is gone, also if it goes as it is looked at."""
    with suppress(OSError):
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    return []


def read_switches(thread: int) -> tuple[int, ...]:
    """Give how often a thread that sleeps was taken off its core; empty if it does not sleep, or is gone."""
    fields = dict(line.partition(b":")[::2] for line in read_proc(f"{thread}/status").splitlines())
    if fields.get(b"State", b"").split()[:1] != [b"S"]:
        return ()
    return tuple(int(fields[name]) for name in (b"voluntary_ctxt_switches", b"nonvoluntary_ctxt_switches"))


def read_watched_descriptors(pid: int) -> set[int]:
    """Give the descriptors that the epolls of a process watch."""
    watched: set[int] = set()
    with suppress(OSError):
        for number in os.listdir(f"/proc/{pid}/fdinfo"):
            lines = (line.split() for line in read_proc(f"{pid}/fdinfo/{number}").splitlines())
            watched |= {int(words[1]) for words in lines if words[:1] == [b"tfd:"]}
    return watched


def iterate_pids() -> Iterator[int]:
    """Yield the pids of all processes of the machine."""
    return (int(name) for name in os.listdir("/proc") if name.isdecimal())
