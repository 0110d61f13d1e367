"""Watchdogs of a session's turns that are wrong, each in one way. Pure; knows no turn and no process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.supervisor import Patience
from pytest_agentproc.vocabulary import NANOSECONDS, Outcome

if TYPE_CHECKING:
    from pytest_agentproc.supervisor import Policy

__all__ = [
    "BytesMovePatience",
    "ClosedIsExitPatience",
    "ClosedIsProgressPatience",
    "DurationPatience",
    "ExpiredPatience",
    "IdleCountsPatience",
    "ImpatientPatience",
    "NeverOverPatience",
    "NeverStallsPatience",
    "NeverStillPatience",
    "RestlessPatience",
    "SessionCapPatience",
    "SleepingPatience",
    "TalkedOutPatience",
    "UncappedPatience",
    "WordyPatience",
]


class NeverOverPatience(Patience):
    """Knows no limit on the time of a prompt (P1)."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.limits["prompt_timeout"] = None


class DurationPatience(Patience):
    """Takes prompt_timeout for the longest duration of a turn (P2)."""

    def progress(self, now: int) -> None:
        """Move the other deadline alone."""
        kept = self.deadlines.get("prompt_timeout")
        super().progress(now)
        if kept is not None:
            self.deadlines["prompt_timeout"] = kept


class ExpiredPatience(Patience):
    """Lets nothing move a deadline that has passed, though nobody has looked at it yet (A4)."""

    def _wind(self, now: int, *names: str) -> None:
        """Look at the timer first."""
        super()._wind(now, *(name for name in names if self.deadlines.get(name, now + 1) > now))


class BytesMovePatience(Patience):
    """Takes every byte for progress (P2)."""

    def activity(self, now: int) -> None:
        """Move all deadlines."""
        super().activity(now)
        self.progress(now)


class ClosedIsProgressPatience(Patience):
    """Takes the end of a stream for a sign of life (A5)."""

    def ended(self, now: int, stream: str) -> None:
        """Move all deadlines."""
        super().ended(now, stream)
        self.activity(now)
        self.progress(now)


class ClosedIsExitPatience(Patience):
    """Takes an agent for gone that has closed its stdout (A5)."""

    def ended(self, now: int, stream: str) -> None:
        """Let no turn go on."""
        super().ended(now, stream)
        if stream == "stdout" and self.deadlines:
            self.deadlines["prompt_timeout"] = now

    def due(self, now: int) -> tuple[Outcome, str] | None:
        """Call a turn lost."""
        return (Outcome.AGENT_LOST, "it has gone") if "stdout" in self.closed else super().due(now)


class RestlessPatience(Patience):
    """Lets the deadline run on while the caller owes an answer (P2)."""

    def hold(self) -> None:
        """Change nothing."""

    def go_on(self, now: int) -> None:
        """Change nothing."""


class SleepingPatience(Patience):
    """Lets the deadline rest for ever once a question was asked (P2)."""

    def go_on(self, now: int) -> None:
        """Change nothing."""


class TalkedOutPatience(Patience):
    """Lets the deadline run again at the agent's next word while the caller owes an answer (P2)."""

    def progress(self, now: int) -> None:
        """Wind up what rests, too."""
        super().progress(now)
        self.go_on(now)


class WordyPatience(Patience):
    """Takes events alone for activity (A1)."""

    def activity(self, now: int) -> None:
        """Change nothing."""

    def progress(self, now: int) -> None:
        """Move the limit on silence, too."""
        super().progress(now)
        super().activity(now)


class ImpatientPatience(Patience):
    """Keeps the limit on silence of a run where a session has none (A1)."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.limits["inactivity_timeout"] = self.limits["inactivity_timeout"] or 120 * NANOSECONDS


class IdleCountsPatience(Patience):
    """Counts the silence of a turn from the last byte before it (A1)."""

    def start(self, now: int) -> None:
        """Keep the instant of the last byte."""
        last = self.last_activity
        super().start(now)
        if self.silence in self.deadlines:
            self.deadlines[self.silence] += last - now


class NeverStillPatience(Patience):
    """Knows no limit on silence (A1)."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.limits["inactivity_timeout"] = None


class UncappedPatience(Patience):
    """Knows no longest runtime (A2)."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.limits["max_runtime"] = None


class SessionCapPatience(Patience):
    """Takes the longest runtime of a turn for that of the session (A2)."""

    first: int | None = None

    def start(self, now: int) -> None:
        """Count from the first prompt."""
        super().start(now)
        self.first = now if self.first is None else self.first
        if "max_runtime" in self.deadlines:
            self.deadlines["max_runtime"] += self.first - now


class NeverStallsPatience(Patience):
    """Knows no limit on the time without progress but the prompt's (A8)."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.limits["progress_timeout"] = None
