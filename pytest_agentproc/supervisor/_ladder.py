"""The ladder from a completion or a failure to a dead tree: which step comes when. Pure; sends nothing itself.

LINGER --linger_grace (and background_grace, while tasks run)--> TERM --linger_kill_grace or kill_grace--> KILL
stdin ends --close_grace--> TERM --kill_grace--> KILL
the agent exits by itself, descendants are left --> TERM --leftover_kill_grace--> KILL
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from pytest_agentproc.supervisor._events import Finish, Reap, Signal

if TYPE_CHECKING:
    from pytest_agentproc.supervisor._events import Command
    from pytest_agentproc.vocabulary import Policy

__all__ = ["Ladder", "Rung"]


class Rung(Enum):
    """The step that the ladder waits to take."""

    NONE = "none"
    TERMINATE = "terminate"
    KILL = "kill"
    DONE = "done"


_SIGNALLED = (Rung.KILL, Rung.DONE)


class Ladder:
    """Say when to terminate and when to kill.

    Args:
        policy: the graces.
    """

    reach = "tree"

    def __init__(self, policy: Policy) -> None:
        self.limits = policy.nanoseconds()
        self.containment = policy.containment
        self.rung = Rung.NONE
        self.timer = ""
        self.deadline: int | None = None
        self._kill_grace = "kill_grace"

    def linger(self, now: int, *, is_working: bool = False) -> None:
        """Give the agent its grace after a completion, a longer one if commands of its own still run (C1)."""
        self._kill_grace = "linger_kill_grace"
        more = self.limits["background_grace"] if is_working else None
        self._wait(Rung.TERMINATE, "linger_grace", now + (more or 0))

    def heard(self, now: int) -> None:
        """Take note of output in a grace: it makes none longer (C1)."""

    def close(self, now: int) -> None:
        """Give the agent of a session its grace after the end of its stdin (P8)."""
        self._wait(Rung.TERMINATE, "close_grace", now)

    def withdraw(self) -> None:
        """Stop waiting: the completion was taken back."""
        if self.rung is Rung.TERMINATE:
            self.rung, self.deadline, self.timer = Rung.NONE, None, ""

    def terminate(self, now: int, *, leftovers: bool = False) -> Signal:
        """Terminate now; the kill comes after its grace."""
        if leftovers:
            self._kill_grace = "leftover_kill_grace"
        self._wait(Rung.KILL, self._kill_grace, now)
        return Signal("TERM", self.reach)

    def signalled(self, now: int) -> None:
        """Count the grace from the instant at which the signals have gone out: finding a tree takes real time."""
        if self.rung is Rung.KILL and self.deadline is not None:
            self._wait(Rung.KILL, self.timer, now)

    def due(self, now: int) -> Command:
        """Take the step whose instant has come."""
        if self.rung is Rung.TERMINATE:
            return self.terminate(now)
        self.rung, self.deadline, self.timer = Rung.DONE, None, ""
        return Signal("KILL", self.reach)

    def leftovers(self, now: int) -> list[Command]:
        """Say what to do about descendants that a dead agent left: terminate, unless that is under way (T6)."""
        return [] if self.has_signalled else [self.terminate(now, leftovers=True)]

    def finish(self) -> list[Command]:
        """Say what is left to do once the tree is dead: reap the agent (T3)."""
        self.deadline = None
        return [Reap(), Finish()]

    @property
    def has_signalled(self) -> bool:
        """Whether TERM has gone out."""
        return self.rung in _SIGNALLED

    def _wait(self, rung: Rung, grace: str, now: int) -> None:
        limit = self.limits[grace]
        assert limit is not None
        self.rung, self.timer, self.deadline = rung, grace, now + limit
