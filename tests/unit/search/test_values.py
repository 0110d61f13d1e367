"""The search in the model: where times are drawn, what is found, how small it gets, and what does not repeat."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_agentproc.defects import find_defect
from pytest_agentproc.harness import run_in_model
from pytest_agentproc.scenario import NotApplicable, Scenario, loads
from pytest_agentproc.search import (
    collect_expect_keys,
    confirm_failure,
    find_broken_invariant,
    format_failure_scenario,
    search,
)
from pytest_agentproc.subjects import Function, ReferenceSupervisor, reference_supervisor
from pytest_agentproc.verdict import Verdict, judge_play
from tests.benchmarks.search import build_defective_supervisor, confirm_finding
from tests.bundled import load_all_bundled, load_bundled

if TYPE_CHECKING:
    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.search import SearchResult
    from pytest_agentproc.vocabulary import RunRequest

_TEXT = """\
scenario: an agent that pauses twice is ended for its silence alone
agent: pi
script:
  - silence: {between: [0s, inactivity_timeout + 10s]}
  - say: a
  - silence: {between: [0s, inactivity_timeout + 10s]}
  - one_of: [{answer: x}, {exit: 3}]
covers: [A1]
"""


def _build_defective_supervisor(name: str) -> ReferenceSupervisor:
    return build_defective_supervisor(find_defect(name))


def _search_text(subject: ReferenceSupervisor, runs: int = 200) -> SearchResult:
    return search(loads(_TEXT, "pauses.scenario.yaml"), subject, runs=runs, seed=1)


def test_a_tie_of_exit_and_deadline_is_found_and_written_as_a_scenario() -> None:
    """Only at the very nanosecond does this supervisor err: a search finds it only if times are drawn at the limits."""
    result = _search_text(_build_defective_supervisor("timer-beats-exit"))
    assert result.find is not None
    text = format_failure_scenario(
        result.find, subject="timer-beats-exit", seed=1, run=7, replay="agentproc run found --defect x", is_defect=True
    )
    assert (
        text
        == """\
# found by agentproc search --seed 1 in setting 7, then made small; supervisor: timer-beats-exit
# outcome is inactive, not incomplete
# agentproc run found --defect x
scenario: an agent that pauses twice is ended for its silence alone
agent: pi
script:
  - silence: 0s
  - say: a
  - silence: inactivity_timeout
  - {exit: 3}
covers: [A1]
expect:
  outcome: incomplete
  exit_code: 3
  text: a
  transcript: a
  elapsed: 120s
  signals: []
  warnings: []
  returned: 120s
catches: {timer-beats-exit: outcome}
"""
    )
    again = loads(text, "found.scenario.yaml")
    assert judge_play(run_in_model(again, reference_supervisor())).verdict is Verdict.PASSED
    assert judge_play(run_in_model(again, _build_defective_supervisor("timer-beats-exit"))).verdict is Verdict.FAILED


def test_the_reference_breaks_nothing_in_the_same_settings() -> None:
    """A search that finds what is not there costs more than one that finds nothing."""
    result = _search_text(reference_supervisor())
    assert (result.find, result.first) == (None, 0)
    assert result.runs > 100, "settings that are drawn twice are played once, and few are"


_SEVERAL = """\
scenario: whoever comes later to one of two sessions sees what it said before
sessions:
  red:
    agent: {dialect: claude, mode: session}
    script: [{wait_for: prompt 1}, {silence: {between: [0s, 9s]}}, {answer: one}, {wait_for: prompt 2}, {answer: two}]
  blue:
    agent: {dialect: claude, mode: session}
    script: [{wait_for: prompt 1}, {answer: one}]
drive:
  - {session: blue, prompt: hello}
  - {session: red, prompt: hello}
  - {session: red, wait_for: turn 1}
  - {session: red, attach: late}
  - {session: red, prompt: again}
