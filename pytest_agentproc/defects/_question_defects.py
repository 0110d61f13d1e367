"""Judgements of questions and hooks that are wrong, each in one way. Pure; knows no handler and no process."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_agentproc.supervisor import HookTracker, OpenQuestions, OpenTurns

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.supervisor import Hook, Outcome, Policy, Question, TurnRecord, TurnWatchdog
    from pytest_agentproc.supervisor.dialects import TurnEnded


class DropsUnregisteredHookDefect(HookTracker):
    """Drops a hook that fires before its callback is registered (B4)."""

    def register(self, name: str, now: int) -> None:
        self._kept.clear()
        super().register(name, now)


class CallsHookTwiceDefect(HookTracker):
    """Calls the callback twice for one hook (B4)."""

    def handle_fired(self, hook: Hook, now: int) -> bytes:
        data = super().handle_fired(hook, now)
        if hook.callback in self._registered and not hook.is_question:
            self._request_callback(hook)
        return data

    def register(self, name: str, now: int) -> None:
        kept = tuple(self._kept)
        super().register(name, now)
        for hook, at, _ in kept:
            if hook.callback == name and now - at <= self.LIFE:
                self._request_callback(hook)


class HookBlocksAgentDefect(HookTracker):
    """Makes the agent wait for a callback that may never come (B4)."""

    def handle_fired(self, hook: Hook, now: int) -> bytes:
        data = super().handle_fired(hook, now)
        if hook.is_question or hook.callback in self._registered:
            return data
        self._waiting[hook.id] = (hook, now + self._limit)
        return b""

    def register(self, name: str, now: int) -> None:
        super().register(name, now)
        for hook, _ in tuple(self._waiting.values()):
            if hook.callback == name and not hook.is_question:
                del self._waiting[hook.id]


class AllowsToolWithoutCallbackDefect(HookTracker):
    """Lets a tool run whose hook has no callback yet (B4)."""

    def handle_fired(self, hook: Hook, now: int) -> bytes:
        data = super().handle_fired(hook, now)
        if hook.is_question and hook.callback not in self._registered:
            return data + self.decide(hook.id, allowed=True)
        return data


class IgnoresHookDenialDefect(HookTracker):
    """Lets a tool run that its hook forbids (B4)."""

    def decide(self, name: str, *, allowed: bool) -> bytes:
        return super().decide(name, allowed=True)


class HookWaitsForeverDefect(HookTracker):
    """Waits without limit for a callback (B4)."""

    @property
    def deadlines(self) -> dict[str, int]:
        return {name: at for name, at in super().deadlines.items() if name != "hook_timeout"}


class CallsExpiredHookDefect(HookTracker):
    """Calls the callback for a hook that is too old (B4)."""

    LIFE = 1 << 62


_UNREACHABLE_DEADLINE_NS = 2**62


class UnhandledQuestionUnansweredDefect(OpenTurns):
    """Answers nothing where there is no handler (P7)."""

    def _handle_question(self, question: Question, owners: tuple[int, ...], now: int) -> bytes:
        data = super()._handle_question(question, owners, now)
        return data if self._has_handler else b""


class AllowsWithoutHandlerDefect(OpenTurns):
    """Allows everything where there is no handler (P7)."""

    def _handle_question(self, question: Question, owners: tuple[int, ...], now: int) -> bytes:
        data = super()._handle_question(question, owners, now)
        return data if self._has_handler else self._protocol.encode_answer(question, allowed=True)


class IdleQuestionUnansweredDefect(OpenTurns):
    """Does not answer a question that comes after the result (P7)."""

    def _handle_question(self, question: Question, owners: tuple[int, ...], now: int) -> bytes:
        return b"" if self.flight is None else super()._handle_question(question, owners, now)


class AllowBecomesDenialDefect(OpenTurns):
    """Denies what the caller allows (P7)."""

    def answer_question(self, name: str, now: int, *, allowed: bool) -> bytes:
        return super().answer_question(name, now, allowed=False)


class DenialBecomesAllowDefect(OpenTurns):
    """Allows what the caller denies (P7)."""

    def answer_question(self, name: str, now: int, *, allowed: bool) -> bytes:
        return super().answer_question(name, now, allowed=True)


class AnswersQuestionTwiceDefect(OpenTurns):
    """Writes the caller's answer twice (P7)."""

    def answer_question(self, name: str, now: int, *, allowed: bool) -> bytes:
        return super().answer_question(name, now, allowed=allowed) * 2


class _QuestionsWithoutDeadline(OpenQuestions):
    """Has no limit."""

    @property
    def deadline(self) -> int | None:
        return None


class QuestionWaitsForeverDefect(OpenTurns):
    """Waits without limit for the caller's answer (P7)."""

    def __init__(
        self, policy: Policy, watchdog: TurnWatchdog, report_event: Callable[..., None], *, has_handler: bool
    ) -> None:
        super().__init__(policy, watchdog, report_event, has_handler=has_handler)
        self.questions = _QuestionsWithoutDeadline(policy, report_event)


class AllowsLateQuestionDefect(OpenTurns):
    """Allows a question that got no answer in time (P7)."""

    def deny_late_questions(self, now: int) -> bytes:
        late = self.questions.withdraw_late(now)
        self._resume_limits(now)
        return b"".join(self._protocol.encode_answer(question, allowed=True) for question in late)


class CancelledQuestionUnansweredDefect(OpenTurns):
    """Does not answer the open question of a cancelled turn (P7)."""

    def _cancel_with_outcome(self, turn: TurnRecord, cause: Outcome, now: int) -> bytes:
        self.questions.withdraw_of_turn(turn.number)
        return super()._cancel_with_outcome(turn, cause, now)


class _QuestionsKeptAfterDenial(OpenQuestions):
    """Denies what is late, and holds it still."""

    def withdraw_late(self, now: int) -> list[Question]:
        late = [open_question for open_question in self._open.values() if open_question.deadline <= now]
        self._open.update(
            {
                open_question.question.id: replace(open_question, owners=(), deadline=_UNREACHABLE_DEADLINE_NS)
                for open_question in late
            }
        )
        return [open_question.question for open_question in late]


class AnswersLateQuestionTwiceDefect(OpenTurns):
    """Answers a second time when the caller decides late (P7)."""

    def __init__(
        self, policy: Policy, watchdog: TurnWatchdog, report_event: Callable[..., None], *, has_handler: bool
    ) -> None:
        super().__init__(policy, watchdog, report_event, has_handler=has_handler)
        self.questions = _QuestionsKeptAfterDenial(policy, report_event)


class EndedTurnQuestionUnansweredDefect(OpenTurns):
    """Does not answer a question whose turn is over (P7)."""

    def _handle_end(self, ended: TurnEnded, number: int, now: int) -> None:
        super()._handle_end(ended, number, now)
        self.questions.withdraw_of_turn(number)


class WaitsForWithdrawnQuestionDefect(OpenTurns):
    """Waits for an answer that the agent has withdrawn (P2)."""

    def _withdraw_question(self, name: str, now: int) -> bytes:
        return b""
