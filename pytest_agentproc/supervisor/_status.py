"""Where a session stands: drawn, as an enum and as a table. Decides nothing.

STARTING --handshake--> READY --a prompt is delivered--> PROMPTING --its outcome--> READY
STARTING, READY, PROMPTING --the agent is gone, or forced to stop--> RESTARTING --handshake--> READY
STARTING, READY, PROMPTING, RESTARTING --no start, no handshake, or one crash too many--> FAILED
STARTING, READY, PROMPTING, RESTARTING, FAILED --close--> CLOSED

"""

from __future__ import annotations

from enum import Enum

__all__ = ["EDGES", "Status"]


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
