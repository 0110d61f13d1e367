"""Judgements of a session's timeouts, cancels, queue, status and viewers that are wrong, each in one way. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor import OpenTurns, Outcome, StatusRules, Transcript

if TYPE_CHECKING:
    from pytest_agentproc.supervisor import SessionStatus, TurnRecord
    from pytest_agentproc.supervisor.dialects import PromptDeclined, TurnEnded, TurnMeaning, TurnProgress


class TimeoutKillsAgentDefect(OpenTurns):
    """Kills the agent whose turn takes too long (P1)."""

    def cancel_expired(self, now: int) -> bytes:
        super().cancel_expired(now)
        self.cancel_deadline = now
        return b""


class TimeoutSendsNoCancelDefect(OpenTurns):
    """Gives a turn up and sends the agent no cancel (P1)."""

    def cancel_expired(self, now: int) -> bytes:
        super().cancel_expired(now)
        self.unacknowledged = self.cancel_deadline = None
        return b""


class DropsPromptsAfterTimeoutDefect(OpenTurns):
    """Says ready after a timeout, and drops every prompt without a word (P1)."""

    is_dead = False

    def cancel_expired(self, now: int) -> bytes:
        self.is_dead = True
        return super().cancel_expired(now)

    def deliver_next_prompt(self, now: int) -> bytes:
        return b"" if self.is_dead else super().deliver_next_prompt(now)


class TimeoutDropsQueueDefect(OpenTurns):
    """Drops the prompts that wait when a turn times out (P1)."""

    def cancel_expired(self, now: int) -> bytes:
        self.refuse_queued(Outcome.CANCELLED, "the session was reset", now)
        return super().cancel_expired(now)


class CloseCompletesQueueDefect(OpenTurns):
    """Reports the prompts that wait as completed at a close (P3)."""

    def refuse_queued(self, outcome: Outcome, error: str, now: int) -> None:
        super().refuse_queued(Outcome.COMPLETED if outcome is Outcome.STOPPED else outcome, error, now)


class TimeoutReachesNoViewerDefect(OpenTurns):
    """Reports a timeout to no viewer (P1)."""

    def cancel_expired(self, now: int) -> bytes:
        report_event = self._report_event

        def muted(kind: str, turn: int | None = None, text: str = "", **more: Any) -> None:
            if kind != "error":
                report_event(kind, turn, text, **more)

        self._report_event = muted
        data = super().cancel_expired(now)
        self._report_event = report_event
        return data


class CancelEndsAgentDefect(OpenTurns):
    """Ends the agent when the caller cancels a turn (P1)."""

    def cancel_turn(self, number: int | None, now: int) -> bytes:
        data = super().cancel_turn(number, now)
        self.cancel_deadline = None if self.unacknowledged is None else now
        return data


class CancelWaitsForeverDefect(OpenTurns):
    """Waits without limit for the acknowledgement of any cancel (P3)."""

    def cancel_expired(self, now: int) -> bytes:
        data = super().cancel_expired(now)
        self.cancel_deadline = None
        return data


class CallerCancelWaitsForeverDefect(OpenTurns):
    """Waits without limit for the acknowledgement of the caller's cancel (P3)."""

    def cancel_turn(self, number: int | None, now: int) -> bytes:
        data = super().cancel_turn(number, now)
        self.cancel_deadline = None
        return data


class CancelUsesKillGraceDefect(OpenTurns):
    """Waits kill_grace instead of cancel_grace for an acknowledgement (P3)."""

    def cancel_expired(self, now: int) -> bytes:
        data = super().cancel_expired(now)
        grace = self._limits["kill_grace"]
        assert grace is not None
        self.cancel_deadline = None if self.unacknowledged is None else now + grace
        return data


class WritesCancelTwiceDefect(OpenTurns):
    """Writes every cancel twice (P5)."""

    def _send_cancel(self, turn: TurnRecord) -> bytes:
        """Make sure that the agent gets it."""
        return super()._send_cancel(turn) * 2


class EarlyCancelIsLostDefect(OpenTurns):
    """Does not repeat a cancel that came before its turn began (P3)."""

    def _handle_begin(self, owners: tuple[int, ...]) -> bytes:
        super()._handle_begin(owners)
        return b""


