"""Judgements of a session's timeouts, cancels, queue, status and viewers that are wrong, each in one way. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.defects._defect import breaks, breaks_in_sessions
from pytest_agentproc.supervisor import OpenTurns, Outcome, StatusRules, Transcript
from pytest_agentproc.supervisor.dialects import BACKGROUND_TURN_MARK
from pytest_agentproc.vocabulary import add_limit

if TYPE_CHECKING:
    from pytest_agentproc.supervisor import SessionStatus, TurnRecord
    from pytest_agentproc.supervisor.dialects import Finished, PromptDeclined, TurnMeaning, TurnProgress


@breaks("timeout-kills-the-agent", "P1", "kills the agent whose turn takes too long")
class TimeoutKillsAgentDefect(OpenTurns):
    def cancel_expired(self, now: int) -> bytes:
        super().cancel_expired(now)
        self.cancel_deadline = now
        return b""


@breaks("timeout-cancels-nothing", "P1", "gives a turn up and sends the agent no cancel")
class TimeoutSendsNoCancelDefect(OpenTurns):
    def cancel_expired(self, now: int) -> bytes:
        super().cancel_expired(now)
        self.unacknowledged = self.cancel_deadline = None
        return b""


@breaks("drops-prompts-after-timeout", "P1", "says ready after a timeout, and drops every prompt without a word")
class DropsPromptsAfterTimeoutDefect(OpenTurns):
    is_dead = False

    def cancel_expired(self, now: int) -> bytes:
        self.is_dead = True
        return super().cancel_expired(now)

    def deliver_next_prompt(self, now: int) -> bytes:
        return b"" if self.is_dead else super().deliver_next_prompt(now)


@breaks("timeout-drops-the-queue", "P1", "drops the prompts that wait when a turn times out")
class TimeoutDropsQueueDefect(OpenTurns):
    def cancel_expired(self, now: int) -> bytes:
        self.refuse_queued(Outcome.CANCELLED, "the session was reset", now)
        return super().cancel_expired(now)


@breaks("close-completes-the-queue", "P3", "reports the prompts that wait as completed at a close")
class CloseCompletesQueueDefect(OpenTurns):
    def refuse_queued(self, outcome: Outcome, error: str, now: int) -> None:
        super().refuse_queued(Outcome.COMPLETED if outcome is Outcome.STOPPED else outcome, error, now)


@breaks(
    "timeout-reaches-no-viewer",
    "P1",
    "reports a timeout to no viewer",
    harmless="The viewer sees the status of the session; only the reason is missing.",
)
class TimeoutReachesNoViewerDefect(OpenTurns):
    def cancel_expired(self, now: int) -> bytes:
        report_event = self._report_event

        def muted(kind: str, turn: int | None = None, text: str = "", **more: Any) -> None:
            if kind != "error":
                report_event(kind, turn, text, **more)

        self._report_event = muted
        data = super().cancel_expired(now)
        self._report_event = report_event
        return data


@breaks(
    "outcome-before-words",
    "P4",
    "shows viewers the outcome of a turn before the words that came in pieces",
    harmless="The viewer gets every word. One that reads on after the outcome shows the same text.",
)
class OutcomeBeforeWordsDefect(OpenTurns):
    held: tuple[tuple[int, str], ...] = ()

    def _show_message(self, number: int, pieces: str) -> None:
        if number == BACKGROUND_TURN_MARK:
            super()._show_message(number, pieces)
        else:
            self.held += ((number, pieces),)

    def _conclude_turn(self, turn: TurnRecord, outcome: Outcome, now: int, error: str = "") -> None:
        super()._conclude_turn(turn, outcome, now, error)
        held, self.held = self.held, ()
        for number, pieces in held:
            super()._show_message(number, pieces)


@breaks("cancel-stops-the-agent", "P1", "ends the agent when the caller cancels a turn")
class CancelEndsAgentDefect(OpenTurns):
    def cancel_turn(self, number: int | None, now: int) -> bytes:
        data = super().cancel_turn(number, now)
        self.cancel_deadline = None if self.unacknowledged is None else now
        return data


@breaks("cancel-waits-for-ever", "P3", "waits without limit for the acknowledgement of any cancel")
class CancelWaitsForeverDefect(OpenTurns):
    def cancel_expired(self, now: int) -> bytes:
        data = super().cancel_expired(now)
        self.cancel_deadline = None
        return data


@breaks("callers-cancel-waits-for-ever", "P3", "waits without limit for the acknowledgement of the caller's cancel")
class CallerCancelWaitsForeverDefect(OpenTurns):
    def cancel_turn(self, number: int | None, now: int) -> bytes:
        data = super().cancel_turn(number, now)
        self.cancel_deadline = None
        return data


@breaks("cancel-grace-is-short", "P3", "waits kill_grace instead of cancel_grace for an acknowledgement")
class CancelUsesKillGraceDefect(OpenTurns):
    def cancel_expired(self, now: int) -> bytes:
        data = super().cancel_expired(now)
        kill_at = add_limit(now, self._limits["kill_grace"])
        self.cancel_deadline = None if self.unacknowledged is None else kill_at
        return data


@breaks("cancel-is-not-sent", "P3", "ends a turn that is cancelled, and never sends the cancel")
class SendsNoCancelDefect(OpenTurns):
    def _send_cancel(self, turn: TurnRecord) -> bytes:
        super()._send_cancel(turn)
        return b""


@breaks(
    "mode-switch-ends-agent",
    "P3",
    "ends the agent, and starts another one, when the caller switches the mode or the model",
)
class ModeSwitchEndsAgentDefect(OpenTurns):
    def switch_setting(self, what: str, name: str, now: int) -> bytes:
        self.cancel_deadline = now
        return super().switch_setting(what, name, now)


@breaks("mode-is-not-sent", "P3", "notes a switch of the mode or the model, and never sends it to the agent")
class SendsNoModeDefect(OpenTurns):
    def switch_setting(self, what: str, name: str, now: int) -> bytes:
        return b""


@breaks("timeout-repeats-the-prompt", "P1", "sends a prompt again after its timeout")
class TimeoutRepeatsPromptDefect(OpenTurns):
    expired: TurnRecord | None = None

    def cancel_expired(self, now: int) -> bytes:
        self.expired = self.flight
        return super().cancel_expired(now)

    def deliver_next_prompt(self, now: int) -> bytes:
        if self.flight is not None or self.unacknowledged is not None or self.expired is None:
            return super().deliver_next_prompt(now)
        turn, self.expired = self.expired, None
        return self._protocol.encode_prompt(turn.number, turn.prompt) + super().deliver_next_prompt(now)


@breaks("cancels-twice", "P5", "writes every cancel twice")
class WritesCancelTwiceDefect(OpenTurns):
    def _send_cancel(self, turn: TurnRecord) -> bytes:
        """Make sure that the agent gets it."""
        return super()._send_cancel(turn) * 2


@breaks("early-cancel-is-lost", "P3", "does not repeat a cancel that came before its turn began")
class EarlyCancelIsLostDefect(OpenTurns):
    def _handle_begin(self, owners: tuple[int, ...]) -> bytes:
        super()._handle_begin(owners)
        return b""


@breaks("queued-cancel-is-lost", "P9", "loses the cancel of a prompt that was not sent yet")
class QueuedCancelIsLostDefect(OpenTurns):
    def cancel_turn(self, number: int | None, now: int) -> bytes:
        is_sent = self.flight is not None and number in (None, self.flight.number)
        return super().cancel_turn(number, now) if is_sent else b""


@breaks("failure-ends-no-turn", "P9", "waits on after a turn has failed, until its time is up")
class FailureEndsNoTurnDefect(OpenTurns):
    def _handle_end(self, ended: Finished, number: int, now: int) -> None:
        turn = self._find_live_turn(number)
        if ended.ok or turn is None or turn.cause is not None:
            super()._handle_end(ended, number, now)


@breaks("clean-exit-ends-no-turn", "C2", "waits for ever for the end of a turn whose agent has exited with code 0")
class CleanExitEndsNoTurnDefect(OpenTurns):
    def lose_agent(self, outcome: Outcome, now: int, error: str) -> None:
        status, was_forced, _ = self.ended_with
        left, self.flight = self.flight, None if status == 0 and not was_forced else self.flight
        super().lose_agent(outcome, now, error)
        if left is not None and left.outcome is None:
            self.flight = left
            self.watchdog.disarm()


@breaks(
    "good-result-does-not-acknowledge",
    "P3",
    "waits for another acknowledgement after the cancelled turn ended with a good result",
)
class GoodResultAcknowledgesNothingDefect(OpenTurns):
    def _handle_end(self, ended: Finished, number: int, now: int) -> None:
        """Wait on after a good result."""
        waiting, deadline = self.unacknowledged, self.cancel_deadline
        super()._handle_end(ended, number, now)
        if ended.ok and waiting is not None:
            self.unacknowledged, self.cancel_deadline = waiting, deadline


@breaks("delivers-before-acknowledgement", "P3", "delivers while a cancel is unacknowledged")
class DeliversBeforeAcknowledgementDefect(OpenTurns):
    def deliver_next_prompt(self, now: int) -> bytes:
        waiting, self.unacknowledged = self.unacknowledged, None
        data = super().deliver_next_prompt(now)
        self.unacknowledged = waiting
        return data


@breaks("first-word-acknowledges", "P3", "accepts any word after a cancel as its acknowledgement")
class AnyWordAcknowledgesCancelDefect(OpenTurns):
    def handle_turn_meaning(self, meaning: TurnMeaning, now: int) -> bytes:
        data = super().handle_turn_meaning(meaning, now)
        self.unacknowledged = self.cancel_deadline = None
        return data


@breaks("cancel-grace-outlives-its-cancel", "P3", "ends agents that have acknowledged the cancel")
class EndsAcknowledgedAgentDefect(OpenTurns):
    def _note_acknowledged(self, turn: TurnRecord) -> None:
        kept = self.cancel_deadline
        super()._note_acknowledged(turn)
        self.cancel_deadline = kept


@breaks("age-counts-from-the-cancel", "P3", "counts a waiting prompt's time from the timeout before it")
class PromptTimeCountsFromTimeoutDefect(OpenTurns):
    expired_at: int | None = None

    def cancel_expired(self, now: int) -> bytes:
        self.expired_at = now
        return super().cancel_expired(now)

    def deliver_next_prompt(self, now: int) -> bytes:
        data = super().deliver_next_prompt(now)
        if data and self.expired_at is not None:
            self.watchdog.start(self.expired_at)
        return data


@breaks("cancel-hits-the-turn-in-flight", "P9", "cancels the turn in flight instead of the prompt that waits")
class CancelHitsTurnInFlightDefect(OpenTurns):
    def cancel_turn(self, number: int | None, now: int) -> bytes:
        return super().cancel_turn(None, now)


@breaks("last-prompt-first", "P9", "delivers the newest prompt first")
class DeliversNewestPromptFirstDefect(OpenTurns):
    def deliver_next_prompt(self, now: int) -> bytes:
        if self.flight is None and self.unacknowledged is None:
            self.queue.rotate(1)
        return super().deliver_next_prompt(now)


@breaks("prompts-go-out-at-once", "P9", "writes every prompt although one is in flight")
class DeliversWhileTurnRunsDefect(OpenTurns):
    def deliver_next_prompt(self, now: int) -> bytes:
        sent = vars(self).setdefault("sent", set())
        data = super().deliver_next_prompt(now)
        if self.flight is None:
            return data
        data = b"" if self.flight.number in sent else data
        more = [turn for turn in self.queue if turn.number not in sent]
        sent.update(turn.number for turn in more)
        return data + b"".join(self._protocol.encode_prompt(turn.number, turn.prompt) for turn in more)


@breaks_in_sessions("prompt-is-stripped")
class StripsPromptOfTurnDefect(OpenTurns):
    """Removes white space at the end of a prompt (F5)."""

    def queue_prompt(self, number: int, text: str) -> None:
        super().queue_prompt(number, text.rstrip())


@breaks("result-completes-the-queue", "P9", "reports the prompts that wait as completed when a turn completes")
class ResultCompletesQueueDefect(OpenTurns):
    def _handle_end(self, ended: Finished, number: int, now: int) -> None:
        super()._handle_end(ended, number, now)
        if ended.ok:
            self.refuse_queued(Outcome.COMPLETED, "", now)


@breaks("error-drops-the-queue", "P9", "drops the prompts that wait when a turn fails")
class FailedTurnDropsQueueDefect(OpenTurns):
    def _handle_end(self, ended: Finished, number: int, now: int) -> None:
        super()._handle_end(ended, number, now)
        if not ended.ok:
            self.refuse_queued(Outcome.CANCELLED, "the turn before it failed", now)

    def _handle_declined(self, declined: PromptDeclined, now: int) -> bytes:
        """Clear the queue after a refusal, too."""
        self.refuse_queued(Outcome.CANCELLED, "the turn before it failed", now)
        return super()._handle_declined(declined, now)


@breaks("words-alone-are-progress", "P2", "does not count tool events as progress")
class ToolsAreNoProgressDefect(OpenTurns):
    _no_progress = "tool"

    def _handle_progress(self, progress: TurnProgress, number: int, now: int) -> None:
        before = self.watchdog.deadlines.copy()
        super()._handle_progress(progress, number, now)
        if progress.kind == self._no_progress:
            self.watchdog.deadlines = before


@breaks("pieces-are-no-progress", "P2", "does not count the pieces of a message as progress")
class DeltasAreNoProgressDefect(ToolsAreNoProgressDefect):
    _no_progress = "delta"


@breaks(
    "ready-without-agent",
    "P1",
    "calls a session ready after its agent has ended",
    harmless="A prompt waits for the next agent all the same; only the shown status is wrong.",
)
class ReadyAfterAgentEndDefect(StatusRules):
    def judge_status(
        self, *, is_closing: bool, has_failed: bool, is_asking: bool, is_able: bool, had_agent: bool
    ) -> SessionStatus:
        return super().judge_status(
            is_closing=is_closing,
            has_failed=has_failed,
            is_asking=is_asking,
            is_able=is_able or had_agent,
            had_agent=had_agent,
        )


@breaks("viewer-misses-the-past", "P4", "shows a viewer nothing from before it attached")
class LateViewerMissesPastDefect(Transcript):
    def find_first_place(self) -> int:
        return self.total
