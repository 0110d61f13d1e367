"""One executable fake in the hands of a test: its command, its calls, its record, its end."""

from __future__ import annotations

import os
import shlex
import stat
from abc import ABC, abstractmethod
from contextlib import ExitStack, suppress
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_agentproc import machine
from pytest_agentproc.events import Leaked, ProcessStarted
from pytest_agentproc.harness._faults import explain_failed_start, read_expiry, read_fault
from pytest_agentproc.harness._unrelated_processes import (
    describe_left_processes,
    is_fake_command,
    read_alive_or_stopped,
    read_fake_command,
)
from pytest_agentproc.originals import monotonic_ns
from pytest_agentproc.plays import FakeFault
from pytest_agentproc.procfs import read_command_words, read_stat
from pytest_agentproc.record import Record, list_agent_starts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_agentproc.clock import SystemClock, VirtualClock
    from pytest_agentproc.harness.fakes._fake_log import FakeLog
    from pytest_agentproc.harness.fakes._refused_starts import SpawnFailureListener
    from pytest_agentproc.record import AgentStart


_MAX_CALLS_SHOWN = 5
"""So many calls a failure shows, the nearest first."""

_MAX_VALUE_CHARS_SHOWN = 200
"""So many characters of each value a failure shows."""


class CallAssertions(ABC):
    """The expected starts of one fake, in the words of `unittest.mock`.

    Each argument is compared by `==`, so `unittest.mock.ANY` fits any, and `...` stands for any number of arguments.
    Stdin, environment and folder are compared if they are given.
    """

    name: str
    """The name of the program."""

    @property
    @abstractmethod
    def starts(self) -> tuple[AgentStart, ...]:
        """Each start so far."""

    def assert_called_once_with(
        self,
        *argv: Any,
        stdin: bytes | str | None = None,
        env: Mapping[str, str | None] | None = None,
        cwd: str | os.PathLike[str] | None = None,
    ) -> None:
        """Require that it was started once, and so.

        Args:
            argv: its arguments, without the command.
            stdin: all that it has read.
            env: variables of its environment; None: it has no such variable. Others are not compared.
            cwd: the folder in which it was started.

        Raises:
            AssertionError: with the expected call, and the calls that came.
        """
        __tracebackhide__ = True
        wanted, starts = _StartMatcher(argv, stdin, env or {}, cwd), self.starts
        if len(starts) != 1 or wanted.list_differences(starts[0]):
            times = {0: "never called", 1: "called once, but with something else"}
            head = times.get(len(starts), f"called {len(starts)} times, not once")
            raise AssertionError(_explain_mismatch(f"{self.name} was {head}", self.name, wanted, starts))

    def assert_any_call(
        self,
        *argv: Any,
        stdin: bytes | str | None = None,
        env: Mapping[str, str | None] | None = None,
        cwd: str | os.PathLike[str] | None = None,
    ) -> None:
        """Require that it was started so at least once; see `assert_called_once_with`."""
        __tracebackhide__ = True
        wanted, starts = _StartMatcher(argv, stdin, env or {}, cwd), self.starts
        if all(map(wanted.list_differences, starts)):
            head = "called, but with something else" if starts else "never called"
            raise AssertionError(_explain_mismatch(f"{self.name} was {head}", self.name, wanted, starts))

    def assert_not_called(self) -> None:
        """Require that it was never started."""
        __tracebackhide__ = True
        if starts := self.starts:
            lines = [_format_words("seen", [self.name, *start.argv]) for start in starts[:_MAX_CALLS_SHOWN]]
            raise AssertionError("\n".join([f"{self.name} was called", *lines, *_format_other_starts(starts)]))


class _StartMatcher(NamedTuple):
    argv: Sequence[Any]
    stdin: bytes | str | None
    env: Mapping[str, str | None]
    cwd: str | os.PathLike[str] | None

    def list_compared_fields(self, start: AgentStart | None) -> list[tuple[str, Any, Any]]:
        """Give the compared fields beside the arguments: name, expected value, actual value."""
        parts: list[tuple[str, Any, Any]] = []
        if self.stdin is not None:
            read = b"" if start is None else start.stdin
            parts.append(
                ("stdin", self.stdin, read.decode("utf-8", "replace") if isinstance(self.stdin, str) else read)
            )
        env = {} if start is None else start.env
        parts += [(f"env {name}", value, env.get(name)) for name, value in self.env.items()]
        if self.cwd is not None:
            parts.append(("cwd", os.fspath(self.cwd), "" if start is None else os.fspath(start.cwd)))
        return parts

    def list_differences(self, start: AgentStart) -> list[str]:
        """Name what is different in a call."""
        differing = [name for name, expected, seen in self.list_compared_fields(start) if expected != seen]
        return differing if _is_matching_argv(self.argv, start.argv) else ["argv", *differing]

    def measure_distance(self, start: AgentStart) -> tuple[float, int]:
        """Say how far a call is from what is expected."""
        words = [word for word in self.argv if isinstance(word, str)]
        return 1 - SequenceMatcher(None, words, start.argv).ratio(), len(self.list_differences(start))


