"""Watchdogs that judge time wrongly, each in one way. Pure, as the right one is; knows no other decider."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.supervisor import Watchdog
from pytest_agentproc.supervisor.dialects import Message, Noise

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects import Meaning
    from pytest_agentproc.vocabulary import Outcome, Policy

__all__ = [
    "AnyEventWatchdog",
    "BytesAreProgressWatchdog",
    "ClosedIsActivityWatchdog",
    "ClosedIsExitWatchdog",
    "DoubleTimerWatchdog",
    "DurationWatchdog",
    "ExpiredWatchdog",
    "FirstOutputWatchdog",
    "HarsherFirstWatchdog",
    "LineWatchdog",
    "NoiseIsProgressWatchdog",
    "OwnWritesWatchdog",
    "PollingWatchdog",
    "RestlessWatchdog",
    "StderrBlindWatchdog",
    "UncappedWatchdog",
    "WordsWatchdog",
]

_SECOND = 1_000_000_000


class DurationWatchdog(Watchdog):
    """Never winds the inactivity limit up again (A1)."""

    def activity(self, now: int, stream: str, size: int) -> None:
        """Count, and nothing else."""
        self.count += size
        self.last_activity = now


class ExpiredWatchdog(Watchdog):
    """Lets no output move a limit that has run out, though nobody has looked at it yet (A4)."""

    def _wind(self, name: str, now: int) -> None:
        """Look at the timer first."""
        if self.deadlines.get(name, now + 1) > now:
            super()._wind(name, now)


class OwnWritesWatchdog(Watchdog):
    """Takes what it writes itself for activity (A1)."""

    def wrote(self, now: int) -> None:
        """Wind the limit up."""
        if self.is_armed:
            self.activity(now, "stdin", 0)


class StderrBlindWatchdog(Watchdog):
    """Looks at stdout alone (A1)."""

    def is_activity(self, stream: str, data: bytes) -> bool:
        """Take stderr for nothing."""
        return stream == "stdout"


class FirstOutputWatchdog(Watchdog):
    """Measures silence from the first output on, and waits for that without limit (A1)."""

    def arm(self, now: int) -> None:
        """Leave silence out while nothing was said."""
        super().arm(now)
        if not self.count:
            self.deadlines.pop(self.silence, None)

    def activity(self, now: int, stream: str, size: int) -> None:
        """Arm with the first byte."""
        is_first = not self.count
        super().activity(now, stream, size)
        if is_first:
            self.arm(now)


class LineWatchdog(Watchdog):
    """Wakes up at the end of a line only (A1)."""

    def is_activity(self, stream: str, data: bytes) -> bool:
        """Take a part of a line for nothing."""
        return b"\n" in data


class PollingWatchdog(Watchdog):
    """Looks at its stopwatch once a second, and asks whether more than the limit is over (A1)."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        limit = self.limits["inactivity_timeout"]
        if limit is not None:
            self.limits["inactivity_timeout"] = (limit // _SECOND + 1) * _SECOND


class UncappedWatchdog(Watchdog):
    """Knows silence only (A2)."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.limits["max_runtime"] = None


class DoubleTimerWatchdog(Watchdog):
    """Keeps a second timer of the same length beside the one that activity winds up (A3)."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        given = [limit for limit in self.limits.values() if limit is not None]
        self.limits["max_runtime"] = min(given, default=None)


class HarsherFirstWatchdog(Watchdog):
    """Prefers the harsher of two limits that run out at one instant (A3)."""

    def due(self, now: int) -> tuple[str, Outcome] | None:
        """Look from the back."""
        self.deadlines = dict(reversed(self.deadlines.items()))
        return super().due(now)


class ClosedIsExitWatchdog(Watchdog):
    """Takes the end of stdout for the exit, and waits for no more than the process's end (A5)."""

    def ended(self, now: int, stream: str) -> None:
        """Rest: what has exited cannot hang."""
        super().ended(now, stream)
        if stream == "stdout":
            self.rest()


class ClosedIsActivityWatchdog(Watchdog):
    """Takes the end of a stream for a sign of life (A5)."""

    def ended(self, now: int, stream: str) -> None:
        """Wind the inactivity limit up."""
        super().ended(now, stream)
        if self.deadlines:
            self.activity(now, stream, 0)


class NoiseIsProgressWatchdog(Watchdog):
    """Takes every line for progress (A8)."""

    def is_progress(self, meaning: Meaning) -> bool:
        """Look at nothing."""
        return True


class WordsWatchdog(Watchdog):
    """Takes whole messages alone for progress (A8)."""

    def is_progress(self, meaning: Meaning) -> bool:
        """Look at no piece, no tool and no sub-agent."""
        return isinstance(meaning, Message)


class AnyEventWatchdog(Watchdog):
    """Takes every event for progress, a sign of life or a status as well (A8)."""

    def is_progress(self, meaning: Meaning) -> bool:
        """Look at nothing but noise."""
        return not isinstance(meaning, Noise)


class RestlessWatchdog(Watchdog):
    """Watches on over an agent that has completed (A1)."""

    def rest(self) -> None:
        """Disarm nothing."""

    def due(self, now: int) -> tuple[str, Outcome] | None:
        """Give up once."""
        due = super().due(now)
        if due:
            super().rest()
        return due


class BytesAreProgressWatchdog(Watchdog):
    """Takes every byte for progress (A8)."""

    def activity(self, now: int, stream: str, size: int) -> None:
        """Wind both limits up."""
        super().activity(now, stream, size)
        self.progress(now)
