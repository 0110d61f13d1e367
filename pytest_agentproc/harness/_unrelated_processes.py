"""The relation of a pid to the run, as far as /proc shows it. Owns the reading and the judgement; signals no process.

A wrong accusation is worse than a miss: an unrelated process is one without any possible link to the run.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pytest_agentproc.processes import describe_processes, read_command
from pytest_agentproc.procfs import iterate_pids, read_nanoseconds_since_boot, read_stat

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from pytest_agentproc.procfs import ProcessStat


FAKE_INTERPRETER_OPTION = "-ISc"
"""The beginning of the option that only a fake's interpreter has."""

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


_DEAD_STATE_LETTERS = "ZX"


def read_boot_ticks() -> int:
    """Give the present instant as `ProcessStat.started` counts."""
    return read_nanoseconds_since_boot() * _TICKS_PER_SECOND // 1_000_000_000


def read_alive_or_stopped(pid: int) -> str:
    """Say of a process that lives whether it is `alive` or `stopped`."""
    seen = read_stat(pid)
    return "stopped" if seen is not None and seen.state in "Tt" else "alive"


def read_fake_command(pid: int, launchers: set[str]) -> list[str]:
    """Give the words of a fake's command: its name, then its arguments; empty once it has ended.

    Args:
        pid: the fake's process.
        launchers: the executables that are fakes, one of which it is.
    """
    words = read_command(pid)
    start = next((index for index, word in enumerate(words) if os.path.realpath(word) in launchers), 0)
    return [os.path.basename(word) if index == 0 else word for index, word in enumerate(words[start:])]


def describe_left_processes(pids: Collection[int], own_folder: str | None = None) -> dict[int, list[str]]:
    """Describe processes that were left as `describe_processes` does; those that have ended are left out."""
    if not pids:
        return {}
    seen = ((pid, stat.started) for pid in pids if (stat := read_stat(pid)) is not None)
    return describe_processes(seen, own_folder)


def is_fake_command(command: str, launcher: str) -> bool:
    """Say whether a command is that of a fake, of its descendant, or of a program around it that names it as well.

    Args:
        command: the words of a process, separated by blanks.
        launcher: the launcher of the fake, or the folder of all launchers.
    """
    return command.startswith(launcher) or (f" {FAKE_INTERPRETER_OPTION}" in command and launcher in command)


def iterate_group_members(group: int) -> Iterator[int]:
    """Yield the living members of a process group, by a look at every process of the machine.

    A lost process has another parent now. When its zombie is reaped depends on that parent, and on the machine.
    """
    for pid in iterate_pids():
        seen = read_stat(pid)
        if seen is not None and seen.group == group and seen.state not in _DEAD_STATE_LETTERS:
            yield pid


def is_unrelated_process(
    pid: int, run_start: int, me: int, look: Callable[[int], ProcessStat | None] = read_stat
) -> bool:
    """Say whether a process certainly has nothing to do with a run.

    Such a process was there before the run began, or is the child of an unrelated process that was. A descendant of
    this process may belong to the run. So may an orphan that an ancestor of this process has adopted.

    Args:
        pid: the process.
        run_start: the tick at which the run began.
        me: the pid of the process in which the run is.
        look: how to look at a process.
    """
    seen = None if pid == me else look(pid)
    if seen is None or seen.started < run_start:
        return seen is not None
    above = _find_ancestors(me, look)
    is_below_older = False
    while seen is not None and seen.parent != me:
        if seen.parent in above:
            return is_below_older
        seen = look(seen.parent)
        is_below_older = is_below_older or (seen is not None and seen.started < run_start)
    return False


def _find_ancestors(pid: int, look: Callable[[int], ProcessStat | None]) -> set[int]:
    above = {0, 1}
    seen = look(pid)
    while seen is not None and seen.parent not in above:
        above.add(seen.parent)
        seen = look(seen.parent)
    return above
