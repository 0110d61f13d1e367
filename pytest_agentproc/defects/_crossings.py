"""Judgements of what comes late, or is lost with an agent, that are wrong, each in one way. Pure; knows no process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.supervisor import Router, Turns
from pytest_agentproc.supervisor.dialects import Ended, Finished, Nested, Said

if TYPE_CHECKING:
    from pytest_agentproc.supervisor import Outcome
    from pytest_agentproc.supervisor.dialects import Replayed, Worked


class FragileQueueTurns(Turns):
    """Loses the waiting prompts with the agent (P6)."""

    def lose(self, outcome: Outcome, now: int, error: str) -> None:
        super().lose(outcome, now, error)
        self.refuse(outcome, error, now)


class RepeatingTurns(Turns):
    """Sends the prompt again when its agent has crashed (P6)."""

    def lose(self, outcome: Outcome, now: int, error: str) -> None:
        turn = self.flight
        if turn is not None and turn.cause is None:
            self.flight = None
            self.watchdog.rest()
            self.queue.appendleft(turn)
        super().lose(outcome, now, error)


class UnrefusingTurns(Turns):
    """Leaves prompts without an outcome (P6)."""

    def refuse(self, outcome: Outcome, error: str, now: int) -> None:
        """Let them wait."""


class LateWordsTurns(Turns):
    """Adds a cancelled turn's late words to the next turn (P5)."""

    def _said(self, said: Said, number: int, now: int) -> None:
        if self.flight is None and self.queue:
            self.queue[0].answered.take(said)
        super()._said(said, number, now)


class HistoryTurns(Turns):
    """Begins the next answer with the past of a loaded session (P5)."""

    past = ""

    def replay(self, replayed: Replayed) -> None:
        """Keep the agent's words."""
        super().replay(replayed)
        self.past += "" if replayed.is_prompt else replayed.text

    def deliver(self, now: int) -> bytes:
        """Begin the answer with them."""
        data = super().deliver(now)
        if data and self.flight is not None:
            self.flight.answered.take(Said("delta", self.past))
            self.past = ""
        return data


class PastFirstTurns(Turns):
    """Holds the prompts of a resumed session until its agent repeats the past (P9)."""

    has_past = False

    def replay(self, replayed: Replayed) -> None:
        """Let the prompts go."""
        super().replay(replayed)
        self.has_past = True

    def deliver(self, now: int) -> bytes:
        """Wait for the past, as `session/load` has one."""
        setting = getattr(self._talk, "setting", None)
        is_resumed = setting is not None and setting.continues is not None
        return b"" if is_resumed and not self.has_past else super().deliver(now)


class CancelFirstTurns(Turns):
    """Reports a turn as cancelled although its good result came (P5)."""

    def _ended(self, ended: Ended, number: int, now: int) -> None:
        turn = self.flight
        if turn is not None and turn.number == number and turn.cause is not None:
            turn.has_ended = True
            self._conclude(turn, turn.cause, now, "the caller cancelled it")
            self._acknowledge(turn)
        else:
            super()._ended(ended, number, now)


class SubagentEndsTurns(Turns):
    """Ends a turn when a sub-agent's turn ends (P5)."""

    def work(self, worked: Worked, now: int) -> bytes:
        """Look at the kind of line, and not at the thread that it names."""
        data = super().work(worked, now)
        is_end = isinstance(worked, Nested) and isinstance(worked.meaning, Finished)
        return data + (self.hear(Ended(True), now) if is_end else b"")


class PoisonedTurns(Turns):
    """Keeps a cancel that hit nothing for the next turn (P5)."""

    is_poisoned = False

    def cancel(self, number: int | None, now: int) -> bytes:
        data = super().cancel(number, now)
        self.is_poisoned = self.is_poisoned or (not data and self.flight is None)
        return data

    def deliver(self, now: int) -> bytes:
        data = super().deliver(now)
        if data and self.is_poisoned:
            self.is_poisoned = False
            data += super().cancel(None, now)
        return data


class OrderRouter(Router):
    """Assigns results by their order, not by their names (P5)."""

    def _end(self, marks: tuple[int, ...]) -> tuple[int, ...]:
        return super()._end(())
