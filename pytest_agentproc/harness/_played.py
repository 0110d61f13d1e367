"""The results of a play, and the parts that the scenario runner and the model share. Values and pure functions."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_agentproc.errors import ClockError, SubjectError
    from pytest_agentproc.harness._claims import Reference, Unstated
    from pytest_agentproc.harness._faults import FakeFault
    from pytest_agentproc.harness._pace import Pace, Turns
    from pytest_agentproc.record import Record
    from pytest_agentproc.scenario import Bound, Scenario
    from pytest_agentproc.vocabulary import RunReport

__all__ = [
    "PROMPT_SHOWN",
    "SESSION_FOLDER",
    "Played",
    "command_line",
    "environment",
    "flags_of",
    "header",
    "requested_model",
]

PROMPT_SHOWN = 1 << 16
"""So much of its prompt a fake knows, for dialects that repeat it; the rest reaches it by its own way."""

SESSION_FOLDER = "/"
"""The folder of a session's agent: it is sent to the agent, and a record must not depend on today's folder."""


_ROUNDINGS = 64
"""The number of times that a fraction of a nanosecond may be rounded up until an instant."""


@dataclass(frozen=True, slots=True)
class Played:
    """One play: the request, the events, the supervisor's answer.

    Args:
        bound: the scenario under the supervisor's policy.
        record: both sides, in order.
        answer: the supervisor's answer; None if it gave none.
        fault: why time could not move, if it could not, or the failure of the supervisor.
        artifacts: the files that the supervisor kept; None if it keeps none, or was not asked to.
        pace: the pace in real time; None: in virtual time.
        lateness: the largest lateness of a step of the fake, in nanoseconds of the scenario's time.
        turns: the polling of the supervisor; None: it is woken.
        reference: the result of the reference supervisor; None: it played itself, or its limits are the file's.
        unstated: the results that depend on limits that the supervisor does not state; None: it states all.
        broken: the failure of a fake itself, in the model; None: there was none.
    """

    bound: Bound
    record: Record
    answer: RunReport | None
    fault: SubjectError | ClockError | None
    artifacts: Mapping[str, bytes] | None = None
    pace: Pace | None = None
    lateness: int = 0
    turns: Turns | None = None
    reference: Reference | None = None
    unstated: Unstated | None = None
    broken: FakeFault | None = None

    @property
    def tolerance(self) -> int:
        """How much later than expected a thing may have happened, in nanoseconds.

        In virtual time that is 0, but for a supervisor that looks in turns, or has limits between the nanoseconds.
        """
        if self.turns is not None:
            return self.turns.tolerance
        if self.pace is not None:
            return self.pace.tolerance
        bounds = (self.bound, *self.bound.parts.values())
        return _ROUNDINGS if any(one.policy.has_parts for one in bounds) else 0

    def late(self, at: int) -> int:
        """How much later than expected a thing may happen at an instant of the play, in nanoseconds."""
        return self.tolerance if self.turns is None else self.turns.late(at)

    @property
    def undecided(self) -> str:
        """Why nothing follows from a failed check.

        The deciding instants are nearer to each other than the supervisor's looks. Or an agent closed its stdin, which
        is a file or is held open by a shell, so that the supervisor could not see it.
        """
        if self.turns is not None and self.turns.undecided:
            return self.turns.undecided
        is_about_it = any(one.value == "input_failed" for one in self.bound.scenario.expected)
        if is_about_it and any(event.data.get("kept") == "stdin" for event in self.record.events):
            return "nobody is told that the agent closed its stdin, a file or one that another program holds"
        return ""

    @property
    def was_starved(self) -> bool:
        """Whether the machine was so slow that competing instants may have changed places, or come too late."""
        if self.pace is None:
            return False
        allowed = self.pace.tolerance / self.pace.scale
        if self.pace.margin is not None:
            allowed = min(allowed, self.pace.margin)
        return self.lateness / self.pace.scale > allowed / 2


def command_line(scenario: Scenario) -> tuple[str, ...]:
    """Give the arguments that a real supervisor would start such an agent with."""
    record = scenario.dialect_record
    options = (*record.options.get(scenario.mode, ()), *(record.partials if scenario.partials else ()))
    is_told = scenario.prompt_by == "argv" and not scenario.is_session
    return (*options, scenario.prompt) if is_told else options


def flags_of(scenario: Scenario, *, trusts: bool = False) -> dict[str, Any]:
    """Give what a fake needs to obey its arguments; nothing if it takes any.

    The fake does not read the kit's own arguments, which ask for its mode: a verdict must not depend on them.

    Args:
        scenario: the fake's.
        trusts: whether any session or command that the arguments name exists.
    """
    record = scenario.dialect_record
    if record.command_line is None or scenario.takes_any_flags:
        return {}
    kinds = {mode: "session" if mode in record.talks else "run" for mode in record.modes}
    own: dict[str, Any] = {"own": list(command_line(scenario)), "kinds": kinds, "prompt_by": scenario.prompt_by}
    own |= {"version": record.probes["--version"], "tells_on_stderr": record.tells_on_stderr, "trusts": trusts}
    return {"flags": {**record.command_line.baked(), **own, "prompt_shown": PROMPT_SHOWN}}


def requested_model(scenario: Scenario) -> str | None:
    """Give the model that the command line asks for; None if it names none."""
    return scenario.dialect_record.model or None


def environment(scenario: Scenario, folder: str) -> Mapping[str, str]:
    """Give the whole environment that a subject is told to give its agent: a PATH of fakes only."""
    states = scenario.dialect_record.states if scenario.states else {}
    return {"PATH": folder, "LANG": "C.UTF-8", **states}


def header(bound: Bound, subject: str) -> Mapping[str, Any]:
    """Give the head of a record: the description of the run."""
    scenario = bound.scenario
    limits = {name: dict(part.policy.items()) for name, part in bound.parts.items()} or dict(bound.policy.items())
    python = ".".join(str(part) for part in sys.version_info[:3])
    return {"scenario": scenario.id, "subject": subject, "clock": "virtual", "policy": limits, "python": python}
