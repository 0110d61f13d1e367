"""One turn: what was asked, what came back, how it ended. Values only; decides nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor._tail import Transcript
from pytest_agentproc.vocabulary import Outcome, exit_code

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects import Ended, Said

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
        error: why the ending is bad. If the agent is lost: the exit code or signal, the time since its last output, and
            the end of stderr.
        elapsed: nanoseconds from the prompt's delivery to the outcome; 0 if it was never delivered. For a background
            turn: from its first event to its end.
        transcript: all messages of the turn, each on a line of its own: the last `max_transcript_bytes` of them.
    """

    outcome: Outcome
    exit_code: int
    text: str | None = None
    stop_reason: str | None = None
    model: str | None = None
    usage: dict[str, Any] | None = None
    error: str = ""
    elapsed: int = 0
    transcript: str = ""


class Answered:
    """Collect what the agent says in one turn, a prompt's or its own.

    `begun_at` is the instant of its first event; None before that.

    Args:
        limit: how many bytes of the transcript to keep, the last ones; None: all.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.text: str | None = None
        self.stop_reason: str | None = None
        self.model: str | None = None
        self.usage: dict[str, Any] | None = None
        self.begun_at: int | None = None
        self._messages = Transcript(limit)
        self._id = ""
        self._blocks: list[str] = []
        self._pieces: list[str] = []
        self._size = 0
        self._is_torn = False

    @property
    def transcript(self) -> str:
        """All messages that have ended, each on a line of its own, as far back as the limit allows."""
        return str(self._messages)

    @property
    def is_cut(self) -> bool:
        """Whether the transcript is not whole."""
        return self._messages.is_cut or self._is_torn

    @property
    def has_words(self) -> bool:
        """Whether anything was said."""
        return self.text is not None or bool(self._blocks or self._pieces)

    def begin(self, now: int) -> None:
        """Take note of an event of the turn; the first is its beginning."""
        if self.begun_at is None:
            self.begun_at = now

    def take(self, said: Said) -> str:
        """Take progress: what is whole replaces its pieces.

        Returns:
            what `seal` returns, if the progress ends a message that came in pieces; else "".
        """
        self.stop_reason = said.stop_reason or self.stop_reason
        self.model = said.model or self.model
        self.usage = said.usage or self.usage
        if said.kind == "message":
            self._take_whole(said)
        elif said.is_end:
            return self.seal()
        elif said.kind == "delta":
            self._add(self._pieces, said.text)
        return ""

    def _take_whole(self, said: Said) -> None:
        self._pieces = []
        if not said.text:
            return
        if not said.id or said.id != self._id:
            self.seal()
        self._id = said.id
        self._add(self._blocks, said.text)
        if not said.id:
            self.seal()

    def _add(self, parts: list[str], text: str) -> None:
        if text and self._size < _LONGEST:
            parts.append(text)
            self._size += len(text)
        else:
            self._is_torn = self._is_torn or bool(text)

    def seal(self) -> str:
        """End the message under way: its blocks, and the pieces of a block that did not come.

        Returns:
            the text of these pieces: no whole block has repeated it.
        """
        pieces = "".join(self._pieces)
        text = "".join([*self._blocks, pieces])
        if text:
            self.text = text
            self._messages.add(text)
        self._id, self._blocks, self._pieces, self._size = "", [], [], 0
        return pieces

    def finish(self, ended: Ended) -> None:
        """Take the end of a turn."""
        self.seal()
        self.text = self.text if ended.text is None else ended.text
        self.stop_reason = ended.stop_reason or self.stop_reason
        self.model = ended.model or self.model
        self.usage = ended.usage or self.usage

    def result(self, ended: Ended, now: int) -> TurnResult:
        """Take the end of a background turn, and sum it up."""
        self.finish(ended)
        outcome = Outcome.COMPLETED if ended.ok else Outcome.FAILED
        elapsed = 0 if self.begun_at is None else now - self.begun_at
        told = (self.text, self.stop_reason, self.model, self.usage, ended.error, elapsed, self.transcript)
        return TurnResult(outcome, 0 if ended.ok else 1, *told)


class TurnRecord:
    """One prompt on its way.

    `cause` is what the turn ends as because somebody cancelled it, from the instant at which the cancel went out;
    `cancels` went out, and `answers` of their own came to them.

    Args:
        number: its place in the session, from 1.
        prompt: what is asked.
        limit: how many bytes of its transcript to keep; None: all.
    """

    def __init__(self, number: int, prompt: str, limit: int | None = None) -> None:
        self.number = number
        self.prompt = prompt
        self.answered = Answered(limit)
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
            transcript=answered.transcript,
        )
