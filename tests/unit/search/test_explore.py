"""Explore in the model: what of a file moves, how far, what counts, and what is found in files that do not claim it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_agentproc.defects import find_defect
from pytest_agentproc.errors import Deadlock
from pytest_agentproc.harness import run_in_model
from pytest_agentproc.scenario import apply_moves, find_movable_pieces, loads, replace_expected_times
from pytest_agentproc.search import explore, format_failure_scenario
from pytest_agentproc.search._exploration import MovedSettings
from pytest_agentproc.subjects import ReferenceSupervisor, reference_supervisor
from pytest_agentproc.verdict import Verdict, find_instants, judge_play, replace_instants
from tests.bundled import load_all_bundled, load_bundled

if TYPE_CHECKING:
    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.scenario import Scenario
    from pytest_agentproc.search import SearchResult
    from pytest_agentproc.vocabulary import LimitsRequest, Policy

_DRIPPING_SCENARIO = """\
scenario: an agent that prints a dot now and then is at work
agent: raw
script:
  - drip: {stderr: ".", every: 20s, for: 1m}
  - answer: built
expect:
  outcome: completed
  elapsed: 60s
  signals: []
covers: [A1]
"""
_SILENT = """\
scenario: an agent that says nothing more is ended for its silence
agent: pi
script:
  - silence: 1s
  - say: a
  - silence: inactivity_timeout + 10s
  - exit: 3
expect: {outcome: inactive, elapsed: 121s, signals: [{TERM: 121s}]}
"""
_EXIT = """\
scenario: an agent that exits in time is not called silent
agent: pi
script:
  - silence: 5s
  - exit: 3
expect: {outcome: incomplete, exit_code: 3, elapsed: 5s}
"""
_WRITTEN = """\
# found by agentproc search --explore --seed 1 in setting 7, then made small; supervisor: duration-timeout
# outcome is inactive, not completed
# agentproc run found --defect duration-timeout
scenario: an agent that prints a dot now and then is at work
agent: raw
script:
  - drip: {stderr: ".", every: 20s, for: 1m}
  - silence: 60001ms
  - answer: built
expect:
  outcome: completed
  elapsed: 120001ms
  signals: []
covers: [A1]
catches: {duration-timeout: outcome}
"""
_SEVERAL = 10


def _build_defective_supervisor(name: str) -> ReferenceSupervisor:
    defect = find_defect(name)
    return ReferenceSupervisor(name, defect.deciders, defect.session_deciders)


def _explore_text(text: str, subject: Any, runner: Any = None, runs: int = 30) -> SearchResult:
    return explore(loads(text, "mine.scenario.yaml"), subject, runs=runs, seed=1, runner=cast("ScenarioRunner", runner))


def test_times_and_places_for_pauses_move_in_the_script_and_nowhere_else() -> None:
    """The expectations are the judge, and the supervisor's limits are not ours: neither may move."""
    scenario = loads(_SILENT)
    limits = scenario.request_agent_limits(reference_supervisor()).to_whole_limits()
    found = find_movable_pieces(scenario)
    assert [(piece.kind, piece.line, piece.text, piece.evaluate_time(limits)) for piece in found] == [
        ("chunk", 2, "pi", None),
        ("pause", 4, "", 0),
        ("time", 4, "1s", 10**9),
        ("pause", 5, "", 0),
        ("pause", 6, "", 0),
        ("time", 6, "inactivity_timeout + 10s", 130 * 10**9),
        ("pause", 7, "", 0),
    ]
    texts = [piece.format_replacement_time(131 * 10**9, limits) for piece in found[1:]]
    assert texts[1] == "131s"
    assert texts[4] == "inactivity_timeout + 10s + 1s"
    lines = apply_moves(
        scenario.text, [(found[3], found[3].format_replacement_time(10**6, limits)), (found[5], texts[4])]
    ).splitlines()
    assert lines[3:8] == [
        "  - silence: 1s",
        "  - silence: 1ms",
        "  - say: a",
        "  - silence: inactivity_timeout + 10s + 1s",
        "  - exit: 3",
    ]