def _is_matching_argv(argv: Sequence[Any], given: Sequence[str]) -> bool:
    """Say whether arguments are as expected, where `...` stands for any number of them."""
    if not argv:
        return not given
    if argv[0] is ...:
        return any(_is_matching_argv(argv[1:], given[place:]) for place in range(len(given) + 1))
    return bool(given) and bool(argv[0] == given[0]) and _is_matching_argv(argv[1:], given[1:])


def _explain_mismatch(head: str, name: str, wanted: _StartMatcher, starts: Sequence[AgentStart]) -> str:
    lines = [head, _format_words("expected", [name, *wanted.argv])]
    lines += [_format_field(part, expected) for part, expected, _ in wanted.list_compared_fields(None)]
    for start in sorted(starts, key=wanted.measure_distance)[:_MAX_CALLS_SHOWN]:
        misses = wanted.list_differences(start)
        lines.append(_format_words("seen", [name, *start.argv]))
        lines += [_format_field(part, seen) for part, _, seen in wanted.list_compared_fields(start) if part in misses]
        lines.append(f"            (different: {', '.join(misses)})" if misses else "            (as expected)")
        if "stdin" in misses and not start.stdin:
            lines.append("            (its script read nothing; `- wait_for: eof` as its first step reads all)")
    return "\n".join([*lines, *_format_other_starts(starts)])


def _format_words(label: str, words: Sequence[Any]) -> str:
    shown = ["..." if word is ... else shlex.quote(word) if isinstance(word, str) else repr(word) for word in words]
    return f"  {label:<8}  {_shorten_text(' '.join(shown))}"


def _format_field(name: str, value: Any) -> str:
    return f"            {name}: {'not set' if value is None else _shorten_text(repr(value))}"


def _shorten_text(text: str) -> str:
    return text if len(text) <= _MAX_VALUE_CHARS_SHOWN else f"{text[:_MAX_VALUE_CHARS_SHOWN]}..."


def _format_other_starts(starts: Sequence[AgentStart]) -> list[str]:
    return [f"  and {len(starts) - _MAX_CALLS_SHOWN} more"] if len(starts) > _MAX_CALLS_SHOWN else []


class RealTimeLifetime(NamedTuple):
    """The life of a fake that is started while its virtual clock does not run.

    Args:
        clock: the real time that it keeps.
        lifetime: real seconds after which it ends itself.
        notice: the path of its one notice that it waits in vain, the words with `%d` for the line of its step, and the
            real seconds until then; None: no notice.
    """

    clock: SystemClock
    lifetime: float
    notice: tuple[str, str, float] | None = None


class FakeAgent(CallAssertions):
    """An executable fake agent.

    Args:
        path: the executable, alone in a folder that can be a PATH.
        arguments: the words that a real supervisor would write after it.
        record: the actions of the fake and its descendants.
        watch: the virtual clock that its processes obey, or their logs in real time.
        process: its name in the record.
        outside: the logs of processes that are started while that virtual clock does not run; None: there are none.
    """

    def __init__(
        self,
        path: str,
        arguments: tuple[str, ...],
        record: Record,
        watch: LockstepProcesses | FakeLog,
        process: str,
        outside: FakeLog | None = None,
    ) -> None:
        self.path = path
        self.can_start = True
        """Whether its scenario has it start at all."""
        self.refusal: SpawnFailureListener | None = None
        self.ends = ExitStack()
        self.argv = [path, *arguments]
        self.folder, self.name = os.path.split(path)
        self.record = record
        self.watch = watch
        self.outside = outside
        self._outside_record = Record(
            {**record.header, "clock": "real" if machine.read_virtual_start() is None else "virtual"}
        )
        self._is_finished = False
        self._process = process
        self._made_at = monotonic_ns()

    @property
    def starts(self) -> tuple[AgentStart, ...]:
        """Each start of it so far: `argv`, `env`, `cwd`, `stdin`, `signals` with their times, and how it ended.

        While it lives, `process` is its `psutil.Process`. Starts in virtual time come before those in real time.
        """
        return tuple(start for record in self.records for start in list_agent_starts(record, self._find_birth))

    def _find_birth(self, pid: int) -> int | None:
        """Give the birth of a process if it is this fake: its pid may be another's by now, or of another namespace."""
        seen = read_stat(pid)
        return seen.started if seen and is_fake_command(" ".join(read_command_words(pid)), self.path) else None

    @property
    def records(self) -> tuple[Record, ...]:
        """Its actions up to now: a record for virtual time and one for real time, if it was started there."""
        return tuple(record for record in (self.virtual_record, self.real_record) if record is not None)

    @property
    def virtual_record(self) -> Record | None:
        """Its actions in virtual time up to now; None: it was not started there."""
        if not isinstance(self.watch, LockstepProcesses):
            return None
        if self.watch.clock.is_loop_running:
            self.watch.clock.hub.record_events_so_far()
        return self.record if self.record.events else None

    @property
    def real_record(self) -> Record | None:
        """Its actions in real time up to now; None: it was not started there."""
        if isinstance(self.watch, LockstepProcesses):
            found = self.outside.read_so_far(self._outside_record) if self.outside is not None else None
        else:
            found = self.watch.read_so_far(self.record)
        return found if found is not None and found.events else None

    @property
    def env(self) -> dict[str, str]:
        """The environment of this process with a PATH that leads to the fake, and to no program of any other name."""
        return {**os.environ, "PATH": self.folder}

    @property
    def first_fault(self) -> FakeFault | None:
        """The first failure in the fake itself, or its end from outside; None: there was none."""
        return read_fault(self.path) or read_expiry(self.path, self._made_at) or self._find_start_refusal()

    def _find_start_refusal(self) -> FakeFault | None:
        """Say why the machine does not start a fake that shows no sign of life; a plain start costs 20 ms."""
        events = (*self.record.events, *self._outside_record.events)
        has_lived = any(isinstance(event, ProcessStarted) and event.process == self._process for event in events)
        if has_lived or not self.can_start:
            return None
        why = explain_failed_start(self.path)
        return FakeFault(0, "", f"the fake agent cannot start on this machine: {why}", "outside") if why else None

    def finish(self) -> Record:
        """End it and its descendants, and give the record, with a note for each that was left."""
        if not self._is_finished:
            self._is_finished = True
            with self.ends as ends:
                ends.callback(self.watch.end)
                if self.outside is not None:
                    ends.callback(self.outside.end)
                self.watch.collect(self.record)
                if self.outside is not None and self.outside.is_used():
                    self.outside.collect(self._outside_record)
        return self.record


