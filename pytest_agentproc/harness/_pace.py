"""Whether a scenario can be judged in real time, how fast, and how late a polling supervisor may be. Pure.

In real time everything takes time: a fake starts, a byte arrives, a timer is late. That changes nothing as long as all
of it happens before the next action of another actor. The smallest such distance is the margin. It is measured before
each move, from its instant to the nearest deadline or end of a pause of another actor. The supervisor's reaction to an
agent competes with the supervisor's own next deadline, too. So do two limits of one run: the first one to end decides
the outcome. A tie has no margin at all. The supervisor looks after each step here, as in real time: some time lies
between an answer and the exit after it.

A correct supervisor that polls every 50 ms sees and does everything up to 50 ms late. That is a style and no mistake.
It is recognised by its loop, whose timers wake it at a steady pace. If a run is too short for that, it is repeated with
a pause before its script. Some supervisors poll only while they end a tree, perhaps once. From then on such a
supervisor may be late by its own short timers. Before that, instants are exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_agentproc.clock import LONGEST_POLLING_PERIOD_NS, WAKE_GAP_TOLERANCE_NS, NextMove
from pytest_agentproc.errors import Spin
from pytest_agentproc.events import TimerArmed, TimerEvent, TimerFired
from pytest_agentproc.fake_agents.player import WAIT_FOR_INSTANT, WAIT_FOREVER, ScriptPlayer
from pytest_agentproc.harness._limit_binding import StepLimitedJumpRule
from pytest_agentproc.harness.model._actors import InMemoryProcess
from pytest_agentproc.harness.model._in_memory_model import DEFAULT_REFERENCE_SUBJECT, InMemoryModel
from pytest_agentproc.harness.model._play import play_bound_scenario
from pytest_agentproc.plays import RealTimePace
from pytest_agentproc.record import format_duration
from pytest_agentproc.scenario import NotApplicable
from pytest_agentproc.vocabulary import NANOSECONDS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from pytest_agentproc.clock import HostState, PollingDetector, SpawnPath
    from pytest_agentproc.fake_agents.contracts import TrackWait
    from pytest_agentproc.fake_agents.player import ScriptTrack
    from pytest_agentproc.fake_agents.program import Step
    from pytest_agentproc.plays import FakeFault
    from pytest_agentproc.record import Record
    from pytest_agentproc.scenario import BoundScenario, Scenario, StatedLimits
    from pytest_agentproc.vocabulary import Subject


LEAST_INSTANT_MARGIN_NS = 250_000_000
"""The least real nanoseconds between competing instants: the delays of a busy machine must not swap them."""

_PREFERRED_INSTANT_MARGIN_NS = 2 * LEAST_INSTANT_MARGIN_NS
_LARGEST_SCALE = 100
_PREFERRED_RUN_SECONDS = 20
"""Left to itself a scenario leaves twice the margin, or less of it if that takes more real seconds than this."""

_MAX_RUN_SECONDS = 45
"""The most real seconds for a run with the margin alone; a longer one is not played."""

_ALLOWED_DELAY_NS = 1_000_000_000
"""So many real nanoseconds after its instant a thing may happen; never before it."""

_SECONDS_AFTER_EXPECTED_END = 10
"""Real seconds beyond the expected end after which a supervisor that has not returned is given up."""


_ALLOWED_ROUNDING_DELAY_NS = 2_000_000
"""Below a coordinator a thing happens this many nanoseconds late at most: some calls wait whole milliseconds."""

_VIRTUAL_SECONDS_AFTER_END = 3600
"""Virtual seconds beyond the expected end after which a supervisor that has not returned is given up."""

_POLLING_SECONDS_AFTER_END = 60
"""The same for a supervisor that polls, beyond all its limits. Its looks cost real time: an hour takes many minutes."""


class NotForRealTime(Exception):
    """A scenario that real time cannot judge, at this scale or at all; the text says why."""


def choose_pace(foreseen: RunForecast, scale: float | None, lifetime: float, *, is_scaled: bool = True) -> RealTimePace:
    """Choose the pace.

    Args:
        foreseen: the prediction of the model.
        scale: the caller's wish; None: as fast as twice the margin allows, or the margin if that is slow; at most 100.
        lifetime: real seconds for which a fake can live.
        is_scaled: whether the supervisor's own limits follow the scale; if not, it is right at scale 1 only.

    Raises:
        NotForRealTime: the margin is too small, it would take too long, or the model does not come to an end.
    """
    if foreseen.fault:
        raise NotForRealTime(f"it ends in a {foreseen.fault}, which virtual time alone can tell from a long wait")
    margin = foreseen.margin
    if margin is not None and margin < LEAST_INSTANT_MARGIN_NS * (scale or 1):
        apart = f"{format_duration(margin)} apart" if margin else "at the same time"
        needed = format_duration(round(LEAST_INSTANT_MARGIN_NS * (scale or 1)))
        raise NotForRealTime(
            f"two of its competing instants are {apart}, and {needed} are needed{_format_time_scale(scale)}"
        )
    chosen = scale or (_choose_scale(foreseen.duration / 1e9, margin) if is_scaled else 1)
    seconds = foreseen.duration / 1e9 / chosen
    longest = lifetime / 2 if scale else _MAX_RUN_SECONDS
    if seconds > longest:
        fixed = "" if is_scaled else ", and the limits in its code do not follow {scale}"
        raise NotForRealTime(
            f"it takes {seconds:.0f} s{_format_time_scale(chosen)}, and {longest:g} s are allowed{fixed}"
        )
    left = None if margin is None else round(margin / chosen)
    return RealTimePace(chosen, left, round(_ALLOWED_DELAY_NS * chosen), seconds + _SECONDS_AFTER_EXPECTED_END)


def make_exact_pace(foreseen: RunForecast, limits: float | None, graces: float) -> RealTimePace:
    """Give the pace below a coordinator, where the machine's clock is virtual and no delay of the machine counts.

    Args:
        foreseen: the prediction of the model.
        limits: all limits of the supervisor in a row, in seconds: one of them may end what another one should have
            ended; None: it does not state each limit that the prediction depends on.
        graces: those of them that may still run once a process has got a signal.

    Raises:
        NotApplicable: competing instants are the same, and the supervisor's own threads decide which of them is first.
    """
    if foreseen.margin == 0:
        raise NotApplicable("an event loop in lockstep, since competing instants are the same", 1)
    end = foreseen.duration / NANOSECONDS_PER_SECOND
    looking = 0 if limits is None else end + min(_POLLING_SECONDS_AFTER_END + limits, _VIRTUAL_SECONDS_AFTER_END)
    least = min(end + _POLLING_SECONDS_AFTER_END, looking)
    return RealTimePace(
        1,
        None,
        _ALLOWED_ROUNDING_DELAY_NS,
        end + _VIRTUAL_SECONDS_AFTER_END,
        looking,
        least,
        graces + _POLLING_SECONDS_AFTER_END,
        is_exact=True,
    )


def _choose_scale(seconds: float, margin: int | None) -> float:
    """Give the scale of a scenario for which the caller wants none."""
    if margin is None:
        return _LARGEST_SCALE
    easy, most = (
        min(_LARGEST_SCALE, max(1.0, margin / least))
        for least in (_PREFERRED_INSTANT_MARGIN_NS, LEAST_INSTANT_MARGIN_NS)
    )
    return max(easy, min(most, seconds / _PREFERRED_RUN_SECONDS))


def _format_time_scale(scale: float | None) -> str:
    return "" if scale in (None, 1) else f" at scale {scale:g}"


@dataclass(frozen=True, slots=True)
class RunForecast:
    """The model's prediction of a scenario's run in real time, in nanoseconds before any scaling.

    Args:
        margin: the smallest distance between competing instants; None: nothing competes.
        duration: the instant of its end.
        fault: the reason why it has no end, if it has none.
        broken: the failure of a fake itself; None: there was none.
    """

    margin: int | None
    duration: int
    fault: str = ""
    broken: FakeFault | None = None


class _GapMeasuringRule(StepLimitedJumpRule):
    """The jump rule, with the distance of each of its decisions to the next possible one."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: dict[SpawnPath, int] = {}
        self.margin: int | None = None

    def park_process(self, path: SpawnPath, until: int | None) -> None:
        super().park_process(path, until)
        if until is not None and until > self.now:
            self.pauses[path] = until
        else:
            self.pauses.pop(path, None)

    def drop_process(self, path: SpawnPath) -> None:
        super().drop_process(path)
        self.pauses.pop(path, None)

    def choose_next_move(self, host: HostState) -> tuple[NextMove, Any]:
        pauses = dict(self.pauses)
        move, target = super().choose_next_move(host)
        others = [until for path, until in pauses.items() if move is not NextMove.GRANT or path != target]
        if host.deadline is not None and move is not NextMove.FIRE:
            others.append(host.deadline[0])
        near = min(others, default=None)
        if near is not None and (self.margin is None or near - self.now < self.margin):
            self.margin = near - self.now
        return move, target


