"""Watchdogs that judge time wrongly, each in one way. Pure, as the right one is; knows no other decider."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.supervisor import TurnWatchdog, Watchdog
from pytest_agentproc.supervisor.dialects import Message, Noise
from pytest_agentproc.vocabulary import Outcome

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects import Meaning
    from pytest_agentproc.vocabulary import Policy


_SECOND_NS = 1_000_000_000


class InactivityLimitIsDurationDefect(Watchdog):
    """Applies the inactivity limit to the whole duration (A1)."""

    def note_activity(self, now: int, stream: str, size: int) -> None:
        self.count += size
        self.last_activity = now


class TimerIgnoresUnreadOutputDefect(Watchdog):
    """Ends an agent whose output waits to be read (A4)."""

    def _move_deadlines(self, now: int, *names: str) -> None:
        super()._move_deadlines(now, *(name for name in names if self.deadlines.get(name, now + 1) > now))


class OwnWritesAreActivityDefect(Watchdog):
    """Counts its own writes as activity (A1)."""

    def note_own_write(self, now: int) -> None:
        if self.is_armed:
            self.note_activity(now, "stdin", 0)


class StderrIsNoActivityDefect(Watchdog):
    """Does not count bytes on stderr as activity (A1)."""

    def is_activity(self, stream: str, data: bytes) -> bool:
        return stream == "stdout"


class FirstOutputHasNoLimitDefect(Watchdog):
    """Waits without limit for the first output (A1)."""

    def arm(self, now: int) -> None:
        super().arm(now)
        if not self.count:
            self.deadlines.pop(self.silence, None)

    def note_activity(self, now: int, stream: str, size: int) -> None:
        is_first = not self.count
        super().note_activity(now, stream, size)
        if is_first:
            self.arm(now)


class OnlyWholeLinesAreActivityDefect(Watchdog):
    """Counts bytes as activity only when their line ends (A1)."""

    def is_activity(self, stream: str, data: bytes) -> bool:
        return b"\n" in data


class ChecksLimitOncePerSecondDefect(Watchdog):
    """Checks only once a second whether the limit is over (A1)."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        limit = self.limits["inactivity_timeout"]
        if limit is not None:
            self.limits["inactivity_timeout"] = (limit // _SECOND_NS + 1) * _SECOND_NS


class RunHasNoMaxRuntimeDefect(Watchdog):
    """Lets an agent that prints run for ever (A2)."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.limits["max_runtime"] = None


class SecondTimerNeverRestartsDefect(Watchdog):
    """Has a second timer that no activity restarts (A3)."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        given = [limit for limit in self.limits.values() if limit is not None]
        self.limits["max_runtime"] = min(given, default=None)


class PrefersHarsherLimitDefect(Watchdog):
    """Prefers the harsher of two limits at one instant (A3)."""

    def find_expired_limit(self, now: int) -> tuple[str, Outcome] | None:
        self.deadlines = dict(reversed(self.deadlines.items()))
        return super().find_expired_limit(now)


class StdoutEndStopsTimersDefect(Watchdog):
    """Stops its timers when stdout ends (A5)."""

    def note_stream_end(self, now: int, stream: str) -> None:
        super().note_stream_end(now, stream)
        if stream == "stdout":
            self.disarm()


class StreamEndIsActivityDefect(Watchdog):
    """Counts the end of a stream as output (A5)."""

    def note_stream_end(self, now: int, stream: str) -> None:
        super().note_stream_end(now, stream)
        if self.deadlines:
            self.note_activity(now, stream, 0)


class NoiseIsProgressDefect(Watchdog):
    """Counts a line that is no event as progress (A8)."""

    def is_progress(self, meaning: Meaning) -> bool:
        return True


class OnlyMessagesAreProgressDefect(Watchdog):
    """Does not count pieces, tools and sub-agents as progress (A8)."""

    def is_progress(self, meaning: Meaning) -> bool:
        return isinstance(meaning, Message)


class StatusLineIsProgressDefect(Watchdog):
    """Counts a status line as progress (A8)."""

    def is_progress(self, meaning: Meaning) -> bool:
        return not isinstance(meaning, Noise)


class SilenceLimitAfterCompletionDefect(Watchdog):
    """Applies the silence limit to an agent that has completed (A1)."""

    def disarm(self) -> None:
        """Disarm nothing."""

    def find_expired_limit(self, now: int) -> tuple[str, Outcome] | None:
        due = super().find_expired_limit(now)
        if due:
            super().disarm()
        return due


class BytesAreProgressInRunDefect(Watchdog):
    """Counts every byte as progress (A8)."""

    def note_activity(self, now: int, stream: str, size: int) -> None:
        super().note_activity(now, stream, size)
        self.note_progress(now)


class PromptTimeHasNoLimitDefect(TurnWatchdog):
    """Has no limit on the time of a prompt (P1)."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.limits["prompt_timeout"] = None


class ProgressMovesNoDeadlineDefect(TurnWatchdog):
    """Moves the deadline at no progress (P2)."""

    def note_progress(self, now: int) -> None:
        kept = self.deadlines.get("prompt_timeout")
        super().note_progress(now)
        if kept is not None:
            self.deadlines["prompt_timeout"] = kept


class TimerIgnoresUnreadProgressDefect(TurnWatchdog):
    """Times out though progress waits to be read (A4)."""

    def _move_deadlines(self, now: int, *names: str) -> None:
        super()._move_deadlines(now, *(name for name in names if self.deadlines.get(name, now + 1) > now))


class BytesAreProgressInTurnDefect(TurnWatchdog):
    """Counts every byte of a turn as progress (P2)."""

    def note_activity(self, now: int, stream: str, size: int) -> None:
        super().note_activity(now, stream, size)
        self.note_progress(now)


class StreamEndIsProgressDefect(TurnWatchdog):
    """Takes the end of a stream for a sign of life (A5)."""

    def note_stream_end(self, now: int, stream: str) -> None:
        super().note_stream_end(now, stream)
        self.note_activity(now, stream, 0)
        self.note_progress(now)


class StdoutEndIsAgentExitDefect(TurnWatchdog):
    """Treats the end of stdout as the exit (A5)."""

    def note_stream_end(self, now: int, stream: str) -> None:
        super().note_stream_end(now, stream)
        if stream == "stdout" and self.deadlines:
            self.deadlines["prompt_timeout"] = now

    def find_expired_limit(self, now: int) -> tuple[str, Outcome] | None:
        return ("stdout", Outcome.AGENT_LOST) if "stdout" in self.closed else super().find_expired_limit(now)

    def explain_expiry(self, name: str, now: int) -> str:
        return "it has gone" if name == "stdout" else super().explain_expiry(name, now)


class TimeRunsDuringQuestionDefect(TurnWatchdog):
    """Times out while the caller owes an answer (P2)."""

    def pause_progress_limits(self) -> None:
        """Change nothing."""

    def resume_progress_limits(self, now: int) -> None:
        """Change nothing."""


class QuestionRemovesDeadlineDefect(TurnWatchdog):
    """Has no deadline after a question was asked (P2)."""

    def resume_progress_limits(self, now: int) -> None:
        """Change nothing."""


class WordsRestartPausedDeadlineDefect(TurnWatchdog):
    """Restarts a resting deadline when the agent says something (P2)."""

    def note_progress(self, now: int) -> None:
        super().note_progress(now)
        self.resume_progress_limits(now)


class NoiseIsNoActivityDefect(TurnWatchdog):
    """Counts bytes that are no event as silence (A1)."""

    def note_activity(self, now: int, stream: str, size: int) -> None:
        """Change nothing."""

    def note_progress(self, now: int) -> None:
        super().note_progress(now)
        super().note_activity(now, "", 0)


class SessionUsesRunSilenceLimitDefect(TurnWatchdog):
    """Keeps a run's limit on silence in sessions (A1)."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.limits["inactivity_timeout"] = self.limits["inactivity_timeout"] or 120 * _SECOND_NS


class SilenceCountsBeforeTurnDefect(TurnWatchdog):
    """Counts the silence before a turn (A1)."""

    def start(self, now: int) -> None:
        last = self.last_activity
        super().start(now)
        if self.silence in self.deadlines:
            self.deadlines[self.silence] += last - now


class TurnSilenceHasNoLimitDefect(TurnWatchdog):
    """Has no limit on the silence of a turn (A1)."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.limits["inactivity_timeout"] = None


class TurnHasNoMaxRuntimeDefect(TurnWatchdog):
    """Lets a turn that prints run for ever (A2)."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.limits["max_runtime"] = None


class TurnRuntimeSpansSessionDefect(TurnWatchdog):
    """Counts a turn's runtime from the first prompt (A2)."""

    first: int | None = None

    def start(self, now: int) -> None:
        super().start(now)
        self.first = now if self.first is None else self.first
        if "max_runtime" in self.deadlines:
            self.deadlines["max_runtime"] += self.first - now


class TurnStallHasNoLimitDefect(TurnWatchdog):
    """Has no limit on a turn without progress except prompt_timeout (A8)."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.limits["progress_timeout"] = None
