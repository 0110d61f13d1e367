"""Judgements of results and exits that are wrong, each in one way. Pure; knows no stream, no signal and no limit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_agentproc.supervisor import Completion, OutcomeRules
from pytest_agentproc.supervisor.dialects import Failure, Finished, Message, Nested, Noise, Other
from pytest_agentproc.vocabulary import Outcome

if TYPE_CHECKING:
    from collections.abc import Collection

    from pytest_agentproc.supervisor import StdinFeeder, Watchdog
    from pytest_agentproc.supervisor.dialects import Meaning


class ToolStopEndsRunDefect(Completion):
    """Treats a stop for a tool as the last word (C2)."""

    def feed(self, meaning: Meaning, now: int) -> None:
        super().feed(meaning, now)
        if isinstance(meaning, Message) and meaning.stop_reason:
            self.finish(Finished(None, final=False), now)


class FirstMessageIsAnswerDefect(Completion):
    """Takes the first message of the agent for its answer (C2)."""

    def __init__(self) -> None:
        super().__init__()
        self._first: str | None = None

    def feed(self, meaning: Meaning, now: int) -> None:
        super().feed(meaning, now)
        if isinstance(meaning, Message) and self._first is None:
            self._first = meaning.text

    @property
    def text(self) -> str | None:
        """The first message; what follows is ignored."""
        return super().text if self._first is None else self._first


class CompletionIsNeverWithdrawnDefect(Completion):
    """Keeps a result although the agent continues after it (C1)."""

    def undo_completion(self) -> None:
        """Stay."""


class SecondResultUndoesCompletionDefect(Completion):
    """Lets a second result in the grace undo the first (C1)."""

    def finish(self, meaning: Finished, now: int) -> None:
        self.final = False
        super().finish(meaning, now)


class WithdrawsFinalCompletionDefect(Completion):
    """Keeps waiting when a turn begins after the end (C1)."""

    def undo_completion(self) -> None:
        self.final = False
        super().undo_completion()


class OnlyStopMessageEndsRunDefect(Completion):
    """Accepts no end except a message that stops (C1)."""

    def finish(self, meaning: Finished, now: int) -> None:
        if meaning.ok is not None:
            super().finish(meaning, now)


class CutMessageNeverEndsRunDefect(Completion):
    """Keeps waiting after a message that was cut or aborted (C1)."""

    def finish(self, meaning: Finished, now: int) -> None:
        if meaning.final or self.stop_reason not in ("length", "aborted"):
            super().finish(meaning, now)


class DatesOutcomeByLastEventDefect(Completion):
    """Dates the end of the run by the last event of the end (C1)."""

    def finish(self, meaning: Finished, now: int) -> None:
        super().finish(meaning, now)
        self.at = now


class BackgroundResultEndsRunDefect(Completion):
    """Ends the run at a background turn's result (B1)."""

    def feed(self, meaning: Meaning, now: int) -> None:
        super().feed(meaning, now)
        if isinstance(meaning, Other) and meaning.kind == "result":
            self.finish(Finished(True, final=True), now)


class SubagentWordsBecomeAnswerDefect(Completion):
    """Reports a sub-agent's words as the agent's (A6)."""

    def feed(self, meaning: Meaning, now: int) -> None:
        own_meaning = meaning.meaning if isinstance(meaning, Nested) else meaning
        super().feed(own_meaning if isinstance(own_meaning, Message) else meaning, now)


class ErrorResultCompletesRunDefect(Completion):
    """Treats an error result as a good one (C1)."""

    def finish(self, meaning: Finished, now: int) -> None:
        super().finish(replace(meaning, ok=True, error=""), now)


class RecoveredErrorEndsRunDefect(Completion):
    """Gives up at an error that the agent recovers from (C1)."""

    def feed(self, meaning: Meaning, now: int) -> None:
        super().feed(meaning, now)
        if isinstance(meaning, Failure) and meaning.error:
            self.finish(Finished(False, final=True, error=meaning.error), now)


class NoiseEndsRunDefect(Completion):
    """Gives up at a line that is no event (F2)."""

    def feed(self, meaning: Meaning, now: int) -> None:
        if self.noise:
            return
        super().feed(meaning, now)
        if isinstance(meaning, Noise):
            self.finish(Finished(False, final=True, error="a line is no event"), now)


class NoiseUnreportedDefect(Completion):
    """Drops a line that is no event, and does not report it (F2)."""

    def feed(self, meaning: Meaning, now: int) -> None:
        if not isinstance(meaning, Noise):
            super().feed(meaning, now)


