"""Judgements of the agents of a session that are wrong, each in one way. Pure; starts and ends nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.supervisor import Escalation, RestartCounter
from pytest_agentproc.vocabulary import to_nanoseconds

if TYPE_CHECKING:
    from pytest_agentproc.supervisor import Policy


class RestartsWithoutDelayDefect(RestartCounter):
    """Starts a crashed agent again without a pause (P6)."""

    def plan_restart(self, now: int) -> int | None:
        return None if super().plan_restart(now) is None else 0


class RestartsAfterFailedHandshakeDefect(RestartCounter):
    """Starts an agent again that never did its handshake (P6)."""

    def is_given_up(self, *, was_ready: bool) -> bool:
        return False


class RestartsInNewSessionDefect(RestartCounter):
    """Starts a new session after a crash (P6)."""

    def choose_session(self, session: str | None) -> str:
        """Forget it."""
        return ""


class RestartDelayStaysConstantDefect(RestartCounter):
    """Waits the same time before every restart (P6)."""

    def plan_restart(self, now: int) -> int | None:
        return None if super().plan_restart(now) is None else to_nanoseconds(self.backoff or 0)


class RestartDelayGrowsEndlesslyDefect(RestartCounter):
    """Doubles the time before a restart without end (P6)."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.LONGEST = (self.backoff or 0) * 2**self.MOST


class RestartsWithoutLimitDefect(RestartCounter):
    """Starts an agent again however often it crashes (P6)."""

    MOST = 50
    """Ten times as many as are right; with no end at all, a session whose agent always crashes would never be over."""

    WINDOW = 1 << 62
    """All crashes ever count: one crash a minute never fills the right window of ten minutes."""


class NeverRestartsAgentDefect(RestartCounter):
    """Gives up at the first crash (P6)."""

    MOST = 0


class NeverForgetsCrashesDefect(RestartCounter):
    """Never forgets old crashes (P6)."""

    WINDOW = 1 << 62


class CloseWithoutGraceDefect(Escalation):
    """Terminates the agent at the instant of the close (P8)."""

    def start_close_grace(self, now: int) -> None:
        super().start_close_grace(now)
        self.deadline = now


class CloseWaitsForeverDefect(Escalation):
    """Waits for ever for an agent whose stdin has ended (P8)."""

    def start_close_grace(self, now: int) -> None:
        """Start no timer."""
