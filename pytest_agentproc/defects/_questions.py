"""Judgements of the agent's questions that are wrong, each in one way. Pure; knows no handler and no process."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_agentproc.supervisor import Questions, Turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.supervisor import Outcome, Policy, Question, TurnRecord, TurnWatchdog
    from pytest_agentproc.supervisor.dialects import Ended

__all__ = [
    "AbandoningTurns",
    "DeafTurns",
    "DenyingTurns",
    "ForgettingTurns",
    "HoldingTurns",
    "IdleDeafTurns",
    "LenientTurns",
    "OverrulingTurns",
    "RepeatingTurns",
    "TrustingTurns",
    "TwiceTurns",
    "WaitingTurns",
]

_NEVER = 2**62


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


class OverrulingTurns(Turns):
    """Allows what the caller denies (P7)."""

    def answer(self, name: str, now: int, *, allowed: bool) -> bytes:
        """Say yes."""
        return super().answer(name, now, allowed=True)


class TwiceTurns(Turns):
    """Writes the caller's answer twice (P7)."""

    def answer(self, name: str, now: int, *, allowed: bool) -> bytes:
        """Say it again."""
        return super().answer(name, now, allowed=allowed) * 2


class _EndlessQuestions(Questions):
    """Has no limit."""

    @property
    def deadline(self) -> int | None:
        """Have none."""
        return None


class WaitingTurns(Turns):
    """Waits for ever for the caller's answer (P7)."""

    def __init__(self, policy: Policy, watchdog: TurnWatchdog, tell: Callable[..., None], *, has_handler: bool) -> None:
        super().__init__(policy, watchdog, tell, has_handler=has_handler)
        self.questions = _EndlessQuestions(policy, tell)


class LenientTurns(Turns):
    """Allows what nobody answered in time (P7)."""

    def deny_due(self, now: int) -> bytes:
        """Say yes to what is late."""
        late = self.questions.withdraw_late(now)
        self._go_on(now)
        return b"".join(self._talk.answer(question, allowed=True) for question in late)


class AbandoningTurns(Turns):
    """Forgets what a cancelled turn has asked, and answers nothing (P7)."""

    def _call_off(self, turn: TurnRecord, cause: Outcome, now: int) -> bytes:
        """Forget the questions before the cancel."""
        self.questions.withdraw_of(turn.number)
        return super()._call_off(turn, cause, now)


class _LateQuestions(Questions):
    """Denies what is late, and holds it still."""

    def withdraw_late(self, now: int) -> list[Question]:
        """Leave its caller at it, on nobody's time."""
        late = [one for one in self._open.values() if one.deadline <= now]
        self._open.update({one.question.id: replace(one, owners=(), deadline=_NEVER) for one in late})
        return [one.question for one in late]


class RepeatingTurns(Turns):
    """Answers once more when the caller has decided what was denied because he was late (P7)."""

    def __init__(self, policy: Policy, watchdog: TurnWatchdog, tell: Callable[..., None], *, has_handler: bool) -> None:
        super().__init__(policy, watchdog, tell, has_handler=has_handler)
        self.questions = _LateQuestions(policy, tell)


class ForgettingTurns(Turns):
    """Forgets what is asked when its turn ends, and answers nothing (P7)."""

    def _ended(self, ended: Ended, number: int, now: int) -> None:
        """Take the questions away, too."""
        super()._ended(ended, number, now)
        self.questions.withdraw_of(number)


class HoldingTurns(Turns):
    """Lets a deadline rest for a question that its agent has taken back (P2)."""

    def _withdraw(self, name: str, now: int) -> bytes:
        """Owe the answer still."""
        return b""
