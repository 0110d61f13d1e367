"""Ways to leave a cancelled run that leave a process alive. Each is wrong in one way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.supervisor import Abandonment

if TYPE_CHECKING:
    from pytest_agentproc.supervisor import Ports


class LeavingAbandonment(Abandonment):
    """Goes away, and lets the agent live on (T4)."""

    def end(self, ports: Ports) -> int:
        """Let go of it."""
        ports.close()
        return 0


class AskingAbandonment(Abandonment):
    """Asks the tree to end, and does not wait to see whether it does (T4)."""

    def end(self, ports: Ports) -> int:
        """Terminate, and let go."""
        ports.terminate()
        ports.close()
        return -15
