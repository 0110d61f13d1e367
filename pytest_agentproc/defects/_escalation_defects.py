"""Ladders that signal and wait wrongly, and ways to leave a cancelled run that leave a process; each in one way."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from pytest_agentproc.defects._defect import breaks, breaks_in_sessions
from pytest_agentproc.supervisor import Abandonment, Escalation, EscalationStep, SpawnAgent

if TYPE_CHECKING:
    from pytest_agentproc.supervisor import AgentProcess, MachineCommand, SendSignal
    from pytest_agentproc.vocabulary import Policy


_NO_GRACE = "A session gives its agent no grace after a turn, as the agent lives on."


@breaks("direct-child-only", "T1", "signals the agent itself and never its descendants")
class SignalsOnlyAgentProcessDefect(Escalation):
    reach = "agent"


@breaks("group-only", "T1", "signals the agent's process group, but no process that left it")
class SignalsOnlyProcessGroupDefect(Escalation):
    reach = "group"


@breaks_in_sessions("group-only")
class IgnoresGroupAfterAgentEndDefect(SignalsOnlyProcessGroupDefect):
    """Signals the agent's process group, and takes the end of the agent for that of all others (T1)."""

    def end_leftovers(self, now: int) -> list[MachineCommand]:
        return self.finish() if self.has_signalled else super().end_leftovers(now)


class _StartsAgentAgain(Escalation):
    after_signals: ClassVar[bool]
    has_lingered = is_repeated = False

    def start_linger_grace(self, now: int, *, is_working: bool = False) -> None:
        self.has_lingered = True
        super().start_linger_grace(now, is_working=is_working)

    def finish(self) -> list[MachineCommand]:
        commands = super().finish()
        if self.is_repeated or self.has_lingered or self.has_signalled != self.after_signals:
            return commands
        self.is_repeated, self.escalation_step = True, EscalationStep.NONE
        return [*commands[:-1], SpawnAgent(self.containment)]


@breaks(
    "crash-repeats-the-run",
    "P6",
    "starts an agent again that ended without a result",
    runs_only="A session starts its next agent; crash-repeats-the-prompt sends it the same prompt.",
)
class StartsCrashedAgentAgainDefect(_StartsAgentAgain):
    after_signals = False


@breaks(
    "timeout-repeats-the-run",
    "P6",
    "starts an agent again that it has ended itself, with the same prompt",
    runs_only="A session lets its agent live on; timeout-repeats-the-prompt sends it the same prompt.",
)
class StartsEndedAgentAgainDefect(_StartsAgentAgain):
    after_signals = True


@breaks("holds-the-group-only", "T6", "holds the tree by its group, whatever containment was asked for")
class IgnoresRequestedContainmentDefect(Escalation):
    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.containment = "group"


@breaks("waits-for-exit", "C1", "waits for the exit however long an agent lingers", runs_only=_NO_GRACE)
class LingerHasNoLimitDefect(Escalation):
    def start_linger_grace(self, now: int, *, is_working: bool = False) -> None:
        """Start no timer."""


@breaks(
    "output-prolongs-the-grace",
    "C1",
    "restarts the grace when the agent prints after its result",
    runs_only=_NO_GRACE,
)
class OutputProlongsLingerDefect(Escalation):
    def note_output(self, now: int) -> None:
        if self.timer == "linger_grace":
            self._start_timer(self.escalation_step, self.timer, now)


@breaks("tasks-hold-the-run", "C1", "waits for the exit while the agent's background commands run", runs_only=_NO_GRACE)
class TasksProlongLingerDefect(Escalation):
    def start_linger_grace(self, now: int, *, is_working: bool = False) -> None:
        if not is_working:
            super().start_linger_grace(now)


@breaks("tasks-have-no-grace", "C1", "gives an agent no time for its background commands", runs_only=_NO_GRACE)
class TasksGetNoGraceDefect(Escalation):
    def start_linger_grace(self, now: int, *, is_working: bool = False) -> None:
        super().start_linger_grace(now)


@breaks("no-grace", "C1", "terminates at the instant of the completion", runs_only=_NO_GRACE)
class TerminatesAtCompletionDefect(Escalation):
    def start_linger_grace(self, now: int, *, is_working: bool = False) -> None:
        super().start_linger_grace(now)
        self.deadline = now


@breaks(
    "one-grace",
    "C1",
    "waits for the long grace also after a good end",
    harmless="The agent is ended some seconds later, and its answer stands.",
)
class AlwaysUsesLongGraceDefect(Escalation):
    def terminate(self, now: int, *, leftovers: bool = False) -> SendSignal:
        self._kill_grace = "kill_grace"
        return super().terminate(now)


@breaks("kill-without-term", "T1", "kills where it should terminate")
class KillsWithoutTermDefect(Escalation):
    def terminate(self, now: int, *, leftovers: bool = False) -> SendSignal:
        return replace(super().terminate(now, leftovers=leftovers), name="KILL")


@breaks("no-kill-after-term", "T1", "waits for ever for an agent that ignores TERM")
class NeverKillsAfterTermDefect(Escalation):
    def terminate(self, now: int, *, leftovers: bool = False) -> SendSignal:
        signal = super().terminate(now, leftovers=leftovers)
        self.deadline = None
        return signal


@breaks("killed-flag", "T1", "treats 'a signal was sent' as 'the agent is dead'")
class TermCountsAsDeathDefect(Escalation):
    def take_due_step(self, now: int) -> MachineCommand:
        return self.finish()[-1] if self.has_signalled else super().take_due_step(now)


@breaks("exit-ends-the-escalation", "T1", "kills no descendant once the terminated agent has ended")
class NeverKillsDescendantsDefect(Escalation):
    def end_leftovers(self, now: int) -> list[MachineCommand]:
        return self.finish() if self.has_signalled else super().end_leftovers(now)


@breaks("leftovers-stay", "T6", "leaves the processes that an exited agent has started")
class LeavesDescendantsAfterExitDefect(Escalation):
    def end_leftovers(self, now: int) -> list[MachineCommand]:
        return [] if self.has_signalled else self.finish()


@breaks(
    "leaves-zombie",
    "T3",
    "never reaps the agent",
    runs_only="In a session the reference always reaps the agent: no judgement can leave that out.",
)
class NeverReapsAgentDefect(Escalation):
    def finish(self) -> list[MachineCommand]:
        return super().finish()[-1:]


@breaks("pipes-stay-open", "T3", "keeps the pipes of an agent that has ended open")
class KeepsPipesOfEndedAgentDefect(Abandonment):
    kept: ClassVar[list[AgentProcess]] = []
    """What nobody holds any more would close by itself. The next run or session lets go of these."""

    def __init__(self) -> None:
        self.kept.clear()

    def release(self, agent: AgentProcess) -> None:
        self.kept.append(agent)


@breaks("cancelled-run-goes-on", "T4", "leaves the agent alive when it is cancelled itself")
class CancelLeavesAgentAliveDefect(Abandonment):
    def end(self, agent: AgentProcess) -> int:
        agent.close()
        return 0


@breaks("cancelled-run-only-asks", "T4", "sends TERM when it is cancelled, and does not wait")
class CancelOnlySendsTermDefect(Abandonment):
    def end(self, agent: AgentProcess) -> int:
        agent.terminate()
        agent.close()
        return -15
