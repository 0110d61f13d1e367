"""A find of a search: the first check that a supervisor does not meet. Plays nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_agentproc.verdict import Verdict, judged

if TYPE_CHECKING:
    from pytest_agentproc.harness import Played
    from pytest_agentproc.scenario import Choice, Scenario
    from pytest_agentproc.verdict import Row


_BROKEN = (Verdict.ADAPTER_ERROR, Verdict.CRASHED, Verdict.FAILED)


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


def not_met(played: Played) -> tuple[str, str] | None:
    """Give the key of the first check that a supervisor does not meet, and what it says; None: there is none.

    A supervisor that raises meets none. If it raises in one setting alone, no tester would find that by hand.
    """
    row = next((row for row in judged(played).rows if row.verdict in _BROKEN), None)
    if row is None:
        return None
    if row.verdict is not Verdict.FAILED:
        return row.key, row.seen.partition("\n")[0]
    return row.key, said_of(row)


def said_of(row: Row) -> str:
    """Say in one line what a check saw."""
    return f"{row.key} is {row.seen}, not {row.wanted}".replace("\n", " ")
