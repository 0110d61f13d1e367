"""What the agent began beside its turns, to its end (B2). Pure; waits for nothing and ends nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.supervisor.dialects import LONGEST_ID, MOST_TOOLS, TaskBegun, TaskOver

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects import Meaning, Spoken

__all__ = ["Tasks"]

_MOST_NAMED = 10
_LONGEST_TITLE = 60


class Tasks:
    """Follow the background tasks of one agent process, each by its id: commands, not agents, which are tools.

    `running` are those that have not come to a terminal status, with what they do.
    """

    KIND = "local_bash"

    def __init__(self) -> None:
        self.running: dict[str, str] = {}

    def feed(self, meaning: Meaning | Spoken) -> None:
        """Take one event."""
        if isinstance(meaning, TaskBegun):
            if meaning.kind == self.KIND and len(self.running) < MOST_TOOLS:
                self.running[meaning.id[:LONGEST_ID]] = meaning.title[:_LONGEST_TITLE]
        elif isinstance(meaning, TaskOver):
            self.running.pop(meaning.id[:LONGEST_ID], None)

    def warn(self) -> str:
        """Name, now that the agent is gone, what it never told the end of; "" if there is nothing."""
        names = [f"{name} ({title})" if title else name for name, title in self.running.items()]
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        told = ", ".join(names[:_MOST_NAMED]) + more
        return f"background tasks never ended: {told}" if names else ""
