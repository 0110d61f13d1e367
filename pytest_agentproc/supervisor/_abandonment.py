"""What becomes of an agent whose supervising task is cancelled (T4). Decides it; the tree carries it out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_agentproc.supervisor._driver import Ports

__all__ = ["Abandonment"]


class Abandonment:
    """End whoever lives before the cancellation goes on: nobody waits for a grace any more."""

    def end(self, ports: Ports) -> int:
        """Leave nobody, and tell how the agent ended: a code, or minus a signal's number."""
        return ports.abandon()
