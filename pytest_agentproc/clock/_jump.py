"""The jump rule: who moves next, and when time moves. Pure; hub and model obey it, nothing else decides order.

The numbers are those of the tie rules: time is whole nanoseconds and only this rule moves it (1); a host that has
something to read goes first (3), runs that are ready before runs that begin before due deadlines, each by declaration
(8); otherwise one process is granted: those that ask, in spawn order, then the earliest `until`, ties in spawn order,
where spawn order is a path of child indices and never a pid (4); a host deadline fires only when nobody asks and nobody
is due at its instant (5).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from heapq import heappop, heappush
from typing import Any

__all__ = ["Host", "JumpRule", "Move", "Path"]

Path = tuple[int, ...]


class Move(Enum):
    """What happens next."""

    LOOK = "a run looks at what came"
    START = "a run begins"
    GRANT = "a process goes on"
    FIRE = "a run's deadline is due"
    STUCK = "nobody can move"


@dataclass(slots=True)
class Host:
    """What the runs of the host want, by their numbers in order of declaration.

    Args:
        ready: the first run that has something to read.
        pending: the first run that has yet to begin.
        deadline: the earliest deadline, as (instant, number).
    """

    ready: int | None = None
    pending: int | None = None
    deadline: tuple[int, int] | None = None


class JumpRule:
    """Keep who is parked until when, and decide who moves next."""

    def __init__(self) -> None:
        self.now = 0
        self._until: dict[Path, int | None] = {}
        self._dues: list[tuple[int, Path]] = []
        self._askers: set[Path] = set()

    def park(self, path: Path, until: int | None) -> None:
        """Take a process for blocked until an instant (None: not by time alone; one that has passed: now)."""
        self._askers.discard(path)
        if until is not None:
            until = max(until, self.now)
            heappush(self._dues, (until, path))
        self._until[path] = until

    def ask(self, path: Path) -> None:
        """Note that a parked process wants to go on at once; this sticks until it is granted."""
        if path in self._until:
            self._askers.add(path)

    def drop(self, path: Path) -> None:
        """Forget a process: it is gone, stopped, or has been granted."""
        self._until.pop(path, None)
        self._askers.discard(path)

    def next(self, host: Host) -> tuple[Move, Any]:
        """Decide; time moves to the instant of what was decided.

        Returns:
            The move, and the number of the run or the path of the process that it is about.
        """
        if (first := self.host_first(host)) is not None:
            return first
        deadline = host.deadline
        if (process := self.first_process(deadline)) is not None:
            self.now, path = process
            return Move.GRANT, path
        if deadline is not None:
            self.now = max(self.now, deadline[0])
            return Move.FIRE, deadline[1]
        return Move.STUCK, None

    def asks(self, path: Path) -> bool:
        """Say whether a process asked to go on."""
        return path in self._askers

    def host_first(self, host: Host) -> tuple[Move, int] | None:
        """Rules 3 and 8."""
        if host.ready is not None:
            return Move.LOOK, host.ready
        if host.pending is not None:
            return Move.START, host.pending
        return None

    def first_process(self, deadline: tuple[int, int] | None) -> tuple[int, Path] | None:
        """Say which process goes on if the host has no more to do than this deadline, and when; time does not move."""
        if (asker := self.first_asker()) is not None:
            return self.now, asker
        due = self.first_due()
        if due is not None and (deadline is None or self.agent_wins(due[0], deadline[0])):
            return max(self.now, due[0]), due[1]
        return None

    def first_asker(self) -> Path | None:
        """Rule 4, its first half."""
        return min(self._askers) if self._askers else None

    def first_due(self) -> tuple[int, Path] | None:
        """Rule 4, its second half: the earliest instant, ties in spawn order."""
        dues, until = self._dues, self._until
        while dues:
            due = dues[0]
            if until.get(due[1]) == due[0]:
                return due
            heappop(dues)
        return None

    def agent_wins(self, until: int, deadline: int) -> bool:
        """Rule 5."""
        return until <= max(deadline, self.now)
