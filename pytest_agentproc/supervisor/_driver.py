"""Carries the machine's commands out, one look a wake. Owns the order of a look; judges nothing.

A look takes, in this order: stdin, stdout, stderr (each until it would block), the exit, the descendants, the deadline.
The answer to a command is fed before the next command. The effects of the commands are seen in the next look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from pytest_agentproc import events
from pytest_agentproc.interrupts import hold_interrupts
from pytest_agentproc.supervisor import _events as machine_events
from pytest_agentproc.vocabulary import split_exit_status

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.supervisor._agent_process import ProcessMachine
    from pytest_agentproc.supervisor._events import MachineCommand, MachineEvent
    from pytest_agentproc.supervisor.dialects import Meaning


class AgentProcess(Protocol):
    """The world as a driver sees it: `pytest_agentproc.tree.AgentChild` for real, a stage in memory in the model."""

    pid: int
    containment: str

    @property
    def descriptor(self) -> int: ...
    def poll(self) -> set[str]: ...
    def watch_stream(self, name: str, *, wanted: bool) -> None: ...
    def read(self, name: str, limit: int) -> bytes | None: ...
    def write(self, data: memoryview) -> int | None: ...
    def close_stdin(self) -> None: ...
    def read_exit_status(self) -> int | None: ...
    def terminate(self, reach: str = "tree") -> None: ...
    def kill(self, reach: str = "tree") -> None: ...
    def is_alone(self) -> bool: ...
    def reap(self) -> None: ...
    def kill_and_reap(self) -> int | None: ...
    def list_survivors(self) -> list[int]: ...
    def close(self) -> None: ...


class Abandonment:
    """Let go of agents: of one that has ended, and of one that lives on when the supervisor is cancelled.

    A cancellation gives no process a grace any more. Every process ends before the cancellation continues.
    """

    def end(self, agent: AgentProcess) -> int | None:
        """Leave no process, and report how the agent ended: a code, or minus a signal's number; None: not known."""
        return agent.kill_and_reap()

    def release(self, agent: AgentProcess) -> None:
        """Give back what an agent that has ended still holds: its pipes, and the descriptors that watch it."""
        agent.close()


