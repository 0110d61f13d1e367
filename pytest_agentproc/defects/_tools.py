"""Judgements of tools that are wrong, each in one way. Pure; knows no decider but those that look at tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.supervisor import Tools, TurnWatchdog, Watchdog
from pytest_agentproc.supervisor.dialects import Asked, Compaction, Nested, ToolEnded, ToolStarted

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects import Meaning
    from pytest_agentproc.vocabulary import Policy


class IgnorantTools(Tools):
    """Never looks whether the agent executes a tool (A6)."""

    def feed(self, meaning: Meaning) -> None:
        """Take note of nothing."""


class NestedRestoresTools(Tools):
    """Takes a sub-agent's word for the agent's own, which shows that its tools are done (A6)."""

    def feed(self, meaning: Meaning) -> None:
        super().feed(meaning)
        if isinstance(meaning, Nested):
            self.running.clear()


class NestedCountTools(Tools):
    """Takes a sub-agent's tools for the agent's own (A6)."""

    def feed(self, meaning: Meaning) -> None:
        super().feed(meaning.meaning if isinstance(meaning, Nested) else meaning)


class FirstEndTools(Tools):
    """Remembers that tools run, but not how many (A6)."""

    def feed(self, meaning: Meaning) -> None:
        super().feed(meaning)
        if isinstance(meaning, ToolEnded):
            self.running.clear()


class ForgetfulTools(Tools):
    """Takes the result of a tool for the end of the background agent that it launched (A6)."""

    def feed(self, meaning: Meaning) -> None:
        if not isinstance(meaning, ToolStarted) or meaning.name != "local_agent":
            super().feed(meaning)


class EndlessTools(Tools):
    """Keeps the long limit once a tool has run (A6)."""

    def feed(self, meaning: Meaning) -> None:
        if not isinstance(meaning, ToolEnded):
            super().feed(meaning)


class SilentCompactionTools(Tools):
    """Takes a compaction for silence (A6)."""

    def feed(self, meaning: Meaning) -> None:
        if not isinstance(meaning, Compaction):
            super().feed(meaning)


class EndlessCompactionTools(Tools):
    """Keeps the long limit once the agent has compacted its context (A6)."""

    def feed(self, meaning: Meaning) -> None:
        if not isinstance(meaning, Compaction) or not meaning.is_over:
            super().feed(meaning)


class UnsettledTools(Tools):
    """Waits in a session for a tool whose turn is over (A6)."""

    def settle(self) -> None:
        """Forget nothing."""


class UnlimitedWatchdog(Watchdog):
    """Waits without limit while a tool runs (A6)."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.limits["internal_tool_timeout"] = None


class DurationWatchdog(Watchdog):
    """Takes the limit on the silence of a tool for one on the time that it runs (A6)."""

    def activity(self, now: int, stream: str, size: int) -> None:
        kept = self.deadlines.get("internal_tool_timeout")
        super().activity(now, stream, size)
        if kept is not None:
            self.deadlines["internal_tool_timeout"] = kept


class UnlimitedTurnWatchdog(TurnWatchdog):
    """Waits without limit while a tool runs, in a session (A6)."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.limits["internal_tool_timeout"] = None


class AnyToolTools(Tools):
    """Hands every tool over to the host (A7)."""

    def is_handed_over(self, meaning: Meaning) -> bool:
        return isinstance(meaning, Asked)


class WaitingTools(Tools):
    """Waits for the agent to do what it has left to the host (A7)."""

    def is_handed_over(self, meaning: Meaning) -> bool:
        return False


class NestedHostTools(Tools):
    """Takes a sub-agent's message for the agent's own (A7)."""

    def is_handed_over(self, meaning: Meaning) -> bool:
        return super().is_handed_over(meaning.meaning if isinstance(meaning, Nested) else meaning)


class HastyTools(Tools):
    """Ends the run inside the message that asks (A7)."""

    def is_handed_over(self, meaning: Meaning) -> bool:
        return isinstance(meaning, ToolStarted) and self.is_hosts(meaning.name)
