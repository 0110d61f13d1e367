"""Ladders that signal and wait wrongly, and ways to leave a cancelled run that leave a process; each in one way."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_agentproc.supervisor import Abandonment, Escalation

if TYPE_CHECKING:
    from pytest_agentproc.supervisor import Command, Ports, Signal
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
        if self.timer == "linger_grace":
            self._wait(self.rung, self.timer, now)


class TaskBoundLadder(Escalation):
    """Waits for the exit while commands of the agent's run, however long they do (C1)."""

    def linger(self, now: int, *, is_working: bool = False) -> None:
        if not is_working:
            super().linger(now)


class TaskBlindLadder(Escalation):
    """Gives the same grace whether commands of the agent's run or not (C1)."""

    def linger(self, now: int, *, is_working: bool = False) -> None:
        super().linger(now)


class HastyLadder(Escalation):
    """Gives no grace after a completion (C1)."""

    def linger(self, now: int, *, is_working: bool = False) -> None:
        super().linger(now)
        self.deadline = now


class OneGraceLadder(Escalation):
    """Knows one grace before the kill, the long one (C1)."""

    def terminate(self, now: int, *, leftovers: bool = False) -> Signal:
        self._kill_grace = "kill_grace"
        return super().terminate(now)


class KillOnlyLadder(Escalation):
    """Kills where it should terminate (T1)."""

    def terminate(self, now: int, *, leftovers: bool = False) -> Signal:
        return replace(super().terminate(now, leftovers=leftovers), name="KILL")


class NoKillLadder(Escalation):
    """Never goes beyond TERM (T1)."""

    def terminate(self, now: int, *, leftovers: bool = False) -> Signal:
        signal = super().terminate(now, leftovers=leftovers)
        self.deadline = None
        return signal


class DeadFlagLadder(Escalation):
    """Takes 'a signal was sent' for 'it is dead': sends no KILL, and believes itself done (T1)."""

    def due(self, now: int) -> Command:
        return self.finish()[-1] if self.has_signalled else super().due(now)


class ContentLadder(Escalation):
    """Takes the end of the agent for that of the tree it has terminated (T1)."""

    def leftovers(self, now: int) -> list[Command]:
        return self.finish() if self.has_signalled else super().leftovers(now)


class LeavingLadder(Escalation):
    """Lets the descendants of an agent that has exited live on (T6)."""

    def leftovers(self, now: int) -> list[Command]:
        return [] if self.has_signalled else self.finish()


class ZombieLadder(Escalation):
    """Never reaps the agent (T3)."""

    def finish(self) -> list[Command]:
        return super().finish()[-1:]


class LeavingAbandonment(Abandonment):
    """Goes away, and lets the agent live on (T4)."""

    def end(self, ports: Ports) -> int:
        ports.close()
        return 0


class AskingAbandonment(Abandonment):
    """Asks the tree to end, and does not wait to see whether it does (T4)."""

    def end(self, ports: Ports) -> int:
        ports.terminate()
        ports.close()
        return -15
