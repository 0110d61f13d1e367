"""Owns the verdicts, and the rows that carry them; decides nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from pytest_agentproc.vocabulary import LEVELS

if TYPE_CHECKING:
    from pytest_agentproc.plays import PlayResult


class Verdict(StrEnum):
    """The verdict on one check, or on a whole scenario; the first of these that applies wins."""

    KIT_ERROR = "kit error"
    ADAPTER_ERROR = "adapter error"
    CRASHED = "crashed"
    FAILED = "failed"
    UNDECIDED = "undecided"
    KNOWN = "known"
    NOT_EXERCISED = "not exercised"
    NOT_APPLICABLE = "not applicable"
    PASSED = "passed"


VERDICT_TEXTS = {
    Verdict.KIT_ERROR: (
        "The kit itself went wrong, and this says nothing about the supervisor.",
        "Report it as a bug of pytest-agentproc.",
    ),
    Verdict.ADAPTER_ERROR: (
        "The code that connects the supervisor to the kit is wrong. This says nothing about the supervisor.",
        "Correct that code as the message says.",
    ),
    Verdict.CRASHED: (
        "An exception came out of the supervisor.",
        "Read the exception. A fault of the agent must be a result, and never an exception.",
    ),
    Verdict.FAILED: (
        "The supervisor did something else than the scenario expects.",
        "Compare the lines `expected` and `seen`, and read the timeline below them.",
    ),
    Verdict.UNDECIDED: (
        "The supervisor does not report the value that the check needs. At level `must`, undecided fails the test.",
        "Have the supervisor report the value that the message names.",
    ),
    Verdict.KNOWN: (
        "The check failed, and the file of known failures names it.",
        "Nothing, until you correct the failure. Then remove its entry.",
    ),
    Verdict.NOT_EXERCISED: (
        "The run never came to the point that the check is about.",
        "Correct the other checks of the scenario first.",
    ),
    Verdict.NOT_APPLICABLE: (
        "The supervisor has no such limit or ability, or it does not report a value that the scenario can do without.",
        "Nothing, or state the limit or the ability if the supervisor has it.",
    ),
    Verdict.PASSED: (
        "The supervisor did what the scenario expects.",
        "Nothing.",
    ),
}
"""Of each verdict, what happened, and what you can do."""


@dataclass(frozen=True, slots=True)
class CheckRow:
    """One check of a scenario.

    Args:
        key: the expect key, dotted where it is nested.
        line: its line in the scenario file; 0 if the file does not state it.
        wanted: what was expected, in words.
        seen: what was there, in words.
        verdict: what follows.
        hint: what may explain a difference; empty if nothing is known to.
        level: how much it counts: `must`, `should` or `info`.
        unstated: the limits that have to be stated before this can be judged.
        diff: where two long texts differ, as lines; empty if the check failed for something else.
    """

    key: str
    line: int
    wanted: str
    seen: str
    verdict: Verdict
    hint: str = ""
    level: str = LEVELS[0]
    unstated: tuple[str, ...] = ()
    diff: str = ""

    def mark_not_applicable(self, why: str, unstated: tuple[str, ...] = ()) -> CheckRow:
        """Give the row as one that does not apply."""
        limits = unstated or self.unstated
        return replace(self, verdict=Verdict.NOT_APPLICABLE, seen=f"{self.seen}; {why}", hint="", unstated=limits)


def is_time_as_wanted(played: PlayResult, wanted: int, seen: int) -> bool:
    """Say whether an instant is the one that was wanted: in real time not before it, and not long after."""
    return wanted <= seen <= wanted + played.compute_allowed_delay(seen)


def is_duration_as_wanted(played: PlayResult, wanted: int, seen: int, end: int | None = None) -> bool:
    """Say whether a time that does not begin with the run is the time that was wanted.

    In real time its beginning may come late as its end may, so that it can also be somewhat shorter. `end` is the
    instant at which it was over, if that is known.
    """
    late = played.tolerance if end is None else played.compute_allowed_delay(end)
    return wanted - late // 4 <= seen <= wanted + late


class Finding(NamedTuple):
    """The result of one check, before it is put into its row."""

    verdict: Verdict
    seen: str
    hint: str = ""
    line: int = 0
    diff: str = ""

    @classmethod
    def from_comparison(cls, *, fits: bool, seen: str, hint: str = "") -> Finding:
        """Make one of whether the value that was seen is right; the hint is for a failed check."""
        return cls(Verdict.PASSED, seen) if fits else cls(Verdict.FAILED, seen, hint)
