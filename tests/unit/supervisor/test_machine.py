"""The machine and its driver with values: what happened goes in, what to do comes out, and no process is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.supervisor import Driver, RunMachine, RunSettings, SendSignal
from pytest_agentproc.supervisor import _events as machine_events
from pytest_agentproc.supervisor._machine import RunState
from pytest_agentproc.vocabulary import Outcome, Policy

if TYPE_CHECKING:
    from pytest_agentproc.supervisor._events import MachineCommand, MachineEvent

SECOND = 1_000_000_000
POLICY = Policy(
    inactivity_timeout=10.0, linger_grace=1.0, linger_kill_grace=2.0, leftover_kill_grace=3.0, kill_grace=5.0
)
TERM, KILL = SendSignal("TERM"), SendSignal("KILL")
WATCHES: list[MachineCommand] = [machine_events.WatchStream("stdout", True), machine_events.WatchStream("stderr", True)]
FINISH: list[MachineCommand] = [machine_events.ReapAgent(), machine_events.FinishRun()]


def build_running_machine(dialect: str = "raw", prompt: bytes = b"") -> RunMachine:
    """Make a machine whose agent was started at zero."""
    machine = RunMachine(RunSettings(dialect, prompt, POLICY))
    assert machine.feed(machine_events.RunStarted(), 0) == [machine_events.SpawnAgent()]
    stdin: list[MachineCommand] = (
        [machine_events.WatchStream("stdin", True)] if prompt else [machine_events.CloseStdin()]
    )
    assert machine.feed(machine_events.AgentSpawned(7), 0) == [*WATCHES, *stdin]
    return machine


def build_output_event(data: bytes, stream: str = "stdout") -> machine_events.OutputRead:
    """Make the event of bytes with no more bytes waiting."""
    return machine_events.OutputRead(stream, data, drained=True)


def test_a_silent_agent_is_terminated_and_killed() -> None:
    """The outcome is settled with the first signal; a late exit code changes nothing (A1, T1)."""
    machine = build_running_machine()
    machine.feed(build_output_event(b".", "stderr"), SECOND)
    assert machine.deadline == 11 * SECOND
    assert machine.feed(machine_events.DeadlineReached(), 11 * SECOND) == [TERM]
    assert machine.deadlines == {"kill_grace": 16 * SECOND}
    assert machine.feed(build_output_event(b"wait\n"), 12 * SECOND) == []
    assert machine.feed(machine_events.DeadlineReached(), 16 * SECOND) == [KILL]
    machine.feed(machine_events.AgentExited(-9), 16 * SECOND)
    assert machine.feed(machine_events.TreeSwept(alone=True), 16 * SECOND) == FINISH
    result = machine.build_result(0)
    assert (result.outcome, result.elapsed, result.exit_code) == (Outcome.INACTIVE, 11 * SECOND, 124)
    assert result.error == "no output for 10 s, after 1 bytes; its last words on stderr: ."


@pytest.mark.parametrize(
    ("prints", "quoted"),
    [
        ([], ""),
        ([("stdout", b"hello\n")], ""),
        ([("stderr", b"asking: may I?\n")], "; its last words on stderr: asking: may I?"),
        ([("stderr", b"log\n"), ("stdout", b"Proceed? (y/n) ")], "; its last line, without an end: Proceed? (y/n)"),
    ],
)
def test_the_error_of_a_silent_agent_quotes_what_it_may_wait_for(prints: list[tuple[str, bytes]], quoted: str) -> None:
    """A question at a prompt, or the last words on stderr, say why nothing comes any more."""
    machine = build_running_machine()
    for stream, data in prints:
        machine.feed(build_output_event(data, stream), 0)
    machine.feed(machine_events.DeadlineReached(), 10 * SECOND)
    size = sum(len(data) for _, data in prints)
    assert machine.error == f"no output for 10 s, after {size} bytes{quoted}"


def test_a_stream_is_read_until_it_would_block() -> None:
    """Each read is a command of its own, so that the limits see every byte."""
    machine = build_running_machine()
    limit = machine.feeder.READ_LIMIT
    assert machine.feed(machine_events.StreamReady("stderr"), SECOND) == [machine_events.ReadStream("stderr", limit)]
    assert machine.feed(machine_events.OutputRead("stderr", b"e" * limit, drained=False), SECOND) == [
        machine_events.ReadStream("stderr", limit)
    ]
    assert machine.feed(build_output_event(b"the end", "stderr"), SECOND) == []
    assert machine.stderr_tail == b"e" * (limit - 7) + b"the end"


def test_a_prompt_goes_in_piece_by_piece() -> None:
    """As much as the pipe takes; stdin is closed after the last byte and not before (F5)."""
    machine = build_running_machine(prompt=b"prompt")
    assert machine.feed(machine_events.StreamReady("stdin"), 0) == [machine_events.WriteStdin(memoryview(b"prompt"))]
    assert machine.feed(machine_events.StdinWritten(4), 0) == []
    assert machine.feed(machine_events.StreamReady("stdin"), 0) == [machine_events.WriteStdin(memoryview(b"pt"))]
    assert machine.feed(machine_events.StdinWritten(2), 0) == [
        machine_events.WatchStream("stdin", False),
        machine_events.CloseStdin(),
    ]
    assert machine.feed(machine_events.StreamReady("stdin"), 0) == []


def test_a_prompt_that_nobody_reads_fails_the_run_once_it_is_silent() -> None:
    """A broken pipe alone ends nothing; with it, the silence has a better name (F5)."""
    machine = build_running_machine(prompt=b"prompt")
    machine.feed(machine_events.StdinWritten(2), 0)
    assert machine.feed(machine_events.StdinBroken(), SECOND) == [
        machine_events.WatchStream("stdin", False),
        machine_events.CloseStdin(),
    ]
    assert (machine.outcome, machine.deadline) == (None, 10 * SECOND)
    assert machine.feed(machine_events.DeadlineReached(), 10 * SECOND) == [TERM]
    assert (machine.outcome, machine.error) == (Outcome.INPUT_FAILED, "stdin was closed with 4 bytes to write")


@pytest.mark.parametrize(("errno", "code"), [(2, 127), (13, 126), (7, 126)])
def test_an_agent_that_cannot_be_started_ends_the_run(errno: int, code: int) -> None:
    """There is nothing to sweep and nothing to reap (P6)."""
    machine = RunMachine(RunSettings("raw", b"prompt", POLICY))
    machine.feed(machine_events.RunStarted(), 5)
    assert machine.feed(machine_events.SpawnFailed(errno, "agent: no"), 5) == [machine_events.FinishRun()]
    assert (machine.state, machine.deadline) == (RunState.DONE, None)
    result = machine.build_result(5)
    assert (result.outcome, result.exit_code) == (Outcome.SPAWN_FAILED, code)
    assert result.error == f"agent: no (errno {errno})"
    assert (result.agent_status, result.elapsed) == (None, 0)


# The driver.


class Log(RunMachine):
    """A machine with fixed answers, which writes down what it is fed."""

    def __init__(self, answers: dict[type[Any], list[MachineCommand]], pages: list[Any]) -> None:
        super().__init__(RunSettings())
        self._fixed = answers
        self._pages = pages

    def feed(self, event: MachineEvent, now: int) -> list[MachineCommand]:
        """Write the event down, and answer what is laid down for its kind."""
        self._pages.append(event)
        return list(self._fixed.get(type(event), []))


class World:
    """A world in which everything is ready, which writes down what is done to it."""

    pid, descriptor, containment = 7, 0, "group"

    def __init__(self, pages: list[Any], ready: set[str]) -> None:
        self._pages = pages
        self._ready = ready

    def poll(self) -> set[str]:
        """Tell what is laid down."""
        return self._ready

    def watch_stream(self, name: str, *, wanted: bool) -> None:
        """Write it down."""
        self._pages.append(f"watch {name}")

    def read(self, name: str, limit: int) -> bytes | None:
        """Give some bytes."""
        self._pages.append(f"read {name}")
        return b"x"

    def write(self, data: memoryview) -> int | None:
        """Take nothing."""
        return None

    def close_stdin(self) -> None:
        """Write it down."""
        self._pages.append("close")

    def read_exit_status(self) -> int:
        """Tell of a good exit."""
        return 0

    def terminate(self, reach: str = "tree") -> None:
        """Write it down."""
        self._pages.append("terminate")

    def kill(self, reach: str = "tree") -> None:
        """Write it down."""
        self._pages.append("kill")

    def is_alone(self) -> bool:
        """Write it down; no process is left."""
        self._pages.append("sweep")
        return True

    def reap(self) -> None:
        """Write it down."""
        self._pages.append("reap")

    def kill_and_reap(self) -> int:
        """Write it down."""
        self._pages.append("abandon")
        return -9

    def list_survivors(self) -> list[int]:
        """Know of none."""
        return []

    def close(self) -> None:
        """Write it down."""
        self._pages.append("over")


def look_once(answers: dict[type[Any], list[MachineCommand]], *ready: str) -> list[Any]:
    """Take one look at a world; give what was fed and done, in one order."""
    pages: list[Any] = []
    driver = Driver(Log(answers, pages), lambda _containment: World(pages, set(ready)), lambda: 0)
    driver.agent = World(pages, set(ready))
    driver.look()
    return pages


def test_the_answer_to_a_command_is_fed_before_the_next_command() -> None:
    """And what the answer asks for comes before what was still to do, however deep."""
    answers: dict[type[Any], list[MachineCommand]] = {
        machine_events.StreamReady: [machine_events.ReadStream("stdout", 9), TERM, machine_events.ReapAgent()],
        machine_events.OutputRead: [machine_events.FindSurvivors(), machine_events.WatchStream("stdout", False)],
        machine_events.TreeSwept: [machine_events.CloseStdin()],
    }
    lines = [
        machine_events.StreamReady("stdout"),
        "read stdout",
        machine_events.OutputRead("stdout", b"x", drained=True),
        "sweep",
        machine_events.TreeSwept(alone=True),
    ]
    assert look_once(answers, "stdout") == [
        *lines,
        "close",
        "watch stdout",
        "terminate",
        machine_events.SignalsSent(),
        "reap",
    ]


def test_a_command_without_an_answer_feeds_nothing() -> None:
    """A write that would block is no event."""
    answers: dict[type[Any], list[MachineCommand]] = {
        machine_events.StreamReady: [machine_events.WriteStdin(memoryview(b"x")), machine_events.ReapAgent()]
    }
    assert look_once(answers, "stdin") == [machine_events.StreamReady("stdin"), "reap"]


def test_a_look_takes_the_streams_before_the_exit() -> None:
    """Both are taken again with the exit: the last bytes may have come between the two (C4)."""
    streams = [machine_events.StreamReady("stdout"), machine_events.StreamReady("stderr")]
    taken = look_once({}, "exit", "stderr", "stdin", "stdout", "members")
    assert taken == [machine_events.StreamReady("stdin"), *streams, *streams, machine_events.AgentExited(0)]


def test_dead_descendants_are_a_reason_to_sweep() -> None:
    """Their descriptors say it; a look finds the processes that are left."""
    assert look_once({}, "members") == ["sweep", machine_events.TreeSwept(alone=True)]
