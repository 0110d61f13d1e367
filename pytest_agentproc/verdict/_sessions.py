"""Owns the view of a play of several sessions as a play of one of them; judges nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_agentproc.record import one_session
from pytest_agentproc.verdict._facts import was_started
from pytest_agentproc.vocabulary import Answer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_agentproc.record import Record
    from pytest_agentproc.verdict._rows import Bound, Played

__all__ = ["any_was_started", "of_session"]


@dataclass(frozen=True, slots=True)
class _OfSession:
    """A play as if there were one session."""

    bound: Bound
    record: Record
    answer: Answer | None
    fault: Exception | None
    tolerance: int
    late: Callable[[int], int]
    artifacts: Mapping[str, bytes] | None
    undecided: str = ""
    reference: None = None
    unstated: None = None


def of_session(played: Played, key: str) -> tuple[Played, str]:
    """Give what a check looks at: of `sessions.NAME.KEY` that session's play and its KEY, else the play itself."""
    head, _, rest = key.partition(".")
    if head != "sessions" or not rest:
        return played, key
    name, _, own = rest.partition(".")
    answer = played.answer
    if answer is not None:
        answer = (answer.sessions or {}).get(name, Answer())
    record = one_session(played.record, name)
    part = played.bound.parts[name]
    return _OfSession(part, record, answer, played.fault, played.tolerance, played.late, None), own


def any_was_started(played: Played) -> bool:
    """Say whether an agent was there at all, of any session."""
    names = played.bound.parts
    return any(was_started(one_session(played.record, name)) for name in names) if names else was_started(played.record)