class LockstepProcesses:
    """The processes of one fake as a virtual clock sees them.

    `baked` is the part of the fake's program that names this clock.
    """

    def __init__(self, clock: VirtualClock, record: Record, folder: str) -> None:
        self.clock = clock
        self._token = clock.hub.registry.register_fake(record.add, folder)
        self.baked: dict[str, Any] = {
            "hub": clock.hub.registry.address,
            "token": self._token,
            "host": os.getpid(),
            "foreign": _list_own_output_streams(),
        }

    @property
    def start_order(self) -> list[int]:
        """The place of each of its starts among all starts of its clock."""
        return [
            participant.path[0]
            for participant in self.clock.hub.registry.list_in_spawn_order(self._token)
            if len(participant.path) == 1
        ]

    def collect(self, record: Record) -> int:
        """Note the processes that are left once the supervisor has returned and all are inert; nothing was late."""
        self.clock.hub.settle_participants()
        participants = self.clock.hub.registry.list_in_spawn_order(self._token)
        facts = describe_left_processes([participant.pid for participant in participants if participant.is_alive])
        for participant in participants:
            is_own_child = len(participant.path) == 1  # an adopted orphan is no fault of the supervisor
            state = (
                read_alive_or_stopped(participant.pid)
                if participant.is_alive
                else "zombie"
                if is_own_child and participant.is_own_zombie()
                else None
            )
            if state is not None:
                is_agent = is_own_child and participant.is_alive
                argv = read_fake_command(participant.pid, self.clock.launchers) if is_agent else ()
                held = facts.get(participant.pid, ())
                leak = Leaked(
                    self.clock.instant(), participant.name, state, tuple(argv), facts=tuple(held), line=participant.line
                )
                record.add(leak)
        return 0

    def end(self) -> None:
        """Kill the processes that are left; their actions from here on are not recorded."""
        self.clock.hub.registry.stop_recording_fake(self._token)
        for participant in self.clock.hub.registry.list_in_spawn_order(self._token):
            if participant.is_alive:
                participant.kill()
        self.clock.hub.settle_participants()


def _list_own_output_streams() -> list[tuple[int, int]]:
    """Name this process's stdout and stderr, where an agent that inherits them has to wait for a reader outside."""
    found = []
    for number in (1, 2):
        with suppress(OSError):  # it is closed
            of = os.fstat(number)
            if stat.S_ISFIFO(of.st_mode) or stat.S_ISSOCK(of.st_mode) or os.isatty(number):
                found.append((of.st_dev, of.st_ino))
    return found


class MultiScriptFake(CallAssertions):
    """A fake that plays one of several scripts, by its arguments.

    Args:
        front: the fake that is started, and plays what no other does.
        others: those that it hands a start over to.
    """

    def __init__(self, front: FakeAgent, others: list[FakeAgent]) -> None:
        self.name, self.path, self.argv, self._fakes = front.name, front.path, front.argv, [front, *others]

    @property
    def starts(self) -> tuple[AgentStart, ...]:
        """Each start so far, whichever script it played; see `FakeAgent.starts`."""
        placed = [pair for fake in self._fakes for pair in zip(_list_start_order_keys(fake), fake.starts, strict=False)]
        return tuple(start for _, start in sorted(placed, key=lambda pair: pair[0]))


def _list_start_order_keys(fake: FakeAgent) -> list[tuple[int, float]]:
    """Say where each start of a fake has its place: in virtual time many are at one instant, and the clock counts."""
    order = fake.watch.start_order if isinstance(fake.watch, LockstepProcesses) else []
    return [*((0, float(number)) for number in order), *((1, start.at) for start in fake.starts[len(order) :])]