@pytest.mark.parametrize(
    ("step", "kind", "others"),
    [
        ('raw: "abc"', "cut", ['{text: "abc", cut: [1], gap: 1ms}', '{text: "abc", cut: [2], gap: 1ms}']),
        ("raw: {hex: 61 62, to: stderr}", "cut", ["{hex: 61 62, to: stderr, cut: [1], gap: 1ms}"]),
        ("raw: {text: abcd, cut: [1, 3], gap: 1s}", "cut", ["[0, 2]", "[2, 4]", "[3]", "[1]"]),
        ('say: a\n  - raw: {text: "", to: stderr}', "order", ['raw: {text: "", to: stderr}\n  - say: a']),
    ],
)
def test_bytes_are_cut_elsewhere_and_the_streams_change_places(step: str, kind: str, others: list[str]) -> None:
    """A pipe keeps neither the cuts of its writer nor any order with another pipe."""
    scenario = loads(f"scenario: a\nagent: raw\nscript:\n  - {step}\n")
    assert [list(piece.options) for piece in find_movable_pieces(scenario) if piece.kind == kind] == [others]


@pytest.mark.parametrize(
    ("agent", "others"),
    [
        ("raw", ["{dialect: raw, chunk: 509 B}", "{dialect: raw, chunk: 61 B}", "{dialect: raw, chunk: 7 B}"]),
        ("{dialect: pi, bom: true}", [f"{{chunk: {size} B, dialect: pi, bom: true}}" for size in (509, 61, 7)]),
        ("\n  dialect: pi\n  bom: true", [f"chunk: {size} B\n  " for size in (509, 61, 7)]),
    ],
)
def test_all_that_an_agent_writes_is_cut_into_pieces(agent: str, others: list[str]) -> None:
    """A line may come in any number of reads, whatever stands in it."""
    scenario = loads(f"scenario: a\nagent: {agent}\nscript:\n  - say: a\n")
    [chunk] = [piece for piece in find_movable_pieces(scenario) if piece.kind == "chunk"]
    assert list(chunk.options) == others
    assert [loads(apply_moves(scenario.text, [(chunk, option)])).chunk for option in others] == [509, 61, 7]


@pytest.mark.parametrize(
    "rest", ["{dialect: raw, chunk: 1 B}\nscript: [say: a]", "raw\nscript: [{flood: {stdout: 1 MiB}}]"]
)
def test_writes_that_are_cut_already_or_have_no_end_are_left_alone(rest: str) -> None:
    """A mebibyte in pieces of seven bytes would be looked at for minutes."""
    assert "chunk" not in {piece.kind for piece in find_movable_pieces(loads(f"scenario: a\nagent: {rest}\n"))}


@pytest.mark.slow
def test_every_piece_of_every_bundled_scenario_can_be_moved_and_read_again() -> None:
    """A text that is no scenario would be passed over in silence, and never looked at."""
    for scenario in [candidate for candidate in load_all_bundled() if candidate.id.startswith("session-")][::9]:
        for piece in find_movable_pieces(scenario):
            for text in (
                piece.options
                if piece.kind in ("cut", "chunk", "order")
                else [piece.format_replacement_time(10**9, _read_limits(scenario))]
            ):
                loads(apply_moves(scenario.text, [(piece, text)]), scenario.path, Path(scenario.path).parent)


def _read_limits(scenario: Scenario) -> Any:
    return scenario.request_agent_limits(reference_supervisor()).to_whole_limits()


def test_the_instants_that_a_file_expects_are_those_of_the_play_and_nothing_else_is() -> None:
    """A time moves what comes after it; an outcome that moved would be another promise."""
    played = run_in_model(loads(_SILENT.replace("silence: 1s", "silence: 2s")), reference_supervisor())
    expected = {expectation.key: expectation.wanted for expectation in played.bound.expect}
    seen = {key: find_instants(played, key) for key in expected}
    assert seen == {"outcome": None, "elapsed": [122 * 10**9], "signals": [122 * 10**9], "leaks": None}
    assert replace_instants(expected["signals"], [122 * 10**9]) == [("TERM", 122 * 10**9)]
    assert replace_instants(expected["signals"], [1, 2]) == expected["signals"]
    times = {key: value for key, value in seen.items() if value is not None}
    assert "elapsed: 122s, signals: [{TERM: 122s}]" in replace_expected_times(loads(_SILENT), times)