_NEXT_GRANT_WAIT_KIND = -1
"""The waits of a track between two steps."""


class _StepwisePlayer(ScriptPlayer):
    """A player that parks after each step, at the same instant."""

    def play_steps(self, steps: Sequence[Step]) -> Generator[TrackWait, None, bool]:
        for step in steps:
            if (yield from super().play_steps([step])):
                return True
            yield _NEXT_GRANT_WAIT_KIND, self.grants
        return False

    def _play_refork_step(self, fields: dict[str, Any]) -> Iterator[TrackWait]:
        """Live on: for its competitors an agent that re-forks is one process, whatever its number of forks."""
        end = fields["until"]
        yield (WAIT_FOREVER, None) if end is None else (WAIT_FOR_INSTANT, end)
        self.stage.exit_process(0)

    def _is_track_ready(self, track: ScriptTrack) -> bool:
        if track.kind == _NEXT_GRANT_WAIT_KIND:
            return bool(track.value < self.grants)
        return super()._is_track_ready(track)

    @property
    def earliest_wake_instant(self) -> int | None:
        if any(track.kind == _NEXT_GRANT_WAIT_KIND for track in self.tracks):
            return self.now
        return super().earliest_wake_instant


class _StepwiseProcess(InMemoryProcess):
    player_type = _StepwisePlayer


