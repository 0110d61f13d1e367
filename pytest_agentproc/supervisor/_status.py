"""Where a session stands: drawn, as an enum and as a table, and judged by what is true of it. Pure.

STARTING --handshake--> READY --a prompt is delivered--> PROMPTING --its outcome--> READY
STARTING, READY, PROMPTING --the agent is gone, or forced to stop--> RESTARTING --handshake--> READY
STARTING, READY, PROMPTING, RESTARTING --no start, no handshake, or one crash too many--> FAILED
STARTING, READY, PROMPTING, RESTARTING, FAILED --close--> CLOSED

"""

from __future__ import annotations

from enum import Enum

__all__ = ["EDGES", "Standing", "Status"]


class Status(Enum):
    """Where a session stands."""

    STARTING = "starting"
    READY = "ready"
    PROMPTING = "prompting"
    RESTARTING = "restarting"
    FAILED = "failed"
    CLOSED = "closed"


EDGES = {
    Status.STARTING: {Status.READY, Status.RESTARTING, Status.FAILED, Status.CLOSED},
    Status.READY: {Status.PROMPTING, Status.RESTARTING, Status.FAILED, Status.CLOSED},
    Status.PROMPTING: {Status.READY, Status.RESTARTING, Status.FAILED, Status.CLOSED},
    Status.RESTARTING: {Status.READY, Status.FAILED, Status.CLOSED},
    Status.FAILED: {Status.CLOSED},
    Status.CLOSED: set(),
}
"""The drawing as a table: which status follows which."""


class Standing:
    """Say where a session stands; nothing is remembered, so nothing can lie."""

    def judge(self, *, is_closing: bool, has_failed: bool, is_asking: bool, is_able: bool, had_agent: bool) -> Status:
        """Give the status.

        Args:
            is_closing: whether the caller has closed it.
            has_failed: whether no agent will come any more.
            is_asking: whether a prompt is in flight.
            is_able: whether an agent lives that has done its handshake, can be written to, and is not being ended.
            had_agent: whether an agent was ready once, or has ended.
        """
        if is_closing:
            return Status.CLOSED
        if has_failed:
            return Status.FAILED
        if is_asking:
            return Status.PROMPTING
        if is_able:
            return Status.READY
        return Status.RESTARTING if had_agent else Status.STARTING
