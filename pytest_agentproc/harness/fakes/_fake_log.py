"""The actions of a fake's processes in real time, read from their logs. Owns births, deaths and leftovers."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from pytest_agentproc import machine
from pytest_agentproc.clock import SystemClock, convert_note_to_event
from pytest_agentproc.errors import KitError, UsageError
from pytest_agentproc.events import EndSeen, Event, Leaked, ProcessEnded, ProcessGone, ProcessStarted
from pytest_agentproc.fake_agents import process_log
from pytest_agentproc.fake_agents.program import make_numbered_name
from pytest_agentproc.files import read_own_file
from pytest_agentproc.harness._unrelated_processes import (
    describe_left_processes,
    is_fake_command,
    read_alive_or_stopped,
    read_boot_ticks,
    read_fake_command,
)
from pytest_agentproc.originals import monotonic_ns
from pytest_agentproc.procfs import has_memory, iterate_pids, read_command_words, read_stat
from pytest_agentproc.record import Record
from pytest_agentproc.tree import open_pidfd
from pytest_agentproc.vocabulary import NANOSECONDS_PER_SECOND, split_exit_status

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from pathlib import Path

    from pytest_agentproc.scenario import Scenario


_END_TIMEOUT_SECONDS = 0.2
"""Real seconds that a process may take to end after its supervisor has returned."""

_KILL_TIMEOUT_SECONDS = 10.0
"""Real seconds that the kernel may take to remove a process after its KILL."""

_REST_TIMEOUT_SECONDS = 10.0
"""Real seconds within which a process must rest, or say its first word, when its actions are asked for."""

_EXEC_TIMEOUT_SECONDS = 1.0
"""Real seconds for which a process without a command may be in its exec; a process without one for longer hides it."""

_SEARCH_PERIOD_MS = 1
"""Real milliseconds between two searches for processes that are being killed."""

_UNNAMED_DESCENDANT_NAME = "newborn"
"""The name of a descendant that has not given its name yet."""


@dataclass(slots=True)
class _ProcessLog:
    """One process in its log; instants are the machine's."""

    pid: int
    parent: int
    index: int
    name: str
    line: int
    born: int
    notes: list[tuple[int, str, Any]] = field(default_factory=list)
    code: int | None = None
    signum: int | None = None
    died: int | None = None
    late: int = 0
    expired: int | None = None
    """The line of the step at which its lifetime was over."""
    successor: _ProcessLog | None = None
    """The process that got its pid after its end."""

    @property
    def last_begun_step(self) -> tuple[int, str]:
        """The line and the name of the step that it began last."""
        return next((data for _, code, data in reversed(self.notes) if code == "m"), (self.line, "start"))

    @property
    def last_event_at(self) -> int:
        """The machine's instant of the last thing that it did."""
        return self.notes[-1][0] if self.notes else self.born

    @property
    def status(self) -> int:
        """Its exit code, or minus the number of the signal that ended it."""
        return (
            -(self.signum or signal.SIGKILL) if self.code is None else self.code
        )  # KILL alone leaves no time for a word


_open_logs: WeakSet[FakeLog] = WeakSet()


def list_open_logs() -> list[FakeLog]:
    """List the logs of all fakes of this process that have not been ended, in the order in which they were made.

    A fake that could not be written has a log without a command. It never runs, and is left out.
    """
    return sorted((log for log in _open_logs if log.command), key=lambda log: log.number)


_log_numbers = count()


