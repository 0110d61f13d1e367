"""Judgements of a session's results and exits that are wrong, each in one way. Pure; knows no stream and no process."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_agentproc.defects._defect import breaks_in_sessions
from pytest_agentproc.supervisor import OpenTurns, Outcome
from pytest_agentproc.supervisor.dialects import Finished, Message, PromptNamed

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects import TurnMeaning, TurnProgress


@breaks_in_sessions("any-result-is-good")
class ErrorResultCompletesTurnDefect(OpenTurns):
    """Takes an error result for a good one (C1)."""

    def _handle_end(self, ended: Finished, number: int, now: int) -> None:
        super()._handle_end(replace(ended, ok=True, error=""), number, now)


@breaks_in_sessions("older-words-fill-an-empty-answer")
class OlderWordsFillEmptyTurnDefect(OpenTurns):
    """Takes what the agent said before for its answer if that has no words (C2)."""

    words = ""

    def _handle_progress(self, progress: TurnProgress, number: int, now: int) -> None:
        super()._handle_progress(progress, number, now)
        self.words = (progress.text if isinstance(progress, Message) else None) or self.words

    def _handle_end(self, ended: Finished, number: int, now: int) -> None:
        said = self.flight.answered.text if ended.text is None and self.flight is not None else ended.text
        ended = ended if said else replace(ended, text=self.words)
        super()._handle_end(ended, number, now)


@breaks_in_sessions("exit-overrules-result")
class ExitOverridesTurnResultDefect(OpenTurns):
    """Believes a good result once the agent has said a word more, and throws it away if it exits first (C1)."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._held: tuple[Finished, int] | None = None

    def handle_turn_meaning(self, meaning: TurnMeaning, now: int) -> bytes:
        if isinstance(meaning, PromptNamed):
            return super().handle_turn_meaning(meaning, now)
        held, self._held = self._held, None
        if held is not None:
            super()._handle_end(*held, now)
        return super().handle_turn_meaning(meaning, now)

    def lose_agent(self, outcome: Outcome, now: int, error: str) -> None:
        self._held = None
        super().lose_agent(outcome, now, error)

    def _handle_end(self, ended: Finished, number: int, now: int) -> None:
        if ended.ok:
            self._held = (ended, number)
        else:
            super()._handle_end(ended, number, now)


@breaks_in_sessions("never-withdraws")
class FirstStopEndsTurnDefect(OpenTurns):
    """Takes the first message that stops for the turn's last, and its stop for the turn's end (C1)."""

    def _handle_progress(self, progress: TurnProgress, number: int, now: int) -> None:
        super()._handle_progress(progress, number, now)
        if isinstance(progress, Message) and progress.stop_reason in ("stop", "error"):
            super()._handle_end(Finished(progress.stop_reason == "stop", stop_reason=progress.stop_reason), number, now)


@breaks_in_sessions("exit-0-is-success")
class ExitZeroCompletesTurnDefect(OpenTurns):
    """Takes exit 0 for a good result (C2)."""

    def lose_agent(self, outcome: Outcome, now: int, error: str) -> None:
        is_good = outcome is Outcome.AGENT_LOST and self.ended_with[0] == 0
        super().lose_agent(Outcome.COMPLETED if is_good else outcome, now, "" if is_good else error)


@breaks_in_sessions("signal-is-exit-0")
class TurnTreatsSignalAsExitZeroDefect(OpenTurns):
    """Takes a death by signal for exit 0 (C4)."""

    def lose_agent(self, outcome: Outcome, now: int, error: str) -> None:
        status, forced, executable = self.ended_with
        self.ended_with = (0 if status is not None and status < 0 else status, forced, executable)
        super().lose_agent(outcome, now, error)


@breaks_in_sessions("run-exit-unexplained")
class TurnExitUnexplainedDefect(OpenTurns):
    """Says nothing of the exit that a turn is lost with (C4)."""

    def lose_agent(self, outcome: Outcome, now: int, error: str) -> None:
        super().lose_agent(outcome, now, "" if outcome is Outcome.AGENT_LOST else error)
