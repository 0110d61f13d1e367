"""One executable fake in the hands of its user: its command, its record, its end. Makes none itself."""

from __future__ import annotations

import os
import stat
import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_agentproc.harness._bystanders import command_line_of, how_it_lives
from pytest_agentproc.harness._calls import Calls
from pytest_agentproc.harness._faults import FakeFault, read_expiry, read_fault
from pytest_agentproc.harness._machine import reason_not_to_start
from pytest_agentproc.record import Record, starts

if TYPE_CHECKING:
    from pytest_agentproc.clock import SystemClock, VirtualClock
    from pytest_agentproc.harness._diaries import Diaries
    from pytest_agentproc.record import Start

__all__ = ["FakeAgent", "Lockstep", "Outside"]


class Outside(NamedTuple):
    """How a fake lives that is started while its virtual clock does not run.

    Args:
        clock: the real time that it keeps.
        lifetime: real seconds after which it ends itself.
        notice: the path to which it says once that it waits and nothing comes, the words, with `%d` for the line of its
            step, and the real seconds after which it does; None: it says nothing.
    """

    clock: SystemClock
    lifetime: float
    notice: tuple[str, str, float] | None = None


class FakeAgent(Calls):
    """An executable fake agent.

    Args:
        path: the executable, alone in a folder that can be a PATH.
        arguments: what a real supervisor would write after it.
        record: what the fake and its descendants do.
        watch: who sees its processes: the virtual clock that they obey, or their diaries in real time.
        process: what the record calls it.
        outside: the diaries of processes that are started while that virtual clock does not run; None: there are none.
    """

    def __init__(
        self,
        path: str,
        arguments: tuple[str, ...],
        record: Record,
        watch: Lockstep | Diaries,
        process: str,
        outside: Diaries | None = None,
    ) -> None:
        self.path = self.launcher = path
        self.argv = [path, *arguments]
        self.folder, self.name = os.path.split(path)
        self.record = record
        self.watch = watch
        self.outside = outside
        self._outside_record = Record({**record.header, "clock": "real"})
        self._is_finished = False
        self._process = process
        self._made_at = time.monotonic_ns()

    @property
    def starts(self) -> tuple[Start, ...]:
        """Each start of it so far: `argv`, `env`, `cwd`, `stdin`, `signals` with their times, and how it ended.

        Starts in virtual time come before those in real time.
        """
        return tuple(start for record in self.records for start in starts(record))

    @property
    def records(self) -> tuple[Record, ...]:
        """What it did so far: a record for virtual time and one for real time, if it was started there."""
        return tuple(record for record in (self.virtual_record, self.real_record) if record is not None)

    @property
    def virtual_record(self) -> Record | None:
        """What it did in virtual time so far; None: it was not started there."""
        return self.record if isinstance(self.watch, Lockstep) and self.record.events else None

    @property
    def real_record(self) -> Record | None:
        """What it did in real time so far; None: it was not started there."""
        if isinstance(self.watch, Lockstep):
            found = self.outside.so_far(self._outside_record) if self.outside is not None else None
        else:
            found = self.watch.so_far(self.record)
        return found if found is not None and found.events else None

    @property
    def env(self) -> dict[str, str]:
        """The environment of this process with a PATH that leads to the fake, and to no program of any other name."""
        return {**os.environ, "PATH": self.folder}

    @property
    def broken(self) -> FakeFault | None:
        """What broke first in the fake itself, or ended it from outside; None: nothing did."""
        return read_fault(self.launcher) or read_expiry(self.launcher, self._made_at) or self._refused()

    def _refused(self) -> FakeFault | None:
        """Say why the machine does not start a fake that shows no sign of life; a plain start costs 20 ms."""
        events = (*self.record.events, *self._outside_record.events)
        has_lived = any("seen" in event.data and event.data["process"] == self._process for event in events)
        if has_lived or not os.access(self.launcher, os.X_OK):  # it is one that cannot be started
            return None
        why = reason_not_to_start(self.launcher)
        return FakeFault(0, "", f"the fake agent cannot start on this machine: {why}", False, True) if why else None

    def finish(self) -> Record:
        """End it and its descendants, and give the record, with a note for each that was left."""
        if not self._is_finished:
            self._is_finished = True
            with ExitStack() as ends:
                ends.callback(self.watch.end)
                if self.outside is not None:
                    ends.callback(self.outside.end)
                self.watch.collect(self.record)
                if self.outside is not None and self.outside.is_used():
                    self.outside.collect(self._outside_record)
        return self.record


class Lockstep:
    """The processes of one fake as a virtual clock sees them.

    Args:
        clock: the clock.
        record: where it writes what they do.
        folder: where the clock's socket may be: only this user can enter it.

    `baked` is what the fake must be told.
    """

    def __init__(self, clock: VirtualClock, record: Record, folder: str) -> None:
        self.clock = clock
        self._token = clock.hub.roll.admit(record.add, folder)
        self.baked: dict[str, Any] = {
            "hub": clock.hub.roll.address,
            "token": self._token,
            "host": os.getpid(),
            "foreign": _streams_of_the_tests(),
        }

    @property
    def order(self) -> list[int]:
        """The place of each of its starts among all starts of its clock."""
        return [one.path[0] for one in self.clock.hub.roll.in_order(self._token) if len(one.path) == 1]

    def collect(self, record: Record) -> int:
        """Note who is left once the supervisor has returned and everyone is inert; nothing was late."""
        self.clock.hub.settle()
        for one in self.clock.hub.roll.in_order(self._token):
            is_own_child = len(one.path) == 1  # an orphan that was adopted is nobody's neglect
            state = how_it_lives(one.pid) if one.lives else "zombie" if is_own_child and one.is_zombie() else None
            if state is not None:
                argv = {"argv": command_line_of(one.pid, self.clock.launchers)} if is_own_child and one.lives else {}
                told = {"process": one.name, "leaked": state, "line": one.line, **argv}
                record.add(self.clock.instant(), "m", told)
        return 0

    def end(self) -> None:
        """Kill whoever is left; what they do from here on is not recorded."""
        self.clock.hub.roll.mute(self._token)
        for one in self.clock.hub.roll.in_order(self._token):
            if one.lives:
                one.kill()
        self.clock.hub.settle()


def _streams_of_the_tests() -> list[tuple[int, int]]:
    """Name this process's stdout and stderr, where an agent that inherits them has to wait for a reader outside."""
    found = []
    for number in (1, 2):
        with suppress(OSError):  # it is closed
            of = os.fstat(number)
            if stat.S_ISFIFO(of.st_mode) or stat.S_ISSOCK(of.st_mode) or os.isatty(number):
                found.append((of.st_dev, of.st_ino))
    return found
