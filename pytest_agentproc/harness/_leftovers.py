"""Processes that a supervisor starts beside its fakes, or leaves below a keeper."""

from __future__ import annotations

import os
import select
from typing import TYPE_CHECKING

import anyio

from pytest_agentproc.errors import KitError
from pytest_agentproc.events import Leaked, StrangerFound
from pytest_agentproc.harness._unrelated_processes import (
    describe_left_processes,
    is_fake_command,
    read_alive_or_stopped,
)
from pytest_agentproc.originals import monotonic
from pytest_agentproc.processes import describe_processes, read_command
from pytest_agentproc.tree import Keeper, LeakTracker, open_pidfd, read_command_line
from pytest_agentproc.vocabulary import NANOSECONDS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from pytest_agentproc.harness.fakes._fake_agent import FakeAgent
    from pytest_agentproc.record import Record


_END_TIMEOUT_SECONDS = 0.2
"""Real seconds that a process may take to end after its supervisor has returned."""

_MAX_COMMAND_CHARS = 160


class KeeperScope:
    """Keep the processes that a subject starts while the block runs, and end all of them after the block.

    Args:
        fakes: the fakes of the play, which are judged elsewhere.
        wanted: whether the subject wants a keeper; without one this does nothing.
    """

    def __init__(self, fakes: Sequence[FakeAgent], *, wanted: bool) -> None:
        self.keeper = Keeper() if wanted else None
        self._launchers = [fake.path for fake in fakes]
        self._loss = ""

    def __enter__(self) -> KeeperScope:  # noqa: PYI034  # it has no subclass
        return self

    def __exit__(self, *_: object) -> None:
        if self.keeper is not None:
            self.keeper.close()

    async def run_guarded(self, run: Callable[[], Awaitable[None]]) -> None:
        """Run what is to be kept, and give it up if the keeper ends: that is none of the subject's doing.

        Raises:
            KitError: it ended.
        """
        if self.keeper is None:
            await run()
            return
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch_keeper_end, self.keeper, group.cancel_scope)
            await run()
            group.cancel_scope.cancel()
        if self._loss:
            loss = self._loss
            raise KitError(f"the keeper of the program under test ended during the play, with all that it held: {loss}")

    async def _watch_keeper_end(self, keeper: Keeper, scope: anyio.CancelScope) -> None:
        end = os.pidfd_open(keeper.pid)
        try:
            await anyio.wait_readable(end)
        finally:
            os.close(end)
        # Before the close, which finds that it is gone.
        self._loss = f"the kit killed it: {keeper.fault}" if keeper.fault else "it was killed from outside"
        keeper.close()
        scope.cancel()

    def record_leftovers(self, record: Record, at: int) -> None:
        """Note every process that is left, but for the fakes, and for a program that has not ended.

        Args:
            record: where it is noted, as a leak under the name of its command.
            at: the instant, in nanoseconds of the run's clock.
        """
        left = self._find_leftovers_after_grace()
        facts = describe_left_processes(left)
        for pid, command in left.items():
            name = " ".join(command.split())[:_MAX_COMMAND_CHARS]
            record.add(Leaked(at, name, read_alive_or_stopped(pid), pid=pid, facts=tuple(facts.get(pid, ()))))

    def _find_leftovers_after_grace(self) -> dict[int, str]:
        """List the processes that are left, by a look that finds none, or that begins after the time for ending.

        A look may take longer than that time: a process that it lists may have ended in time.
        """
        limit = monotonic() + _END_TIMEOUT_SECONDS
        while True:
            began = monotonic()
            left = self._find_leftovers()
            if not left or began >= limit:
                return left
            _await_any_process_end(left, max(0.0, limit - monotonic()))

    def _find_leftovers(self) -> dict[int, str]:
        if self.keeper is None:
            return {}
        started, commands = self.keeper.started, self.keeper.find_remaining_processes().commands
        return {pid: owned for pid, owned in commands.items() if pid not in started and not self._is_fake(pid)}

    def _is_fake(self, pid: int) -> bool:
        command = " ".join(read_command(pid))
        return any(is_fake_command(command, launcher) for launcher in self._launchers)


def _await_any_process_end(pids: Sequence[int] | dict[int, str], seconds: float) -> None:
    """Wait until one of some processes ends."""
    ends = select.poll()
    pidfds = []
    for pid in pids:
        if (pidfd := open_pidfd(pid)) is not None:
            pidfds.append(pidfd)
            ends.register(pidfd, select.POLLIN)
    ends.poll(seconds * 1000)
    for pidfd in pidfds:
        os.close(pidfd)


class SideProcesses:
    """Know what is started while the block runs.

    Args:
        fakes: those of the play, which are judged elsewhere.
        adopts: whether orphans are taken in.
    """

    def __init__(self, fakes: Sequence[FakeAgent], *, adopts: bool = False) -> None:
        launchers = [fake.path for fake in fakes]

        def is_fake(_pid: int, command: str) -> bool:
            return any(is_fake_command(command, launcher) for launcher in launchers)

        self._leak_tracker = LeakTracker(adopts=adopts, excuses=is_fake)

    def __enter__(self) -> SideProcesses:  # noqa: PYI034  # it has no subclass
        self._leak_tracker.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self._leak_tracker.close()

    def has_started_process(self, pid: int) -> bool:
        """Say whether this process started a process while the block ran; an orphan that it adopted it did not."""
        return self._leak_tracker.has_started_process(pid)

    def record_leftovers(self, record: Record, at: int) -> None:
        """Note every process that was left, and end it; processes of unknown origin are noted and left alone.

        Args:
            record: receives each one as a leak, under the name of its command and the line that started it.
            at: the instant, in nanoseconds of the run's clock.
        """
        found = self._leak_tracker.wait_until_none_left(round(_END_TIMEOUT_SECONDS * NANOSECONDS_PER_SECOND))
        if not found.mine:
            return
        living = (owned.snapshot for owned in found.mine if owned.snapshot.state != "zombie")
        facts = describe_processes((process.pid, process.started) for process in living)
        own = read_command_line(os.getpid())
        for owned in found.mine:
            name = " ".join(owned.describe_command(own).split())[:_MAX_COMMAND_CHARS]
            if owned.start is not None and owned.start.places:
                name += f" started at {owned.start.places[0]}"
            state, pid = owned.snapshot.state, owned.snapshot.pid
            record.add(Leaked(at, name, state, pid=pid, facts=tuple(facts.get(pid, ()))))
        for stranger in found.unknown:
            name = " ".join(stranger.command.split())[:_MAX_COMMAND_CHARS]
            record.add(StrangerFound(at, name, "unknown", stranger.pid))
        self._leak_tracker.end_owned_processes(found.mine)
