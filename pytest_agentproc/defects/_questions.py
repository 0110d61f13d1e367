"""Judgements of the agent's questions that are wrong, each in one way. Pure; knows no handler and no process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.supervisor import Turns

if TYPE_CHECKING:
    from pytest_agentproc.supervisor import Outcome, Question, TurnRecord

__all__ = [
    "AbandoningTurns",
    "DeafTurns",
    "DenyingTurns",
    "IdleDeafTurns",
    "LenientTurns",
    "TrustingTurns",
    "WaitingTurns",
]


class DeafTurns(Turns):
    """Leaves a question without an answer where the caller has no handler (P7)."""

    def _asked(self, question: Question, owners: tuple[int, ...], now: int) -> bytes:
        """Drop it."""
        data = super()._asked(question, owners, now)
        return data if self._has_handler else b""


class TrustingTurns(Turns):
    """Allows everything where the caller has no handler (P7)."""

    def _asked(self, question: Question, owners: tuple[int, ...], now: int) -> bytes:
        """Say yes."""
        data = super()._asked(question, owners, now)
        return data if self._has_handler else self._talk.answer(question, allowed=True)


class IdleDeafTurns(Turns):
    """Leaves a question without an answer that is asked while no turn is in flight (P7)."""

    def _asked(self, question: Question, owners: tuple[int, ...], now: int) -> bytes:
        """Hear it within a turn alone."""
        return b"" if self.flight is None else super()._asked(question, owners, now)


class DenyingTurns(Turns):
    """Denies what the caller allows (P7)."""

    def answer(self, name: str, now: int, *, allowed: bool) -> bytes:
        """Say no."""
        return super().answer(name, now, allowed=False)


class WaitingTurns(Turns):
    """Waits for ever for the caller's answer (P7)."""

    @property
    def question_deadline(self) -> int | None:
        """Have none."""
        return None


class LenientTurns(Turns):
    """Allows what nobody answered in time (P7)."""

    def deny_due(self, now: int) -> bytes:
        """Say yes to what is late."""
        late = [name for name, (_, at) in self.questions.items() if at <= now]
        return b"".join(self.answer(name, now, allowed=True) for name in late)


class AbandoningTurns(Turns):
    """Forgets what a cancelled turn has asked, and answers nothing (P7)."""

    def _call_off(self, turn: TurnRecord, cause: Outcome, now: int) -> bytes:
        """Forget the questions before the cancel."""
        self.questions.clear()
        return super()._call_off(turn, cause, now)
