"""The jump rule: which side moves next, and when time moves. Pure: nothing else decides the order of hub and model.

The numbers are those of the tie rules.

    1   Time is whole nanoseconds, and only this rule moves it.
    3   A host that has something to read goes first.
    4   Otherwise one process is granted: first the processes that ask, in spawn order; then the earliest `until`, ties
        in spawn order. Spawn order is a path of child indices and never a pid.
    5   A host deadline fires only when no process asks and none is due at its instant.
    8   Runs that are ready go before runs that begin, and these before due deadlines; each group in order of
        declaration.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from heapq import heappop, heappush
from typing import Any

SpawnPath = tuple[int, ...]


class NextMove(Enum):
    """What happens next."""

    LOOK = "a run looks at what came"
    START = "a run begins"
    GRANT = "a process goes on"
    FIRE = "a run's deadline is due"
    STUCK = "nobody can move"


@dataclass(slots=True)
class HostState:
    """The wishes of the host's runs, by their numbers in order of declaration.

    Args:
        ready: the first run that has something to read.
        pending: the first run that has yet to begin.
        deadline: the earliest deadline, as (instant, number).
    """

    ready: int | None = None
    pending: int | None = None
    deadline: tuple[int, int] | None = None


class JumpRule:
    """Keep the instants until which processes are parked, and decide which side moves next."""

    def __init__(self) -> None:
        self.now = 0
        self._until: dict[SpawnPath, int | None] = {}
        self._dues: list[tuple[int, SpawnPath]] = []
        self._askers: set[SpawnPath] = set()

    def park_process(self, path: SpawnPath, until: int | None) -> None:
        """Treat a process as blocked until an instant. None: until an event; a past instant: until now."""
        # An instant in the past would make the heap's order depend on the time of parking: clamped, all of them tie at
        # now.
        self._askers.discard(path)
        if until is not None:
            until = max(until, self.now)
            heappush(self._dues, (until, path))
        self._until[path] = until

    def request_grant(self, path: SpawnPath) -> None:
        """Note that a parked process wants a grant at once; this sticks until it is granted."""
        # A process that is not parked runs already, and a dead one must not be granted. The wish is sticky: an early
        # waker that had to let the host look first would otherwise sleep on until its deadline.
        if path in self._until:
            self._askers.add(path)

    def drop_process(self, path: SpawnPath) -> None:
        """Forget a process: it is dead, stopped, or has been granted."""
        self._until.pop(path, None)
        self._askers.discard(path)

    def choose_next_move(self, host: HostState) -> tuple[NextMove, Any]:
        """Decide; time moves to the instant of what was decided.

        Returns:
            The move, and the number of the run or the path of the process that it is about.
        """
        if (first := self.find_host_move(host)) is not None:
            return first
        deadline = host.deadline
        if (process := self.find_first_process(deadline)) is not None:
            self.now, path = process
            return NextMove.GRANT, path
        # The deadline may lie in the past after a blocked loop. Time never moves backwards.
        if deadline is not None:
            self.now = max(self.now, deadline[0])
            return NextMove.FIRE, deadline[1]
        return NextMove.STUCK, None

    def has_requested_grant(self, path: SpawnPath) -> bool:
        """Say whether a process asked for a grant."""
        return path in self._askers

    def find_host_move(self, host: HostState) -> tuple[NextMove, int] | None:
        """Rules 3 and 8."""
        if host.ready is not None:
            return NextMove.LOOK, host.ready
        if host.pending is not None:
            return NextMove.START, host.pending
        return None

    def find_first_process(self, deadline: tuple[int, int] | None) -> tuple[int, SpawnPath] | None:
        """Find the next process, and its instant, if the host only has this deadline. Time does not move."""
        if (asker := self.find_first_grant_request()) is not None:
            return self.now, asker
        due = self.find_first_due_process()
        if due is not None and (deadline is None or self.is_agent_before_host(due[0], deadline[0])):
            return max(self.now, due[0]), due[1]
        return None

    def find_first_grant_request(self) -> SpawnPath | None:
        """Rule 4, its first half."""
        # `min` over paths is spawn order. Pids would be a race: two children started together may get them in either
        # order.
        return min(self._askers) if self._askers else None

    def find_first_due_process(self) -> tuple[int, SpawnPath] | None:
        """Rule 4, its second half: the earliest instant, ties in spawn order."""
        dues, until = self._dues, self._until
        # Entries of processes that parked anew or were dropped stay in the heap. To remove them eagerly would be
        # linear; here they fall out when they come to the top.
        while dues:
            due = dues[0]
            if until.get(due[1]) == due[0]:
                return due
            heappop(dues)
        return None

    def is_agent_before_host(self, until: int, deadline: int) -> bool:
        """Rule 5."""
        # A tie goes to the agent: at the same instant an exit or a last line beats the supervisor's timer (rule A4).
        # The comparison with `now` covers a deadline that is overdue.
        return until <= max(deadline, self.now)
