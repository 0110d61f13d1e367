"""Whose tools run: the agent's own, during which silence may last longer, and the host's, which end a turn. Pure."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from pytest_agentproc.supervisor.dialects import LONGEST_ID, MOST_TOOLS, Asked, Compaction, ToolEnded, ToolStarted

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects import Meaning
    from pytest_agentproc.vocabulary import Policy

__all__ = ["Tools"]

_AGENT = "local_agent"


class Tools:
    """Follow the tools of one agent process, each by its id. What a sub-agent says changes nothing here (A6).

    A compaction that the agent announces is work like a tool of its own, until it says the end or the turn is over.

    Args:
        policy: says which tools are the host's.
    """

    def __init__(self, policy: Policy) -> None:
        self.host_tools = policy.host_tools
        self.running: set[str] = set()
        self.is_compacting = False
        self._agents: set[str] = set()

    def feed(self, meaning: Meaning) -> None:
        """Take one event."""
        if isinstance(meaning, ToolStarted):
            if len(self.running) < MOST_TOOLS and not self.is_hosts(meaning.name):
                self.running.add(meaning.id[:LONGEST_ID])
                if meaning.name == _AGENT:
                    self._agents.add(meaning.id[:LONGEST_ID])
        elif isinstance(meaning, ToolEnded):
            self.running.discard(meaning.id[:LONGEST_ID])
            self._agents.discard(meaning.id[:LONGEST_ID])
        elif isinstance(meaning, Compaction):
            self.is_compacting = not meaning.is_over

    def settle(self) -> None:
        """Take note that a session's turn is over: nothing of it is in flight any more but agents that it launched."""
        self.running &= self._agents
        self.is_compacting = False

    @property
    def is_busy(self) -> bool:
        """Whether a tool of the agent's own is in flight, or it compacts its context."""
        return self.is_compacting or bool(self.running)

    @property
    def doing(self) -> str:
        """What the agent is busy with, in a clause."""
        return "it compacted its context" if self.is_compacting and not self.running else "a tool ran"

    def is_hosts(self, name: str) -> bool:
        """Say whether a tool is executed by the host."""
        return any(fnmatchcase(name, pattern) for pattern in self.host_tools)

    def is_handed_over(self, meaning: Meaning) -> bool:
        """Say whether it is the host's turn: a message that asks for a tool of its is complete (A7)."""
        return isinstance(meaning, Asked) and any(self.is_hosts(name) for name in meaning.names)
