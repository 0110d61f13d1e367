"""Judgements of tools that are wrong, each in one way. Pure; knows no decider but those that look at tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.defects._defect import breaks, breaks_in_sessions
from pytest_agentproc.supervisor import ToolTracker, TurnWatchdog, Watchdog
from pytest_agentproc.supervisor.dialects import Asked, Compaction, Nested, TaskReported, ToolEnded, ToolStarted

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects import Meaning
    from pytest_agentproc.vocabulary import Policy


@breaks("internal-tools-ignored", "A6", "keeps the short limit while the agent runs a tool")
class ToolsKeepShortLimitDefect(ToolTracker):
    def feed(self, meaning: Meaning) -> None:
        """Take note of nothing."""


@breaks("subagent-restores-limit", "A6", "restores the short limit when a sub-agent speaks")
class SubagentRestoresShortLimitDefect(ToolTracker):
    def feed(self, meaning: Meaning) -> None:
        super().feed(meaning)
        if isinstance(meaning, Nested):
            self.running, self.agents = set(), set()


@breaks(
    "subagent-tools-count",
    "A6",
    "counts a sub-agent's tools as the agent's own",
    harmless="The agent is ended after the longer limit.",
)
class CountsSubagentToolsDefect(ToolTracker):
    def feed(self, meaning: Meaning) -> None:
        super().feed(meaning.meaning if isinstance(meaning, Nested) else meaning)


@breaks("first-end-restores-limit", "A6", "restores the short limit when the first tool ends")
class FirstToolEndRestoresLimitDefect(ToolTracker):
    def feed(self, meaning: Meaning) -> None:
        super().feed(meaning)
        if isinstance(meaning, (ToolEnded, TaskReported)):
            self.running, self.agents = set(), set()


@breaks("background-agent-forgotten", "A6", "treats a launched background agent as a tool that has ended")
class LaunchEndsBackgroundAgentDefect(ToolTracker):
    def feed(self, meaning: Meaning) -> None:
        super().feed(meaning)
        self.agents.clear()


@breaks(
    "long-limit-stays",
    "A6",
    "keeps the long limit when the tool has ended",
    harmless="The agent is ended after the longer limit.",
)
class LongLimitOutlivesToolDefect(ToolTracker):
    def feed(self, meaning: Meaning) -> None:
        if not isinstance(meaning, (ToolEnded, TaskReported)):
            super().feed(meaning)


@breaks("compaction-is-silence", "A6", "keeps the short limit while the agent compacts")
class CompactionKeepsShortLimitDefect(ToolTracker):
    def feed(self, meaning: Meaning) -> None:
        if not isinstance(meaning, Compaction):
            super().feed(meaning)


@breaks(
    "compaction-never-ends",
    "A6",
    "keeps the long limit after a compaction",
    harmless="The agent is ended after the longer limit.",
)
class LimitStaysLongAfterCompactionDefect(ToolTracker):
    def feed(self, meaning: Meaning) -> None:
        if not isinstance(meaning, Compaction) or not meaning.is_over:
            super().feed(meaning)


@breaks(
    "tool-outlives-its-turn",
    "A6",
    "keeps the long limit for a tool whose turn is over",
    harmless="The next turn is ended after the longer limit.",
    sessions_only="A run has one turn.",
)
class LimitStaysLongAfterTurnDefect(ToolTracker):
    def note_turn_end(self) -> None:
        """Forget nothing."""


@breaks("tools-run-for-ever", "A6", "waits without limit while a tool runs")
class ToolsHaveNoLimitInRunDefect(Watchdog):
    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.limits["internal_tool_timeout"] = None


@breaks("tool-limit-is-duration", "A6", "applies the limit on a tool's silence to the tool's whole time")
class ToolLimitIsDurationDefect(Watchdog):
    def note_activity(self, now: int, stream: str, size: int) -> None:
        kept = self.deadlines.get("internal_tool_timeout")
        super().note_activity(now, stream, size)
        if kept is not None:
            self.deadlines["internal_tool_timeout"] = kept


@breaks_in_sessions("tools-run-for-ever")
class ToolsHaveNoLimitInTurnDefect(TurnWatchdog):
    """Waits without limit while a tool runs, in a session (A6)."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.limits["internal_tool_timeout"] = None


@breaks("any-tool-is-hosts", "A7", "ends at every tool, also at the agent's own")
class AnyToolGoesToHostDefect(ToolTracker):
    def is_handed_over(self, meaning: Meaning) -> bool:
        return isinstance(meaning, Asked)


@breaks("host-tool-waits", "A7", "waits on when the agent has asked for a host tool")
class HostToolNeverEndsRunDefect(ToolTracker):
    def is_handed_over(self, meaning: Meaning) -> bool:
        return False


@breaks("subagent-asks-host", "A7", "treats a sub-agent's tool as a host tool")
class SubagentToolGoesToHostDefect(ToolTracker):
    def is_handed_over(self, meaning: Meaning) -> bool:
        return super().is_handed_over(meaning.meaning if isinstance(meaning, Nested) else meaning)


@breaks(
    "host-tool-cuts-message",
    "A7",
    "ends inside the message that asks for the tool",
    harmless="The host gets the request; only words after it in its message are missing.",
)
class HostToolCutsMessageDefect(ToolTracker):
    def is_handed_over(self, meaning: Meaning) -> bool:
        return isinstance(meaning, ToolStarted) and self.is_host_tool(meaning.name)
