"""Tools and tasks: whose tools run, and what the agent began beside its turns (A6, A7, B2). Pure."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from pytest_agentproc.supervisor.dialects import (
    MAX_ID_CHARS,
    MAX_TOOLS_IN_FLIGHT,
    Asked,
    Compaction,
    TaskBegun,
    TaskOver,
    TaskReported,
    ToolEnded,
    ToolStarted,
)

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects import Meaning
    from pytest_agentproc.vocabulary import Policy


_KIND_OF_BACKGROUND_AGENTS = "local_agent"


class ToolTracker:
    """Follow the tools of one agent process, each by its id. A sub-agent's words change nothing here (A6).

    A compaction that the agent announces is work like a tool of its own, until it says the end or the turn is over.
    """

    def __init__(self, policy: Policy) -> None:
        self.host_tools = policy.host_tools
        self.running: set[str] = set()
        self.is_compacting = False
        self.agents: set[str] = set()
        """The background agents in flight."""

    def feed(self, meaning: Meaning) -> None:
        """Take one event."""
        if isinstance(meaning, ToolStarted):
            if len(self.running) < MAX_TOOLS_IN_FLIGHT and not self.is_host_tool(meaning.name):
                self.running.add(meaning.id[:MAX_ID_CHARS])
        elif isinstance(meaning, ToolEnded):
            self.running.discard(meaning.id[:MAX_ID_CHARS])
        elif isinstance(meaning, TaskBegun):
            if meaning.kind == _KIND_OF_BACKGROUND_AGENTS and len(self.agents) < MAX_TOOLS_IN_FLIGHT:
                self.agents.add(meaning.id[:MAX_ID_CHARS])
        elif isinstance(meaning, TaskReported):
            self.agents.discard(meaning.id[:MAX_ID_CHARS])
        elif isinstance(meaning, Compaction):
            self.is_compacting = not meaning.is_over

    def note_turn_end(self) -> None:
        """Take note that a session's turn is over: nothing of it is in flight any more but agents that it launched."""
        self.running.clear()
        self.is_compacting = False

    @property
    def is_busy(self) -> bool:
        """Whether a tool of the agent's own is in flight, or it compacts its context."""
        return self.is_compacting or bool(self.running or self.agents)

    @property
    def current_work_text(self) -> str:
        """The work that the agent is busy with, in a clause."""
        return "it compacted its context" if self.is_compacting and not (self.running or self.agents) else "a tool ran"

    def is_host_tool(self, name: str) -> bool:
        """Say whether a tool is executed by the host."""
        return any(fnmatchcase(name, pattern) for pattern in self.host_tools)

    def is_handed_over(self, meaning: Meaning) -> bool:
        """Say whether it is the host's turn: a message that asks for a tool of its is complete (A7)."""
        return isinstance(meaning, Asked) and any(self.is_host_tool(name) for name in meaning.names)


_MAX_TASKS_IN_WARNING = 10
_MAX_TASK_TITLE_CHARS = 60


class BackgroundTaskTracker:
    """Follow the background tasks of one agent process, each by its id.

    `running` are the commands that have not come to a terminal status, with what they do. Agents and other background
    work are followed for the warning alone: agents are tools (A6).
    """

    KIND = "local_bash"

    def __init__(self) -> None:
        self.running: dict[str, str] = {}
        self._others: dict[str, str] = {}
        self._stopped: dict[str, str] = {}

    def feed(self, meaning: Meaning) -> None:
        """Take one event."""
        if isinstance(meaning, TaskBegun):
            followed = self.running if meaning.kind == self.KIND else self._others
            if len(followed) < MAX_TOOLS_IN_FLIGHT:
                followed[meaning.id[:MAX_ID_CHARS]] = meaning.title[:_MAX_TASK_TITLE_CHARS]
        elif isinstance(meaning, TaskOver):
            self._end_task(meaning)

    def _end_task(self, over: TaskOver) -> None:
        name = over.id[:MAX_ID_CHARS]
        title = self.running.pop(name, None)
        if title is None:
            title = self._others.pop(name, None)
        if title is not None and over.was_stopped and len(self._stopped) < MAX_TOOLS_IN_FLIGHT:
            self._stopped[name] = title

    def describe_lost(self) -> list[str]:
        """Name, after the agent's end, the tasks whose work is lost: no end was reported, or they were stopped."""
        lost = {"never ended": {**self.running, **self._others}, "were stopped": self._stopped}
        return [f"background tasks {how}: {_format_tasks(tasks)}" for how, tasks in lost.items() if tasks]


def _format_tasks(tasks: dict[str, str]) -> str:
    names = [f"{name} ({title})" if title else name for name, title in tasks.items()]
    more = f" and {len(names) - _MAX_TASKS_IN_WARNING} more" if len(names) > _MAX_TASKS_IN_WARNING else ""
    return ", ".join(names[:_MAX_TASKS_IN_WARNING]) + more
