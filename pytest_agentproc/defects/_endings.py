"""Judgements of results, exits and signals that are wrong, each in one way. Pure; knows no stream and no limit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_agentproc.supervisor import Completion, Ending, Ladder
from pytest_agentproc.supervisor.dialects import Failure, Finished, Message, Noise
from pytest_agentproc.vocabulary import Outcome

if TYPE_CHECKING:
    from collections.abc import Collection

    from pytest_agentproc.supervisor import Command, Feeder, Signal, Watchdog
    from pytest_agentproc.supervisor.dialects import Meaning
    from pytest_agentproc.vocabulary import Policy

__all__ = [
    "AnyResultCompletion",
    "AnyStopCompletion",
    "BlindCodeEnding",
    "DeadFlagLadder",
    "DeafEnding",
    "DirectChildLadder",
    "ExitOverResultEnding",
    "FatalErrorCompletion",
    "FatalNoiseCompletion",
    "FatalPipeEnding",
    "GroupLadder",
    "HastyLadder",
    "HoardingCompletion",
    "KillOnlyLadder",
    "LeavingLadder",
    "LooseLadder",
    "MissingEnding",
    "NoKillLadder",
    "NullCodeEnding",
    "OneGraceLadder",
    "PatientLadder",
    "PipeEndEnding",
    "RawCodeEnding",
    "StubbornCompletion",
    "TaskBlindLadder",
    "TaskBoundLadder",
    "TimerFirstEnding",
    "UncountedNoiseCompletion",
    "UnstartedEnding",
    "ZeroIsGoodEnding",
    "ZombieLadder",
]


class AnyStopCompletion(Completion):
    """Takes a message with a stop reason for the last one, whatever the reason (C2)."""

    def feed(self, meaning: Meaning, now: int) -> None:
        """Complete with the message."""
        super().feed(meaning, now)
        if isinstance(meaning, Message) and meaning.stop_reason:
            self.finish(Finished(None, final=False), now)


class StubbornCompletion(Completion):
    """Never takes a completion back (C1)."""

    def resume(self) -> None:
        """Stay."""


class AnyResultCompletion(Completion):
    """Takes every completion for a good one (C1)."""

    def finish(self, meaning: Finished, now: int) -> None:
        """Look at no error."""
        super().finish(replace(meaning, ok=True, error=""), now)


class FatalErrorCompletion(Completion):
    """Takes an error that the agent may get over for the end (C1)."""

    def feed(self, meaning: Meaning, now: int) -> None:
        """Fail with it."""
        super().feed(meaning, now)
        if isinstance(meaning, Failure) and meaning.error:
            self.finish(Finished(False, final=True, error=meaning.error), now)


class FatalNoiseCompletion(Completion):
    """Gives up at a line that it cannot read (F2)."""

    def feed(self, meaning: Meaning, now: int) -> None:
        """Fail at noise, and hear nothing from then on."""
        if self.noise:
            return
        super().feed(meaning, now)
        if isinstance(meaning, Noise):
            self.finish(Finished(False, final=True, error="a line is no event"), now)


class UncountedNoiseCompletion(Completion):
    """Drops a line that it cannot read, and tells nobody (F2)."""

    def feed(self, meaning: Meaning, now: int) -> None:
        """Hear no noise."""
        if not isinstance(meaning, Noise):
            super().feed(meaning, now)


class HoardingCompletion(Completion):
    """Keeps everything that the agent ever said (F6)."""

    def limit_to(self, size: int | None) -> None:
        """Hear of no limit."""


class TimerFirstEnding(Ending):
    """Lets a deadline win over an exit of the same instant (A4)."""

    def on_exit(
        self, completion: Completion, status: int, watchdog: Watchdog, now: int, *, has_completion: bool
    ) -> Outcome:
        """Look at the timer first."""
        due = watchdog.due(now)
        return due[1] if due else super().on_exit(completion, status, watchdog, now, has_completion=has_completion)


class ExitOverResultEnding(Ending):
    """Throws a good result away for the exit code that follows it (C1)."""

    def on_exit(
        self, completion: Completion, status: int, watchdog: Watchdog, now: int, *, has_completion: bool
    ) -> Outcome:
        """Look at the code first."""
        if status > 0:
            return Outcome.FAILED
        return super().on_exit(completion, status, watchdog, now, has_completion=has_completion)


class DeafEnding(Ending):
    """Hears of an error in a completion only, not in what the agent told before it exited with one (C1)."""

    def on_exit(
        self, completion: Completion, status: int, watchdog: Watchdog, now: int, *, has_completion: bool
    ) -> Outcome:
        """Look at no error."""
        completion.error = ""
        return super().on_exit(completion, status, watchdog, now, has_completion=has_completion)


class ZeroIsGoodEnding(Ending):
    """Takes exit 0 for a result, also where there is none or a bad one (C2)."""

    def on_exit(
        self, completion: Completion, status: int, watchdog: Watchdog, now: int, *, has_completion: bool
    ) -> Outcome:
        """Look at the code alone if it is 0."""
        if status == 0:
            return Outcome.COMPLETED
        return super().on_exit(completion, status, watchdog, now, has_completion=has_completion)


class NullCodeEnding(Ending):
    """Reads no exit code as 0, and a signal's death has none (C4)."""

    def on_exit(
        self, completion: Completion, status: int, watchdog: Watchdog, now: int, *, has_completion: bool
    ) -> Outcome:
        """Take a death for an exit with 0."""
        return super().on_exit(completion, max(status, 0), watchdog, now, has_completion=has_completion)


