"""A session that is over, in the words of a verdict. Reads what it told; asks nobody."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from pytest_agentproc.supervisor._turn import TurnResult
from pytest_agentproc.vocabulary import Answer, View

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pytest_agentproc.supervisor._intents import SessionEvent
    from pytest_agentproc.supervisor._session import Session

__all__ = ["report", "view"]

_SHOWN = frozenset({"message", "error"})
"""The kinds of events that a viewer's transcript is made of."""


def report(
    session: Session, *, turns: int, views: Mapping[str, View], called: Sequence[tuple[str, int]] = ()
) -> Answer:
    """Sum a session up.

    Args:
        session: one that is over.
        turns: how many prompts were given.
        views: what its viewers saw, by name.
        called: the hooks whose callbacks were called, with the instants.
    """
    events = session.transcript
    results = {event.turn: event.result for event in events if event.kind == "outcome"}
    background = [event.result for event in events if event.kind == "background"]
    return Answer(
        turns=tuple(_answer(results.get(number)) for number in range(1, turns + 1)),
        background=tuple(_answer(result) for result in background if result and result.text),
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


def view(events: Collection[SessionEvent]) -> View:
    """Say what a viewer makes of the events that it saw."""
    statuses = [event.text for event in events if event.kind == "status"]
    told = [event.text for event in events if event.kind in _SHOWN]
    return View(statuses[-1] if statuses else "starting", "\n".join(told))


def _answer(result: TurnResult | None) -> Answer:
    if result is None:
        return Answer()
    told = {name: getattr(result, name) for name in _TOLD}
    return Answer(**(told | {"outcome": result.outcome.value}))


_TOLD = [one.name for one in fields(Answer) if one.name in {own.name for own in fields(TurnResult)}]
"""What an answer says of a turn."""
