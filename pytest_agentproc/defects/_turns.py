"""Judgements of a session's turns that are wrong, each in one way. Pure; knows no stream and no process."""

from __future__ import annotations

from pytest_agentproc.supervisor import Turns

__all__ = ["KillingTurns"]


class KillingTurns(Turns):
    """Gives an agent whose turn takes too long no time to acknowledge the cancel (P1)."""

    def expire(self, now: int) -> bytes:
        """Have the agent forced to stop at once."""
        data = super().expire(now)
        self.cancel_deadline = now
        return data
