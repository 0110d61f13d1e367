"""The host's side of the lockstep: supervised runs that the hub looks after by itself, without a turn of the loop.

A run is one waiter: its descriptor and its deadline. The hub calls its `look` in place, so that the order of several
runs is the jump rule's alone and is the same on every backend. The loop counts as the last run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import anyio

from pytest_agentproc.clock._jump import HostState

if TYPE_CHECKING:
    from pytest_agentproc.clock._hub_socket import DescriptorPoller
    from pytest_agentproc.clock._protocol import WatchedRun


@dataclass(slots=True, eq=False)
class _WatchedHostRun:
    watched: WatchedRun
    number: int
    done: anyio.Event = field(default_factory=anyio.Event)
    descriptor: int | None = None
    error: BaseException | None = None


class HostRuns:
    """The runs under one hub, numbered by declaration.

    Args:
        poller: finds whose descriptor is readable.
    """

    LOOP = 1 << 60
    """The number of the loop itself: after every run."""

    def __init__(self, poller: DescriptorPoller) -> None:
        self.ready: set[int] = set()
        self.resumed = False
        self._poller = poller
        self._runs: dict[int, _WatchedHostRun] = {}
        self._count = 0
        self._pending: set[int] = set()
        self._deadlines: dict[int, int | None] = {}
        self._dues: list[tuple[int, int]] = []
        self._host = HostState()

    async def drive(self, watched: WatchedRun) -> None:
        """See `Clock.drive`."""
        run = _WatchedHostRun(watched, self._count)
        self._count += 1
        self._runs[run.number] = run
        self._pending.add(run.number)
        try:
            await run.done.wait()
        finally:
            self._remove_run(run)
        if run.error is not None:
            raise run.error

    def collect_host_state(self, loop_deadline: int | None) -> HostState:
        """Collect the wishes of the runs for the jump rule; a deadline counts only where none of them is ready."""
        host, ready, pending = self._host, self.ready, self._pending
        host.pending = min(pending) if pending else None
        # A deadline counts only when no run is ready. Otherwise a run could time out with its answer in the pipe.
        if ready:
            host.ready = min(ready)
            return host
        host.ready, due = None, self._find_first_due_run()
        if loop_deadline is not None and (due is None or loop_deadline < due[0]):
            due = (loop_deadline, self.LOOP)
        host.deadline = due
        return host

    def _find_first_due_run(self) -> tuple[int, int] | None:
        dues, deadlines = self._dues, self._deadlines
        while dues:
            # As in the jump rule, outdated entries stay in the heap until they come to the top.
            due = dues[0]
            if deadlines.get(due[1]) == due[0]:
                return due
            heappop(dues)
        return None

    def let_run_look(self, number: int) -> None:
        """Let one run look once."""
        run = self._runs[number]
        self.ready.discard(number)
        self._pending.discard(number)
        try:
            done = run.watched.look()
        # An exception here would unwind the hub in the middle of a turn. It is raised in the task that waits instead.
        except BaseException as error:  # noqa: BLE001  # it is raised in the task that waits
            run.error, done = error, True
        self.resumed = self.resumed or run.watched.news
        deadline = run.watched.deadline
        if deadline != self._deadlines.get(number):
            self._deadlines[number] = deadline
            if deadline is not None:
                heappush(self._dues, (deadline, number))
        if done:
            self._remove_run(run)
            run.done.set()
            self.resumed = True
        elif run.watched.descriptor not in (None, run.descriptor):
            if run.descriptor is not None:
                self._poller.forget(run.descriptor)
            run.descriptor = run.watched.descriptor
            self._poller.watch(run.descriptor, partial(self.ready.add, number))

    def describe(self, number: int) -> str:
        """Name a run."""
        if number == self.LOOP:
            return "the loop of the supervising program"
        return f"supervisor {number + 1}" if len(self._runs) > 1 else "the supervisor"

    def describe_all_runs(self) -> list[str]:
        """Say for every run what it waits for."""
        return [f"{self.describe(number)} {run.watched.describe()}" for number, run in self._runs.items()]

    def _remove_run(self, run: _WatchedHostRun) -> None:
        if self._runs.pop(run.number, None) is not None and run.descriptor is not None:
            self._poller.forget(run.descriptor)
        self._deadlines.pop(run.number, None)
        self.ready.discard(run.number)
        self._pending.discard(run.number)
