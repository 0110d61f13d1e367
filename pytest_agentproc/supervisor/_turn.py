"""One turn: what was asked, what came back, how it ended. Values only; decides nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_agentproc.vocabulary import exit_code

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects import Ended, Said
    from pytest_agentproc.vocabulary import Outcome

__all__ = ["Answered", "TurnRecord", "TurnResult"]

_LONGEST = 16 * 1024**2
"""So many characters of a message that comes in pieces are kept."""


@dataclass(frozen=True, slots=True)
class TurnResult:
    """How a turn ended.

    Args:
        outcome: the ending; never raised.
        exit_code: what a program that asked only this should exit with.
        text: the final message.
        stop_reason: the last one that the agent gave.
        model: the model that the agent named.
        usage: what the agent said that it used.
        error: one sentence about a bad ending.
        elapsed: nanoseconds from the prompt's delivery to the outcome; 0 if it was never delivered.
    """

    outcome: Outcome
    exit_code: int
    text: str | None = None
    stop_reason: str | None = None
    model: str | None = None
    usage: dict[str, Any] | None = None
    error: str = ""
    elapsed: int = 0


class Answered:
    """Collect what the agent says in one turn, a prompt's or its own."""

    def __init__(self) -> None:
        self.text: str | None = None
        self.stop_reason: str | None = None
        self.model: str | None = None
        self.usage: dict[str, Any] | None = None
        self._parts: list[str] = []
        self._size = 0

    def take(self, said: Said) -> None:
        """Take progress: a whole message replaces its pieces, a tool ends a message that comes in pieces only."""
        self.stop_reason = said.stop_reason or self.stop_reason
        self.model = said.model or self.model
        self.usage = said.usage or self.usage
        if said.kind == "message":
            self._parts, self._size = [], 0
            self.text = said.text or self.text
        elif said.kind == "tool":
            self.seal()
        elif said.text and self._size < _LONGEST:
            self._parts.append(said.text)
            self._size += len(said.text)

    def seal(self) -> None:
        """Take the pieces that came for a message."""
        self.text = "".join(self._parts) or self.text
        self._parts, self._size = [], 0

    def finish(self, ended: Ended) -> None:
        """Take the end of a turn."""
        self.seal()
        self.text = self.text if ended.text is None else ended.text
        self.stop_reason = ended.stop_reason or self.stop_reason
        self.model = ended.model or self.model
        self.usage = ended.usage or self.usage


class TurnRecord:
    """One prompt on its way.

    `cause` is what the turn ends as because somebody cancelled it, from the instant at which the cancel went out;
    `cancels` went out, and `answers` of their own came to them.

    Args:
        number: its place in the session, from 1.
        prompt: what is asked.
    """

    def __init__(self, number: int, prompt: str) -> None:
        self.number = number
        self.prompt = prompt
        self.answered = Answered()
        self.delivered_at: int | None = None
        self.size = self.sent_to = 0
        self.outcome: Outcome | None = None
        self.outcome_at: int | None = None
        self.error = ""
        self.cause: Outcome | None = None
        self.has_begun = False
        self.has_ended = False
        self.cancels = 0
        self.answers = 0

    def conclude(self, outcome: Outcome, now: int, error: str = "") -> None:
        """End it, once."""
        self.answered.seal()
        self.outcome, self.outcome_at, self.error = outcome, now, error

    def result(self, status: int | None, *, forced: bool, executable: bool) -> TurnResult:
        """Sum it up; the arguments are those of `exit_code`."""
        outcome, answered = self.outcome, self.answered
        assert outcome is not None
        assert self.outcome_at is not None
        return TurnResult(
            outcome=outcome,
            exit_code=exit_code(outcome, status, forced=forced, executable=executable),
            text=answered.text,
            stop_reason=answered.stop_reason,
            model=answered.model,
            usage=answered.usage,
            error=self.error,
            elapsed=0 if self.delivered_at is None else self.outcome_at - self.delivered_at,
        )