@pytest.mark.slow
def test_a_defect_is_found_in_a_file_that_it_passes_and_written_as_a_scenario() -> None:
    """One minute is too short for it; twice that is not, and the file's expectations allow as much."""
    subject = _build_defective_supervisor("duration-timeout")
    assert judge_play(run_in_model(loads(_DRIPPING_SCENARIO), subject)).verdict is Verdict.PASSED
    result = _explore_text(_DRIPPING_SCENARIO, subject)
    assert result.find is not None
    replay = "agentproc run found --defect duration-timeout"
    text = format_failure_scenario(
        result.find, subject="duration-timeout", seed=1, run=7, replay=replay, is_defect=True, explored=True
    )
    assert text == _WRITTEN
    again = loads(text, "found.scenario.yaml")
    assert judge_play(run_in_model(again, reference_supervisor())).verdict is Verdict.PASSED
    assert judge_play(run_in_model(again, subject)).verdict is Verdict.FAILED


_IDLE = """\
scenario: an agent that crashes while nobody asks is started again
agent: acp
policy: {restart_backoff: 4s}
drive: [{prompt: one}, {wait: 1s}, {wait: 500ms}, {wait_for: status restarting}, {prompt: two}]
scripts:
  - [wait_for: prompt 1, answer: first, silence: 2s, exit: 1]
  - [wait_for: prompt 1, answer: second]
expect: {turns: [{outcome: completed}, {outcome: completed}]}
"""


def test_a_caller_that_is_too_late_for_a_status_is_no_fault_of_the_reference() -> None:
    """Moved after it, the wait never ends, under any supervisor."""
    assert isinstance(
        run_in_model(loads(_IDLE.replace("wait: 1s", "wait: 8s")), reference_supervisor()).fault, Deadlock
    )
    made = MovedSettings(loads(_IDLE), reference_supervisor())
    late = tuple("8s" if text == "1s" else text for text in made.unmoved_texts)
    assert late != made.unmoved_texts
    assert made.try_setting(late) is None


def test_a_caller_whose_agent_was_replaced_before_its_background_turn_waits_in_vain() -> None:
    """An agent that is silent for longer than the prompt may last, and does not acknowledge, is started anew."""
    made = MovedSettings(load_bundled("background-late-notification-with-states"), reference_supervisor())
    at = next(index for index, text in enumerate(made.unmoved_texts) if text == "2s")
    silent = (*made.unmoved_texts[:at], "3899s", *made.unmoved_texts[at + 1 :])
    text = apply_moves(made.scenario.text, zip(made.movables, silent, strict=True))
    played = run_in_model(loads(text), reference_supervisor())
    assert isinstance(played.fault, Deadlock)
    assert made.try_setting(silent) is None


class _ForeignSupervisor:
    """Another author's supervisor, played with a runner: it is the reference supervisor, or a defect of it."""

    name = "foreign"

    def __init__(self, inner: ReferenceSupervisor) -> None:
        self.inner = inner

    def policy(self, request: LimitsRequest) -> Policy:
        return self.inner.policy(request)

    def play(self, scenario: Scenario, _subject: Any, *, backend: str = "asyncio") -> PlayResult:
        """Play it, as a runner would."""
        return run_in_model(scenario, self.inner)


@pytest.mark.slow
def test_a_tie_that_the_file_does_not_have_says_nothing_of_somebody_else() -> None:
    """The files about one instant promise the order in it; the kit's defects are held to it anywhere."""
    subject = _build_defective_supervisor("timer-beats-exit")
    result = _explore_text(_EXIT, subject)
    assert result.find is not None
    assert "silence: 120s" in result.find.scenario.text
    foreign = _ForeignSupervisor(subject)
    assert _explore_text(_EXIT, foreign, runner=foreign).find is None


