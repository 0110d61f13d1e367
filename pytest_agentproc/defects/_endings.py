"""Judgements of results and exits that are wrong, each in one way. Pure; knows no stream, no signal and no limit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_agentproc.supervisor import Completion, Ending
from pytest_agentproc.supervisor.dialects import Failure, Finished, Message, Nested, Noise, Other
from pytest_agentproc.vocabulary import Outcome

if TYPE_CHECKING:
    from collections.abc import Collection

    from pytest_agentproc.supervisor import Feeder, Watchdog
    from pytest_agentproc.supervisor.dialects import Meaning


class AnyStopCompletion(Completion):
    """Takes a message with a stop reason for the last one, whatever the reason (C2)."""

    def feed(self, meaning: Meaning, now: int) -> None:
        super().feed(meaning, now)
        if isinstance(meaning, Message) and meaning.stop_reason:
            self.finish(Finished(None, final=False), now)


class StubbornCompletion(Completion):
    """Never takes a completion back (C1)."""

    def resume(self) -> None:
        """Stay."""


class LastResultCompletion(Completion):
    """Takes a line after a final result as the result (C1)."""

    def finish(self, meaning: Finished, now: int) -> None:
        self.final = False
        super().finish(meaning, now)


class FickleCompletion(Completion):
    """Takes a completion back that is final (C1)."""

    def resume(self) -> None:
        self.final = False
        super().resume()


class StopAloneCompletion(Completion):
    """Hears the end of a message that stops, and no other end of the agent's (C1)."""

    def finish(self, meaning: Finished, now: int) -> None:
        if meaning.ok is not None:
            super().finish(meaning, now)


class CutMessageCompletion(Completion):
    """Waits on after a message that was cut for its length or aborted (C1)."""

    def finish(self, meaning: Finished, now: int) -> None:
        if meaning.final or self.stop_reason not in ("length", "aborted"):
            super().finish(meaning, now)


class LateWordCompletion(Completion):
    """Takes the last word that tells the end for the end (C1)."""

    def finish(self, meaning: Finished, now: int) -> None:
        super().finish(meaning, now)
        self.at = now


class AnyResultEndsCompletion(Completion):
    """Takes a background turn's result for the prompt's (B1)."""

    def feed(self, meaning: Meaning, now: int) -> None:
        super().feed(meaning, now)
        if isinstance(meaning, Other) and meaning.kind == "result":
            self.finish(Finished(True, final=True), now)


class NestedWordsCompletion(Completion):
    """Takes a sub-agent's words for the agent's (A6)."""

    def feed(self, meaning: Meaning, now: int) -> None:
        said = meaning.meaning if isinstance(meaning, Nested) else meaning
        super().feed(said if isinstance(said, Message) else meaning, now)


class AnyResultCompletion(Completion):
    """Takes every completion for a good one (C1)."""

    def finish(self, meaning: Finished, now: int) -> None:
        super().finish(replace(meaning, ok=True, error=""), now)


class FatalErrorCompletion(Completion):
    """Takes an error that the agent may get over for the end (C1)."""

    def feed(self, meaning: Meaning, now: int) -> None:
        super().feed(meaning, now)
        if isinstance(meaning, Failure) and meaning.error:
            self.finish(Finished(False, final=True, error=meaning.error), now)


class FatalNoiseCompletion(Completion):
    """Gives up at a line that it cannot read (F2)."""

    def feed(self, meaning: Meaning, now: int) -> None:
        if self.noise:
            return
        super().feed(meaning, now)
        if isinstance(meaning, Noise):
            self.finish(Finished(False, final=True, error="a line is no event"), now)


class UncountedNoiseCompletion(Completion):
    """Drops a line that it cannot read, and does not report it (F2)."""

    def feed(self, meaning: Meaning, now: int) -> None:
        if not isinstance(meaning, Noise):
            super().feed(meaning, now)


class HoardingCompletion(Completion):
    """Keeps everything that the agent ever said (F6)."""

    def limit_to(self, size: int | None) -> None:
        """Hear of no limit."""


