"""Deciders that judge wrongly, each in one way. Pure, as the right ones are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.supervisor import Ending, Ladder, Watchdog

if TYPE_CHECKING:
    from pytest_agentproc.supervisor import Completion
    from pytest_agentproc.vocabulary import Outcome

__all__ = ["DirectChildLadder", "DurationWatchdog", "TimerFirstEnding"]


class DurationWatchdog(Watchdog):
    """Never winds the inactivity limit up again (A1)."""

    def activity(self, now: int, stream: str, size: int) -> None:
        """Count, and nothing else."""
        self.count += size
        self.last_activity = now


class TimerFirstEnding(Ending):
    """Lets a deadline win over an exit of the same instant (A4)."""

    def on_exit(
        self, completion: Completion, status: int, watchdog: Watchdog, now: int, *, has_completion: bool
    ) -> Outcome:
        """Look at the timer first."""
        due = watchdog.due(now)
        return due[1] if due else super().on_exit(completion, status, watchdog, now, has_completion=has_completion)


class DirectChildLadder(Ladder):
    """Takes the agent for its whole tree (T1)."""

    whole_tree = False
