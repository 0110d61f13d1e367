"""Watchdogs that judge time wrongly, each in one way. Pure, as the right one is; knows no other decider."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.defects._defect import breaks, breaks_in_sessions
from pytest_agentproc.supervisor import TurnWatchdog, Watchdog
from pytest_agentproc.supervisor.dialects import Message, Noise
from pytest_agentproc.vocabulary import Outcome

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects import Meaning
    from pytest_agentproc.vocabulary import Policy


_SECOND_NS = 1_000_000_000


@breaks("duration-timeout", "A1", "applies the inactivity limit to the whole duration")
class InactivityLimitIsDurationDefect(Watchdog):
    def note_activity(self, now: int, stream: str, size: int) -> None:
        self.count += size
        self.last_activity = now


@breaks("timer-beats-output", "A4", "ends an agent whose output waits to be read")
class TimerIgnoresUnreadOutputDefect(Watchdog):
    def _move_deadlines(self, now: int, *names: str) -> None:
        super()._move_deadlines(now, *(name for name in names if self.deadlines.get(name, now + 1) > now))


@breaks(
    "own-writes-are-activity",
    "A1",
    "counts its own writes as activity",
    harmless="The limit begins a moment later, and the agent is still ended.",
)
class OwnWritesAreActivityDefect(Watchdog):
    def note_own_write(self, now: int) -> None:
        if self.is_armed:
            self.note_activity(now, "stdin", 0)


@breaks("stderr-blind", "A1", "does not count bytes on stderr as activity")
class StderrIsNoActivityDefect(Watchdog):
    def is_activity(self, stream: str, data: bytes) -> bool:
        return stream == "stdout"


@breaks("first-output-starts-the-clock", "A1", "waits without limit for the first output")
class FirstOutputHasNoLimitDefect(Watchdog):
    def arm(self, now: int) -> None:
        super().arm(now)
        if not self.count:
            self.deadlines.pop(self.silence, None)

    def note_activity(self, now: int, stream: str, size: int) -> None:
        is_first = not self.count
        super().note_activity(now, stream, size)
        if is_first:
            self.arm(now)


@breaks("line-only-activity", "A1", "counts bytes as activity only when their line ends")
class OnlyWholeLinesAreActivityDefect(Watchdog):
    def is_activity(self, stream: str, data: bytes) -> bool:
        return b"\n" in data


@breaks(
    "polls-once-a-second",
    "A1",
    "checks only once a second whether the limit is over",
    harmless="The agent is ended at most a second later.",
)
class ChecksLimitOncePerSecondDefect(Watchdog):
    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        limit = self.limits["inactivity_timeout"]
        if limit is not None:
            self.limits["inactivity_timeout"] = (limit // _SECOND_NS + 1) * _SECOND_NS


@breaks("silence-has-no-limit", "A1", "has no limit on silence at all")
class SilenceHasNoLimitDefect(Watchdog):
    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.limits["inactivity_timeout"] = None


@breaks("no-hard-cap", "A2", "lets an agent that prints run for ever")
class RunHasNoMaxRuntimeDefect(Watchdog):
    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.limits["max_runtime"] = None


@breaks("double-timer", "A3", "has a second timer that no activity restarts")
class SecondTimerNeverRestartsDefect(Watchdog):
    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        given = [limit for limit in self.limits.values() if limit is not None]
        self.limits["max_runtime"] = min(given, default=None)


@breaks(
    "harsher-limit-first",
    "A3",
    "prefers the harsher of two limits at one instant",
    harmless="Both limits are over at that instant, so both names are true.",
)
class PrefersHarsherLimitDefect(Watchdog):
    def find_expired_limit(self, now: int) -> tuple[str, Outcome] | None:
        self.deadlines = dict(reversed(self.deadlines.items()))
        return super().find_expired_limit(now)


@breaks("closed-output-is-exit", "A5", "stops its timers when stdout ends")
class StdoutEndStopsTimersDefect(Watchdog):
    def note_stream_end(self, now: int, stream: str) -> None:
        super().note_stream_end(now, stream)
        if stream == "stdout":
            self.disarm()


@breaks(
    "closed-output-is-activity",
    "A5",
    "counts the end of a stream as output",
    harmless="A stream ends once, so the agent is ended one limit later at most.",
)
class StreamEndIsActivityDefect(Watchdog):
    def note_stream_end(self, now: int, stream: str) -> None:
        super().note_stream_end(now, stream)
        if self.deadlines:
            self.note_activity(now, stream, 0)


@breaks("noise-is-progress", "A8", "counts a line that is no event as progress")
class NoiseIsProgressDefect(Watchdog):
    def is_progress(self, meaning: Meaning) -> bool:
        return True


@breaks("only-messages-are-progress", "A8", "does not count pieces, tools and sub-agents as progress")
class OnlyMessagesAreProgressDefect(Watchdog):
    def is_progress(self, meaning: Meaning) -> bool:
        return isinstance(meaning, Message)


@breaks("any-event-is-progress", "A8", "counts a status line as progress")
class StatusLineIsProgressDefect(Watchdog):
    def is_progress(self, meaning: Meaning) -> bool:
        return not isinstance(meaning, Noise)


@breaks("watches-in-the-grace", "A1", "applies the silence limit to an agent that has completed")
class SilenceLimitAfterCompletionDefect(Watchdog):
    def disarm(self) -> None:
        """Disarm nothing."""

    def find_expired_limit(self, now: int) -> tuple[str, Outcome] | None:
        due = super().find_expired_limit(now)
        if due:
            super().disarm()
        return due


@breaks("bytes-are-progress", "A8", "counts every byte as progress")
class BytesAreProgressInRunDefect(Watchdog):
    def note_activity(self, now: int, stream: str, size: int) -> None:
        super().note_activity(now, stream, size)
        self.note_progress(now)


@breaks("prompts-never-time-out", "P1", "has no limit on the time of a prompt")
class PromptTimeHasNoLimitDefect(TurnWatchdog):
    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.limits["prompt_timeout"] = None


@breaks("prompt-timeout-is-duration", "P2", "moves the deadline at no progress")
class ProgressMovesNoDeadlineDefect(TurnWatchdog):
    def note_progress(self, now: int) -> None:
        kept = self.deadlines.get("prompt_timeout")
        super().note_progress(now)
        if kept is not None:
            self.deadlines["prompt_timeout"] = kept


@breaks("timer-beats-progress", "A4", "times out though progress waits to be read")
class TimerIgnoresUnreadProgressDefect(TurnWatchdog):
    def _move_deadlines(self, now: int, *names: str) -> None:
        super()._move_deadlines(now, *(name for name in names if self.deadlines.get(name, now + 1) > now))


@breaks("bytes-move-the-deadline", "P2", "counts every byte of a turn as progress")
class BytesAreProgressInTurnDefect(TurnWatchdog):
    def note_activity(self, now: int, stream: str, size: int) -> None:
        super().note_activity(now, stream, size)
        self.note_progress(now)


@breaks_in_sessions("closed-output-is-activity")
class StreamEndIsProgressDefect(TurnWatchdog):
    """Takes the end of a stream for a sign of life (A5)."""

    def note_stream_end(self, now: int, stream: str) -> None:
        super().note_stream_end(now, stream)
        self.note_activity(now, stream, 0)
        self.note_progress(now)


@breaks(
    "closed-output-loses-the-turn",
    "A5",
    "treats the end of stdout as the exit",
    harmless="No answer can come on a closed stdout, and the turn is not reported as completed.",
)
class StdoutEndIsAgentExitDefect(TurnWatchdog):
    def note_stream_end(self, now: int, stream: str) -> None:
        super().note_stream_end(now, stream)
        if stream == "stdout" and self.deadlines:
            self.deadlines["prompt_timeout"] = now

    def find_expired_limit(self, now: int) -> tuple[str, Outcome] | None:
        return ("stdout", Outcome.AGENT_LOST) if "stdout" in self.closed else super().find_expired_limit(now)

    def explain_expiry(self, name: str, now: int) -> str:
        return "it has gone" if name == "stdout" else super().explain_expiry(name, now)


@breaks("deadline-runs-while-asked", "P2", "times out while the caller owes an answer")
class TimeRunsDuringQuestionDefect(TurnWatchdog):
    def pause_progress_limits(self) -> None:
        """Change nothing."""

    def resume_progress_limits(self, now: int) -> None:
        """Change nothing."""


@breaks("deadline-rests-for-ever", "P2", "has no deadline after a question was asked")
class QuestionRemovesDeadlineDefect(TurnWatchdog):
    def resume_progress_limits(self, now: int) -> None:
        """Change nothing."""


@breaks("words-end-the-rest", "P2", "restarts a resting deadline when the agent says something")
class WordsRestartPausedDeadlineDefect(TurnWatchdog):
    def note_progress(self, now: int) -> None:
        super().note_progress(now)
        self.resume_progress_limits(now)


@breaks("words-alone-are-activity", "A1", "counts bytes that are no event as silence")
class NoiseIsNoActivityDefect(TurnWatchdog):
    def note_activity(self, now: int, stream: str, size: int) -> None:
        """Change nothing."""

    def note_progress(self, now: int) -> None:
        super().note_progress(now)
        super().note_activity(now, "", 0)


@breaks("session-uses-run-silence-limit", "A1", "keeps a run's limit on silence in sessions")
class SessionUsesRunSilenceLimitDefect(TurnWatchdog):
    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.limits["inactivity_timeout"] = self.limits["inactivity_timeout"] or 120 * _SECOND_NS


@breaks("idle-time-counts", "A1", "counts the silence before a turn")
class SilenceCountsBeforeTurnDefect(TurnWatchdog):
    def start(self, now: int) -> None:
        last = self.last_activity
        super().start(now)
        if self.silence in self.deadlines:
            self.deadlines[self.silence] += last - now


@breaks_in_sessions("silence-has-no-limit")
class TurnSilenceHasNoLimitDefect(TurnWatchdog):
    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.limits["inactivity_timeout"] = None


@breaks("turns-have-no-cap", "A2", "lets a turn that prints run for ever")
class TurnHasNoMaxRuntimeDefect(TurnWatchdog):
    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.limits["max_runtime"] = None


@breaks("cap-is-of-the-session", "A2", "counts a turn's runtime from the first prompt")
class TurnRuntimeSpansSessionDefect(TurnWatchdog):
    first: int | None = None

    def start(self, now: int) -> None:
        super().start(now)
        self.first = now if self.first is None else self.first
        if "max_runtime" in self.deadlines:
            self.deadlines["max_runtime"] += self.first - now


@breaks(
    "turns-never-stall",
    "A8",
    "has no limit on a turn without progress except prompt_timeout",
    harmless="The turn is cancelled later, by prompt_timeout.",
)
class TurnStallHasNoLimitDefect(TurnWatchdog):
    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.limits["progress_timeout"] = None
