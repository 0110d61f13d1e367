"""Facts that a record proves by itself, on the agent's side, of one session or several."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from pytest_agentproc.events import (
    Leaked,
    OutcomeReached,
    OutputWritten,
    ProcessEnded,
    ProcessGone,
    ProcessStarted,
    Returned,
    SignalCaught,
    SignalSent,
    StepBegun,
    SupervisorView,
    TimerArmed,
    TimerEvent,
)
from pytest_agentproc.record import select_session_events
from pytest_agentproc.supervisor.dialects import parse_objects
from pytest_agentproc.vocabulary import RunReport, parse_signal_name

if TYPE_CHECKING:
    from pytest_agentproc.events import Event
    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.record import Record


@dataclass(frozen=True, slots=True)
class EndStatus:
    """How a process ended: a code or a signal (neither: unknown), and whether another process made it end."""

    code: int | None
    signal: str | None
    forced: bool
    at: int

    def list_exit_codes(self) -> tuple[int, ...]:
        """List the exit codes that report this end: its own, or a signal as Python and as a shell report it."""
        if self.signal is None:
            return () if self.code is None else (self.code,)
        number = parse_signal_name(self.signal)
        return -number, 128 + number


def list_leaks(record: Record) -> list[Leaked]:
    """List the processes that were left, in the order in which they were found."""
    return [event for event in record.events if isinstance(event, Leaked)]


def list_signals(record: Record, process: str | None = None) -> list[tuple[str, int]]:
    """List the signals that a process caught, and the signal it died of, with their instants.

    Args:
        record: what happened.
        process: which process; None: every agent, in the order of time.
    """
    whose = _list_agents(record) if process is None else [process]
    return [
        (event.signal, event.at)
        for event in record.events
        if isinstance(event, SignalCaught | ProcessEnded) and event.signal and event.process in whose
    ]


def find_end_status(record: Record, process: str | None = None) -> EndStatus | None:
    """Say how a process ended; None if it did not, or was never there.

    It was forced if a signal had reached it before, or was on its way from the supervisor. A signal that a script
    step raises (`die`) is the agent's own will.

    Args:
        record: what happened.
        process: which process; None: the last agent that was started.
    """
    process = _list_agents(record)[-1] if process is None else process
    reached = False
    step = ""
    for event in record.events:
        if isinstance(event, SignalSent) and event.process == "tree":
            reached = True
        if event.process != process:
            continue
        match event:
            case ProcessStarted():
                reached = False  # a signal to the tree was for the agent before
            case SignalCaught() | SignalSent():
                reached = True
            case StepBegun():
                step = event.step
            case ProcessEnded(code=code, signal=signal):
                is_forced = reached or bool(signal and not step.startswith("die"))
                return EndStatus(code, signal or None, is_forced, event.at)
    return None


def had_agent_ended_itself(record: Record, before: int) -> bool:
    """Say whether the agent that ended last, at or before an instant, had got no signal of its supervisor's."""
    ends = [
        death
        for name in _list_started_processes(record)
        if (death := find_end_status(record, name)) is not None and death.at <= before
    ]
    return bool(ends) and not max(ends, key=lambda end: end.at).forced


def _list_started_processes(record: Record) -> list[str]:
    """List the processes that the supervisor itself started, each start of an agent as one."""
    return [name for name, _ in list_agent_starts(record)] or ["agent"]


def was_agent_started(record: Record) -> bool:
    """Say whether an agent was there at all: it told so itself, whatever its supervisor says."""
    return any(not isinstance(event, SupervisorView) and event.process == "agent" for event in record.events)


def find_first_seen_at(record: Record, process: str) -> int | None:
    """Give the instant at which a process was first heard of."""
    return next((event.at for event in record.events if event.process == process), None)


def list_agent_starts(record: Record) -> list[tuple[str, int]]:
    """List the invocations of the agent by name, with the instants of their starts, in order."""
    return [
        (event.process, event.at) for event in record.events if isinstance(event, ProcessStarted) and event.is_agent
    ]


