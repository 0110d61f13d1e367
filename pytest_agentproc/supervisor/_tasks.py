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
    """Follow the background tasks of one agent process, each by its id.

    `running` are the commands that have not come to a terminal status, with what they do. Agents and all else that goes
    on in the background are followed for the warning alone: agents are tools (A6).
    """

    KIND = "local_bash"

    def __init__(self) -> None:
        self.running: dict[str, str] = {}
        self._others: dict[str, str] = {}
        self._stopped: dict[str, str] = {}

    def feed(self, meaning: Meaning | Spoken) -> None:
        """Take one event."""
        if isinstance(meaning, TaskBegun):
            followed = self.running if meaning.kind == self.KIND else self._others
            if len(followed) < MOST_TOOLS:
                followed[meaning.id[:LONGEST_ID]] = meaning.title[:_LONGEST_TITLE]
        elif isinstance(meaning, TaskOver):
            self._end(meaning)

    def _end(self, over: TaskOver) -> None:
        name = over.id[:LONGEST_ID]
        title = self.running.pop(name, None)
        if title is None:
            title = self._others.pop(name, None)
        if title is not None and over.was_stopped and len(self._stopped) < MOST_TOOLS:
            self._stopped[name] = title

    def warn(self) -> list[str]:
        """Name, now that the agent is gone, the tasks whose work is lost: no end was reported, or they were stopped."""
        lost = {"never ended": {**self.running, **self._others}, "were stopped": self._stopped}
        return [f"background tasks {how}: {_named(tasks)}" for how, tasks in lost.items() if tasks]


def _named(tasks: dict[str, str]) -> str:
    names = [f"{name} ({title})" if title else name for name, title in tasks.items()]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