expect: {sessions: {red: {viewers: {late: {transcript: "one\\ntwo"}}}}}
"""


def test_of_several_sessions_what_the_file_expects_is_asked() -> None:
    """They have no common story beside it."""
    scenario = loads(_SEVERAL, "several.scenario.yaml")
    assert search(scenario, reference_supervisor(), runs=5, seed=1).find is None
    result = search(scenario, _build_defective_supervisor("viewer-misses-the-past"), runs=5, seed=1)
    assert result.find is not None
    assert result.find.key == "sessions.red.viewers.late.transcript"


def test_what_the_reference_does_not_meet_is_asked_of_nobody() -> None:
    """It is a find of a search over the reference supervisor, and says nothing of who fails as well."""
    scenario = loads(f"{_TEXT}expect: {{text: never}}\n", "x.scenario.yaml")
    assert search(scenario, reference_supervisor(), runs=5, seed=1).find is not None
    assert search(scenario, _build_defective_supervisor("leftovers-stay"), runs=5, seed=1).find is None


def test_the_kit_s_own_defects_are_asked_about_every_agent() -> None:
    """For an agent that speaks after its last word, nothing is asked of other supervisors only."""
    text = "scenario: x\nagent: pi\nscript: [{answer: a}, {silence: {between: [1s, 2s]}}, {say: b}]\n"
    result = search(loads(text, "x.scenario.yaml"), _build_defective_supervisor("timer-beats-exit"), runs=5, seed=1)
    assert result.counted == result.runs > 1


def test_settings_none_of_which_can_be_played_are_not_called_sound() -> None:
    """Without a play nothing was found, and that says nothing: the reason is shown instead."""
    lacking = Function(_supervise_nothing, dialects=["raw"])
    with pytest.raises(NotApplicable, match="line 1 needs agents of pi, which the subject does not have"):
        search(loads(_TEXT), lacking, runs=5, seed=1, runner=cast("ScenarioRunner", _Refusing()))


async def _supervise_nothing(_order: RunRequest) -> str:
    return "completed"


class _Refusing:
    """A runner whose supervisor has no such agent."""

    def play(self, *_: Any, **__: Any) -> PlayResult:
        raise NotApplicable("agents of pi", 1)


def test_the_same_seed_finds_the_same() -> None:
    """A find that cannot be found again is an anecdote."""
    first, second = (_search_text(_build_defective_supervisor("duration-timeout")) for _ in range(2))
    assert first.find is not None
    assert second.find is not None
    assert (first.first, first.runs, first.find.choices) == (second.first, second.runs, second.find.choices)


class _DeviatingRunner:
    """A runner in which real processes go another way than the model foretold."""

    def __init__(self, played: PlayResult) -> None:
        self.played = played

    def play(self, *_: Any, **__: Any) -> PlayResult:
        return self.played


def test_a_find_that_real_processes_do_not_repeat_is_the_kit_s_fault() -> None:
    """Then the model and the lockstep disagree, and no supervisor is to blame."""
    subject = _build_defective_supervisor("timer-beats-exit")
    find = _search_text(subject).find
    assert find is not None
    other = run_in_model(find.scenario, reference_supervisor())
    confirmed = confirm_failure(find, subject, cast("ScenarioRunner", _DeviatingRunner(other)))
    assert not confirmed.repeats
    assert [line[:4] for line in confirmed.difference.splitlines()] == ["once", "then"]
    assert confirm_failure(find, subject, cast("ScenarioRunner", _DeviatingRunner(find.played))).repeats


def _load_without_open_values(outcome: str = "") -> Scenario:
    return loads(f"scenario: a\nagent: pi\nscript: [{{say: a}}, {{silence: 1s}}, {{answer: b}}]\n{outcome}")


def test_what_the_reference_did_is_what_must_be_true() -> None:
    """The expectations of a find are written from a play; a file that they do not fit would be red for nothing."""
    keys = collect_expect_keys(run_in_model(_load_without_open_values(), reference_supervisor()))
    assert keys == {
        "outcome": "completed",
        "exit_code": 0,
        "text": "b",
        "transcript": "a\nb",
        "elapsed": "1s",
        "signals": [],
        "warnings": [],
        "returned": "1s",
    }


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"outcome": None}, "the run has no outcome"),
        ({"exit_code": 3}, "the exit code of completed is 3"),
        ({"outcome": "inactive", "exit_code": 124}, "it was ended as inactive 0 ns after its last byte"),
        ({"elapsed": 0}, ""),
    ],
)
def test_a_standing_invariant_needs_no_expectation(changed: dict[str, Any], reason: str) -> None:
    """These hold of every run, whatever its file expects."""
    played = run_in_model(_load_without_open_values(), reference_supervisor())
    assert find_broken_invariant(played) == ""
    assert played.answer is not None
    assert find_broken_invariant(replace(played, answer=replace(played.answer, **changed))) == reason


@pytest.mark.slow
@pytest.mark.parametrize(
    "scenario", [scenario for scenario in load_all_bundled() if scenario.openings], ids=lambda scenario: scenario.id
)
def test_the_reference_keeps_every_promise_in_the_generic_open_scenarios(scenario: Scenario) -> None:
    """A short search over the reference supervisor in each commit; the long one is run by hand."""
    result = search(scenario, reference_supervisor(), runs=40, seed=3)
    assert result.find is None, result.find.reason + result.find.scenario.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("polls-once-a-second", "run-activity"),
        ("no-hard-cap", "run-activity"),
        ("closed-output-is-exit", "run-activity"),
        ("first-end-restores-limit", "run-tools"),
        ("waits-for-eof", "run-ending"),
        ("cancel-grace-is-short", "session-timeouts"),
        ("idle-questions-wait", "session-questions"),
        ("close-waits-for-the-exit", "session-close"),
    ],
)
def test_a_timing_defect_of_each_kind_is_found_soon(name: str, file: str) -> None:
    """The rest is `python -m tests.benchmarks.search`; here a change that blinds the search shows in each commit."""
    opened = load_bundled(f"open-{file}")
    result = search(opened, _build_defective_supervisor(name), runs=300, seed=0, shrinking=0.0)
    assert result.find is not None
    assert confirm_finding(result.find, find_defect(name)) == ""
