"""Runs written by hand, for tests of verdicts: no process, no clock, no scenario file. Knows no expected value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_agentproc.plays import PlayResult, RealTimePace
from pytest_agentproc.record import Record
from pytest_agentproc.verdict import CheckRow, judge_all_expectations
from pytest_agentproc.vocabulary import Policy, RunReport
from tests.event_lines import add_line

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SECOND", "BoundScenario", "Events", "Expected", "Script", "judge_events", "judge_one_key", "play_by_hand"]

SECOND = 1_000_000_000
Events = list[tuple[int, str, dict[str, Any]]]


@dataclass(frozen=True)
class Expected:
    """One expect key as the scenario binds it."""

    key: str
    wanted: Any
    line: int = 9
    not_applicable: str | None = None
    level: str = "must"
    unstated: tuple[str, ...] = ()


@dataclass(frozen=True)
class Script:
    """The scenario, as far as a verdict looks at it."""

    path: str = "one.scenario.yaml"
    claim: str = "one"
    text: str = ""
    cannot_spawn: str | None = None
    expected: tuple[Expected, ...] = ()
    catches: Mapping[str, str] = field(default_factory=dict)
    covers: tuple[str, ...] = ()
    level: str = "must"
    harm: str = ""
    mode: str = "json"
    is_session: bool = False
    prints_events: bool = False
    scripts: tuple[Any, ...] = ()


@dataclass(frozen=True)
class BoundScenario:
    """A scenario bound to the default policy."""

    expect: tuple[Expected, ...]
    policy: Policy = field(default_factory=Policy)
    scenario: Script = field(default_factory=Script)
    parts: Mapping[str, BoundScenario] = field(default_factory=dict)
    first_signal: str = "TERM"
    drive: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Reference:
    """The results of the reference supervisor, written by hand."""

    under_subject_limits: PlayResult
    under_file_limits: PlayResult


@dataclass(frozen=True)
class Unstated:
    """The results that depend on limits that are not stated, written by hand."""

    names: tuple[str, ...]
    default_result: PlayResult
    varied_results: Mapping[str, tuple[PlayResult, ...]]
    endless_results: Mapping[str, PlayResult] = field(default_factory=dict)


def play_by_hand(
    bound: Any,  # a `BoundScenario` that stands for one of a file
    record: Record,
    answer: RunReport | None,
    fault: Any = None,
    tolerance: int = 0,
    artifacts: Mapping[str, bytes] | None = None,
    **rest: Any,
) -> PlayResult:
    """Make the result of a play that nobody played; a tolerance makes it one in real time."""
    pace = RealTimePace(1, None, tolerance, 0) if tolerance else None
    return PlayResult(bound, record, answer, fault, artifacts, pace, **rest)


def judge_events(
    *expected: Expected,
    events: Events = (),  # type: ignore[assignment]
    fault: Exception | None = None,
    tolerance: int = 0,
    **answer: Any,
) -> tuple[CheckRow, ...]:
    """Compare a hand-made run; events are the agent's unless they name another process."""
    record = Record()
    add_line(record, 0, "p", {"process": "agent", "seen": True, "parent": "supervisor", "line": 0})
    for at, code, data in events:
        add_line(record, at, code, {"process": "agent", **data})
    return judge_all_expectations(
        play_by_hand(BoundScenario(expected), record, None if fault else RunReport(**answer), fault, tolerance)
    )


def judge_one_key(key: str, wanted: Any, *, events: Events = (), **answer: Any) -> tuple[str, str, str, str]:  # type: ignore[assignment]
    """Compare one key: its verdict, wanted and seen in words, hint."""
    (row,) = judge_events(Expected(key, wanted), events=events, **answer)
    assert (row.key, row.line) == (key, 9)
    return row.verdict.value, row.wanted, row.seen, row.hint