@pytest.mark.slow
def test_a_supervisor_that_does_right_is_never_red(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference moves with every move; if its instants did not count, each right one would be wrong."""
    foreign = _ForeignSupervisor(reference_supervisor())
    for text in (_DRIPPING_SCENARIO, _SILENT, _EXIT):
        result = _explore_text(text, foreign, runner=foreign)
        assert result.find is None
        assert result.counted is not None
        assert result.counted >= _SEVERAL
    monkeypatch.setattr("pytest_agentproc.search._exploration.find_instants", lambda *_: None)
    result = _explore_text(
        _DRIPPING_SCENARIO.replace("agent: raw", "agent: {dialect: raw, chunk: 4 KiB}"), foreign, runner=foreign
    )
    assert result.counted is not None
    assert result.counted < _SEVERAL


@pytest.mark.slow
def test_what_the_reference_does_not_report_is_not_met() -> None:
    """Where a file turns on its outcome alone, a text that the reference does not tell would be asked of others."""
    text = _SILENT.replace("expect: {", "expect: {text: a, ") + "catches: {x: outcome}\n"

    class Told(_ForeignSupervisor):
        def play(self, scenario: Scenario, _subject: Any, *, backend: str = "asyncio") -> PlayResult:
            """Tell what a supervisor may tell that has read nothing."""
            played = super().play(scenario, _subject)
            assert played.answer is not None
            return replace(played, answer=replace(played.answer, text=played.answer.text or ""))

    foreign = Told(reference_supervisor())
    assert _explore_text(text, foreign, runner=foreign).find is None


@pytest.mark.slow
def test_a_slight_move_that_turns_the_reference_is_a_find(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference supervisor is its own reference: it must not turn where nothing competes."""
    assert _explore_text(_EXIT, reference_supervisor()).find is None

    def jumpy(scenario: Scenario, subject: Any) -> PlayResult:
        text = scenario.text.replace("exit: 3", "exit: 4") if "silence: 5s" not in scenario.text else scenario.text
        return run_in_model(loads(text), subject)

    monkeypatch.setattr("pytest_agentproc.search._exploration.run_in_model", jumpy)
    result = _explore_text(_EXIT, reference_supervisor())
    assert result.find is not None
    assert (result.find.key, result.find.reason) == ("exit_code", "exit_code is 4, not 3")
    assert "  - silence: 4999ms\n" in result.find.scenario.text


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3))
def test_the_reference_keeps_its_promises_in_moved_bundled_scenarios(part: int) -> None:
    """A short look at some in each commit; a long one at all by `python -m tests.benchmarks.explore --reference`."""
    for scenario in [candidate for candidate in load_all_bundled() if not candidate.openings][part * 40 :: 120]:
        result = explore(scenario, reference_supervisor(), runs=15, seed=part, seconds=3)
        assert result.find is None, result.find.reason + result.find.scenario.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("duration-timeout", "artifacts-of-a-silent-run"),
        ("stderr-blind", "gemini-silent-retries"),
        ("tools-run-for-ever", "claude-session-silent-after-its-tool"),
        ("internal-tools-ignored", "claude-session-silent-after-its-tool"),
        ("error-is-the-end", "codex-gives-up"),
        ("timer-beats-exit", "last-output-at-the-deadline"),
        ("no-grace", "error-with-exit-0"),
        ("words-alone-are-progress", "session-asked-caller-has-time"),
    ],
)
def test_a_defect_is_found_in_a_bundled_file_that_does_not_claim_to_catch_it(name: str, file: str) -> None:
    """That is what exploring is for; `python -m tests.benchmarks.explore` looks for all of them."""
    scenario = load_bundled(file)
    assert name not in scenario.catches
    assert judge_play(run_in_model(scenario, _build_defective_supervisor(name))).verdict is Verdict.PASSED
    result = explore(scenario, _build_defective_supervisor(name), runs=100, seed=0, shrinking=0)
    assert result.find is not None
    again = loads(result.find.scenario.text)
    assert judge_play(run_in_model(again, reference_supervisor())).verdict is Verdict.PASSED
    assert judge_play(run_in_model(again, _build_defective_supervisor(name))).verdict is Verdict.FAILED
