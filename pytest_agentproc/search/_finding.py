"""A find of a search: the first check that a supervisor does not meet, and its confirmation by real processes.

A find that does not repeat is the kit's own fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_agentproc.record import compute_normal_form
from pytest_agentproc.search._invariants import find_broken_invariant
from pytest_agentproc.verdict import Verdict, are_plays_alike, find_first_difference, judge_play

if TYPE_CHECKING:
    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.scenario import OpenValueChoice, Scenario
    from pytest_agentproc.verdict import CheckRow
    from pytest_agentproc.vocabulary import Subject


_VERDICTS_OF_UNMET_CHECKS = (Verdict.ADAPTER_ERROR, Verdict.CRASHED, Verdict.FAILED)


@dataclass(frozen=True, slots=True)
class FailingSetting:
    """One setting under which a supervisor breaks a promise: a find of the search.

    Args:
        choices: what was chosen of each open value.
        scenario: the closed scenario, with expectations that the supervisor does not meet.
        key: the first expect key that turns red; "" if a standing invariant broke and no key says so.
        reason: what broke, in a sentence.
        played: the play in which it did.
    """

    choices: tuple[OpenValueChoice, ...]
    scenario: Scenario
    key: str
    reason: str
    played: PlayResult


def find_unmet_check(played: PlayResult) -> tuple[str, str] | None:
    """Give the key of the first check that a supervisor does not meet, and what it says; None: there is none.

    A supervisor that raises meets none. If it raises in one setting alone, no tester would find that by hand.
    """
    row = next((row for row in judge_play(played).rows if row.verdict in _VERDICTS_OF_UNMET_CHECKS), None)
    if row is None:
        return None
    if row.verdict is not Verdict.FAILED:
        return row.key, row.seen.partition("\n")[0]
    return row.key, describe_check(row)


def describe_check(row: CheckRow) -> str:
    """Say in one line what a check saw."""
    return f"{row.key} is {row.seen}, not {row.wanted}".replace("\n", " ")


_REAL_PLAYS_PER_CONFIRMATION = 3


@dataclass(frozen=True, slots=True)
class RealProcessConfirmation:
    """The verdict of real processes on a find.

    Args:
        repeats: whether each play went as the find did, and is red as it is.
        difference: where the timelines first differ, if they do; else how it was green.
    """

    repeats: bool
    difference: str = ""


def confirm_failure(
    find: FailingSetting, subject: Subject, runner: ScenarioRunner, *, backend: str = "asyncio"
) -> RealProcessConfirmation:
    """Play a find with real processes, three times, and compare each whole timeline with that of the find.

    Args:
        find: what was found.
        subject: the supervisor in which it was.
        runner: where processes are started.
        backend: the event loop on which the supervisor is, "asyncio" or "trio".
    """
    foretold = compute_normal_form(find.played.record)
    for number in range(1, _REAL_PLAYS_PER_CONFIRMATION + 1):
        played = runner.play(find.scenario, subject, backend=backend)
        is_same = compute_normal_form(played.record) == foretold or are_plays_alike(find.played, played)
        difference = "" if is_same else find_first_difference(find.played, played)
        if difference:
            return RealProcessConfirmation(repeats=False, difference=difference)
        if find_unmet_check(played) is None and not find_broken_invariant(played):
            return RealProcessConfirmation(
                repeats=False, difference=f"play {number} has the same timeline, and breaks nothing"
            )
    return RealProcessConfirmation(repeats=True)