class TranscriptHasNoLimitDefect(Completion):
    """Keeps everything that the agent ever said (F6)."""

    def limit_transcript(self, size: int | None) -> None:
        """Hear of no limit."""


class TimerBeatsExitDefect(OutcomeRules):
    """Reports inactive when the agent exits at the very instant of the limit (A4)."""

    def judge_exit(
        self, completion: Completion, status: int, watchdog: Watchdog, now: int, *, has_completion: bool
    ) -> Outcome:
        due = watchdog.find_expired_limit(now)
        return due[1] if due else super().judge_exit(completion, status, watchdog, now, has_completion=has_completion)


class AcceptsAnswerAfterTimeoutDefect(OutcomeRules):
    """Accepts an answer that comes while it ends a silent agent (A1)."""

    def has_final_outcome(self, outcome: Outcome | None, completion: Completion) -> bool:
        return outcome is not None and completion.at is None


class ExitCodeOverridesRunResultDefect(OutcomeRules):
    """Throws a good result away for an exit code (C1)."""

    def judge_exit(
        self, completion: Completion, status: int, watchdog: Watchdog, now: int, *, has_completion: bool
    ) -> Outcome:
        if status > 0:
            return Outcome.FAILED
        return super().judge_exit(completion, status, watchdog, now, has_completion=has_completion)


class DropsReportedErrorDefect(OutcomeRules):
    """Drops the error that an agent reported before it exited (C1)."""

    def judge_exit(
        self, completion: Completion, status: int, watchdog: Watchdog, now: int, *, has_completion: bool
    ) -> Outcome:
        completion.error = ""
        return super().judge_exit(completion, status, watchdog, now, has_completion=has_completion)


class ExitZeroCompletesRunDefect(OutcomeRules):
    """Treats exit 0 as a good result (C2)."""

    def judge_exit(
        self, completion: Completion, status: int, watchdog: Watchdog, now: int, *, has_completion: bool
    ) -> Outcome:
        if status == 0:
            return Outcome.COMPLETED
        return super().judge_exit(completion, status, watchdog, now, has_completion=has_completion)


class RunTreatsSignalAsExitZeroDefect(OutcomeRules):
    """Treats a death by signal as exit 0 (C4)."""

    def judge_exit(
        self, completion: Completion, status: int, watchdog: Watchdog, now: int, *, has_completion: bool
    ) -> Outcome:
        return super().judge_exit(completion, max(status, 0), watchdog, now, has_completion=has_completion)


class EveryExitCompletesRunDefect(OutcomeRules):
    """Treats every exit as a good one (C4)."""

    def judge_exit(
        self, completion: Completion, status: int, watchdog: Watchdog, now: int, *, has_completion: bool
    ) -> Outcome:
        return super().judge_exit(completion, min(status, 0), watchdog, now, has_completion=has_completion)


class ExitWaitsForStdoutEndDefect(OutcomeRules):
    """Accepts an exit only when stdout has ended (C4)."""

    def is_gone(self, status: int | None, streams: Collection[str]) -> bool:
        return super().is_gone(status, streams) and "stdout" not in streams


class CopiesAgentExitCodeDefect(OutcomeRules):
    """Exits with the agent's own code, forced or not (C1)."""

    def choose_exit_code(self, outcome: Outcome, status: int | None, *, forced: bool, executable: bool) -> int:
        if status is not None and status >= 0:
            return status
        return super().choose_exit_code(outcome, status, forced=forced, executable=executable)


class WarnsOfEveryExitCodeDefect(OutcomeRules):
    """Reports each code that does not fit as a contradiction (C1)."""

    def find_warnings(self, outcome: Outcome, status: int | None, *, forced: bool) -> list[str]:
        return [] if (status == 0) is (outcome is Outcome.COMPLETED) else ["exit_contradicts_result"]


class BrokenStdinFailsRunDefect(OutcomeRules):
    """Fails the run when stdin breaks (F5)."""

    def is_input_lost(self, feeder: StdinFeeder, *, silent: bool) -> bool:
        return feeder.is_broken and not feeder.is_delivered


class ReportsStartErrorAsFailedDefect(OutcomeRules):
    """Reports an agent that never started as failed (P6)."""

    unstarted = Outcome.FAILED


class EveryStartErrorIsMissingFileDefect(OutcomeRules):
    """Treats every failure to start as a missing file (P6)."""

    def is_missing(self, errno: int) -> bool:
        return True


class RunExitUnexplainedDefect(OutcomeRules):
    """Reports a death without a result, but not how the agent died (C4)."""

    def explain_missing_result(self, error: str, words: str, stderr: bytes) -> str:
        return error