def forecast_run(scenario: Scenario, terms: StatedLimits) -> RunForecast:
    """Run a scenario in the model and measure."""
    rules: list[_GapMeasuringRule] = []

    def make_measuring_rule() -> _GapMeasuringRule:
        rules.append(_GapMeasuringRule())
        return rules[-1]

    class MeasuredModel(InMemoryModel):
        rule_type = staticmethod(make_measuring_rule)  # type: ignore[assignment]  # a maker is as good as the type
        process_type = _StepwiseProcess

    bound = scenario.bind(terms)
    played = play_bound_scenario(bound, DEFAULT_REFERENCE_SUBJECT, model=MeasuredModel)
    broken = played.broken
    if isinstance(played.fault, Spin):  # which step goes on and on is known where each process plays as it will
        broken = play_bound_scenario(bound, DEFAULT_REFERENCE_SUBJECT).broken
    distances = [*_iterate_limit_gaps(played.record)]
    if rules[0].margin is not None:
        distances.append(rules[0].margin)
    fault = "" if played.fault is None else played.fault.reason
    return RunForecast(min(distances, default=None), rules[0].now, fault, broken)


def _iterate_limit_gaps(record: Record) -> Iterator[int]:
    """Give how long before another limit of the same run or session each one ended it."""
    armed: dict[tuple[str, str], int] = {}
    for event in record.events:
        if isinstance(event, TimerArmed):
            armed[event.session, event.timer] = event.armed
        elif isinstance(event, TimerEvent):
            armed.pop((event.session, event.timer), None)
            if isinstance(event, TimerFired):
                yield from (due - event.at for (owner, _), due in armed.items() if owner == event.session)


_PAUSE_BEFORE_SCRIPT_NS = 1_000_000_000

_POLLING_SECONDS_OF_RUN, _POLLING_SECONDS_OF_SESSION = 3600.0, 14_400.0
"""Virtual seconds for which an agent may be silent in a run; for which a session may be idle."""


def can_be_polling(subject: Subject, bound: BoundScenario, polling: PollingDetector) -> bool:
    """Say whether a supervisor may poll: it woke soon, or twice in a short time that is no limit of its own."""
    if hasattr(subject, "deciders"):
        return False
    limits = _list_limits(bound)
    if polling.period or 0 <= polling.first <= LONGEST_POLLING_PERIOD_NS:
        return True
    return any(all(abs(gap - limit) > WAKE_GAP_TOLERANCE_NS for limit in limits) for gap in polling.quick)


def find_short_timers(subject: Subject, bound: BoundScenario, polling: PollingDetector) -> tuple[tuple[int, int], ...]:
    """Give the short timers that a subject slept through and that are no limit of its own; see `can_be_polling`."""
    if hasattr(subject, "deciders"):
        return ()
    limits = _list_limits(bound)
    return tuple(
        nap for nap in polling.naps if all(abs(nap[1] - nap[0] - limit) > WAKE_GAP_TOLERANCE_NS for limit in limits)
    )


def _list_limits(bound: BoundScenario) -> list[int]:
    policies = [part.policy for part in (bound, *bound.parts.values())]
    return [limit for policy in policies for limit in policy.nanoseconds().values() if limit is not None]


def compute_polling_limit(bound: BoundScenario) -> float:
    """Give the virtual seconds for which a supervisor may poll while nothing happens: all its limits end before."""
    limits = [limit for limit in bound.policy.nanoseconds().values() if limit is not None]
    least = _POLLING_SECONDS_OF_SESSION if bound.scenario.is_session or bound.parts else _POLLING_SECONDS_OF_RUN
    return max(least, 4 * max(limits, default=0) / NANOSECONDS_PER_SECOND)


def sum_stated_limits(bound: BoundScenario, kind: str = "") -> float:
    """Give the virtual seconds that all stated limits of a supervisor take in a row.

    Args:
        bound: the scenario under its own limits.
        kind: the end of their names, such as `_grace`.
    """
    policies = [part.policy for part in bound.parts.values()] or [bound.policy]
    limits = [
        limit
        for policy in policies
        for name, limit in policy.nanoseconds().items()
        if limit is not None and name not in policy.unstated and name.endswith(kind)
    ]
    return sum(limits) / NANOSECONDS_PER_SECOND


def add_pause_before_script(bound: BoundScenario) -> BoundScenario:
    """Let an agent pause before its script, long enough to recognise a polling supervisor."""
    parts = {name: add_pause_before_script(part) for name, part in bound.parts.items()}
    pause = (0, "sleep", (_PAUSE_BEFORE_SCRIPT_NS,))
    program = {**bound.program, "steps": [pause, *bound.program["steps"]]} if bound.program else bound.program
    return replace(bound, program=program, parts=parts)