def list_expired_timers(record: Record) -> list[str]:
    """List the supervisor's timers that came due, by the names of their limits."""
    due: dict[str, int] = {}
    expired: dict[str, None] = {}
    for event in record.events:
        expired |= dict.fromkeys(name for name, instant in due.items() if instant <= event.at)
        if isinstance(event, TimerEvent):
            due.pop(event.timer, None)
            if isinstance(event, TimerArmed):
                due[event.timer] = event.armed
    return [*expired]


def list_turning_points(record: Record) -> list[int]:
    """List the instants at which an agent was started, got a signal, or ended."""
    agents, kinds = _list_agents(record), SignalCaught | ProcessEnded
    touched = (event.at for event in record.events if isinstance(event, kinds) and event.process in agents)
    return [*(at for _, at in list_agent_starts(record)), *touched]


def _list_agents(record: Record) -> list[str]:
    """List the names of the agents in the order of their starts: `agent`, then `agent 2` and so on."""
    later = [name for name, _ in list_agent_starts(record) if name.startswith("agent ")]
    return ["agent", *later]


def find_gone_at(record: Record, process: str) -> int | None:
    """Give the instant at which a process ended; None if it never did."""
    ends = (event for event in record.events if isinstance(event, ProcessEnded | ProcessGone))
    return next((event.at for event in ends if event.process == process), None)


def find_last_byte_at(record: Record) -> int | None:
    """Give the instant of the last output of any process in the tree before the outcome: what follows is its end."""
    before = takewhile(lambda event: not isinstance(event, OutcomeReached), record.events)
    return max((event.at for event in before if isinstance(event, OutputWritten)), default=None)


def find_outcome_at(record: Record) -> int | None:
    """Give the instant at which the supervisor had its outcome."""
    return _find_first_at(record, OutcomeReached)


def find_returned_at(record: Record) -> int | None:
    """Give the instant at which the supervisor gave its answer and was done with the tree."""
    return _find_first_at(record, Returned)


def find_first_action_at(record: Record) -> int | None:
    """Give the instant of the supervisor's first signal to the tree, or of its return: it had its outcome by then."""
    caught = [event.at for event in record.events if isinstance(event, SignalCaught)]
    processes = {event.process for event in record.events if isinstance(event, ProcessEnded)}
    ends = [end for end in (find_end_status(record, process) for process in processes) if end is not None]
    killed = [end.at for end in ends if end.forced and end.signal is not None]
    returned = find_returned_at(record)
    return min([*caught, *killed, *([] if returned is None else [returned])], default=None)


def _find_first_at(record: Record, kind: type[Event]) -> int | None:
    return next((event.at for event in record.events if isinstance(event, kind)), None)


def list_lines_without_event(record: Record) -> list[str]:
    """List the lines of the agents' stdout that are no JSON objects, as far as the record kept them whole."""
    printed: dict[str, list[bytes]] = {}
    agents = _list_agents(record)
    for event in record.events:
        if isinstance(event, OutputWritten) and event.stream == "stdout" and event.process in agents:
            # A piece that was not kept whole may hold anything: it makes no line odd.
            piece = event.bytes if isinstance(event.bytes, bytes) else b"\n"
            printed.setdefault(event.process, []).append(piece)
    lines = (line for pieces in printed.values() for line in b"".join(pieces).split(b"\n"))
    return [line.decode(errors="replace") for line in lines if parse_objects(line) is None]


def find_last_step(record: Record, process: str = "agent") -> int | None:
    """Give the line of the last step that a process began."""
    lines = [event.line for event in record.events if isinstance(event, StepBegun) and event.process == process]
    return lines[-1] if lines else None


def select_session_play(played: PlayResult, key: str) -> tuple[PlayResult, str]:
    """Give what a check looks at: of `sessions.NAME.KEY` that session's play and its KEY, else the play itself."""
    head, _, rest = key.partition(".")
    if head != "sessions" or not rest:
        return played, key
    name, _, own = rest.partition(".")
    answer = played.answer
    if answer is not None:
        answer = (answer.sessions or {}).get(name, RunReport())
    record = select_session_events(played.record, name)
    return played.select_part(answer, bound=played.bound.parts[name], record=record), own


def was_any_agent_started(played: PlayResult) -> bool:
    """Say whether an agent was there at all, of any session."""
    names = played.bound.parts
    return (
        any(was_agent_started(select_session_events(played.record, name)) for name in names)
        if names
        else was_agent_started(played.record)
    )