class GoodResultAcknowledgesNothingDefect(OpenTurns):
    """Waits for another acknowledgement after the cancelled turn ended with a good result (P3)."""

    def _handle_end(self, ended: TurnEnded, number: int, now: int) -> None:
        """Wait on after a good result."""
        waiting, deadline = self.unacknowledged, self.cancel_deadline
        super()._handle_end(ended, number, now)
        if ended.ok and waiting is not None:
            self.unacknowledged, self.cancel_deadline = waiting, deadline


class DeliversBeforeAcknowledgementDefect(OpenTurns):
    """Delivers while a cancel is unacknowledged (P3)."""

    def deliver_next_prompt(self, now: int) -> bytes:
        waiting, self.unacknowledged = self.unacknowledged, None
        data = super().deliver_next_prompt(now)
        self.unacknowledged = waiting
        return data


class AnyWordAcknowledgesCancelDefect(OpenTurns):
    """Accepts any word after a cancel as its acknowledgement (P3)."""

    def handle_turn_meaning(self, meaning: TurnMeaning, now: int) -> bytes:
        data = super().handle_turn_meaning(meaning, now)
        self.unacknowledged = self.cancel_deadline = None
        return data


class EndsAcknowledgedAgentDefect(OpenTurns):
    """Ends agents that have acknowledged the cancel (P3)."""

    def _note_acknowledged(self, turn: TurnRecord) -> None:
        kept = self.cancel_deadline
        super()._note_acknowledged(turn)
        self.cancel_deadline = kept


class PromptTimeCountsFromTimeoutDefect(OpenTurns):
    """Counts a waiting prompt's time from the timeout before it (P3)."""

    expired_at: int | None = None

    def cancel_expired(self, now: int) -> bytes:
        self.expired_at = now
        return super().cancel_expired(now)

    def deliver_next_prompt(self, now: int) -> bytes:
        data = super().deliver_next_prompt(now)
        if data and self.expired_at is not None:
            self.watchdog.start(self.expired_at)
        return data


class CancelHitsTurnInFlightDefect(OpenTurns):
    """Cancels the turn in flight instead of the prompt that waits (P9)."""

    def cancel_turn(self, number: int | None, now: int) -> bytes:
        return super().cancel_turn(None, now)


class DeliversNewestPromptFirstDefect(OpenTurns):
    """Delivers the newest prompt first (P9)."""

    def deliver_next_prompt(self, now: int) -> bytes:
        if self.flight is None and self.unacknowledged is None:
            self.queue.rotate(1)
        return super().deliver_next_prompt(now)


class DeliversWhileTurnRunsDefect(OpenTurns):
    """Writes every prompt although one is in flight (P9)."""

    def deliver_next_prompt(self, now: int) -> bytes:
        sent = vars(self).setdefault("sent", set())
        data = super().deliver_next_prompt(now)
        if self.flight is None:
            return data
        data = b"" if self.flight.number in sent else data
        more = [turn for turn in self.queue if turn.number not in sent]
        sent.update(turn.number for turn in more)
        return data + b"".join(self._protocol.encode_prompt(turn.number, turn.prompt) for turn in more)


class FailedTurnDropsQueueDefect(OpenTurns):
    """Drops the prompts that wait when a turn fails (P9)."""

    def _handle_end(self, ended: TurnEnded, number: int, now: int) -> None:
        super()._handle_end(ended, number, now)
        if not ended.ok:
            self.refuse_queued(Outcome.CANCELLED, "the turn before it failed", now)

    def _handle_declined(self, declined: PromptDeclined, now: int) -> bytes:
        """Clear the queue after a refusal, too."""
        self.refuse_queued(Outcome.CANCELLED, "the turn before it failed", now)
        return super()._handle_declined(declined, now)


class ToolsAreNoProgressDefect(OpenTurns):
    """Does not count tool events as progress (P2)."""

    _no_progress = "tool"

    def _handle_progress(self, progress: TurnProgress, number: int, now: int) -> None:
        before = self.watchdog.deadlines.copy()
        super()._handle_progress(progress, number, now)
        if progress.kind == self._no_progress:
            self.watchdog.deadlines = before


class DeltasAreNoProgressDefect(ToolsAreNoProgressDefect):
    """Does not count the pieces of a message as progress (P2)."""

    _no_progress = "delta"


class ReadyAfterAgentEndDefect(StatusRules):
    """Calls a session ready after its agent has ended (P1)."""

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


class LateViewerMissesPastDefect(Transcript):
    """Shows a viewer nothing from before it attached (P4)."""

    def find_first_place(self) -> int:
        return self.total