class FakeLog:
    """The logs of one fake and its descendants.

    Args:
        folder: the folder of the logs.
        deaths: the file in which the lifeline broker notes deaths and their times.
        clock: their time: faster than the machine by a factor; all fakes of one run share it.
        name: the fake's name in the record.
        is_elsewhere: says of a pid whether it is in virtual time; None: this fake has no virtual time. A fake that has
            one does not set the zero of its clock.

        `baked` is the part of the fake's program that names these logs.
    """

    def __init__(
        self,
        folder: Path,
        deaths: Path,
        clock: SystemClock,
        name: str = "agent",
        is_elsewhere: Callable[[int], bool] | None = None,
    ) -> None:
        self.folder = folder
        self.is_over = False
        self.is_child: Callable[[int], bool] = lambda _pid: True
        """Says of an agent that has exited whether this process started it, and so must wait for it."""
        self.expired: list[tuple[str, int]] = []
        """The agents that were ended by their lifetime, each with the line of its step; known once it is collected."""
        self._is_elsewhere = is_elsewhere
        self._begun = read_boot_ticks()
        self._ends: dict[tuple[int, int], int] = {}
        """The ends that were given, by pid and birth: later reports of the broker do not move them."""
        self.baked: dict[str, Any] = {"hub": b"", "log": str(folder), "scale": clock.scale}
        self.clock = clock
        self._name = name
        self._deaths = deaths
        self.number = next(_log_numbers)
        _open_logs.add(self)
        self.scenario: Scenario | None = None
        """What its processes play."""
        self.command = ""
        """The fake's executable, which every one of its processes shows among its arguments."""
        self.read_virtual_record: Callable[[], Record | None] = lambda: None
        """Gives what the fake did in virtual time up to now; None: it was not started there."""

    def collect(self, record: Record) -> int:
        """Put the actions of the processes among those of the supervisor, and note the leftovers.

        A fake that was started by a program without a record counts from its own start.

        Returns:
            The largest lateness of a step, in nanoseconds of the run's own time.
        """
        kept = self._read_when_settled()
        self.expired = [(log.name, log.expired) for log in kept if log.expired is not None and log.index < 0]
        if kept and not record.events and self._is_elsewhere is None:
            self.clock.zero = min(log.born for log in kept)
        self._correct_agent_ends([log for log in kept if log.index < 0], record)
        record.merge_events(event for log in kept for event in self._iterate_events(log, kept))
        now = self.clock.instant()
        left = [(log, state) for log in kept if (state := self._find_leftover_state(log)) is not None]
        living = [log.pid for log, state in left if state != "zombie"]
        facts = describe_left_processes(living, os.path.realpath(self.folder))
        for log, state in left:
            is_agent = log.index < 0 and state != "zombie"
            argv = read_fake_command(log.pid, {os.path.realpath(self.command)}) if is_agent else ()
            held = facts.get(log.pid, ())
            record.add(Leaked(now, log.name, state, tuple(argv), facts=tuple(held), line=log.line))
        return max((log.late for log in kept), default=0)

    def read_so_far(self, record: Record) -> Record:
        """Give the actions of the processes up to now; empty if none was started.

        It contains everything that was visible from outside. Each process is awaited until it rests; a process that was
        started, until it has said its first word.

        Args:
            record: the result of `collect`, which is returned itself once all is over.

        Raises:
            KitError: a process does neither within 10 s.
        """
        if self.is_over:
            return record
        found, kept = Record(record.header), self._read_at_rest()
        found.merge_events(event for log in kept for event in self._iterate_events(log, kept))
        return found

    def has_outlived_signal(self, seconds: float) -> bool:
        """Say whether a process lives that caught a signal so many seconds ago, by its own clock."""
        before = monotonic_ns() - seconds * NANOSECONDS_PER_SECOND
        living = (log for log in self._read_at_rest() if log.died is None)
        return any(code == "s" and at <= before for log in living for at, code, _data in log.notes)

    def list_processes(self) -> list[tuple[_ProcessLog, bool]]:
        """List the processes with what they did so far, each with whether it lives. It waits for none of them."""
        kept = self._read_logs()
        self._note_reported_deaths(kept)
        return [(log, log.died is None and self._is_ours(log.pid)) for log in kept]

    def is_used(self) -> bool:
        """Say whether any process of this fake was started in real time."""
        return bool(self._read_at_rest())

    def refuse_running_processes(self) -> None:
        """Refuse virtual time while a process of this fake is in real time.

        Raises:
            UsageError: one is.
        """
        if self.is_over or not self._list_logged_pids():
            return
        for log in (log for log in self._read_logs() if log.successor is None and self._is_ours(log.pid)):
            who = f"{log.name} (pid {log.pid})"
            raise UsageError(
                f"{who} was started in real time and still runs, but virtual time cannot wait for it",
                "start it inside the virtual run, or end it before the run begins",
            )

    def end(self) -> None:
        """Kill every process of the fake that is left, reap our own children, and remove the logs.

        A process that is born after the logs were moved ends by itself. So the work is done when a whole search
        finds no process, however long that search takes. Every process that a search finds gets a KILL; the guard only
        bounds the wait for the kernel, which may hold a killed process for as long as a device does not answer.
        """
        self.is_over = True
        _open_logs.discard(self)
        self.folder = self.folder.rename(f"{self.folder}-over")
        for log in self._read_logs():
            self._kill_process(log.pid)
        guard = machine.read_monotonic() + _KILL_TIMEOUT_SECONDS
        while left := self._list_unlogged_pids(()):
            for pid in left:
                self._kill_process(pid)
            if machine.read_monotonic() > guard:
                break
            machine.sleep_machine_time(_SEARCH_PERIOD_MS)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _kill_process(self, pid: int) -> None:
        pidfd = open_pidfd(pid)
        if pidfd is None:
            return
        try:
            is_ours = self._is_ours(pid)
            if is_ours:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PIDFD, pidfd, os.WEXITED | (0 if is_ours else os.WNOHANG))
        finally:
            os.close(pidfd)

    # The processes that there are.

    def _read_at_rest(self) -> list[_ProcessLog]:
        """Read once every process rests: its earlier actions are written then, for it writes before it waits."""
        start = machine.read_monotonic()
        while True:
            starting, restless = self._find_restless()
            kept = self._read_logs()
            restless -= {
                log.pid for log in kept if log.last_begun_step[1] == "burn_cpu"
            }  # it never rests, and says no more
            waited = machine.read_monotonic() - start
            if not restless and (not starting or waited > _EXEC_TIMEOUT_SECONDS):
                break
            if waited > _REST_TIMEOUT_SECONDS:
                raise KitError(
                    f"{self._name} (pid {min(restless)}) neither rests nor ends within {_REST_TIMEOUT_SECONDS:g} s"
                )
            machine.sleep_machine_time(_SEARCH_PERIOD_MS)
        self._note_reported_deaths(kept)
        for log in kept:
            self._note_end(log)
        return kept

    def _find_restless(self) -> tuple[bool, set[int]]:
        """Say whether a process is in its exec and so may be a fake; list the processes that run, or are to speak."""
        written, starting, restless = self._list_logged_pids(), False, set[int]()
        for pid in iterate_pids():
            words = read_command_words(pid)
            seen = read_stat(pid) if not words or pid in written else None
            if not words:
                is_new = seen is not None and seen.started >= self._begun
                starting = starting or (is_new and has_memory(pid))
            elif not is_fake_command(" ".join(words), self.command):
                continue
            elif pid in written:
                restless |= {pid} if seen is not None and seen.state not in "STt" else set()
            elif not self._is_in_virtual_time(pid):
                restless.add(pid)
        return starting, restless

    def _note_end(self, log: _ProcessLog) -> None:
        """Give a dead process one end: the broker's, or the instant at which it was first seen here without that."""
        if log.died is not None or not self._is_ours(log.pid):
            log.died = self._ends.setdefault((log.pid, log.born), log.died or monotonic_ns())

    def _list_logged_pids(self) -> set[int]:
        """Give the pids that have a log."""
        return {int(path.name) for path in self.folder.iterdir() if path.name != process_log.SPARE_FILE_NAME}

    def _read_when_settled(self) -> list[_ProcessLog]:
        """Read until every end is known, or the time for that is over; a process in its exec is not visible yet.

        A process that forks without a pause is known by births between two looks that both began after that time.
        """
        limit = machine.read_monotonic() + _END_TIMEOUT_SECONDS
        was_calm, known, looked_at = False, set[tuple[int, int]](), 0.0
        while True:
            before, looked_at = looked_at, machine.read_monotonic()
            kept = self._read_logs()
            self._note_reported_deaths(kept)
            new = self._list_unlogged_pids({log.pid for log in kept})
            born = [log for log in kept if (log.pid, log.born) not in known]
            is_calm = bool(kept) and not (born or new) and all(self._find_leftover_state(log) is None for log in kept)
            if (is_calm and was_calm) or before > limit:
                break
            was_calm, known = is_calm, {(log.pid, log.born) for log in kept}
            machine.sleep_machine_time(5)
        for log in kept:
            self._note_end(log)
        if born:  # a process forks repeatedly, each time so briefly that the last one has to stand for all
            born[-1].died = None
        if new:
            now, written = monotonic_ns(), {log.pid: log for log in self._read_logs()}
            index, name = (0, _UNNAMED_DESCENDANT_NAME) if any(log.index < 0 for log in kept) else (-1, self._name)
            for pid in new:  # a process without a log has not opened it yet
                kept.append(written.get(pid) or _ProcessLog(pid, 0, index, name, 0, now))
        return kept

    def _read_logs(self) -> list[_ProcessLog]:
        """Read all logs: the processes in the order of their births; some may have had the same pid in turn."""
        kept: list[_ProcessLog] = []
        for path in sorted(
            path for path in self.folder.iterdir() if path.name != process_log.SPARE_FILE_NAME
        ):  # that one is renamed
            log: _ProcessLog | None = None
            for at, message in process_log.decode_log_entries(read_own_file(path)):
                if message[0] == "H":
                    parent, index, name, line = message[1:]
                    born = _ProcessLog(int(path.name), parent, index, name, line, at)
                    if log is not None:
                        log.successor = born
                    log = born
                    kept.append(log)
                elif log is not None:
                    _apply_entry(log, at, message)
        kept.sort(key=lambda log: log.born)
        names: Counter[str] = Counter()
        for log in kept:
            names[log.name] += 1
            log.name = make_numbered_name(log.name, names[log.name])
        return kept

    def _list_unlogged_pids(self, kept: Collection[int]) -> list[int]:
        """List the processes of this fake that have no log yet."""
        ours = (pid for pid in iterate_pids() if pid not in kept and self._is_ours(pid))
        return [pid for pid in ours if not self._is_in_virtual_time(pid)]

    def _is_in_virtual_time(self, pid: int) -> bool:
        return self._is_elsewhere is not None and self._is_elsewhere(pid)

    def _note_reported_deaths(self, kept: Sequence[_ProcessLog]) -> None:
        """Note the deaths that the broker reported: those of one pid came in the order of the births."""
        whole, _, _half = read_own_file(self._deaths).decode("ascii").rpartition("\n")
        for line in whole.splitlines():
            pid, at = (int(word) for word in line.split())
            dead = next((log for log in kept if log.pid == pid and log.died is None and at >= log.born), None)
            if dead is not None:
                dead.died = at
        for log in kept:
            if log.successor is not None:
                log.died = min(log.died or log.successor.born, log.successor.born)

    def _correct_agent_ends(self, agents: Sequence[_ProcessLog], record: Record) -> None:
        """Move the end of an agent to the time at which its supervisor saw it, if that was before the broker's.

        The broker may be late for several ends at once, and report them in any order. Each end that the supervisor saw
        belongs to one agent, which had begun by then.
        """
        left = [agent for agent in agents if agent.died is not None]
        for event in record.events:
            if not isinstance(event, ProcessEnded | EndSeen) or event.process != self._name:
                continue
            seen = self.clock.convert_instant_to_moment(event.at)
            started = [log for log in left if log.born <= seen]
            if started:
                nearest = min(started, key=lambda log: abs((log.died or 0) - seen))
                nearest.died = min(nearest.died or seen, seen)
                left.remove(nearest)

    def _find_leftover_state(self, log: _ProcessLog) -> str | None:
        """Say how a process was left: alive, stopped, or a zombie that this process should have waited for."""
        if log.died is None:
            return read_alive_or_stopped(log.pid)
        # A descendant is a child of this process by adoption only, and so is an agent whose program was killed. No code
        # under test could wait for them. If the pid has a successor, the process was waited for.
        is_child = log.parent in (0, os.getpid()) and self.is_child(log.pid)
        if log.index >= 0 or log.successor is not None or not is_child:
            return None
        with contextlib.suppress(ChildProcessError):
            if os.waitid(os.P_PID, log.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
                return "zombie"
        return None

    def _is_ours(self, pid: int) -> bool:
        """Say whether a pid is a process of this fake: a dead one has no command, any other one another."""
        return is_fake_command(" ".join(read_command_words(pid)), self.command)

    # What they did.

    def _iterate_events(self, log: _ProcessLog, kept: Sequence[_ProcessLog]) -> Iterator[Event]:
        parents = [other.name for other in kept if other.pid == log.parent and other.born <= log.born]
        above = parents[-1] if parents and log.index >= 0 else "supervisor"
        convert = self.clock.convert_moment_to_instant
        yield ProcessStarted(convert(log.born), log.name, log.pid, above, line=log.line)
        for at, code, data in log.notes:
            yield convert_note_to_event(convert(at), log.name, code, data)
        if log.died is not None:
            yield ProcessEnded(convert(log.died), log.name, *split_exit_status(log.status))
            yield ProcessGone(convert(log.died), log.name)


def _apply_entry(log: _ProcessLog, at: int, message: tuple[Any, ...]) -> None:
    form = message[0]
    if form == "L":
        log.late = max(log.late, message[1])
        return
    if form == "T":
        log.expired = message[1]
        return
    if form == "D":
        log.signum = message[1]
    for code, data in message[-1]:
        if code == "x":
            log.code = data
        elif code != "p":
            log.notes.append((at, code, data))
