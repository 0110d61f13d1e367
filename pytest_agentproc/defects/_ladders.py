"""Ladders that signal and wait wrongly, each in one way. Pure; knows no stream, no result and no limit of silence."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_agentproc.supervisor import Escalation

if TYPE_CHECKING:
    from pytest_agentproc.supervisor import Command, Signal
    from pytest_agentproc.vocabulary import Policy


class DirectChildLadder(Escalation):
    """Takes the agent for its whole tree (T1)."""

    reach = "agent"


class GroupLadder(Escalation):
    """Signals the agent's process group, as `killpg` does; what has a session of its own never hears of it (T1)."""

    reach = "group"


class GroupOfSessionLadder(GroupLadder):
    """Signals the agent's process group, and takes the end of the agent for that of all others (T1)."""

    def leftovers(self, now: int) -> list[Command]:
        """Be done, and look for no process."""
        return self.finish() if self.has_signalled else super().leftovers(now)


class LooseLadder(Escalation):
    """Holds the tree by its group, whatever was asked for (T6)."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.containment = "group"


class PatientLadder(Escalation):
    """Waits for the exit after a completion, however long it takes (C1)."""

    def linger(self, now: int, *, is_working: bool = False) -> None:
        """Start no timer."""


class ProlongedLadder(Escalation):
    """Begins the grace after a completion once more whenever the agent prints (C1)."""

    def heard(self, now: int) -> None:
        """Wait from now."""
        if self.timer == "linger_grace":
            self._wait(self.rung, self.timer, now)


class TaskBoundLadder(Escalation):
    """Waits for the exit while commands of the agent's run, however long they do (C1)."""

    def linger(self, now: int, *, is_working: bool = False) -> None:
        """Start no timer while there is work."""
        if not is_working:
            super().linger(now)


class TaskBlindLadder(Escalation):
    """Gives the same grace whether commands of the agent's run or not (C1)."""

    def linger(self, now: int, *, is_working: bool = False) -> None:
        """Look at no work."""
        super().linger(now)


class HastyLadder(Escalation):
    """Gives no grace after a completion (C1)."""

    def linger(self, now: int, *, is_working: bool = False) -> None:
        """Terminate at once."""
        super().linger(now)
        self.deadline = now


class OneGraceLadder(Escalation):
    """Knows one grace before the kill, the long one (C1)."""

    def terminate(self, now: int, *, leftovers: bool = False) -> Signal:
        """Forget that there was a completion."""
        self._kill_grace = "kill_grace"
        return super().terminate(now)


class KillOnlyLadder(Escalation):
    """Kills where it should terminate (T1)."""

    def terminate(self, now: int, *, leftovers: bool = False) -> Signal:
        """Send KILL first."""
        return replace(super().terminate(now, leftovers=leftovers), name="KILL")


class NoKillLadder(Escalation):
    """Never goes beyond TERM (T1)."""

    def terminate(self, now: int, *, leftovers: bool = False) -> Signal:
        """Start no timer for the kill."""
        signal = super().terminate(now, leftovers=leftovers)
        self.deadline = None
        return signal


class DeadFlagLadder(Escalation):
    """Takes 'a signal was sent' for 'it is dead': sends no KILL, and believes itself done (T1)."""

    def due(self, now: int) -> Command:
        """Be done where the kill is due."""
        return self.finish()[-1] if self.has_signalled else super().due(now)


class ContentLadder(Escalation):
    """Takes the end of the agent for that of the tree it has terminated (T1)."""

    def leftovers(self, now: int) -> list[Command]:
        """Be done, and wait for no kill."""
        return self.finish() if self.has_signalled else super().leftovers(now)


class LeavingLadder(Escalation):
    """Lets the descendants of an agent that has exited live on (T6)."""

    def leftovers(self, now: int) -> list[Command]:
        """Be done."""
        return [] if self.has_signalled else self.finish()


class ZombieLadder(Escalation):
    """Never reaps the agent (T3)."""

    def finish(self) -> list[Command]:
        """Be done, and no more than that."""
        return super().finish()[-1:]
