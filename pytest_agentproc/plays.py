"""What came of playing a scenario: the value that the harness makes, and verdict, search and pages read. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pytest_agentproc.errors import Declined, KitError, ScenarioError, ScenarioProblem
from pytest_agentproc.events import EndSeen, ProcessEnded, SignalCaught, SignalSent, StreamBytes, StreamKeptOpen
from pytest_agentproc.record import format_duration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_agentproc.errors import ClockError, SubjectError
    from pytest_agentproc.record import Record
    from pytest_agentproc.scenario import BoundScenario, Scenario
    from pytest_agentproc.vocabulary import RunReport


_ROUNDING_TOLERANCE_NS = 64
"""The number of times that a fraction of a nanosecond may be rounded up until an instant."""


@dataclass(frozen=True, slots=True)
class RealTimePace:
    """The pace of a scenario in real time.

    Args:
        scale: the divisor of every duration.
        margin: real nanoseconds between competing instants; None: nothing competes.
        tolerance: the allowed lateness, in nanoseconds of the scenario's time.
        limit: real seconds after which a supervisor that has not returned is given up.
        limit_of_looks: the same for a supervisor that has looked again and again until then; 0: there is none.
        least_of_looks: the same if its looks have taken the machine long, or a process outlives the graces.
        graces: seconds that a process with a signal may live at most.
        is_exact: whether the machine's clock is a virtual one.
    """

    scale: float
    margin: int | None
    tolerance: int
    limit: float
    limit_of_looks: float = 0
    least_of_looks: float = 0
    graces: float = 0
    is_exact: bool = False


_LOOKS_BETWEEN_RUN_STEPS = 10
"""So many looks, at most, go by between the steps of a run: the start, an answer, each signal of an
escalation, each end."""


_LOOKS_PER_CALLER_ACTION = 4
"""The additional looks for each action of a session's caller: an event, a question, a cancel, an answer."""


_MAX_LOOKS_OF_DELAY = 4
"""The most looks by which an action may be late for a competing instant; its starting point is late, too.

A time that must have passed by then takes further looks.
"""


_LEAST_BYTES_PER_LOOK = 32_768
"""Bytes that pass at a look, at least, while there are more: half of what a pipe holds."""


@dataclass(frozen=True, slots=True)
class PollingPace:
    """The looks of a supervisor that polls, from the start or from a later instant.

    If it looks too few times for a pace, it may be late by the length of its own short timers.

    Args:
        period: nanoseconds from one look to the next; 0: no pace was found.
        margin: nanoseconds between the nearest competing instants of the scenario; None: nothing competes.
        size: the number of bytes between it and its agent.
        actions: the number of actions of a session's caller.
        began: the instant at which it began to poll.
        naps: the instants at which its short timers were set, and woke it.
    """

    period: int
    margin: int | None
    size: int = 0
    actions: int = 0
    began: int = 0
    naps: tuple[tuple[int, int], ...] = ()

    @classmethod
    def measure(
        cls, bound: BoundScenario, record: Record, period: int, margin: int | None, began: int = 0
    ) -> PollingPace:
        """Give it with what passed in a run."""
        if began >= _find_first_signal(record):
            margin = None  # what the run came to was decided before it began to look
        sizes = [len(event.bytes) for event in record.events if isinstance(event, StreamBytes)]
        return cls(period, margin, sum(sizes), len(bound.drive), began)

    @property
    def tolerance(self) -> int:
        """How much later than expected a thing may happen at most, in nanoseconds."""
        if not self.period:
            return sum(end - start for start, end in self.naps)
        return self.period * (
            _LOOKS_BETWEEN_RUN_STEPS + _LOOKS_PER_CALLER_ACTION * self.actions + self._needed_look_count
        )

    def compute_allowed_delay(self, at: int) -> int:
        """How much later than expected a thing may happen at an instant: not at all before the first look."""
        if not self.period:
            return sum(end - start for start, end in self.naps if end <= at)
        return self.tolerance if at >= self.began else 0

    @property
    def _needed_look_count(self) -> int:
        """How many looks it takes until all has passed."""
        return self.size // _LEAST_BYTES_PER_LOOK

    @property
    def undecided(self) -> str:
        """Why a difference may be no fault; empty if it cannot be."""
        if (
            not self.period
            or self.margin is None
            or self.margin > self.period * (_MAX_LOOKS_OF_DELAY + self._needed_look_count)
        ):
            return ""
        apart = f"{format_duration(self.margin)} apart" if self.margin else "at the same time"
        return f"it looks every {format_duration(self.period)}, and two of the competing instants are {apart}"


