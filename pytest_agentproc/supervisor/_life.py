"""One agent process as a machine sees it: its streams, its signals, its end. Judges neither a run nor a turn.

The common part of the machine of a run and the machine of a session. Each says for itself what bytes are worth, what
lines mean, and what follows an exit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor import _events as on
from pytest_agentproc.supervisor._streams import Tail

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.supervisor._ending import Escalation
    from pytest_agentproc.supervisor._events import Command, Event
    from pytest_agentproc.supervisor._streams import Feeder, Framing
    from pytest_agentproc.supervisor.dialects import Meaning
    from pytest_agentproc.vocabulary import Outcome


_STREAMS = ("stdout", "stderr")
_TAIL = 64 * 1024
_MOST_READS = 16
"""So often a stream is read in one look: as much as a pipe can hold, so that who prints without end blocks no loop."""


class Life(ABC):
    """Follow one process at a time.

    `status` is its exit code, or minus a signal's number, once it has ended. `forced` says that our signal was sent
    before. `spawned_at` is when it was started, `output_at` when its last byte came, None while there was none.
    `outcome` is a run's; a session has none.
    """

    outcome: Outcome | None = None

    feeder: Feeder
    framing: Framing
    ladder: Escalation
    status: int | None
    forced: bool

    def begin(self, feeder: Feeder, framing: Framing, ladder: Escalation, max_line_bytes: int) -> None:
        """Be ready for a new process."""
        self.feeder, self.framing, self.ladder = feeder, framing, ladder
        framing.limit = max_line_bytes
        self.status = None
        self.forced = False
        self.spawned_at = 0
        self.output_at: int | None = None
        self.meanings: list[Meaning] = []
        self._stderr = Tail(_TAIL)
        self._reads = 0
        self._to_read: dict[str, list[Command]] = {stream: [on.Read(stream, feeder.READ_LIMIT)] for stream in _STREAMS}
        self._watched: list[str] = []

    def listen(self) -> None:
        """Say who answers which event."""
        self._answers: dict[type[Any], Callable[[Any, int], list[Command]]] = {
            on.Start: self._start,
            on.Spawned: self._spawned,
            on.SpawnFailed: self._spawn_failed,
            on.Ready: self._ready,
            on.Output: self._output,
            on.Eof: self._eof,
            on.Wrote: self._wrote,
            on.Broken: self._broken,
            on.Exited: self._exited,
            on.Swept: self._swept,
            on.Signalled: self._signalled,
            on.Due: self._due,
        }

    @property
    def stderr_tail(self) -> bytes:
        """The end of what the agent told on stderr (F4)."""
        return bytes(self._stderr)

    # Streams.

    def _ready(self, event: on.Ready, now: int) -> list[Command]:
        if event.stream != "stdin":
            self._reads = 0
            return self._to_read[event.stream]
        return [] if self.feeder.is_closed else [on.Write(self.feeder.rest)]

    def _close_stdin(self) -> list[Command]:
        return [on.Watch("stdin", False), *self.feeder.end(), *self._watch()]

    def _watch(self) -> list[Command]:
        """Watch the streams that are to be read now, and no others."""
        before, self._watched = self._watched, list(self.feeder.streams)
        changed = [stream for stream in _STREAMS if (stream in before) is not (stream in self._watched)]
        return [on.Watch(stream, stream in self._watched) for stream in changed]

    def _output(self, event: on.Output, now: int) -> list[Command]:
        self._stir(event, now)
        if event.data:
            self.output_at = now
        self._reads += 1
        is_enough = event.drained or self._reads >= _MOST_READS
        more = [] if is_enough else self._to_read[event.stream]
        if event.stream == "stderr":
            self._stderr.add(event.data)
            return more
        return self._understand(self.framing.feed(event.data), now) + more

    # The end.

    def _signalled(self, event: on.Signalled, now: int) -> list[Command]:
        self.ladder.signalled(now)
        return []

    def _signal(self, command: Command) -> list[Command]:
        """Signal. Once the agent has ended, a sweep says whether any process is left to wait for."""
        if self.status is None:
            self.forced = True
        return [command]

    # The decisions that each machine makes itself.

    @abstractmethod
    def feed(self, event: Event, now: int) -> list[Command]:
        """Take one event at an instant (nanoseconds); return what to do about it, in order."""

    @property
    @abstractmethod
    def deadlines(self) -> dict[str, int]: ...
    @property
    @abstractmethod
    def deadline(self) -> int | None: ...

    @abstractmethod
    def _stir(self, event: on.Output, now: int) -> None: ...
    @abstractmethod
    def _understand(self, lines: list[bytes], now: int) -> list[Command]: ...
    @abstractmethod
    def _start(self, event: on.Start, now: int) -> list[Command]: ...
    @abstractmethod
    def _spawned(self, event: on.Spawned, now: int) -> list[Command]: ...
    @abstractmethod
    def _spawn_failed(self, event: on.SpawnFailed, now: int) -> list[Command]: ...
    @abstractmethod
    def _eof(self, event: on.Eof, now: int) -> list[Command]: ...
    @abstractmethod
    def _wrote(self, event: on.Wrote, now: int) -> list[Command]: ...
    @abstractmethod
    def _broken(self, event: on.Broken, now: int) -> list[Command]: ...
    @abstractmethod
    def _exited(self, event: on.Exited, now: int) -> list[Command]: ...
    @abstractmethod
    def _swept(self, event: on.Swept, now: int) -> list[Command]: ...
    @abstractmethod
    def _due(self, event: on.Due, now: int) -> list[Command]: ...
