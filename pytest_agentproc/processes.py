"""What psutil says of a process: handles for users, and facts for messages. The one home of psutil; ends nobody.

`procfs` is for the looks that a run waits for: psutil takes 136 microseconds for a snapshot of `tree`, and `procfs` 36.
psutil has no pidfds and no births in ticks either. Its import takes 5 ms or more, so it waits for the first question.
"""

from __future__ import annotations

import os
from contextlib import suppress
from socket import SOCK_DGRAM
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from pytest_agentproc import machine
from pytest_agentproc.procfs import read_nanoseconds_since_boot, read_stat

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Sequence

    import psutil

    Answer = TypeVar("Answer")
    Unknown = TypeVar("Unknown")

__all__ = [
    "Process",
    "describe_processes",
    "list_programs_below",
    "open_process",
    "open_processes",
    "read_command",
    "read_name",
]

Process: TypeAlias = "psutil.Process"
"""psutil's handle of a process, for the annotations of other files."""

_MAX_DESCRIBED_PROCESSES = 10
_LOOK_TIMEOUT_SECONDS = 1.0
"""Seconds of the machine after which no further process is looked at: tables of sockets may be long."""
_MAX_DESCRIPTORS_LOOKED_AT = 512
"""A process with more open files than this is not asked for their names and ports."""
_MAX_SHOWN = 3
"""So many ports, and so many files, are shown of each process."""
_MAX_PATH_CHARS = 120

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_BYTES_PER_MIB = 1 << 20


def open_process(pid: int, started: int | None) -> Process:
    """Give psutil's handle of a process that was seen.

    The handle itself notices when the process has ended and another one has its pid.

    Args:
        pid: the process.
        started: its `ProcessStat.started`; None: it was gone when it was seen.

    Raises:
        psutil.NoSuchProcess: it is gone, or another process has its pid.
    """
    import psutil

    if started is None:
        raise psutil.NoSuchProcess(pid, msg="the process has ended")
    process = psutil.Process(pid)
    # The look comes after the handle: if the birth still fits, the handle is not of a later process with this pid.
    seen = read_stat(pid)
    if seen is None or seen.started != started:
        raise psutil.NoSuchProcess(pid, msg="the process has ended")
    return process


def open_processes(wanted: Iterable[tuple[int, int]]) -> tuple[Process, ...]:
    """Open each process with its `ProcessStat.started` as `open_process` does; those that are gone are left out."""
    found = []
    for pid, started in wanted:
        import psutil

        with suppress(psutil.NoSuchProcess):
            found.append(open_process(pid, started))
    return tuple(found)


def read_command(pid: int) -> Sequence[str]:
    """Give the words of a process's command for a message; none for a zombie, and for a process that is gone."""
    import psutil

    return _ask(lambda: psutil.Process(pid).cmdline(), ())


def read_name(pid: int) -> str:
    """Give the name of a process for a message; empty if it is gone."""
    import psutil

    return _ask(lambda: psutil.Process(pid).name(), "")


def list_programs_below(pid: int, others: Container[int]) -> list[str]:
    """List the commands of the living descendants of a process that have no living child, each with its pid.

    Args:
        pid: the process.
        others: processes that are left out, with all below them.
    """
    import psutil

    programs = []
    for child in _ask(lambda: psutil.Process(pid).children(), ()):
        words = read_command(child.pid)
        if words and child.pid not in others:
            programs += list_programs_below(child.pid, others) or [f"{' '.join(words)} (pid {child.pid})"]
    return programs


def describe_processes(wanted: Iterable[tuple[int, int]], own_folder: str | None = None) -> dict[int, list[str]]:
    """Describe living processes: the age, the memory, the ports on which each listens, and its open files.

    The age is by the clock of the machine, in virtual time too, and says so. Only what is known is said: a process may
    be of another user, and a container may have no tables of sockets.

    Args:
        wanted: each process with its `ProcessStat.started`. The first ten are described, for a second at most.
        own_folder: a folder of the kit; open files in it are not named. None: all are.
    """
    import psutil

    deadline = machine.read_monotonic() + _LOOK_TIMEOUT_SECONDS
    found: dict[int, list[str]] = {}
    for pid, started in wanted:
        if len(found) == _MAX_DESCRIBED_PROCESSES or machine.read_monotonic() > deadline:
            break
        with suppress(psutil.Error, OSError):
            process = open_process(pid, started)
            holdings = _describe_holdings(process, own_folder)
            found[pid] = [_describe_age(started), *_describe_memory(process), *holdings]
    return found


def _ask(question: Callable[[], Answer], unknown: Unknown) -> Answer | Unknown:
    """Ask psutil; a process that is gone or hides, and a /proc that lacks a file, leave the answer unknown."""
    import psutil

    try:
        return question()
    except (psutil.Error, OSError, RuntimeError, ValueError):  # the last two: a file of a strange kernel's
        return unknown


def _describe_age(started: int) -> str:
    # `time.time() - process.create_time()` would be wrong by hours in virtual time: it takes one from each clock.
    seconds = read_nanoseconds_since_boot() / 1e9 - started / _TICKS_PER_SECOND
    return f"{max(0.0, seconds):.1f} s old in real time"


def _describe_memory(process: Process) -> list[str]:
    size = _ask(lambda: process.memory_info().rss, 0) / _BYTES_PER_MIB
    return [f"{size:.1f} MiB of memory"] if size else []


def _describe_holdings(process: Process, own_folder: str | None) -> list[str]:
    if not 0 < _ask(process.num_fds, 0) <= _MAX_DESCRIPTORS_LOOKED_AT:
        return []
    import psutil

    ports = [
        _format_address(*one.laddr) + (" (UDP)" if one.type == SOCK_DGRAM else "")
        for one in _ask(lambda: process.net_connections("inet"), ())
        if one.laddr and (one.status == psutil.CONN_LISTEN or (one.type == SOCK_DGRAM and not any(one.raddr)))
    ]
    files = dict.fromkeys(
        file.path
        for file in _ask(process.open_files, ())
        if own_folder is None or not file.path.startswith(f"{own_folder}/")
    )
    parts = (("listens on", sorted(set(ports))), ("open:", [_shorten(path) for path in files]))
    return [f"{words} {_join(found)}" for words, found in parts if found]


def _format_address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _shorten(path: str) -> str:
    path = "".join(char if char.isprintable() else "?" for char in path)
    return path if len(path) <= _MAX_PATH_CHARS else f"...{path[-_MAX_PATH_CHARS:]}"


def _join(words: list[str]) -> str:
    *shown, last = [*words[:_MAX_SHOWN], f"{len(words) - _MAX_SHOWN} more"] if len(words) > _MAX_SHOWN else words
    return f"{', '.join(shown)} and {last}" if shown else last
