"""Whose process a pid is, as far as /proc tells. Owns the reading and the judgement; signals nobody, records nothing.

A wrong accusation is worse than a miss: a bystander is who certainly has nothing to do with the run.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from pytest_agentproc.procfs import every_pid, stat_of, words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_agentproc.procfs import Stat

__all__ = ["PLAYER", "command_line_of", "how_it_lives", "is_bystander", "members_of", "plays", "ticks"]

PLAYER = "-ISc"
"""How the option begins with which a fake's interpreter is called; nobody else's is."""

_TICKS = os.sysconf("SC_CLK_TCK")


_GONE = "ZX"


def ticks() -> int:
    """Give the present instant as `Stat.started` counts."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) * _TICKS // 1_000_000_000


def how_it_lives(pid: int) -> str:
    """Say of a process that lives whether it is `alive` or `stopped`."""
    seen = stat_of(pid)
    return "stopped" if seen is not None and seen.state in "Tt" else "alive"


def command_line_of(pid: int, launchers: set[str]) -> list[str]:
    """Give the words of a fake's command: its name, then its arguments; empty once it is gone.

    Args:
        pid: who.
        launchers: the executables that are fakes, one of which it is.
    """
    words = words_of(pid)
    start = next((index for index, word in enumerate(words) if os.path.realpath(word) in launchers), 0)
    return [os.path.basename(word) if index == 0 else word for index, word in enumerate(words[start:])]


def plays(command: str, launcher: str) -> bool:
    """Say whether a command is that of a fake, or of a descendant of one: who is around an agent names it as well.

    Args:
        command: the words of a process, apart by blanks.
        launcher: what the fake is started by, or the folder of all that are.
    """
    return command.startswith(launcher) or (f" {PLAYER}" in command and launcher in command)


def members_of(group: int) -> Iterator[int]:
    """Yield who lives of a process group, by a look at every process of the machine.

    When somebody's zombie is reaped whom the run has lost is up to whoever has him now, and to the machine.
    """
    for pid in every_pid():
        seen = stat_of(pid)
        if seen is not None and seen.group == group and seen.state not in _GONE:
            yield pid


def is_bystander(pid: int, begun: int, me: int, look: Callable[[int], Stat | None] = stat_of) -> bool:
    """Say whether a process certainly has nothing to do with a run.

    That is who was there before the run began, and the child of a stranger who was. Who descends from this process, or
    has lost its parent, so that an ancestor of this process has it now, may belong to the run.

    Args:
        pid: who.
        begun: the tick at which the run began.
        me: the pid of the process in which the run is.
        look: how to look at a process.
    """
    seen = None if pid == me else look(pid)
    if seen is None or seen.started < begun:
        return seen is not None
    above = _ancestors(me, look)
    is_below_older = False
    while seen is not None and seen.parent != me:
        if seen.parent in above:
            return is_below_older
        seen = look(seen.parent)
        is_below_older = is_below_older or (seen is not None and seen.started < begun)
    return False


def _ancestors(pid: int, look: Callable[[int], Stat | None]) -> set[int]:
    above = {0, 1}
    seen = look(pid)
    while seen is not None and seen.parent not in above:
        above.add(seen.parent)
        seen = look(seen.parent)
    return above
