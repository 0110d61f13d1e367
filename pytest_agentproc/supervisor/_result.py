"""The results that a run or a session gives to its caller. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from itertools import groupby
from typing import TYPE_CHECKING, Any

from pytest_agentproc.vocabulary import VIEWED_KINDS, Outcome, RunReport, View

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pytest_agentproc.supervisor._events import SessionEvent, TurnResult
    from pytest_agentproc.supervisor._session import Session


@dataclass(frozen=True, slots=True)
class Result:
    """How a run ended.

    Args:
        outcome: the ending; never raised.
        exit_code: what the supervising program should exit with.
        agent_status: the agent's exit code, or minus the number of the signal that ended it; None if it never ran,
            or if nobody here saw how it ended: then `exit_unknown` is a warning.
        forced: whether the supervisor's signal ended the agent.
        text: the final message, or the transcript in a dialect without messages.
        transcript: all messages or lines, the last `max_transcript_bytes` of them.
        stop_reason: the last one that the agent gave.
        model: the model that the agent named.
        usage: what the agent said that it used.
        error: why the ending is bad. For an exit without a result: the agent's own words about an error, the exit code
            or signal, the time since the last output, and the end of stderr. For a failed start: argv and errno.
        warnings: names of oddities: `exit_contradicts_result`, `exit_unknown`, `transcript_truncated`; and a
            sentence that names the background tasks that were stopped, or whose end was never reported.
        noise: how many lines meant nothing; escape sequences on the line of a frame are not counted.
        stderr_tail: the last 64 KiB of stderr.
        elapsed: nanoseconds from the spawn to the outcome.
        returned: nanoseconds from the spawn to the answer.
        leaks: pids of descendants that live on because we may not signal them.
        containment: which one held the tree: "group", "subreaper" or "keeper", perhaps a weaker one than was asked for;
            None if the agent never ran.
        unwritten: artifacts that could not be written, each with the reason; then `artifacts_incomplete` is a warning.
    """

    outcome: Outcome
    exit_code: int
    agent_status: int | None
    forced: bool
    text: str | None
    transcript: str
    stop_reason: str | None
    model: str | None
    usage: dict[str, Any] | None
    error: str
    warnings: tuple[str, ...]
    noise: int
    stderr_tail: bytes
    elapsed: int
    returned: int
    leaks: tuple[int, ...] = ()
    containment: str | None = None
    unwritten: Mapping[str, str] = field(default_factory=dict)

    def to_report(self) -> RunReport:
        """Put the result into the words of a verdict."""
        return _build_common_report(self)


_EVENT_KINDS_IN_TRANSCRIPT = frozenset({"message", "error"})
"""The kinds of events that a viewer's transcript is made of."""


def report_session(
    session: Session, *, turns: int, views: Mapping[str, View], called: Sequence[tuple[str, int]] = ()
) -> RunReport:
    """Sum a session up.

    Args:
        session: a closed or failed session.
        turns: how many prompts were given.
        views: the events that its viewers saw, by name.
        called: the hooks whose callbacks were called, with the instants.
    """
    events = session.transcript
    results = {event.turn: event.result for event in events if event.kind == "outcome"}
    background = [event.result for event in events if event.kind == "background"]
    return RunReport(
        turns=tuple(_build_common_report(results.get(number)) for number in range(1, turns + 1)),
        background=tuple(_build_common_report(result) for result in background if result and result.text),
        statuses=("starting", *(event.text for event in events if event.kind == "status")),
        viewers=dict(views),
        called=tuple(called),
        agent_status=session.agent_status,
        forced=session.forced,
        error=session.error,
        warnings=session.warnings,
        noise=session.noise,
        stderr_tail=session.stderr_tail,
    )


def summarize_view(events: Collection[SessionEvent]) -> View:
    """Say what a viewer makes of the events that it saw."""
    statuses = [event.text for event in events if event.kind == "status"]
    texts = [event.text for event in events if event.kind in _EVENT_KINDS_IN_TRANSCRIPT]
    saw = tuple(kind for kind, _ in groupby(event.kind for event in events if event.kind in VIEWED_KINDS))
    return View(statuses[-1] if statuses else "starting", "\n".join(texts), saw)


def _build_common_report(result: Result | TurnResult | None) -> RunReport:
    """Give the fields that a result and a report have in common; an empty report for none."""
    if result is None:
        return RunReport()
    shared = {part.name for part in fields(result)} & {part.name for part in fields(RunReport)}
    details = {name: getattr(result, name) for name in shared}
    if result.outcome is Outcome.COMPLETED and details["text"] is None:
        details["text"] = ""  # an agent that says nothing has an empty answer
    return RunReport(**(details | {"outcome": result.outcome.value}))