def _find_first_signal(record: Record) -> float:
    """Give the instant of the first signal that a process of the tree caught or died of; endless if there was none."""
    kinds = SignalCaught | SignalSent | ProcessEnded | EndSeen
    return min((event.at for event in record.events if isinstance(event, kinds) and event.signal), default=float("inf"))


class FakeFault(NamedTuple):
    """What broke.

    Args:
        line: the line of the step in the scenario; 0: no step was played yet.
        step: its name.
        words: what happened.
        kind: `endless`: the step went on and on. `script`: the script cannot answer the arguments of the start.
            `session`, `run`: the arguments ask for that one, and the script is the other's.
            `outside`: something outside the fake ended it, or did not let it begin. `own`: the fake has a mistake.
    """

    line: int
    step: str
    words: str
    kind: str

    @property
    def is_endless(self) -> bool:
        """Whether nothing ended a step."""
        return self.kind == "endless"

    def make_error(self, scenario: Scenario) -> KitError | ScenarioError:
        """Give the error that says it, with its place: of the scenario, unless the kit or the machine failed."""
        path = str(scenario.path)
        name = _SCRIPT_STEP_BY_ACTION.get(self.step, self.step)
        if self.is_endless:
            return ScenarioError(
                [ScenarioProblem(path, self.line, 1, f"{name}: {self.words}; {_ENDLESS_AGENT_REMEDY}")]
            )
        if self.kind in ("script", *_WAYS_TO_JUDGE):
            texts = scenario.text.splitlines()
            line = self.line or next((number for number, text in enumerate(texts, 1) if text.strip()), 1)
            return ScenarioError([ScenarioProblem(path, line, 1, f"a fake cannot play this script: {self.words}")])
        step = f" at the step {name}" if name else ""
        place = f"{path}:{self.line}" if self.line else path
        words = self.words if self.kind == "outside" else f"the fake agent itself failed{step}: {self.words}"
        return KitError(f"{place}: {words}; {_NO_VERDICT_CLAUSE}")

    def require_same_mode(self) -> None:
        """Find a scenario of one prompt not applicable to a client of sessions, and the other way round.

        Raises:
            Declined: the arguments of the agent's start are for the other kind.
        """
        if self.kind in _WAYS_TO_JUDGE:
            raise Declined(f"the agent: {self.words.partition(': write ')[0]}; {_WAYS_TO_JUDGE[self.kind]}")


_WAYS_TO_JUDGE = {
    "session": 'judge this supervisor as a client of sessions: `sessions = "acp"` for a program, a `Client` in Python',
    "run": "judge this supervisor as one of runs, without `sessions`",
}
"""By what the arguments of an agent's start ask for."""
_SCRIPT_STEP_BY_ACTION = {
    "bytes": "raw",
    "refork": "spawn",
    "sleep": "silence",
    "report_start": "script",
    **{f"await_{event}": "wait_for" for event in ("eof", "signal", "stdin", "exit", "prompt", "cancel")},
}
"""The names of a program's operations in a file, where they differ."""

_ENDLESS_AGENT_REMEDY = "give it an end, such as `for: 10m`, or have a limit or an action of the caller end the agent"
_NO_VERDICT_CLAUSE = "this says nothing of the supervisor"


class ReferencePlays(Protocol):
    """The results of the reference supervisor: see `_limit_binding.ReferenceResults`."""

    @property
    def under_subject_limits(self) -> PlayResult:
        """Give the result under the limits of the supervisor under test."""

    @property
    def under_file_limits(self) -> PlayResult:
        """Give the result under the limits of the file."""


class UnstatedPlays(Protocol):
    """The results that depend on limits that a supervisor does not state: see `_limit_binding.UnstatedLimitResults`.

    The shortest of the other values of a limit comes first.
    """

    @property
    def names(self) -> Sequence[str]:
        """Give the limits that are not stated."""

    @property
    def endless_results(self) -> Mapping[str, PlayResult]:
        """Give the result without each of these limits."""

    @property
    def default_result(self) -> PlayResult:
        """Give the result with the default of each limit."""

    @property
    def varied_results(self) -> Mapping[str, Sequence[PlayResult]]:
        """Give the results with other values of each limit."""


