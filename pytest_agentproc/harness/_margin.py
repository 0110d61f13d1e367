"""How near to one another the competing instants of a scenario are, from its run in the model. Owns the rule of that.

In real time everything takes time: a fake starts, a byte arrives, a timer rings late. That changes nothing as long as
all of it happens before the next instant at which somebody else would have acted. The smallest such distance is the
margin: before each move, from its instant to the nearest deadline or end of a pause that belongs to another actor. What
the supervisor does because an agent moved competes with its own next deadline, too, and so do two limits of one run:
whichever ends first says what the run was. A tie has no margin at all. The supervisor looks after each step here,
because in real time it does: between an answer and the exit after it lies time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fake_agents.player import NEVER, TIME, Player
from pytest_agentproc.clock import Move
from pytest_agentproc.errors import Spin
from pytest_agentproc.harness._actors import Process
from pytest_agentproc.harness._model import Model
from pytest_agentproc.harness._model_play import play_bound
from pytest_agentproc.harness._reference import REFERENCE, FiniteRule

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from fake_agents.player import Track, Wait
    from fake_agents.program import Step
    from pytest_agentproc.clock import Host, Path
    from pytest_agentproc.harness._faults import FakeFault
    from pytest_agentproc.record import Record
    from pytest_agentproc.scenario import Scenario, Terms

__all__ = ["Foreseen", "foresee"]


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What the model says of a scenario's run in real time, in nanoseconds before any scaling.

    Args:
        margin: the smallest distance between competing instants; None: nothing competes.
        duration: the instant of its end.
        fault: why it has no end, if it has none.
        broken: what broke in a fake itself; None: nothing did.
    """

    margin: int | None
    duration: int
    fault: str = ""
    broken: FakeFault | None = None


class _Measured(FiniteRule):
    """The jump rule, and beside each of its decisions the distance to whoever might have been next."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: dict[Path, int] = {}
        self.margin: int | None = None

    def park(self, path: Path, until: int | None) -> None:
        super().park(path, until)
        if until is not None and until > self.now:
            self.pauses[path] = until
        else:
            self.pauses.pop(path, None)

    def drop(self, path: Path) -> None:
        super().drop(path)
        self.pauses.pop(path, None)

    def next(self, host: Host) -> tuple[Move, Any]:
        pauses = dict(self.pauses)
        move, target = super().next(host)
        others = [until for path, until in pauses.items() if move is not Move.GRANT or path != target]
        if host.deadline is not None and move is not Move.FIRE:
            others.append(host.deadline[0])
        near = min(others, default=None)
        if near is not None and (self.margin is None or near - self.now < self.margin):
            self.margin = near - self.now
        return move, target


_NEXT_GRANT = -1
"""What a track waits for between two steps."""


class _Stepwise(Player):
    """A player that parks after each step, at the same instant."""

    def play(self, steps: Sequence[Step]) -> Generator[Wait, None, bool]:
        for step in steps:
            if (yield from super().play([step])):
                return True
            yield _NEXT_GRANT, self.grants
        return False

    def _do_hop(self, fields: dict[str, Any]) -> Iterator[Wait]:
        """Live on: whoever competes with one that re-forks has to do with one process, however many it is made of."""
        end = fields["until"]
        yield (NEVER, None) if end is None else (TIME, end)
        self.stage.leave(0)

    def _is_ready(self, track: Track) -> bool:
        if track.kind == _NEXT_GRANT:
            return bool(track.value < self.grants)
        return super()._is_ready(track)

    @property
    def until(self) -> int | None:
        if any(track.kind == _NEXT_GRANT for track in self.tracks):
            return self.now
        return super().until


class _StepwiseProcess(Process):
    player_type = _Stepwise


def foresee(scenario: Scenario, terms: Terms) -> Foreseen:
    """Play a scenario in the model and measure.

    Args:
        scenario: what the fake does.
        terms: the limits that the subject states for it.
    """
    rules: list[_Measured] = []

    def measured() -> _Measured:
        rules.append(_Measured())
        return rules[-1]

    class Measured(Model):
        rule_type = staticmethod(measured)  # type: ignore[assignment]  # a maker is as good as the type
        process_type = _StepwiseProcess

    bound = scenario.bind(terms)
    played = play_bound(bound, REFERENCE, model=Measured)
    broken = played.broken
    if isinstance(played.fault, Spin):  # which step goes on and on is known where each process plays as it will
        broken = play_bound(bound, REFERENCE).broken
    distances = [*_between_limits(played.record)]
    if rules[0].margin is not None:
        distances.append(rules[0].margin)
    fault = "" if played.fault is None else played.fault.reason
    return Foreseen(min(distances, default=None), rules[0].now, fault, broken)


def _between_limits(record: Record) -> Iterator[int]:
    """Give how long before another limit of the same run or session each one ended it."""
    armed: dict[tuple[str, str], int] = {}
    for event in record.events:
        if event.code != "t":
            continue
        session, timer = event.data.get("session", ""), event.data["timer"]
        if "armed" in event.data:
            armed[session, timer] = event.data["armed"]
            continue
        armed.pop((session, timer), None)
        if "fired" in event.data:
            yield from (due - event.at for (owner, _), due in armed.items() if owner == session)
