"""How a run ended: from a result, an exit and a cause to an outcome. Pure; the one place of the outcome table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.supervisor._diagnosis import with_stderr
from pytest_agentproc.vocabulary import Outcome, exit_code

if TYPE_CHECKING:
    from collections.abc import Collection

    from pytest_agentproc.supervisor._completion import Completion
    from pytest_agentproc.supervisor._feeder import Feeder
    from pytest_agentproc.supervisor._watchdog import Watchdog

__all__ = ["Ending"]


class Ending:
    """Judge a run by its completion, or else by the agent's exit; `unstarted` is one whose agent cannot be started."""

    unstarted = Outcome.SPAWN_FAILED

    def is_missing(self, errno: int) -> bool:
        """Say whether a start failed because there is no such file; else it is there and cannot be executed (P6)."""
        return errno in _NOT_FOUND

    def is_gone(self, status: int | None, streams: Collection[str]) -> bool:
        """Say whether the agent is gone: its exit alone says so, whatever streams are open yet (C4)."""
        return status is not None

    def is_input_lost(self, feeder: Feeder, *, silent: bool) -> bool:
        """Say whether a run fails for a prompt that nobody read: only once the agent lives on in silence (F5)."""
        return silent and feeder.is_broken and not feeder.is_delivered

    def stands(self, outcome: Outcome | None, completion: Completion) -> bool:
        """Say whether a run has its outcome when its agent is gone: what came after that changes nothing (A1)."""
        return outcome is not None

    def on_exit(
        self, completion: Completion, status: int, watchdog: Watchdog, now: int, *, has_completion: bool
    ) -> Outcome:
        """Say the outcome of a run whose agent exited by itself; exit beats a deadline of the same instant (A4)."""
        if completion.at is not None:
            return self.of_result(completion)
        if has_completion:
            is_told = bool(completion.error) and status > 0
            return Outcome.FAILED if is_told else Outcome.INCOMPLETE
        if status < 0:
            return Outcome.INCOMPLETE
        return Outcome.COMPLETED if status == 0 else Outcome.FAILED

    def of_result(self, completion: Completion) -> Outcome:
        """Say the outcome of a completion."""
        return Outcome.COMPLETED if completion.ok else Outcome.FAILED

    def explain(self, told: str, words: str, stderr: bytes) -> str:
        """Explain an exit without a result.

        Args:
            told: the agent's own words about an error, if it had any.
            words: how it exited, and when.
            stderr: the end of what it printed there; it is quoted if the agent had no words of its own.
        """
        return f"{told}; {words}" if told else with_stderr(words, stderr)

    def exit_code(self, outcome: Outcome, status: int | None, *, forced: bool, executable: bool) -> int:
        """Say what the supervising program should exit with."""
        return exit_code(outcome, status, forced=forced, executable=executable)

    def warnings(self, outcome: Outcome, status: int | None, *, forced: bool) -> list[str]:
        """Warn of a good result and then a self-chosen exit code."""
        if outcome is Outcome.COMPLETED and not forced and status is not None and status > 0:
            return ["exit_contradicts_result"]
        return []


_NOT_FOUND = frozenset({2, 20})
