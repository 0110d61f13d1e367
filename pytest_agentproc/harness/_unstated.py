"""What a scenario would come to under other values of the limits that a supervisor does not state. Judges nothing.

The fake plays the same program, bound to the defaults. The reference supervisor runs it in the model, with one of these
limits longer or shorter than its default each time. What changes then depends on that limit.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pytest_agentproc.harness._model_play import play_bound
from pytest_agentproc.harness._reference import REFERENCE, FiniteModel
from pytest_agentproc.vocabulary import POLICY_NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_agentproc.harness._played import Played
    from pytest_agentproc.scenario import Bound
    from pytest_agentproc.vocabulary import Policy

__all__ = ["Unstated"]

_LENGTHS = (0.0, 0.25, 4.0, 60.0)
"""A grace may be left out, or be much longer than the default."""

_OF_TIMEOUTS = (1 / 30, 0.25, 4.0)
_TIMEOUTS = ("cancel_grace", "permission_timeout", "hook_timeout")
"""A supervisor that gives no time at all here does without the thing itself: it never asks, or always kills."""

_OF_TASKS = (10.0, 3600.0)
_OF_LINES = (1 / 8, 4.0)


class Unstated:
    """The plays that show what depends on a limit which a supervisor does not state.

    Args:
        bound: the scenario as it was played, with the defaults of those limits.
    """

    def __init__(self, bound: Bound) -> None:
        self._bound = bound
        parts = bound.parts.values() or (bound,)
        found = frozenset().union(*(part.policy.unstated for part in parts))
        self.names = tuple(name for name in POLICY_NAMES if name in found)

    @classmethod
    def of(cls, bound: Bound) -> Unstated | None:
        """Give them for what was played; None if every limit is stated."""
        plays = cls(bound)
        return plays if plays.names else None

    @cached_property
    def default(self) -> Played:
        """What it comes to with the default of each."""
        return play_bound(self._bound, REFERENCE, model=FiniteModel)

    @cached_property
    def variants(self) -> Mapping[str, tuple[Played, ...]]:
        """What it comes to with other values of each; names of those that never counted are left out."""
        armed = {event.data["timer"] for event in self.default.record.events if event.code == "t"}
        counted = [name for name in self.names if name in armed or name in ("background_grace", "max_line_bytes")]
        return {name: tuple(self._played(name, place) for place in range(len(_factors(name)))) for name in counted}

    def _played(self, name: str, place: int) -> Played:
        """Play with another value of a limit; what is expected stays as it is with the default."""
        bound = self._bound
        parts = {key: _varied(part, name, place) for key, part in bound.parts.items()}
        played = play_bound(replace(_varied(bound, name, place), parts=parts), REFERENCE, model=FiniteModel)
        return replace(played, bound=bound)


def _varied(bound: Bound, name: str, place: int) -> Bound:
    if name not in bound.policy.unstated:
        return bound
    return replace(bound, policy=_with(bound.policy, name, _factors(name)[place]))


def _with(policy: Policy, name: str, factor: float) -> Policy:
    value = getattr(policy, name)
    if name == "background_grace":
        value = factor
    elif name == "max_line_bytes":
        value = round(value * factor)
    else:
        value = (value or 1.0) * factor
    limits: dict[str, Any] = {name: value}
    return replace(policy, **limits)


def _factors(name: str) -> tuple[float, ...]:
    if name == "background_grace":
        return _OF_TASKS
    if name == "max_line_bytes":
        return _OF_LINES
    return _OF_TIMEOUTS if name in _TIMEOUTS else _LENGTHS