@dataclass(frozen=True, slots=True)
class PlayResult:
    """One play: the request, the events, the supervisor's answer.

    Args:
        bound: the scenario under the supervisor's policy.
        record: both sides, in order.
        answer: the supervisor's answer; None if it gave none.
        fault: why time could not move, if it could not, or the failure of the supervisor.
        artifacts: the files that the supervisor kept; None if it keeps none, or was not asked to.
        pace: the pace in real time; None: in virtual time.
        lateness: the largest lateness of a step of the fake, in nanoseconds of the scenario's time.
        polling: the polling of the supervisor; None: it is woken.
        reference: the result of the reference supervisor; None: it played itself, or its limits are the file's.
        unstated: the results that depend on limits that the supervisor does not state; None: it states all.
        broken: the failure of a fake itself, in the model; None: there was none.
        pipes_left: how many pipes of ended processes the supervisor left open; None: they were not counted.
        whole: the play of which this is one session, or one turn; None: it is the whole itself.
    """

    bound: BoundScenario
    record: Record
    answer: RunReport | None
    fault: SubjectError | ClockError | None
    artifacts: Mapping[str, bytes] | None = None
    pace: RealTimePace | None = None
    lateness: int = 0
    polling: PollingPace | None = None
    reference: ReferencePlays | None = None
    unstated: UnstatedPlays | None = None
    broken: FakeFault | None = None
    pipes_left: int | None = None
    whole: PlayResult | None = None

    def select_part(
        self, answer: RunReport | None, *, bound: BoundScenario | None = None, record: Record | None = None
    ) -> PlayResult:
        """Give the play as if one of its sessions, or one of its turns, were all of it.

        Args:
            answer: the answer of that one alone.
            bound: the session; None: a turn of this play.
            record: what happened in the session.
        """
        return replace(
            self,
            answer=answer,
            bound=bound or self.bound,
            record=record or self.record,
            artifacts=None if bound else self.artifacts,
            reference=None,
            unstated=None,
            pipes_left=None,
            whole=self.whole or self,
        )

    @property
    def tolerance(self) -> int:
        """How much later than expected a thing may have happened, in nanoseconds.

        In virtual time that is 0, but for a supervisor that looks in turns, or has limits between the nanoseconds.
        """
        if self.whole is not None:
            return self.whole.tolerance
        paced = 0 if self.pace is None else self.pace.tolerance
        if self.polling is not None:
            return self.polling.tolerance + paced
        if self.pace is not None:
            return paced
        bounds = (self.bound, *self.bound.parts.values())
        return _ROUNDING_TOLERANCE_NS if any(part.policy.has_fractional_nanoseconds for part in bounds) else 0

    def compute_allowed_delay(self, at: int) -> int:
        """How much later than expected a thing may happen at an instant of the play, in nanoseconds."""
        paced = 0 if self.pace is None else self.pace.tolerance
        return self.tolerance if self.polling is None else self.polling.compute_allowed_delay(at) + paced

    @property
    def undecided(self) -> str:
        """Why nothing follows from a failed check.

        The deciding instants are nearer to each other than the supervisor's looks. Or an agent closed its stdin, which
        is a file or is held open by a shell, so that the supervisor could not see it.
        """
        if self.polling is not None and self.polling.undecided:
            return self.polling.undecided
        is_about_it = any(expectation.value == "input_failed" for expectation in self.bound.scenario.expected)
        if is_about_it and any(
            isinstance(event, StreamKeptOpen) and event.kept == "stdin" for event in self.record.events
        ):
            return (
                "the supervisor cannot see that the agent closed its stdin: it is a file, or another program holds it"
            )
        return ""

    @property
    def is_virtual(self) -> bool:
        """Whether time was virtual, so that a second play goes the same way."""
        return self.pace is None or self.pace.is_exact

    @property
    def was_starved(self) -> bool:
        """Whether the machine was so slow that competing instants may have changed places, or come too late."""
        if self.pace is None or self.pace.is_exact:
            return False
        allowed = self.pace.tolerance / self.pace.scale
        if self.pace.margin is not None:
            allowed = min(allowed, self.pace.margin)
        return self.lateness / self.pace.scale > allowed / 2
