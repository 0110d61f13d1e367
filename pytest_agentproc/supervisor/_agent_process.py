"""One agent process as a machine sees it: its streams, its signals, its end. Judges neither a run nor a turn.

The common part of the machine of a run and the machine of a session. Each says for itself what bytes are worth, what
lines mean, and what follows an exit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor import _events as machine_events
from pytest_agentproc.supervisor._streams import OutputTail

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.supervisor._ending import Escalation
    from pytest_agentproc.supervisor._events import MachineCommand, MachineEvent
    from pytest_agentproc.supervisor._streams import LineSplitter, StdinFeeder
    from pytest_agentproc.supervisor.dialects import Meaning
    from pytest_agentproc.vocabulary import Outcome


_OUTPUT_STREAM_NAMES = ("stdout", "stderr")
_MAX_STDERR_TAIL_BYTES = 64 * 1024
_MAX_READS_PER_LOOK = 16
"""So often a stream is read in one look: as much as a pipe can hold, so that who prints without end blocks no loop."""


class ProcessMachine(ABC):
    """Follow one process at a time.

    `has_exited` says that it has ended. `status` is then its exit code, or minus a signal's number; None means that
    another part of this program reaped it. `forced` says that our signal was sent before. `spawned_at` is when it was
    started, `output_at` when its last byte came, None while there was none. `outcome` is a run's; a session has none.
    """

    outcome: Outcome | None = None

    feeder: StdinFeeder
    framing: LineSplitter
    escalation: Escalation
    abandonment: Any  # an `Abandonment` of the driver, which imports this file
    has_exited: bool
    status: int | None
    forced: bool

    def prepare_process(
        self, feeder: StdinFeeder, framing: LineSplitter, escalation: Escalation, max_line_bytes: int | None
    ) -> None:
        """Be ready for a new process."""
        self.feeder, self.framing, self.escalation = feeder, framing, escalation
        framing.limit = max_line_bytes
        self.has_exited = False
        self.status = None
        self.forced = False
        self.spawned_at = 0
        self.output_at: int | None = None
        self.meanings: list[Meaning] = []
        self._stderr = OutputTail(_MAX_STDERR_TAIL_BYTES)
        self._reads = 0
        self._to_read: dict[str, list[MachineCommand]] = {
            stream: [machine_events.ReadStream(stream, feeder.READ_LIMIT)] for stream in _OUTPUT_STREAM_NAMES
        }
        self._watched: list[str] = []

    def register_handlers(self) -> None:
        """Say who answers which event."""
        self._answers: dict[type[Any], Callable[[Any, int], list[MachineCommand]]] = {
            machine_events.RunStarted: self._handle_start,
            machine_events.AgentSpawned: self._handle_spawned,
            machine_events.SpawnFailed: self._handle_spawn_failed,
            machine_events.StreamReady: self._handle_ready,
            machine_events.OutputRead: self._handle_output,
            machine_events.StreamEnded: self._handle_eof,
            machine_events.StdinWritten: self._handle_wrote,
            machine_events.StdinBroken: self._handle_broken_stdin,
            machine_events.AgentExited: self._handle_exit,
            machine_events.TreeSwept: self._handle_swept,
            machine_events.SignalsSent: self._handle_signalled,
            machine_events.DeadlineReached: self._handle_deadline,
        }

    @property
    def stderr_tail(self) -> bytes:
        """The end of what the agent told on stderr (F4)."""
        return bytes(self._stderr)

    # Streams.

    def _handle_ready(self, event: machine_events.StreamReady, now: int) -> list[MachineCommand]:
        if event.stream != "stdin":
            self._reads = 0
            return self._to_read[event.stream]
        return [] if self.feeder.is_closed else [machine_events.WriteStdin(self.feeder.unwritten_bytes)]

    def _close_stdin(self) -> list[MachineCommand]:
        return [machine_events.WatchStream("stdin", False), *self.feeder.end_input(), *self._watch_open_streams()]

    def _watch_open_streams(self) -> list[MachineCommand]:
        """Watch the streams that are to be read now, and no others."""
        before, self._watched = self._watched, list(self.feeder.streams)
        changed = [stream for stream in _OUTPUT_STREAM_NAMES if (stream in before) is not (stream in self._watched)]
        return [machine_events.WatchStream(stream, stream in self._watched) for stream in changed]

    def _handle_output(self, event: machine_events.OutputRead, now: int) -> list[MachineCommand]:
        self._note_output(event, now)
        if event.data:
            self.output_at = now
        self._reads += 1
        is_enough = event.drained or self._reads >= _MAX_READS_PER_LOOK
        more = [] if is_enough else self._to_read[event.stream]
        if event.stream == "stderr":
            self._stderr.add(event.data)
            return more
        return self._handle_lines(self.framing.feed(event.data), now) + more

    # The end.

    def _handle_signalled(self, event: machine_events.SignalsSent, now: int) -> list[MachineCommand]:
        self.escalation.restart_kill_grace(now)
        return []

    def _note_signal(self, command: MachineCommand) -> list[MachineCommand]:
        """Signal. Once the agent has ended, a sweep says whether any process is left to wait for."""
        if not self.has_exited:
            self.forced = True
        return [command]

    # The decisions that each machine makes itself.

    @abstractmethod
    def feed(self, event: MachineEvent, now: int) -> list[MachineCommand]:
        """Take one event at an instant (nanoseconds); return what to do about it, in order."""

    @property
    @abstractmethod
    def deadlines(self) -> dict[str, int]: ...
    @property
    @abstractmethod
    def deadline(self) -> int | None: ...

    @abstractmethod
    def _note_output(self, event: machine_events.OutputRead, now: int) -> None: ...
    @abstractmethod
    def _handle_lines(self, lines: list[bytes], now: int) -> list[MachineCommand]: ...
    @abstractmethod
    def _handle_start(self, event: machine_events.RunStarted, now: int) -> list[MachineCommand]: ...
    @abstractmethod
    def _handle_spawned(self, event: machine_events.AgentSpawned, now: int) -> list[MachineCommand]: ...
    @abstractmethod
    def _handle_spawn_failed(self, event: machine_events.SpawnFailed, now: int) -> list[MachineCommand]: ...
    @abstractmethod
    def _handle_eof(self, event: machine_events.StreamEnded, now: int) -> list[MachineCommand]: ...
    @abstractmethod
    def _handle_wrote(self, event: machine_events.StdinWritten, now: int) -> list[MachineCommand]: ...
    @abstractmethod
    def _handle_broken_stdin(self, event: machine_events.StdinBroken, now: int) -> list[MachineCommand]: ...
    @abstractmethod
    def _handle_exit(self, event: machine_events.AgentExited, now: int) -> list[MachineCommand]: ...
    @abstractmethod
    def _handle_swept(self, event: machine_events.TreeSwept, now: int) -> list[MachineCommand]: ...
    @abstractmethod
    def _handle_deadline(self, event: machine_events.DeadlineReached, now: int) -> list[MachineCommand]: ...
