"""Judgements of tools that are wrong, each in one way. Pure; knows no decider but those that look at tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.supervisor import ToolTracker, TurnWatchdog, Watchdog
from pytest_agentproc.supervisor.dialects import Asked, Compaction, Nested, ToolEnded, ToolStarted

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects import Meaning
    from pytest_agentproc.vocabulary import Policy


class ToolsKeepShortLimitDefect(ToolTracker):
    """Keeps the short limit while the agent runs a tool (A6)."""

    def feed(self, meaning: Meaning) -> None:
        """Take note of nothing."""


class SubagentRestoresShortLimitDefect(ToolTracker):
    """Restores the short limit when a sub-agent speaks (A6)."""

    def feed(self, meaning: Meaning) -> None:
        super().feed(meaning)
        if isinstance(meaning, Nested):
            self.running.clear()


class CountsSubagentToolsDefect(ToolTracker):
    """Counts a sub-agent's tools as the agent's own (A6)."""

    def feed(self, meaning: Meaning) -> None:
        super().feed(meaning.meaning if isinstance(meaning, Nested) else meaning)


class FirstToolEndRestoresLimitDefect(ToolTracker):
    """Restores the short limit when the first tool ends (A6)."""

    def feed(self, meaning: Meaning) -> None:
        super().feed(meaning)
        if isinstance(meaning, ToolEnded):
            self.running.clear()


class LaunchEndsBackgroundAgentDefect(ToolTracker):
    """Treats a launched background agent as a tool that has ended (A6)."""

    def feed(self, meaning: Meaning) -> None:
        if not isinstance(meaning, ToolStarted) or meaning.name != "local_agent":
            super().feed(meaning)


class LongLimitOutlivesToolDefect(ToolTracker):
    """Keeps the long limit when the tool has ended (A6)."""

    def feed(self, meaning: Meaning) -> None:
        if not isinstance(meaning, ToolEnded):
            super().feed(meaning)


class CompactionKeepsShortLimitDefect(ToolTracker):
    """Keeps the short limit while the agent compacts (A6)."""

    def feed(self, meaning: Meaning) -> None:
        if not isinstance(meaning, Compaction):
            super().feed(meaning)


class LimitStaysLongAfterCompactionDefect(ToolTracker):
    """Keeps the long limit after a compaction (A6)."""

    def feed(self, meaning: Meaning) -> None:
        if not isinstance(meaning, Compaction) or not meaning.is_over:
            super().feed(meaning)


class LimitStaysLongAfterTurnDefect(ToolTracker):
    """Keeps the long limit for a tool whose turn is over (A6)."""

    def note_turn_end(self) -> None:
        """Forget nothing."""


class ToolsHaveNoLimitInRunDefect(Watchdog):
    """Waits without limit while a tool runs (A6)."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.limits["internal_tool_timeout"] = None


class ToolLimitIsDurationDefect(Watchdog):
    """Applies the limit on a tool's silence to the tool's whole time (A6)."""

    def note_activity(self, now: int, stream: str, size: int) -> None:
        kept = self.deadlines.get("internal_tool_timeout")
        super().note_activity(now, stream, size)
        if kept is not None:
            self.deadlines["internal_tool_timeout"] = kept


class ToolsHaveNoLimitInTurnDefect(TurnWatchdog):
    """Waits without limit while a tool runs, in a session (A6)."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.limits["internal_tool_timeout"] = None


class AnyToolGoesToHostDefect(ToolTracker):
    """Ends at every tool, also at the agent's own (A7)."""

    def is_handed_over(self, meaning: Meaning) -> bool:
        return isinstance(meaning, Asked)


class HostToolNeverEndsRunDefect(ToolTracker):
    """Waits on when the agent has asked for a host tool (A7)."""

    def is_handed_over(self, meaning: Meaning) -> bool:
        return False


class SubagentToolGoesToHostDefect(ToolTracker):
    """Treats a sub-agent's tool as a host tool (A7)."""

    def is_handed_over(self, meaning: Meaning) -> bool:
        return super().is_handed_over(meaning.meaning if isinstance(meaning, Nested) else meaning)


class HostToolCutsMessageDefect(ToolTracker):
    """Ends inside the message that asks for the tool (A7)."""

    def is_handed_over(self, meaning: Meaning) -> bool:
        return isinstance(meaning, ToolStarted) and self.is_host_tool(meaning.name)
