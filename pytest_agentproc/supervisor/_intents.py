"""What a session's caller wants, and what it is told. Values only; the machine and the session's door meet here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pytest_agentproc.supervisor._turn import TurnResult
    from pytest_agentproc.supervisor.dialects import Hook, Question

__all__ = ["AnswerIt", "CancelIt", "CloseIt", "DecideIt", "Intent", "Prompt", "RegisterIt", "SessionEvent", "StopIt"]

_SHOWN = 200
"""So many characters of a text are shown in a record."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """Ask; the number is the turn's."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class CancelIt:
    """Cancel a turn; None: the one in flight."""

    number: int | None = None


@dataclass(frozen=True, slots=True)
class AnswerIt:
    """Answer a question of the agent."""

    id: str
    allowed: bool


@dataclass(frozen=True, slots=True)
class RegisterIt:
    """Have a hook's callback called from now on."""

    name: str


@dataclass(frozen=True, slots=True)
class DecideIt:
    """Say whether a tool may run that a hook asks about."""

    id: str
    allowed: bool


@dataclass(frozen=True, slots=True)
class StopIt:
    """Force the agent to stop; a new one follows."""


@dataclass(frozen=True, slots=True)
class CloseIt:
    """End the session."""


Intent = Prompt | CancelIt | AnswerIt | RegisterIt | DecideIt | StopIt | CloseIt


class SessionEvent(NamedTuple):
    """Something that viewers of a session see.

    Args:
        at: the instant, in nanoseconds of the session's clock.
        kind: `status` (text: the new one), `prompt`, `message` (a whole one, also of an agent that sends pieces only),
            `delta` (a piece of one), `tool`, `question`, `outcome` (text: which), `background` (a background turn is
            over), `late` (words of a turn whose outcome was there), `hook` (the callback of one is called),
            `withdrawn` (a question or a hook's needs no answer of the caller's any more), `error`, `warning`, `stop`
            (the caller's word was heard) or `exit` (the agent and all its descendants are gone).
        turn: the number of the turn, 0 for a background turn, None for the session itself.
        text: what was said.
        result: with an `outcome` or a `background`: the result.
        question: with a `question`: what is asked; None where it was denied before the caller's handler heard of it.
        hook: with a `hook`: which.
    """

    at: int
    kind: str
    turn: int | None = None
    text: str = ""
    result: TurnResult | None = None
    question: Question | None = None
    hook: Hook | None = None

    def show(self) -> dict[str, Any]:
        """Give what it says in plain values, for a record; of a long text the beginning.

        What an error says is a message: it names commands and files, so it may differ where all that counts is equal.
        """
        text = self.text if len(self.text) <= _SHOWN else f"{self.text[:_SHOWN]}... ({len(self.text)} characters)"
        return {"event": self.kind, "turn": self.turn, "message" if self.kind == "error" else "text": text}
