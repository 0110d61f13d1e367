"""Finds a supervisor that spins below a coordinator, seen from outside. Owns the looks at that tree; ends nobody.

A spin uses a core at one virtual instant and gets nothing for it. To be on the safe side all of this must be true:

- one process alone runs, and no other one is about to run;
- no byte came into it since virtual time moved last;
- it has used a core for the time of its kind. It asked for bytes `_SPIN_READS` times. Or it wrote no byte either, and a
  part of that time the kernel worked for it, for a socket for example. Or it wrote no byte, and only computed.

What only computes may come to an end, so that takes longest. A machine with a load gives a core later, but changes none
of these: the time is that of the process. A machine that is slower by a factor of ten has time, too.
"""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from pytest_agentproc.procfs import list_threads, read_proc

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_SPIN_CPU_SECONDS = 4
_SPIN_READS = 20_000
_CALLS_CPU_SECONDS = 40
_LEAST_SHARE_OF_CALLS = 0.1
_MOST_PAGE_FAULTS = 2_000
"""The kernel gives a process memory in its own time. A loop that gets as much as this is at work."""
_COMPUTING_CPU_SECONDS = 120
_NOISE_TICKS = 2
"""A blocked process may get so many ticks of the kernel's work."""
_PAGE_NAME = "agentproc-clock"
_STATES_OF_REST = (b"S", b"I", b"T", b"t", b"Z", b"X")


class SpinKind(Enum):
    """What a supervisor does that spins, in a clause."""

    READS = "reads again and again at one instant, and gets nothing"
    CALLS = "calls the kernel again and again at one instant, and gets nothing"
    COMPUTES = "uses a core at one instant, and waits for nothing"


class SpinFinding(NamedTuple):
    """The process that spins, and how."""

    pid: int
    kind: SpinKind


class ProcessCounts(NamedTuple):
    """What the kernel has counted of a process since its start: ticks of a core, calls, page faults, bytes."""

    ticks: int
    kernel_ticks: int
    reads: int
    faults: int
    bytes_read: int
    bytes_written: int
    is_running: bool


class SpinDetector:
    """Compares looks at all processes below a coordinator.

    Args:
        coordinator: the pid of the process that was started as the coordinator.
    """

    def __init__(self, coordinator: int) -> None:
        self._coordinator = coordinator
        self._page = -1
        self._suspect = 0
        self._instant = b""
        self._first: dict[int, ProcessCounts] = {}

    def find_spinner(self) -> SpinFinding | None:
        """Look again, and give the process that spins; None: none does, or nobody can tell."""
        instant, now = self._read_instant(), self._look_at_processes()
        running = [pid for pid, process in now.items() if process.is_running]
        if len(running) != 1 or not instant:
            self._suspect = 0
            return None
        spinner = running[0]
        if self._suspect != spinner or self._instant != instant or not self._is_unchanged(now, spinner):
            self._suspect, self._instant, self._first = spinner, instant, now
            return None
        kind = find_spin_kind(self._first[spinner], now[spinner])
        return None if kind is None else SpinFinding(spinner, kind)

    def close(self) -> None:
        """Let the page go."""
        if self._page >= 0:
            os.close(self._page)
        self._page = -1

    def _is_unchanged(self, now: dict[int, ProcessCounts], spinner: int) -> bool:
        """Say whether the same processes are there, no byte came into the suspect, and the others rested."""
        return now.keys() == self._first.keys() and all(
            process.bytes_read == self._first[pid].bytes_read
            if pid == spinner
            else process.ticks - self._first[pid].ticks <= _NOISE_TICKS
            for pid, process in now.items()
        )

    def _read_instant(self) -> bytes:
        """Give the virtual instant, as it is in the coordinator's page; nothing before there is one."""
        if self._page < 0:
            folder = Path(f"/proc/{self._coordinator}/fd")
            try:
                pages = [file for file in folder.iterdir() if _PAGE_NAME in str(file.readlink())]
                self._page = os.open(pages[0], os.O_RDONLY | os.O_CLOEXEC) if pages else -1
            except OSError:
                return b""
        return os.pread(self._page, 8, 0) if self._page >= 0 else b""

    def _look_at_processes(self) -> dict[int, ProcessCounts]:
        """Look at all processes below, without the two that are the coordinator."""
        waiting = [pid for child in _list_children(self._coordinator) for pid in _list_children(child)]
        found: dict[int, ProcessCounts] = {}
        while waiting:
            pid = waiting.pop()
            process = _look_at_process(pid)
            if process is not None:
                found[pid] = process
            waiting += _list_children(pid)
        return found


def find_spin_kind(first: ProcessCounts, now: ProcessCounts) -> SpinKind | None:
    """Say how a process spins that got nothing between two looks; None: it has not run for long enough to tell."""
    ticks = now.ticks - first.ticks
    if ticks >= _SPIN_CPU_SECONDS * TICKS_PER_SECOND and now.reads - first.reads >= _SPIN_READS:
        return SpinKind.READS
    if now.bytes_written != first.bytes_written:
        return None
    is_calling = now.kernel_ticks - first.kernel_ticks >= _LEAST_SHARE_OF_CALLS * ticks
    is_fed = now.faults - first.faults > _MOST_PAGE_FAULTS
    if ticks >= _CALLS_CPU_SECONDS * TICKS_PER_SECOND and is_calling and not is_fed:
        return SpinKind.CALLS
    return SpinKind.COMPUTES if ticks >= _COMPUTING_CPU_SECONDS * TICKS_PER_SECOND else None


def _list_children(pid: int) -> list[int]:
    return [int(child) for tid in list_threads(pid) for child in read_proc(f"{pid}/task/{tid}/children").split()]


def _look_at_process(pid: int) -> ProcessCounts | None:
    """Look at one process; None: it is gone, or the kernel does not say what it reads."""
    lines = dict(line.split(b": ", 1) for line in read_proc(f"{pid}/io").splitlines())
    stat = _split_stat(f"{pid}/stat")
    if not stat:
        return None
    states = [_split_stat(f"{pid}/task/{tid}/stat")[:1] for tid in list_threads(pid)]
    return ProcessCounts(
        int(stat[11]) + int(stat[12]),
        int(stat[12]),
        int(lines.get(b"syscr", 0)),
        int(stat[7]) + int(stat[9]),
        int(lines.get(b"rchar", 0)),
        int(lines.get(b"wchar", 0)),
        any(state and state[0] not in _STATES_OF_REST for state in states),
    )


def _split_stat(file: str) -> list[bytes]:
    return read_proc(file).rpartition(b")")[2].split()