class BlindCodeEnding(Ending):
    """Looks at no exit code where the agent's words tell no end (C4)."""

    def on_exit(
        self, completion: Completion, status: int, watchdog: Watchdog, now: int, *, has_completion: bool
    ) -> Outcome:
        """Take every exit for one with 0."""
        return super().on_exit(completion, min(status, 0), watchdog, now, has_completion=has_completion)


class PipeEndEnding(Ending):
    """Believes an exit only once stdout has ended too (C4)."""

    def is_gone(self, status: int | None, streams: Collection[str]) -> bool:
        """Wait for the end of the pipe."""
        return super().is_gone(status, streams) and "stdout" not in streams


class RawCodeEnding(Ending):
    """Hands the agent's own code on, also where it was forced to exit or its result says otherwise (C1)."""

    def exit_code(self, outcome: Outcome, status: int | None, *, forced: bool, executable: bool) -> int:
        """Take the code that there is."""
        if status is not None and status >= 0:
            return status
        return super().exit_code(outcome, status, forced=forced, executable=executable)


class FatalPipeEnding(Ending):
    """Fails the run as soon as stdin breaks (F5)."""

    def is_input_lost(self, feeder: Feeder, *, silent: bool) -> bool:
        """Wait for no exit and no result."""
        return feeder.is_broken and not feeder.is_delivered


class UnstartedEnding(Ending):
    """Takes an agent that never ran for one that failed (P6)."""

    unstarted = Outcome.FAILED


class MissingEnding(Ending):
    """Takes every failure to start for a missing file (P6)."""

    def is_missing(self, errno: int) -> bool:
        """Look at no number."""
        return True


class DirectChildLadder(Ladder):
    """Takes the agent for its whole tree (T1)."""

    reach = "agent"


class GroupLadder(Ladder):
    """Signals the agent's process group, as `killpg` does; what has a session of its own never hears of it (T1)."""

    reach = "group"


class LooseLadder(Ladder):
    """Holds the tree by its group, whatever was asked for (T6)."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.containment = "group"


class PatientLadder(Ladder):
    """Waits for the exit after a completion, however long it takes (C1)."""

    def linger(self, now: int, *, is_working: bool = False) -> None:
        """Start no timer."""


class TaskBoundLadder(Ladder):
    """Waits for the exit while commands of the agent's run, however long they do (C1)."""

    def linger(self, now: int, *, is_working: bool = False) -> None:
        """Start no timer while there is work."""
        if not is_working:
            super().linger(now)


class TaskBlindLadder(Ladder):
    """Gives the same grace whether commands of the agent's run or not (C1)."""

    def linger(self, now: int, *, is_working: bool = False) -> None:
        """Look at no work."""
        super().linger(now)


class HastyLadder(Ladder):
    """Gives no grace after a completion (C1)."""

    def linger(self, now: int, *, is_working: bool = False) -> None:
        """Terminate at once."""
        super().linger(now)
        self.deadline = now


class OneGraceLadder(Ladder):
    """Knows one grace before the kill, the long one (C1)."""

    def terminate(self, now: int, *, leftovers: bool = False) -> Signal:
        """Forget that there was a completion."""
        self._kill_grace = "kill_grace"
        return super().terminate(now)


class KillOnlyLadder(Ladder):
    """Kills where it should terminate (T1)."""

    def terminate(self, now: int, *, leftovers: bool = False) -> Signal:
        """Send KILL first."""
        return replace(super().terminate(now, leftovers=leftovers), name="KILL")


class NoKillLadder(Ladder):
    """Never goes beyond TERM (T1)."""

    def terminate(self, now: int, *, leftovers: bool = False) -> Signal:
        """Start no timer for the kill."""
        signal = super().terminate(now, leftovers=leftovers)
        self.deadline = None
        return signal


class DeadFlagLadder(Ladder):
    """Takes 'a signal was sent' for 'it is dead': sends no KILL, and believes itself done (T1)."""

    def due(self, now: int) -> Command:
        """Be done where the kill is due."""
        return self.finish()[-1] if self.has_signalled else super().due(now)


class LeavingLadder(Ladder):
    """Lets the descendants of an agent that has exited live on (T6)."""

    def leftovers(self, now: int) -> list[Command]:
        """Be done."""
        return [] if self.has_signalled else self.finish()


class ZombieLadder(Ladder):
    """Never reaps the agent (T3)."""

    def finish(self) -> list[Command]:
        """Be done, and no more than that."""
        return super().finish()[-1:]
