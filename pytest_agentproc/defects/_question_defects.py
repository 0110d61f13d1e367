"""Judgements of questions and hooks that are wrong, each in one way. Pure; knows no handler and no process."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_agentproc.defects._defect import breaks
from pytest_agentproc.supervisor import HookTracker, OpenQuestions, OpenTurns, Outcome
from pytest_agentproc.supervisor.dialects import Finished
from pytest_agentproc.vocabulary import add_limit

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.supervisor import Hook, Policy, Question, TurnRecord, TurnWatchdog
    from pytest_agentproc.supervisor.dialects import TurnMeaning, WorkMeaning


@breaks(
    "early-hook-lost",
    "B4",
    "drops a hook that fires before its callback is registered",
    harmless="The caller registered its callback too late for this hook.",
)
class DropsUnregisteredHookDefect(HookTracker):
    def register(self, name: str, now: int) -> None:
        self._kept.clear()
        super().register(name, now)


@breaks("hook-runs-twice", "B4", "calls the callback twice for one hook")
class CallsHookTwiceDefect(HookTracker):
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


@breaks(
    "hook-blocks-the-agent",
    "B4",
    "makes the agent wait for a callback that may never come",
    harmless="The agent waits for hook_timeout at most.",
)
class HookBlocksAgentDefect(HookTracker):
    def handle_fired(self, hook: Hook, now: int) -> bytes:
        data = super().handle_fired(hook, now)
        if hook.is_question or hook.callback in self._registered:
            return data
        self._waiting[hook.id] = (hook, add_limit(now, self._limit))
        return b""

    def register(self, name: str, now: int) -> None:
        super().register(name, now)
        for hook, _ in tuple(self._waiting.values()):
            if hook.callback == name and not hook.is_question:
                del self._waiting[hook.id]


@breaks("unregistered-hook-allows", "B4", "lets a tool run whose hook has no callback yet")
class AllowsToolWithoutCallbackDefect(HookTracker):
    def handle_fired(self, hook: Hook, now: int) -> bytes:
        data = super().handle_fired(hook, now)
        if hook.is_question and hook.callback not in self._registered:
            return data + self.decide(hook.id, allowed=True)
        return data


@breaks("hook-denial-ignored", "B4", "lets a tool run that its hook forbids")
class IgnoresHookDenialDefect(HookTracker):
    def decide(self, name: str, *, allowed: bool) -> bytes:
        return super().decide(name, allowed=True)


@breaks("hook-waits-for-ever", "B4", "waits without limit for a callback")
class HookWaitsForeverDefect(HookTracker):
    @property
    def deadlines(self) -> dict[str, int]:
        return {name: at for name, at in super().deadlines.items() if name != "hook_timeout"}


@breaks(
    "stale-hook-runs",
    "B4",
    "calls the callback for a hook that is too old",
    harmless="How old a hook may be is the choice of a supervisor.",
)
class CallsExpiredHookDefect(HookTracker):
    LIFE = 1 << 62


_UNREACHABLE_DEADLINE_NS = 2**62


_NUMBER_OF_HANDSHAKE_REQUESTS = 2
"""Before the first prompt of ACP, of which the first one has the id 0."""


@breaks("unhandled-questions-wait", "P7", "answers nothing where there is no handler")
class UnhandledQuestionUnansweredDefect(OpenTurns):
    def _handle_question(self, question: Question, owners: tuple[int, ...], now: int) -> bytes:
        data = super()._handle_question(question, owners, now)
        return data if self._has_handler else b""


@breaks("allows-without-a-handler", "P7", "allows everything where there is no handler")
class AllowsWithoutHandlerDefect(OpenTurns):
    def _handle_question(self, question: Question, owners: tuple[int, ...], now: int) -> bytes:
        data = super()._handle_question(question, owners, now)
        return data if self._has_handler else self._protocol.encode_answer(question, allowed=True)


@breaks("idle-questions-wait", "P7", "does not answer a question that comes after the result")
class IdleQuestionUnansweredDefect(OpenTurns):
    def _handle_question(self, question: Question, owners: tuple[int, ...], now: int) -> bytes:
        return b"" if self.flight is None else super()._handle_question(question, owners, now)


@breaks("question-is-a-response", "P7", "takes a request with the id of its own prompt for the response to it")
class QuestionTakenForResponseDefect(OpenTurns):
    def _handle_question(self, question: Question, owners: tuple[int, ...], now: int) -> bytes:
        turn = self.flight
        if turn is not None and question.id == json.dumps(turn.number - 1 + _NUMBER_OF_HANDSHAKE_REQUESTS):
            self._handle_end(Finished(True, marks=(turn.number,)), turn.number, now)
            return b""
        return super()._handle_question(question, owners, now)


@breaks("question-is-denied", "P7", "denies what the caller allows")
class AllowBecomesDenialDefect(OpenTurns):
    def answer_question(self, name: str, now: int, *, allowed: bool) -> bytes:
        return super().answer_question(name, now, allowed=False)


@breaks("denial-allows", "P7", "allows what the caller denies")
class DenialBecomesAllowDefect(OpenTurns):
    def answer_question(self, name: str, now: int, *, allowed: bool) -> bytes:
        return super().answer_question(name, now, allowed=True)


@breaks(
    "permission-by-position",
    "P7",
    "takes the first option of a question to allow, and the second to deny, whatever they are",
)
class ChoosesOptionByPositionDefect(OpenTurns):
    def answer_question(self, name: str, now: int, *, allowed: bool) -> bytes:
        protocol: Any = self._protocol
        question = self.questions.take_answered(name)
        if question is None:
            return b""
        self._resume_limits(now)
        place = 0 if allowed else 1
        if decisions := question.detail.get("availableDecisions"):
            return bytes(protocol.encode_response(question, {"decision": decisions[place]}))
        if options := question.detail.get("options"):
            outcome = {"outcome": "selected", "optionId": options[place].get("optionId")}
            return bytes(protocol.encode_response(question, {"outcome": outcome}))
        return bytes(protocol.encode_answer(question, allowed=allowed))


@breaks("answers-twice", "P7", "writes the caller's answer twice")
class AnswersQuestionTwiceDefect(OpenTurns):
    def answer_question(self, name: str, now: int, *, allowed: bool) -> bytes:
        return super().answer_question(name, now, allowed=allowed) * 2


@breaks(
    "reader-awaits-the-answer", "P7", "reads nothing of its agent, not even its end, while the caller owes it an answer"
)
class ReaderAwaitsAnswerDefect(OpenTurns):
    """Holds back what the agent says and that it has ended, in their order, while a question is open."""

    def _hold_or_do(self, act: Callable[[int], bytes], now: int) -> bytes:
        held = vars(self).setdefault("held", deque())
        if len(self.questions) or held:
            held.append(act)
            return b""
        return act(now)

    def _read_on(self, now: int) -> bytes:
        held, said = vars(self).setdefault("held", deque()), b""
        while held and not len(self.questions):
            said += held.popleft()(now)
        return said

    def handle_turn_meaning(self, meaning: TurnMeaning, now: int) -> bytes:
        handle = super().handle_turn_meaning
        return self._hold_or_do(lambda at: handle(meaning, at), now)

    def handle_work(self, worked: WorkMeaning, now: int) -> bytes:
        handle = super().handle_work
        return self._hold_or_do(lambda at: handle(worked, at), now)

    def lose_agent(self, outcome: Outcome, now: int, error: str) -> None:
        lose = super().lose_agent

        def act(at: int) -> bytes:
            lose(outcome, at, error)
            return b""

        if outcome is Outcome.STOPPED:
            vars(self).pop("held", None)
            act(now)
        else:
            self._hold_or_do(act, now)

    def answer_question(self, name: str, now: int, *, allowed: bool) -> bytes:
        return super().answer_question(name, now, allowed=allowed) + self._read_on(now)

    def deny_late_questions(self, now: int) -> bytes:
        return super().deny_late_questions(now) + self._read_on(now)

    def cancel_turn(self, number: int | None, now: int) -> bytes:
        return super().cancel_turn(number, now) + self._read_on(now)


class _QuestionsWithoutDeadline(OpenQuestions):
    """Has no limit."""

    @property
    def deadline(self) -> int | None:
        return None


@breaks("questions-wait-for-ever", "P7", "waits without limit for the caller's answer")
class QuestionWaitsForeverDefect(OpenTurns):
    def __init__(
        self, policy: Policy, watchdog: TurnWatchdog, report_event: Callable[..., None], *, has_handler: bool
    ) -> None:
        super().__init__(policy, watchdog, report_event, has_handler=has_handler)
        self.questions = _QuestionsWithoutDeadline(policy, report_event)


@breaks("silence-allows", "P7", "allows a question that got no answer in time")
class AllowsLateQuestionDefect(OpenTurns):
    def deny_late_questions(self, now: int) -> bytes:
        late = self.questions.withdraw_late(now)
        self._resume_limits(now)
        return b"".join(self._protocol.encode_answer(question, allowed=True) for question in late)


@breaks("cancel-leaves-the-question", "P7", "does not answer the open question of a cancelled turn")
class CancelledQuestionUnansweredDefect(OpenTurns):
    def _cancel_with_outcome(self, turn: TurnRecord, cause: Outcome, now: int) -> bytes:
        self.questions.withdraw_of_turn(turn.number)
        return super()._cancel_with_outcome(turn, cause, now)


class _QuestionsKeptAfterDenial(OpenQuestions):
    """Denies what is late, and holds it still."""

    def withdraw_late(self, now: int) -> list[Question]:
        late = [
            open_question
            for open_question in self._open.values()
            if open_question.deadline is not None and open_question.deadline <= now
        ]
        self._open.update(
            {
                open_question.question.id: replace(open_question, owners=(), deadline=_UNREACHABLE_DEADLINE_NS)
                for open_question in late
            }
        )
        return [open_question.question for open_question in late]


@breaks("late-word-answers-again", "P7", "answers a second time when the caller decides late")
class AnswersLateQuestionTwiceDefect(OpenTurns):
    def __init__(
        self, policy: Policy, watchdog: TurnWatchdog, report_event: Callable[..., None], *, has_handler: bool
    ) -> None:
        super().__init__(policy, watchdog, report_event, has_handler=has_handler)
        self.questions = _QuestionsKeptAfterDenial(policy, report_event)


@breaks(
    "result-drops-the-question",
    "P7",
    "does not answer a question whose turn is over",
    harmless="The turn is over, so its agent does not wait for the answer.",
)
class EndedTurnQuestionUnansweredDefect(OpenTurns):
    def _handle_end(self, ended: Finished, number: int, now: int) -> None:
        super()._handle_end(ended, number, now)
        self.questions.withdraw_of_turn(number)


@breaks(
    "question-cannot-be-taken-back",
    "P2",
    "waits for an answer that the agent has withdrawn",
    harmless="The turn is cancelled later, when the limit on questions is over.",
)
class WaitsForWithdrawnQuestionDefect(OpenTurns):
    def _withdraw_question(self, name: str, now: int) -> bytes:
        return b""