class TimerFirstEnding(Ending):
    """Lets a deadline win over an exit of the same instant (A4)."""

    def on_exit(
        self, completion: Completion, status: int, watchdog: Watchdog, now: int, *, has_completion: bool
    ) -> Outcome:
        due = watchdog.due(now)
        return due[1] if due else super().on_exit(completion, status, watchdog, now, has_completion=has_completion)


class LateResultEnding(Ending):
    """Takes an answer for the result that comes once the agent is ended for its silence (A1)."""

    def stands(self, outcome: Outcome | None, completion: Completion) -> bool:
        return outcome is not None and completion.at is None


class ExitOverResultEnding(Ending):
    """Throws a good result away for the exit code that follows it (C1)."""

    def on_exit(
        self, completion: Completion, status: int, watchdog: Watchdog, now: int, *, has_completion: bool
    ) -> Outcome:
        if status > 0:
            return Outcome.FAILED
        return super().on_exit(completion, status, watchdog, now, has_completion=has_completion)


class DeafEnding(Ending):
    """Hears of an error in a completion only, not in what the agent told before it exited with one (C1)."""

    def on_exit(
        self, completion: Completion, status: int, watchdog: Watchdog, now: int, *, has_completion: bool
    ) -> Outcome:
        completion.error = ""
        return super().on_exit(completion, status, watchdog, now, has_completion=has_completion)


class ZeroIsGoodEnding(Ending):
    """Takes exit 0 for a result, also where there is none or a bad one (C2)."""

    def on_exit(
        self, completion: Completion, status: int, watchdog: Watchdog, now: int, *, has_completion: bool
    ) -> Outcome:
        if status == 0:
            return Outcome.COMPLETED
        return super().on_exit(completion, status, watchdog, now, has_completion=has_completion)


class NullCodeEnding(Ending):
    """Reads no exit code as 0, and a signal's death has none (C4)."""

    def on_exit(
        self, completion: Completion, status: int, watchdog: Watchdog, now: int, *, has_completion: bool
    ) -> Outcome:
        return super().on_exit(completion, max(status, 0), watchdog, now, has_completion=has_completion)


class BlindCodeEnding(Ending):
    """Looks at no exit code where the agent's words tell no end (C4)."""

    def on_exit(
        self, completion: Completion, status: int, watchdog: Watchdog, now: int, *, has_completion: bool
    ) -> Outcome:
        return super().on_exit(completion, min(status, 0), watchdog, now, has_completion=has_completion)


class PipeEndEnding(Ending):
    """Believes an exit only once stdout has ended too (C4)."""

    def is_gone(self, status: int | None, streams: Collection[str]) -> bool:
        return super().is_gone(status, streams) and "stdout" not in streams


class RawCodeEnding(Ending):
    """Hands the agent's own code on, also where it was forced to exit or its result says otherwise (C1)."""

    def exit_code(self, outcome: Outcome, status: int | None, *, forced: bool, executable: bool) -> int:
        if status is not None and status >= 0:
            return status
        return super().exit_code(outcome, status, forced=forced, executable=executable)


class MismatchEnding(Ending):
    """Takes every code that does not fit the outcome for a contradiction, whoever chose it (C1)."""

    def warnings(self, outcome: Outcome, status: int | None, *, forced: bool) -> list[str]:
        return [] if (status == 0) is (outcome is Outcome.COMPLETED) else ["exit_contradicts_result"]


class FatalPipeEnding(Ending):
    """Fails the run as soon as stdin breaks (F5)."""

    def is_input_lost(self, feeder: Feeder, *, silent: bool) -> bool:
        return feeder.is_broken and not feeder.is_delivered


class UnstartedEnding(Ending):
    """Takes an agent that never ran for one that failed (P6)."""

    unstarted = Outcome.FAILED


class MissingEnding(Ending):
    """Takes every failure to start for a missing file (P6)."""

    def is_missing(self, errno: int) -> bool:
        return True


class SilentEnding(Ending):
    """Says nothing of an exit without a result (C4)."""

    def explain(self, told: str, words: str, stderr: bytes) -> str:
        return told
