"""What a search found. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_agentproc.harness import Played
    from pytest_agentproc.scenario import Choice, Scenario

__all__ = ["Find"]


@dataclass(frozen=True, slots=True)
class Find:
    """One setting under which a supervisor breaks a promise.

    Args:
        choices: what was chosen of each open value.
        scenario: the closed scenario, with expectations that the supervisor does not meet.
        key: the first expect key that turns red; "" if a standing invariant broke and no key says so.
        reason: what broke, in a sentence.
        played: the play in which it did.
    """

    choices: tuple[Choice, ...]
    scenario: Scenario
    key: str
    reason: str
    played: Played
