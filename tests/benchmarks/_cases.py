"""Inputs of the determinism benchmark: bundled scenarios, and cases beyond files. Knows no load and no count."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import cached_property
from typing import TYPE_CHECKING

from pytest_agentproc.harness import run_in_model
from pytest_agentproc.record import compute_normal_form
from pytest_agentproc.scenario import loads
from pytest_agentproc.subjects import reference_supervisor
from tests.benchmarks._together import bind_all, play_together, play_together_in_model
from tests.bundled import load_all_for_functions
from tests.parity.kinds import ENDS, KINDS, load_kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.record import Record
    from pytest_agentproc.scenario import Scenario
    from pytest_agentproc.vocabulary import RunReport

__all__ = ["Case", "ObservedPlay", "list_cases", "observe_play"]

FLOOD = """
scenario: 256 KiB on each stream, beside a descendant that talks at the same instants, end in an exit at the deadline
agent: {dialect: raw, prompt: stdin}
drive: [{prompt: {repeat: "z", size: 256 KiB}}]
script:
  - spawn:
      id: helper
      how: same_group
      inherits: [stdout]
      script:
        - flood: {stdout: 256 KiB}
        - drip: {stdout: "h", every: inactivity_timeout / 4, for: inactivity_timeout * 3 / 4}
  - meanwhile: [{flood: {stderr: 256 KiB}}]
  - flood: {stdout: 256 KiB}
  - drip: {stdout: "a", every: inactivity_timeout / 4, for: inactivity_timeout * 3 / 4}
  - wait_for: eof
  - silence: inactivity_timeout
  - exit: 0
expect: {outcome: completed}
"""

FIRST = """
scenario: the first of two talks, falls silent, traps TERM and exits where the other one is killed
agent: raw
script:
  - when: {signal: TERM}
    do: [{say: saving}, {silence: kill_grace}, {exit: 143}]
  - spawn: {id: kid, how: same_group, inherits: [stdout], ignores_signals: true}
  - say: begin
  - drip: {stdout: ".", every: inactivity_timeout / 2, for: inactivity_timeout * 3 / 2}
  - silence: for ever
expect: {outcome: inactive}
"""

SECOND = """
scenario: the second of two talks at the instants of the first and is deaf
agent: pi
script:
  - when: {signal: TERM}
    do: []
  - meanwhile: [{drip: {stderr: "!", every: inactivity_timeout / 2, for: inactivity_timeout * 3 / 2}}]
  - drip: {stdout: ".\\n", every: inactivity_timeout / 4, for: inactivity_timeout * 3 / 2}
  - silence: for ever
expect: {outcome: inactive}
"""

TWINS = """
scenario: two agents in step answer, linger and exit at one instant
agent: pi
script:
  - silence: inactivity_timeout
  - answer: done
  - silence: linger_grace
  - exit: 0
expect: {outcome: completed}
"""


@dataclass(frozen=True, slots=True)
class ObservedPlay:
    """The data on which two runs must agree.

    Args:
        timeline: the record's normal form: every event, nanosecond, order.
        answers: the report of each supervised run, but for the wording of errors, which holds paths.
        fault: why virtual time stopped, if it did.
    """

    timeline: list[tuple[object, ...]]
    answers: list[RunReport | None]
    fault: str = ""


@dataclass(frozen=True)
class Case:
    """One thing to play: one scenario, or several at once under one clock.

    Args:
        id: what the report calls it.
        scenarios: whose agents run.
    """

    id: str
    scenarios: tuple[Scenario, ...]

    @cached_property
    def predicted(self) -> ObservedPlay:
        """The report of the model, in which there is no process."""
        if len(self.scenarios) == 1:
            return observe_play(run_in_model(self.scenarios[0], reference_supervisor()))
        return _observe(*play_together_in_model(bind_all(self.scenarios)))

    def play(self, runner: ScenarioRunner, backend: str) -> ObservedPlay:
        """Play it with real processes."""
        if len(self.scenarios) == 1:
            return observe_play(runner.play(self.scenarios[0], reference_supervisor(), backend=backend))
        return _observe(*play_together(runner, bind_all(self.scenarios), backend))


def observe_play(played: PlayResult) -> ObservedPlay:
    """Give what is compared of the play of one scenario."""
    return _observe(played.record, [played.answer], played.fault.reason if played.fault is not None else "")


def _observe(record: Record, answers: Sequence[RunReport | None], fault: str = "") -> ObservedPlay:
    return ObservedPlay(
        list(compute_normal_form(record)),
        [None if answer is None else _strip_error_wording(answer) for answer in answers],
        fault,
    )


def _strip_error_wording(answer: RunReport) -> RunReport:
    """Leave the wording of errors out, also in a session's turns and in the reports that its viewers read."""
    views = answer.viewers and {name: replace(view, transcript="") for name, view in answer.viewers.items()}
    return replace(
        answer,
        error=None,
        turns=_strip_error_wording_of_turns(answer.turns),
        background=_strip_error_wording_of_turns(answer.background),
        viewers=views,
        sessions=answer.sessions and {name: _strip_error_wording(report) for name, report in answer.sessions.items()},
    )


def _strip_error_wording_of_turns(turns: Sequence[RunReport] | None) -> tuple[RunReport, ...] | None:
    return None if turns is None else tuple(_strip_error_wording(turn) for turn in turns)


def list_cases(pattern: str = "*") -> list[Case]:
    """Give the whole corpus, the cases that it cannot hold, and every kind of descendant under every end of its agent.

    Args:
        pattern: only those whose id contains it; `*` and `?` stand for anything.
    """
    corpus = list(load_all_for_functions())
    found = [Case(scenario.id, (scenario,)) for scenario in corpus]
    found.append(Case("256-KiB-flood", (loads(FLOOD, "flood"),)))
    found.append(Case("two-agents", (loads(FIRST, "first"), loads(SECOND, "second"))))
    found.append(Case("two-agents-twins", (loads(TWINS, "twin"), loads(TWINS, "twin"))))
    found += [
        Case(scenario.id, (scenario,)) for claim in KINDS for end in ENDS for scenario in (load_kind(claim, end),)
    ]
    return [case for case in found if fnmatch(case.id, f"*{pattern}*")]
