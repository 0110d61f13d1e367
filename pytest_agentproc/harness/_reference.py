"""The kit's own supervisor as the measure of what a scenario means under somebody else's limits. Judges nothing.

A file is written with some order of limits in mind: silence is noticed before the longest run ends, a grace is longer
than nothing. Where a supervisor's own limits stand otherwise, the same script is another story, and what the file
expects of it was never said about it.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from pytest_agentproc.clock import JumpRule, Move
from pytest_agentproc.errors import Spin
from pytest_agentproc.harness._core import REFERENCE
from pytest_agentproc.harness._model import Model
from pytest_agentproc.harness._model_play import play_bound
from pytest_agentproc.scenario import NotApplicable
from pytest_agentproc.vocabulary import Policy

if TYPE_CHECKING:
    from pytest_agentproc.clock import Host
    from pytest_agentproc.harness._played import Played
    from pytest_agentproc.scenario import Bound, Scenario, Terms
    from pytest_agentproc.vocabulary import Subject

__all__ = ["REFERENCE", "FiniteModel", "FiniteRule", "Reference"]

_MOVES = 20_000
"""So many steps no run has that somebody's limits end: eight mebibytes of a flood take two thousand."""


class FiniteRule(JumpRule):
    """The jump rule for a run that nobody may ever end: a limit is off, and an agent drips on, or starts itself anew.

    A process's step costs as many as there are processes above it, as who always starts itself anew gets nowhere.
    """

    def __init__(self) -> None:
        super().__init__()
        self._left = _MOVES

    def next(self, host: Host) -> tuple[Move, Any]:
        move, target = super().next(host)
        self._left -= len(target) if move is Move.GRANT else 1
        if self._left <= 0:
            raise Spin(f"it goes on and on: {_MOVES} steps, and no limit ends it")
        return move, target


class FiniteModel(Model):
    """The model of a run that nobody may ever end."""

    rule_type = FiniteRule


def _limits(terms: Terms) -> Any:
    """Give limits as values, whether or not all of them are stated."""
    if isinstance(terms, Policy):
        return terms.items()
    return {name: policy.items() for name, policy in terms.items()}


class Reference:
    """What the kit's own supervisor makes of a scenario, each played in the model when it is asked for.

    Args:
        there: the scenario under the limits of the subject under test.
        here: the same under those that the file is written for.
    """

    def __init__(self, there: Bound, here: Bound) -> None:
        self._there, self._here = there, here

    @classmethod
    def of(cls, scenario: Scenario, subject: Subject) -> Reference | None:
        """Give the reference of a play; None if there is nothing to measure.

        So it is if the subject is the core, or keeps the limits of the file, or the file has a meaning under others
        alone.
        """
        if hasattr(subject, "deciders"):
            return None
        terms, own = scenario.terms(subject), scenario.terms(REFERENCE)
        try:
            return None if _limits(terms) == _limits(own) else cls(scenario.bind(terms), scenario.bind(own))
        except NotApplicable:
            return None

    @cached_property
    def there(self) -> Played:
        """What it makes of it under the subject's limits."""
        return play_bound(self._there, REFERENCE, model=FiniteModel)

    @cached_property
    def here(self) -> Played:
        """What it makes of it under those of the file."""
        return play_bound(self._here, REFERENCE, model=FiniteModel)
