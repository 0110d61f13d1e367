"""How a run ended: from a result, an exit and a cause to an outcome. Pure; the one place of the outcome table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.vocabulary import Outcome

if TYPE_CHECKING:
    from pytest_agentproc.supervisor._completion import Completion
    from pytest_agentproc.supervisor._watchdog import Watchdog

__all__ = ["Ending"]


class Ending:
    """Judge a run by its completion, or else by the agent's exit."""

    def on_exit(
        self, completion: Completion, status: int, watchdog: Watchdog, now: int, *, has_completion: bool
    ) -> Outcome:
        """Say the outcome of a run whose agent exited by itself; exit beats a deadline of the same instant (A4)."""
        if completion.at is not None:
            return self.of_result(completion)
        if has_completion or status < 0:
            return Outcome.INCOMPLETE
        return Outcome.COMPLETED if status == 0 else Outcome.FAILED

    def of_result(self, completion: Completion) -> Outcome:
        """Say the outcome of a completion."""
        return Outcome.COMPLETED if completion.ok else Outcome.FAILED

    def warnings(self, outcome: Outcome, status: int | None, *, forced: bool) -> list[str]:
        """Warn of a good result and then a self-chosen exit code."""
        if outcome is Outcome.COMPLETED and not forced and status is not None and status > 0:
            return ["exit_contradicts_result"]
        return []
