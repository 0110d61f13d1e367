"""What broke in a fake itself, and whose mistake that is. Owns the sentence; judges no supervisor.

A fake that fails is not the agent that fails: the scenario asks for what no agent does, the machine refuses something,
or the kit has a mistake. An agent that goes on for ever is either: the supervisor should have ended it, or nobody can.
The kit's own supervisor decides that, in the model, under the same limits.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fake_agents.player import Endless
from pytest_agentproc.errors import ClockError, EndlessAgent, KitError, Problem, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.harness._played import Played

__all__ = ["FakeFault", "fault_of", "faults_of", "read_expiry", "read_fault", "settle_fault"]


class FakeFault(NamedTuple):
    """What broke.

    Args:
        line: the line of the step in the scenario; 0: no step was played yet.
        step: its name.
        words: what happened.
        is_endless: whether the step went on and on.
        is_outer: whether something outside the fake ended it, or did not let it begin; `words` say what.
    """

    line: int
    step: str
    words: str
    is_endless: bool
    is_outer: bool = False

    def error(self, path: str) -> KitError | ScenarioError:
        """Give the error that says it, with its place.

        Args:
            path: the scenario's file.
        """
        name = _STEPS.get(self.step, self.step)
        if self.is_endless:
            return ScenarioError([Problem(path, self.line, 1, f"{name}: {self.words}; {_REMEDY}")])
        step = f" at the step {name}" if name else ""
        place = f"{path}:{self.line}" if self.line else path
        words = self.words if self.is_outer else f"the fake agent itself failed{step}: {self.words}"
        return KitError(f"{place}: {words}; {_NO_VERDICT}")


_STEPS = {
    "bytes": "raw",
    "hop": "spawn",
    "sleep": "silence",
    "tell": "script",
    "await_signal": "linger",
    **dict.fromkeys(("await_eof", "await_stdin", "await_exit", "await_prompt", "await_cancel"), "wait_for"),
}
"""What a file calls those operations of a program that have a name of their own."""

_REMEDY = "give it an end, such as `for: 10m`, or have a limit or a deed of the caller end the agent"
_NO_VERDICT = "this says nothing of the supervisor"


def faults_of(launcher: str) -> Path:
    """Give the file in which a fake and its descendants write what broke in them."""
    return Path(launcher).parent.with_suffix(".faults")


def read_fault(launcher: str) -> FakeFault | None:
    """Read what broke first in a fake; None: nothing did."""
    try:
        first = faults_of(launcher).read_text("utf-8").partition("\n")[0]
    except FileNotFoundError:
        return None
    line, step, is_endless, words = first.split("\t", 3)
    return FakeFault(int(line), step, words, is_endless == "1")


def read_expiry(launcher: str, since: int) -> FakeFault | None:
    """Read whether the lifeline broker ended a fake because it had lived too long; None: it did not.

    Args:
        launcher: the fake.
        since: the machine's monotonic instant, in nanoseconds, at which the fake was made.
    """
    try:
        lines = Path(launcher).parents[1].joinpath("expired").read_text("ascii").splitlines()
    except FileNotFoundError:
        return None
    for at, seconds in (line.split() for line in lines):
        if int(at) >= since:
            words = f"the kit ended the fake agent after {seconds} s of real time, the longest life of a fake"
            return FakeFault(0, "", words, is_endless=False, is_outer=True)
    return None


def fault_of(error: Exception) -> FakeFault:
    """Give what broke in a fake of the model."""
    line, step = vars(error).get("step", (0, ""))
    is_endless = isinstance(error, Endless)
    return FakeFault(line, step, str(error) if is_endless else f"{type(error).__name__}: {error}", is_endless)


def settle_fault(played: Played, fault: FakeFault, reference: Callable[[], Any]) -> Played:
    """Give a play in which the supervisor did not end an agent that it could have ended, as its fault.

    Args:
        played: the play in which the fake broke.
        fault: what broke.
        reference: plays the same with the kit's own supervisor.

    Raises:
        ScenarioError: the kit's own supervisor does not end the agent, either.
        KitError: the fake failed, in a way that no supervisor can bring about.
    """
    path = str(played.bound.scenario.path)
    if not fault.is_endless:
        raise fault.error(path)
    ended = reference()
    if isinstance(ended.fault, ClockError):
        raise fault.error(path)
    return replace(played, answer=None, fault=EndlessAgent(f"the supervisor does not end the agent: {fault.words}"))
