"""Owns a record's facts about each start of an agent: its arguments, its input, its signals and its end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agentproc.events import InputRead, Payload, ProcessEnded, ProcessStarted, SignalCaught, StartReported
from pytest_agentproc.processes import open_process
from pytest_agentproc.vocabulary import NANOSECONDS_PER_SECOND, parse_signal_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_agentproc.events import StartFacts
    from pytest_agentproc.processes import Process
    from pytest_agentproc.record._record import Record


@dataclass(frozen=True, slots=True)
class AgentStart:
    """One start of a fake agent, as its own side reports it. Times are seconds of its clock.

    Args:
        name: `agent`, `agent 2`, ...
        at: the time of its start.
        argv: its arguments, without the command: the first 100, of each the first 1024 bytes.
        env: its environment, of each variable the first 1024 bytes, and 128 KiB of all in the order of their names.
        cwd: the folder of its start; `Path()` if it is not known.
        stdin: the bytes that it has read so far. Of more than 16 MiB in one instant, it has the beginning.
        signals: the signals that it caught or died of: [("TERM", 120.0), ...].
        ended_at: the time of its end. None: it lives.
        status: its exit code, or minus the number of the signal that ended it. None: it lives, or it is unknown.
        pid: its process; 0: it had none.
        born: when the kernel started it, as `ProcessStat.started` counts. None: it was gone when it was asked for.
    """

    name: str
    at: float
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    stdin: bytes
    signals: tuple[tuple[str, float], ...]
    ended_at: float | None
    status: int | None
    pid: int = 0
    born: int | None = field(default=None, repr=False, compare=False)

    @property
    def process(self) -> Process:
        """Its `psutil.Process`: memory, open files, connections, children and all else that psutil knows.

        psutil's `create_time()` is by the clock of the machine, in virtual time too.

        Raises:
            psutil.NoSuchProcess: it has ended.
        """
        return open_process(self.pid, self.born)


def list_agent_starts(
    record: Record, find_birth: Callable[[int], int | None] = lambda _pid: None
) -> tuple[AgentStart, ...]:
    """Give the starts of the agent in their order; its descendants are none.

    Args:
        record: what happened.
        find_birth: gives the birth of a living agent by its pid; see `AgentStart.born`.
    """
    roots = [event for event in record.events if isinstance(event, ProcessStarted) and event.is_agent]
    starts = [_read_agent_start(record, root) for root in roots]
    return tuple(replace(one, born=find_birth(one.pid)) if one.ended_at is None else one for one in starts)


def _read_agent_start(record: Record, root: ProcessStarted) -> AgentStart:
    given: StartFacts | None = None
    stdin: list[bytes] = []
    signals: list[tuple[str, float]] = []
    ended_at = status = None
    for event in record.events:
        if event.process != root.process:
            continue
        at = event.at / NANOSECONDS_PER_SECOND
        match event:
            case StartReported():
                given = given or event.given
            case InputRead():
                stdin.append(event.bytes.head if isinstance(event.bytes, Payload) else event.bytes)
            case SignalCaught():
                signals.append((event.signal, at))
            case ProcessEnded():
                ended_at, status = at, event.code
                if event.signal:
                    signals.append((event.signal, at))
                    status = -parse_signal_name(event.signal)
    env = {key: value for key, value in (given["env"] if given else {}).items() if value is not None}
    return AgentStart(
        name=root.process,
        at=root.at / NANOSECONDS_PER_SECOND,
        argv=tuple(given["argv"]) if given else (),
        env=env,
        cwd=Path(given["cwd"] if given else ""),
        stdin=b"".join(stdin),
        signals=tuple(signals),
        ended_at=ended_at,
        status=status,
        pid=root.pid,
    )
