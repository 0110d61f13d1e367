"""Judgements of results and exits that are wrong, each in one way. Pure; knows no stream, no signal and no limit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_agentproc.defects._defect import breaks
from pytest_agentproc.supervisor import Completion, OutcomeRules
from pytest_agentproc.supervisor.dialects import Failure, Finished, Message, Nested, Noise, Other
from pytest_agentproc.vocabulary import Outcome

if TYPE_CHECKING:
    from collections.abc import Collection

    from pytest_agentproc.supervisor import StdinFeeder, Watchdog
    from pytest_agentproc.supervisor.dialects import Meaning


@breaks("any-stop-reason", "C2", "treats a stop for a tool as the last word")
class ToolStopEndsRunDefect(Completion):
    def feed(self, meaning: Meaning, now: int) -> None:
        super().feed(meaning, now)
        if isinstance(meaning, Message) and meaning.stop_reason:
            self.finish(Finished(None, final=False), now)


@breaks("first-message-is-the-answer", "C2", "takes the first message of the agent for its answer")
class FirstMessageIsAnswerDefect(Completion):
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


@breaks(
    "older-words-fill-an-empty-answer", "C2", "takes what the agent said before for its answer if that has no words"
)
class OlderWordsFillEmptyAnswerDefect(Completion):
    def __init__(self) -> None:
        super().__init__()
        self._words = ""

    def feed(self, meaning: Meaning, now: int) -> None:
        super().feed(meaning, now)
        self._words = (meaning.text if isinstance(meaning, Message) else None) or self._words

    @property
    def text(self) -> str | None:
        """The last message that has words."""
        return super().text or self._words


@breaks("answer-is-its-tail", "F6", "keeps only the last 2,000 characters of an answer")
class KeepsTailOfAnswerDefect(Completion):
    @property
    def text(self) -> str | None:
        """The end of the answer; what came before is lost."""
        return None if super().text is None else str(super().text)[-2000:]


@breaks("answer-is-stripped", "C3", "strips the blanks of an answer", harmless="The words of the answer are all there.")
class StripsAnswerDefect(Completion):
    @property
    def text(self) -> str | None:
        """The answer without the blanks at its ends."""
        return None if super().text is None else str(super().text).strip()


@breaks("never-withdraws", "C1", "keeps a result although the agent continues after it")
class CompletionIsNeverWithdrawnDefect(Completion):
    def undo_completion(self) -> None:
        """Stay."""


@breaks(
    "last-result-wins",
    "C1",
    "lets a second result in the grace undo the first",
    harmless="The agent contradicts itself, so either result can be believed.",
)
class SecondResultUndoesCompletionDefect(Completion):
    def finish(self, meaning: Finished, now: int) -> None:
        self.final = False
        super().finish(meaning, now)


@breaks(
    "last-word-is-withdrawn",
    "C1",
    "keeps waiting when a turn begins after the end",
    harmless="pi may begin another turn after its agent_end, and a supervisor that waits for it is careful.",
)
class WithdrawsFinalCompletionDefect(Completion):
    def undo_completion(self) -> None:
        self.final = False
        super().undo_completion()


@breaks(
    "stop-alone-is-the-end",
    "C1",
    "accepts no end except a message that stops",
    harmless="The run ends at its limit on silence, and its words are kept.",
)
class OnlyStopMessageEndsRunDefect(Completion):
    def finish(self, meaning: Finished, now: int) -> None:
        if meaning.ok is not None:
            super().finish(meaning, now)


@breaks(
    "cut-message-is-no-end",
    "C1",
    "keeps waiting after a message that was cut or aborted",
    harmless="The run ends at its limit on silence, and its words are kept.",
)
class CutMessageNeverEndsRunDefect(Completion):
    def finish(self, meaning: Finished, now: int) -> None:
        if meaning.final or self.stop_reason not in ("length", "aborted"):
            super().finish(meaning, now)


@breaks(
    "last-word-moves-the-end",
    "C1",
    "dates the end of the run by the last event of the end",
    harmless="Only the reported instant is another.",
)
class DatesOutcomeByLastEventDefect(Completion):
    def finish(self, meaning: Finished, now: int) -> None:
        super().finish(meaning, now)
        self.at = now


@breaks("any-result-ends-the-run", "B1", "ends the run at a background turn's result")
class BackgroundResultEndsRunDefect(Completion):
    def feed(self, meaning: Meaning, now: int) -> None:
        super().feed(meaning, now)
        if isinstance(meaning, Other) and meaning.kind == "result":
            self.finish(Finished(True, final=True), now)


@breaks(
    "background-turn-drops-the-result", "B1", "forgets the result of the prompt when a background turn comes after it"
)
class BackgroundTurnDropsResultDefect(Completion):
    def feed(self, meaning: Meaning, now: int) -> None:
        super().feed(meaning, now)
        if isinstance(meaning, Other) and meaning.kind == "result":
            self.final, self.result = False, None
            self.undo_completion()


@breaks("subagent-speaks-for-all", "A6", "reports a sub-agent's words as the agent's")
class SubagentWordsBecomeAnswerDefect(Completion):
    def feed(self, meaning: Meaning, now: int) -> None:
        own_meaning = meaning.meaning if isinstance(meaning, Nested) else meaning
        super().feed(own_meaning if isinstance(own_meaning, Message) else meaning, now)


@breaks("any-result-is-good", "C1", "treats an error result as a good one")
class ErrorResultCompletesRunDefect(Completion):
    def finish(self, meaning: Finished, now: int) -> None:
        super().finish(replace(meaning, ok=True, error=""), now)


@breaks("error-is-the-end", "C1", "gives up at an error that the agent recovers from")
class RecoveredErrorEndsRunDefect(Completion):
    def feed(self, meaning: Meaning, now: int) -> None:
        super().feed(meaning, now)
        if isinstance(meaning, Failure) and meaning.error:
            self.finish(Finished(False, final=True, error=meaning.error), now)


@breaks(
    "half-a-character-costs-the-event",
    "F1",
    "drops an event whose text has half of a surrogate pair, which UTF-8 cannot encode",
)
class DropsUnencodableTextDefect(Completion):
    def feed(self, meaning: Meaning, now: int) -> None:
        text = getattr(meaning, "text", None) or ""
        if not any("\ud800" <= character <= "\udfff" for character in text):
            super().feed(meaning, now)


@breaks("noise-is-fatal", "F2", "gives up at a line that is no event")
class NoiseEndsRunDefect(Completion):
    def feed(self, meaning: Meaning, now: int) -> None:
        if self.noise:
            return
        super().feed(meaning, now)
        if isinstance(meaning, Noise):
            self.finish(Finished(False, final=True, error="a line is no event"), now)


@breaks(
    "noise-uncounted",
    "F2",
    "drops a line that is no event, and does not report it",
    harmless="The answer is whole; only a number in the report is missing.",
)
class NoiseUnreportedDefect(Completion):
    def feed(self, meaning: Meaning, now: int) -> None:
        if not isinstance(meaning, Noise):
            super().feed(meaning, now)


@breaks(
    "keeps-everything",
    "F6",
    "keeps everything that the agent ever said",
    harmless="Memory fills only with an agent that prints gigabytes, and no scenario can show that.",
)
class TranscriptHasNoLimitDefect(Completion):
    def limit_transcript(self, size: int | None) -> None:
        """Hear of no limit."""


@breaks("timer-beats-exit", "A4", "reports inactive when the agent exits at the very instant of the limit")
class TimerBeatsExitDefect(OutcomeRules):
    def judge_exit(
        self, completion: Completion, status: int, watchdog: Watchdog, now: int, *, has_completion: bool
    ) -> Outcome:
        due = watchdog.find_expired_limit(now)
        return due[1] if due else super().judge_exit(completion, status, watchdog, now, has_completion=has_completion)


@breaks(
    "late-result-counts",
    "A1",
    "accepts an answer that comes while it ends a silent agent",
    harmless="The answer is there, so both outcomes are fair.",
)
class AcceptsAnswerAfterTimeoutDefect(OutcomeRules):
    def has_final_outcome(self, outcome: Outcome | None, completion: Completion) -> bool:
        return outcome is not None and completion.at is None


@breaks("exit-overrules-result", "C1", "throws a good result away for an exit code")
class ExitCodeOverridesRunResultDefect(OutcomeRules):
    def judge_exit(
        self, completion: Completion, status: int, watchdog: Watchdog, now: int, *, has_completion: bool
    ) -> Outcome:
        if status > 0:
            return Outcome.FAILED
        return super().judge_exit(completion, status, watchdog, now, has_completion=has_completion)


@breaks(
    "reported-error-dropped",
    "C1",
    "drops the error that an agent reported before it exited",
    harmless="The run is not reported as completed; only its reason is less exact.",
)
class DropsReportedErrorDefect(OutcomeRules):
    def judge_exit(
        self, completion: Completion, status: int, watchdog: Watchdog, now: int, *, has_completion: bool
    ) -> Outcome:
        completion.error = ""
        return super().judge_exit(completion, status, watchdog, now, has_completion=has_completion)


@breaks("exit-0-is-success", "C2", "treats exit 0 as a good result")
class ExitZeroCompletesRunDefect(OutcomeRules):
    def judge_exit(
        self, completion: Completion, status: int, watchdog: Watchdog, now: int, *, has_completion: bool
    ) -> Outcome:
        if status == 0:
            return Outcome.COMPLETED
        return super().judge_exit(completion, status, watchdog, now, has_completion=has_completion)


@breaks("signal-is-exit-0", "C4", "treats a death by signal as exit 0")
class RunTreatsSignalAsExitZeroDefect(OutcomeRules):
    def judge_exit(
        self, completion: Completion, status: int, watchdog: Watchdog, now: int, *, has_completion: bool
    ) -> Outcome:
        return super().judge_exit(completion, max(status, 0), watchdog, now, has_completion=has_completion)


@breaks("exit-code-unread", "C4", "treats every exit as a good one")
class EveryExitCompletesRunDefect(OutcomeRules):
    def judge_exit(
        self, completion: Completion, status: int, watchdog: Watchdog, now: int, *, has_completion: bool
    ) -> Outcome:
        return super().judge_exit(completion, min(status, 0), watchdog, now, has_completion=has_completion)


@breaks("waits-for-eof", "C4", "accepts an exit only when stdout has ended")
class ExitWaitsForStdoutEndDefect(OutcomeRules):
    def is_gone(self, streams: Collection[str], *, has_exited: bool) -> bool:
        return super().is_gone(streams, has_exited=has_exited) and "stdout" not in streams


@breaks(
    "raw-exit-code",
    "C1",
    "exits with the agent's own code, forced or not",
    harmless="The outcome is true; only the exit code is the agent's own.",
)
class CopiesAgentExitCodeDefect(OutcomeRules):
    def choose_exit_code(self, outcome: Outcome, status: int | None, *, forced: bool, executable: bool) -> int:
        if status is not None and status >= 0:
            return status
        return super().choose_exit_code(outcome, status, forced=forced, executable=executable)


@breaks(
    "every-code-contradicts",
    "C1",
    "reports each code that does not fit as a contradiction",
    harmless="It is a warning too many.",
)
class WarnsOfEveryExitCodeDefect(OutcomeRules):
    def find_warnings(self, outcome: Outcome, status: int | None, *, forced: bool) -> list[str]:
        return [] if (status == 0) is (outcome is Outcome.COMPLETED) else ["exit_contradicts_result"]


@breaks(
    "epipe-is-fatal",
    "F5",
    "fails the run when stdin breaks",
    harmless="The prompt did not reach the agent, so a run that fails for it is reported truly.",
)
class BrokenStdinFailsRunDefect(OutcomeRules):
    def is_input_lost(self, feeder: StdinFeeder, *, silent: bool) -> bool:
        return feeder.is_broken and not feeder.is_delivered


@breaks(
    "start-error-is-failed",
    "P6",
    "reports an agent that never started as failed",
    harmless="The run is not reported as completed; only its outcome is less exact.",
)
class ReportsStartErrorAsFailedDefect(OutcomeRules):
    unstarted = Outcome.FAILED


@breaks(
    "always-not-found",
    "P6",
    "treats every failure to start as a missing file",
    harmless="The run is not reported as completed; only its exit code is less exact.",
)
class EveryStartErrorIsMissingFileDefect(OutcomeRules):
    def is_missing(self, errno: int) -> bool:
        return True


@breaks(
    "run-exit-unexplained",
    "C4",
    "reports a death without a result, but not how the agent died",
    harmless="The outcome is true; only its explanation is missing.",
)
class RunExitUnexplainedDefect(OutcomeRules):
    def explain_missing_result(self, error: str, words: str, stderr: bytes) -> str:
        return error
