"""Judgements of what comes late, or is lost with an agent, that are wrong, each in one way. Pure; knows no process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.defects._defect import breaks
from pytest_agentproc.supervisor import OpenTurns, TurnRouter
from pytest_agentproc.supervisor.dialects import Finished, Nested, Piece

if TYPE_CHECKING:
    from pytest_agentproc.supervisor import Outcome
    from pytest_agentproc.supervisor.dialects import HistoryReplayed, TurnProgress, WorkMeaning


@breaks("queue-goes-with-the-agent", "P6", "loses the waiting prompts with the agent")
class LosesQueueWithAgentDefect(OpenTurns):
    def lose_agent(self, outcome: Outcome, now: int, error: str) -> None:
        super().lose_agent(outcome, now, error)
        self.refuse_queued(outcome, error, now)


@breaks("session-outlives-its-agent", "P6", "sends the prompts for a new agent to the session of the dead one")
class PromptsGoToDeadSessionDefect(OpenTurns):
    session = ""

    def deliver_next_prompt(self, now: int) -> bytes:
        protocol: Any = self._protocol
        if hasattr(protocol, "session"):
            self.session = protocol.session = self.session or protocol.session
        return super().deliver_next_prompt(now)


@breaks("crash-repeats-the-prompt", "P6", "sends the prompt again when its agent has crashed")
class ResendsPromptAfterCrashDefect(OpenTurns):
    def lose_agent(self, outcome: Outcome, now: int, error: str) -> None:
        turn = self.flight
        if turn is not None and turn.cause is None:
            self.flight = None
            self.watchdog.disarm()
            self.queue.appendleft(turn)
        super().lose_agent(outcome, now, error)


@breaks("failed-session-keeps-the-prompts", "P6", "leaves prompts without an outcome")
class LeavesPromptsWithoutOutcomeDefect(OpenTurns):
    def refuse_queued(self, outcome: Outcome, error: str, now: int) -> None:
        """Let them wait."""


@breaks("late-words-go-to-the-next-turn", "P5", "adds a cancelled turn's late words to the next turn")
class LateWordsGoToNextTurnDefect(OpenTurns):
    def _handle_progress(self, progress: TurnProgress, number: int, now: int) -> None:
        if self.flight is None and self.queue:
            self.queue[0].answered.add_progress(progress)
        super()._handle_progress(progress, number, now)


@breaks("history-answers-the-next-prompt", "P5", "begins the next answer with the past of a loaded session")
class HistoryAnswersNextPromptDefect(OpenTurns):
    past = ""

    def show_replayed(self, replayed: HistoryReplayed) -> None:
        """Keep the agent's words."""
        super().show_replayed(replayed)
        self.past += "" if replayed.is_prompt else replayed.text

    def deliver_next_prompt(self, now: int) -> bytes:
        """Begin the answer with them."""
        data = super().deliver_next_prompt(now)
        if data and self.flight is not None:
            self.flight.answered.add_progress(Piece(self.past))
            self.past = ""
        return data


@breaks("resume-waits-for-history", "P9", "holds the prompts of a resumed session until its agent repeats the past")
class ResumeWaitsForHistoryDefect(OpenTurns):
    has_past = False

    def show_replayed(self, replayed: HistoryReplayed) -> None:
        """Let the prompts go."""
        super().show_replayed(replayed)
        self.has_past = True

    def deliver_next_prompt(self, now: int) -> bytes:
        """Wait for the past, as `session/load` has one."""
        setting = getattr(self._protocol, "setting", None)
        is_resumed = setting is not None and setting.continues is not None
        return b"" if is_resumed and not self.has_past else super().deliver_next_prompt(now)


@breaks(
    "cancel-beats-the-result",
    "P5",
    "reports a turn as cancelled although its good result came",
    harmless="The caller has cancelled the turn, and reads that it is cancelled.",
)
class CancelOverridesGoodResultDefect(OpenTurns):
    def _handle_end(self, ended: Finished, number: int, now: int) -> None:
        turn = self.flight
        if turn is not None and turn.number == number and turn.cause is not None:
            turn.has_ended = True
            self._conclude_turn(turn, turn.cause, now, "the caller cancelled it")
            self._note_acknowledged(turn)
        else:
            super()._handle_end(ended, number, now)


@breaks("subagent-ends-the-turn", "P5", "ends a turn when a sub-agent's turn ends")
class SubagentEndsTurnDefect(OpenTurns):
    def handle_work(self, worked: WorkMeaning, now: int) -> bytes:
        """Look at the kind of line, and not at the thread that it names."""
        data = super().handle_work(worked, now)
        is_end = isinstance(worked, Nested) and isinstance(worked.meaning, Finished)
        return data + (self.handle_turn_meaning(Finished(True), now) if is_end else b"")


@breaks("idle-cancel-hits-the-next", "P5", "keeps a cancel that hit nothing for the next turn")
class IdleCancelHitsNextTurnDefect(OpenTurns):
    is_poisoned = False

    def cancel_turn(self, number: int | None, now: int) -> bytes:
        data = super().cancel_turn(number, now)
        self.is_poisoned = self.is_poisoned or (not data and self.flight is None)
        return data

    def deliver_next_prompt(self, now: int) -> bytes:
        data = super().deliver_next_prompt(now)
        if data and self.is_poisoned:
            self.is_poisoned = False
            data += super().cancel_turn(None, now)
        return data


@breaks("results-go-by-order", "P5", "assigns results by their order, not by their names")
class AssignsResultsByOrderDefect(TurnRouter):
    def _end_turns(self, marks: tuple[int, ...]) -> tuple[int, ...]:
        return super()._end_turns(())
