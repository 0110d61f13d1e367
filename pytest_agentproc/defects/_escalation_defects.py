"""Ladders that signal and wait wrongly, and ways to leave a cancelled run that leave a process; each in one way."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_agentproc.supervisor import Abandonment, Escalation

if TYPE_CHECKING:
    from pytest_agentproc.supervisor import AgentProcess, MachineCommand, SendSignal
    from pytest_agentproc.vocabulary import Policy


class SignalsOnlyAgentProcessDefect(Escalation):
    """Signals the agent itself and never its descendants (T1)."""

    reach = "agent"


class SignalsOnlyProcessGroupDefect(Escalation):
    """Signals the agent's process group, but no process that left it (T1)."""

    reach = "group"


class IgnoresGroupAfterAgentEndDefect(SignalsOnlyProcessGroupDefect):
    """Signals the agent's process group, and takes the end of the agent for that of all others (T1)."""

    def end_leftovers(self, now: int) -> list[MachineCommand]:
        return self.finish() if self.has_signalled else super().end_leftovers(now)


class IgnoresRequestedContainmentDefect(Escalation):
    """Holds the tree by its group, whatever containment was asked for (T6)."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.containment = "group"


class LingerHasNoLimitDefect(Escalation):
    """Waits for the exit however long an agent lingers (C1)."""

    def start_linger_grace(self, now: int, *, is_working: bool = False) -> None:
        """Start no timer."""


class OutputProlongsLingerDefect(Escalation):
    """Restarts the grace when the agent prints after its result (C1)."""

    def note_output(self, now: int) -> None:
        if self.timer == "linger_grace":
            self._start_timer(self.escalation_step, self.timer, now)


class TasksProlongLingerDefect(Escalation):
    """Waits for the exit while the agent's background commands run (C1)."""

    def start_linger_grace(self, now: int, *, is_working: bool = False) -> None:
        if not is_working:
            super().start_linger_grace(now)


class TasksGetNoGraceDefect(Escalation):
    """Gives an agent no time for its background commands (C1)."""

    def start_linger_grace(self, now: int, *, is_working: bool = False) -> None:
        super().start_linger_grace(now)


class TerminatesAtCompletionDefect(Escalation):
    """Terminates at the instant of the completion (C1)."""

    def start_linger_grace(self, now: int, *, is_working: bool = False) -> None:
        super().start_linger_grace(now)
        self.deadline = now


class AlwaysUsesLongGraceDefect(Escalation):
    """Waits for the long grace also after a good end (C1)."""

    def terminate(self, now: int, *, leftovers: bool = False) -> SendSignal:
        self._kill_grace = "kill_grace"
        return super().terminate(now)


class KillsWithoutTermDefect(Escalation):
    """Kills where it should terminate (T1)."""

    def terminate(self, now: int, *, leftovers: bool = False) -> SendSignal:
        return replace(super().terminate(now, leftovers=leftovers), name="KILL")


class NeverKillsAfterTermDefect(Escalation):
    """Waits for ever for an agent that ignores TERM (T1)."""

    def terminate(self, now: int, *, leftovers: bool = False) -> SendSignal:
        signal = super().terminate(now, leftovers=leftovers)
        self.deadline = None
        return signal


class TermCountsAsDeathDefect(Escalation):
    """Treats 'a signal was sent' as 'the agent is dead' (T1)."""

    def take_due_step(self, now: int) -> MachineCommand:
        return self.finish()[-1] if self.has_signalled else super().take_due_step(now)


class NeverKillsDescendantsDefect(Escalation):
    """Kills no descendant once the terminated agent has ended (T1)."""

    def end_leftovers(self, now: int) -> list[MachineCommand]:
        return self.finish() if self.has_signalled else super().end_leftovers(now)


class LeavesDescendantsAfterExitDefect(Escalation):
    """Leaves the processes that an exited agent has started (T6)."""

    def end_leftovers(self, now: int) -> list[MachineCommand]:
        return [] if self.has_signalled else self.finish()


class NeverReapsAgentDefect(Escalation):
    """Never reaps the agent (T3)."""

    def finish(self) -> list[MachineCommand]:
        return super().finish()[-1:]


class CancelLeavesAgentAliveDefect(Abandonment):
    """Leaves the agent alive when it is cancelled itself (T4)."""

    def end(self, agent: AgentProcess) -> int:
        agent.close()
        return 0


class CancelOnlySendsTermDefect(Abandonment):
    """Sends TERM when it is cancelled, and does not wait (T4)."""

    def end(self, agent: AgentProcess) -> int:
        agent.terminate()
        agent.close()
        return -15
