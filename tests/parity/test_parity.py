"""The lockstep with real processes gives the model's timeline: every event, nanosecond and order, on both loops.

A scenario of the corpus is green in the same play: a green model with equal events needs no play of its own.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.corpus import split_agent
from pytest_agentproc.harness import ScenarioRunner, run_in_model
from pytest_agentproc.record import compute_normal_form
from pytest_agentproc.scenario import Scenario, loads
from pytest_agentproc.subjects import reference_supervisor
from pytest_agentproc.verdict import Verdict, explain_play, judge_all_expectations
from tests.benchmarks._together import bind_all, play_together, play_together_in_model
from tests.bundled import load_all_bundled, load_all_for_functions
from tests.event_lines import list_lines
from tests.parity.cases import CASES, load_case, load_pairs
from tests.parity.kinds import ENDS, KINDS, load_kind
from tests.parity.programs import draw_program

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_agentproc.plays import PlayResult

_LOOPS = ("asyncio", "trio")
_KEPT = [scenario for scenario in load_all_bundled() if scenario.asks_for_artifacts]
_BATCH = 25
_BATCHES = [pytest.param(number, marks=pytest.mark.once if number >= 5 else ()) for number in range(20)]


@pytest.fixture(scope="module")
def runner() -> Iterator[ScenarioRunner]:
    """Give one runner to all plays."""
    with ScenarioRunner() as runner:
        yield runner


@pytest.fixture(params=_LOOPS)
def backend(request: pytest.FixtureRequest) -> str:
    """Play on both event loops; trio is not seeded."""
    return str(request.param)


def _find_difference(runner: ScenarioRunner, scenario: Scenario, backend: str) -> str:
    """Play for real and in the model; return the first difference, or nothing."""
    return _compare_with_model(runner.play(scenario, reference_supervisor(), backend=backend), scenario, backend)


def _compare_with_model(played: PlayResult, scenario: Scenario, backend: str) -> str:
    foretold = compute_normal_form(run_in_model(scenario, reference_supervisor()).record)
    happened = compute_normal_form(played.record)
    for number, (model, real) in enumerate(zip(foretold, happened, strict=False)):
        if model != real:
            return f"{scenario.id}, {backend}, event {number}:\n  model {model}\n  real  {real}\n{scenario.text}"
    if len(foretold) != len(happened):
        return f"{scenario.id}, {backend}: {len(foretold)} events foretold, {len(happened)} happened\n{scenario.text}"
    return ""


def _pair_with_loops() -> Iterator[tuple[Scenario, str]]:
    """Play each scenario on both loops; the agents of one file take turns between the loops.

    The agents of a file differ in what they print, and the event loop reads bytes, whatever they say.
    """
    number_by_file: Counter[str] = Counter()
    for scenario in load_all_for_functions():
        file, agent = split_agent(scenario.id)
        number = number_by_file[file]
        number_by_file[file] += 1
        yield from ((scenario, loop) for place, loop in enumerate(_LOOPS) if not agent or number % 2 == place)


@pytest.mark.parametrize(("scenario", "backend"), [*_pair_with_loops()], ids=lambda value: getattr(value, "id", value))
def test_a_scenario_is_green_and_the_model_predicts_it(
    runner: ScenarioRunner, scenario: Scenario, backend: str
) -> None:
    """A verdict is only as true as the order of the events that it is drawn from."""
    played = runner.play(scenario, reference_supervisor(), backend=backend)
    rows = judge_all_expectations(played)
    assert {row.verdict for row in rows} <= {Verdict.PASSED}, explain_play(played, rows)
    assert _compare_with_model(played, scenario, backend) == ""
    assert [event for event in list_lines(played.record) if "stray" in event.data] == [], (
        "T2: not even for a pid that is free"
    )


def _select_comparable_artifacts(files: Mapping[str, bytes] | None) -> dict[str, Any] | None:
    """Give the artifacts without what no two runs share: their name, their folder, the date."""
    if files is None:
        return None
    details: dict[str, Any] = dict(files)
    if "result.json" in files:
        fields = json.loads(files["result.json"])
        own = {"run_id", "cwd", "started_at", "ended_at"}
        details["result.json"] = [*fields], {name: value for name, value in fields.items() if name not in own}
        del details["result.json"][1]["argv"][0]
    return details


@pytest.mark.parametrize("scenario", _KEPT, ids=lambda scenario: scenario.id)
def test_the_model_predicts_the_artifacts(runner: ScenarioRunner, backend: str, scenario: Scenario) -> None:
    """The bytes on a disk, or the leftovers of a failing one, equal the bytes in memory."""
    foretold = _select_comparable_artifacts(run_in_model(scenario, reference_supervisor()).artifacts)
    assert foretold is not None
    if scenario.cannot_spawn is not None:  # only the words name the missing file
        foretold["result.json"][1]["error"] = runner.play(scenario, reference_supervisor()).answer.error  # type: ignore[union-attr]
    assert (
        _select_comparable_artifacts(runner.play(scenario, reference_supervisor(), backend=backend).artifacts)
        == foretold
    )


@pytest.mark.parametrize("claim", CASES)
def test_the_model_predicts_the_cases_of_the_tie_rules(runner: ScenarioRunner, backend: str, claim: str) -> None:
    """These show a broken tie rule where most scenarios do not."""
    assert _find_difference(runner, load_case(claim), backend) == ""


@pytest.mark.parametrize("action", ["{cancel: {}}", "{stop: {}}", "{close: {}}", "{prompt: two}"])
def test_the_model_predicts_an_answer_at_the_instant_of_something_else(
    runner: ScenarioRunner, backend: str, action: str
) -> None:
    """The handler is a task of its own: it answers when the caller, which acts at the same instant, waits again."""
    scenario = loads(
        "scenario: an answer comes late\nagent: acp\nhandler: {permission: allow, after: 10s}\n"
        f"drive: [{{prompt: one}}, {{wait: 10s}}, {action}]\n"
        "script: [{wait_for: prompt 1}, {ask: {permission: Edit}}, {answer: first}]\n"
    )
    assert _find_difference(runner, scenario, backend) == ""


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("claim", KINDS)
def test_the_model_predicts_every_kind_of_descendant(
    runner: ScenarioRunner, backend: str, claim: str, end: str
) -> None:
    """The kinds differ only in the processes found by a supervisor, the kernel's signals, and the processes left."""
    assert _find_difference(runner, load_kind(claim, end), backend) == ""


@pytest.mark.parametrize("number", range(len(load_pairs())))
def test_the_model_predicts_two_agents_at_once(runner: ScenarioRunner, backend: str, number: int) -> None:
    """Several runs under one clock go one at a time, by declaration."""
    bounds = bind_all(load_pairs()[number])
    assert compute_normal_form(play_together(runner, bounds, backend)[0]) == compute_normal_form(
        play_together_in_model(bounds)[0]
    )


@pytest.mark.slow
@pytest.mark.parametrize("batch", _BATCHES)
def test_the_model_predicts_random_programs(runner: ScenarioRunner, backend: str, batch: int) -> None:
    """Five hundred programs in all, made of few instants, so that nearly everything happens at once."""
    seeds = range(batch * _BATCH, (batch + 1) * _BATCH)
    assert [text for seed in seeds if (text := _find_difference(runner, draw_program(seed), backend))] == []