class Driver:
    """Drive one machine.

    `order` is the order in which a look takes the streams.

    Args:
        machine: the machine that decides.
        spawn: starts the agent, its tree held by a containment; raises OSError if it cannot.
        now: the clock, in nanoseconds.
        trace: called with (instant, code, data) for the record's supervisor side; None: no trace.
        keep: called with each event, what it meant, and its instant; None: nothing is kept.
    """

    order = ("stdin", "stdout", "stderr")

    def __init__(
        self,
        machine: ProcessMachine,
        spawn: Callable[[str], AgentProcess],
        now: Callable[[], int],
        trace: events.Trace | None = None,
        keep: Callable[[MachineEvent, list[Meaning], int], None] | None = None,
    ) -> None:
        self.machine: ProcessMachine = machine
        self.agent: AgentProcess | None = None
        self.deadline: int | None = None
        """See `WatchedRun`."""
        self.news = False
        """See `WatchedRun`."""
        self._spawn = spawn
        self._now = now
        self._trace = trace
        self._keep = keep
        self._timers: dict[str, int] = {}
        self._told = False
        self._done = False
        self._containment: str | None = None
        self._execute: dict[type[Any], Callable[[Any], MachineEvent | None]] = {
            machine_events.SpawnAgent: self._do_spawn,
            machine_events.WatchStream: self._do_watch,
            machine_events.ReadStream: self._do_read,
            machine_events.WriteStdin: self._do_write,
            machine_events.CloseStdin: self._do_close,
            machine_events.SendSignal: self._do_signal,
            machine_events.FindSurvivors: self._do_sweep,
            machine_events.ReapAgent: self._do_reap,
            machine_events.FinishRun: self._do_finish,
        }

    @property
    def containment(self) -> str | None:
        """Which containment holds the agent, or held the last one; None while none was started."""
        if self.agent is not None:
            self._containment = self.agent.containment
        return self._containment

    def release_handlers(self) -> None:
        """Carry nothing out any more: its methods, which it holds, hold it."""
        self._execute.clear()

    # The events that a clock sees.

    @property
    def descriptor(self) -> int | None:
        """See `WatchedRun`."""
        return None if self.agent is None else self.agent.descriptor

    def look(self) -> bool:
        """Take one look; return whether the run is over."""
        now = self._now()
        agent = self.agent
        if agent is None:
            self._feed(machine_events.RunStarted(), now)
            return self._trace_changes(self._update_next_look(), now)
        has_news = self._feed_ready_events(agent, now)
        return self._trace_changes(self._fire_deadline(now, has_news=has_news), now)

    def describe(self) -> str:
        """See `WatchedRun`."""
        return "waits for output or the exit of its agent, and no timer runs"

    def _feed_ready_events(self, agent: AgentProcess, now: int) -> bool:
        """Tell of all that is there; return whether there was anything."""
        ready = agent.poll()
        for stream in self.order:
            if stream in ready:
                self._feed(_READY_EVENT_BY_STREAM[stream], now)
        if "exit" in ready:
            self._feed_exit(agent, now)
        elif "members" in ready:
            self._feed(machine_events.TreeSwept(agent.is_alone()), now)
        return bool(ready)

    def _fire_deadline(self, now: int, *, has_news: bool) -> dict[str, int]:
        """Tell of the deadline if it has come; return the timers that then run.

        One that stood at this very instant already is not told beside news: there may be more to come of what the
        agent does now, and that goes first (A4). The clock has the run look once more when there is none. A timer of
        zero length, which the news set, waits for no process.
        """
        stood = self.deadline
        timers = self._update_next_look()
        if self.deadline is None or self.deadline > now or (has_news and stood == now):
            return timers
        if not self._done:
            self._trace_event(events.TimerFired(self._now(), "supervisor", _find_due_timer(timers, now)))
            self._feed(machine_events.DeadlineReached(), now)
            timers = self._update_next_look()
        return timers

    def _update_next_look(self) -> dict[str, int]:
        """Find out when to look again whatever happens; return the timers that run."""
        timers = self.machine.deadlines
        self.deadline = min(timers.values()) if timers else None
        return timers

    def _feed_exit(self, agent: AgentProcess, now: int) -> None:
        """Read the bytes that came before the exit, then report it: the poll may have been between the two (C4)."""
        for stream in tuple(self.machine.feeder.streams):
            self._feed(_READY_EVENT_BY_STREAM[stream], now)
        status = agent.read_exit_status()
        self._trace_event(events.EndSeen(self._now(), "agent", *split_exit_status(status)))
        self._feed(machine_events.AgentExited(status), now)

    def _feed(self, event: MachineEvent, now: int) -> None:
        """Feed an event; each answer goes in before the next command goes out."""
        self._carry_out(self._pass_to_machine(event, now))

    def _carry_out(self, commands: list[MachineCommand]) -> None:
        left, execute = commands[::-1], self._execute
        while left:
            command = left.pop()
            answer = execute[type(command)](command)
            if answer is not None:
                left += self._pass_to_machine(answer, self._now())[::-1]

    def _pass_to_machine(self, event: MachineEvent, now: int) -> list[MachineCommand]:
        commands = self.machine.feed(event, now)
        if self._keep is not None:
            self._keep(event, self.machine.meanings, now)
        return commands

    # Commands.

    def _do_spawn(self, command: machine_events.SpawnAgent) -> MachineEvent:
        former = self.agent
        try:
            with hold_interrupts():  # an agent that nobody knows would live on
                self.agent = self._spawn(command.containment)
        except OSError as error:
            return machine_events.SpawnFailed(
                error.errno or 0, f"{error.filename or 'agent'}: {error.strerror or error}"
            )
        if former is not None:  # a wrong decider starts an agent where one is
            former.close()
        return machine_events.AgentSpawned(self.agent.pid)

    def _do_watch(self, command: machine_events.WatchStream) -> None:
        self._require_agent().watch_stream(command.stream, wanted=command.wanted)

    def _do_read(self, command: machine_events.ReadStream) -> MachineEvent | None:
        stream = command.stream
        data = self._require_agent().read(stream, command.limit)
        if data is None:
            return None
        if not data:
            self._trace_event(events.OutputEndRead(self._now(), "agent", stream))
            return machine_events.StreamEnded(stream)
        size = len(data)
        self._trace_event(events.OutputRead(self._now(), "agent", size, stream))
        return machine_events.OutputRead(stream, data, size < command.limit)

    def _do_write(self, command: machine_events.WriteStdin) -> MachineEvent | None:
        try:
            count = self._require_agent().write(command.data)
        except BrokenPipeError:
            self._trace_event(events.InputBroken(self._now(), "agent"))
            return machine_events.StdinBroken()
        if count is None:
            return None
        self._trace_event(events.InputWritten(self._now(), "agent", count))
        return machine_events.StdinWritten(count)

    def _do_close(self, command: machine_events.CloseStdin) -> None:
        self._trace_event(events.InputClosed(self._now(), "agent"))
        self._require_agent().close_stdin()

    def _do_signal(self, command: machine_events.SendSignal) -> MachineEvent:
        self._trace_event(events.SignalSent(self._now(), command.reach, command.name))
        world = self._require_agent()
        (world.terminate if command.name == "TERM" else world.kill)(command.reach)
        return machine_events.SignalsSent()

    def _do_sweep(self, command: machine_events.FindSurvivors) -> MachineEvent:
        return machine_events.TreeSwept(self._require_agent().is_alone())

    def _do_reap(self, command: machine_events.ReapAgent) -> None:
        self._require_agent().reap()

    def _do_finish(self, command: machine_events.FinishRun) -> None:
        self._done = True

    def _require_agent(self) -> AgentProcess:
        assert self.agent is not None
        return self.agent

    # The supervisor's side of the record.

    def _trace_changes(self, timers: dict[str, int], now: int) -> bool:
        machine, trace = self.machine, self._trace
        if trace is not None:
            if timers != self._timers:
                self._trace_timers(trace, now, dict(timers))
            if machine.outcome is not None and not self._told:
                self._told = True
                trace(events.OutcomeReached(now, "supervisor", machine.outcome.value))
        return self._done

    def _trace_event(self, event: events.Event) -> None:
        if self._trace is not None:
            self._trace(event)

    def _trace_timers(self, trace: events.Trace, now: int, timers: dict[str, int]) -> None:
        before, self._timers = self._timers, timers
        for name, instant in timers.items():
            if before.get(name) != instant:
                trace(events.TimerArmed(now, "supervisor", name, instant))
        for name in before:
            if name not in timers:
                trace(events.TimerStopped(now, "supervisor", name))


_READY_EVENT_BY_STREAM = {stream: machine_events.StreamReady(stream) for stream in ("stdin", "stdout", "stderr")}


def _find_due_timer(deadlines: dict[str, int], now: int) -> str:
    return min((name for name, at in deadlines.items() if at <= now), key=lambda name: deadlines[name])
