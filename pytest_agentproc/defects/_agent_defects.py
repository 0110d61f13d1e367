"""Judgements of the agents of a session that are wrong, each in one way. Pure; starts and ends nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.defects._defect import breaks
from pytest_agentproc.supervisor import Escalation, RestartCounter, SpawnAgent
from pytest_agentproc.vocabulary import to_nanoseconds

if TYPE_CHECKING:
    from pytest_agentproc.supervisor import MachineCommand, Policy


@breaks("restarts-at-once", "P6", "starts a crashed agent again without a pause")
class RestartsWithoutDelayDefect(RestartCounter):
    def plan_restart(self, now: int) -> int | None:
        return None if super().plan_restart(now) is None else 0


@breaks(
    "first-start-is-tried-again",
    "P6",
    "starts an agent again that never did its handshake",
    harmless="The prompt gets its outcome, some starts later.",
)
class RestartsAfterFailedHandshakeDefect(RestartCounter):
    def is_given_up(self, *, was_ready: bool) -> bool:
        return False


@breaks("restart-begins-a-new-session", "P6", "starts a new session after a crash")
class RestartsInNewSessionDefect(RestartCounter):
    def choose_session(self, session: str | None) -> str:
        """Forget it."""
        return ""


@breaks(
    "backoff-does-not-double",
    "P6",
    "waits the same time before every restart",
    harmless="The agent is started earlier, and still a limited number of times.",
)
class RestartDelayStaysConstantDefect(RestartCounter):
    def plan_restart(self, now: int) -> int | None:
        return None if super().plan_restart(now) is None else to_nanoseconds(self.backoff or 0)


@breaks(
    "restart-delay-grows-endlessly",
    "P6",
    "doubles the time before a restart without end",
    harmless="The agent is started later, and the prompt waits for it.",
)
class RestartDelayGrowsEndlesslyDefect(RestartCounter):
    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.LONGEST = (self.backoff or 0) * 2**self.MOST


@breaks(
    "restarts-for-ever",
    "P6",
    "starts an agent again however often it crashes",
    harmless="How many starts are too many is the choice of a supervisor, and each waits longer.",
)
class RestartsWithoutLimitDefect(RestartCounter):
    MOST = 50
    """Ten times as many as are right; with no end at all, a session whose agent always crashes would never be over."""

    WINDOW = 1 << 62
    """All crashes ever count: one crash a minute never fills the right window of ten minutes."""


@breaks("never-restarts", "P6", "gives up at the first crash")
class NeverRestartsAgentDefect(RestartCounter):
    MOST = 0


@breaks(
    "crashes-count-for-ever",
    "P6",
    "never forgets old crashes",
    harmless="How many crashes are too many, and how old ones count, is the choice of a supervisor.",
)
class NeverForgetsCrashesDefect(RestartCounter):
    WINDOW = 1 << 62


@breaks(
    "close-is-terminate",
    "P8",
    "terminates the agent at the instant of the close",
    sessions_only="Only a session is closed.",
)
class CloseWithoutGraceDefect(Escalation):
    def start_close_grace(self, now: int) -> None:
        super().start_close_grace(now)
        self.deadline = now


@breaks(
    "close-starts-an-agent",
    "P8",
    "starts a new agent as the session is closed",
    sessions_only="Only a session is closed.",
)
class CloseStartsAgentDefect(Escalation):
    is_closing = False

    def start_close_grace(self, now: int) -> None:
        super().start_close_grace(now)
        self.is_closing = True

    def end_leftovers(self, now: int) -> list[MachineCommand]:
        started = [SpawnAgent(self.containment)] if self.is_closing else []
        self.is_closing = False
        return [*started, *super().end_leftovers(now)]


@breaks(
    "close-waits-for-the-exit",
    "P8",
    "waits for ever for an agent whose stdin has ended",
    sessions_only="Only a session is closed.",
)
class CloseWaitsForeverDefect(Escalation):
    def start_close_grace(self, now: int) -> None:
        """Start no timer."""
