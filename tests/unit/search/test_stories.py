"""Settings that tell a story which no agent tells: who is asked nothing about them."""

from __future__ import annotations

import pytest

from pytest_agentproc.harness import run_in_model
from pytest_agentproc.scenario import loads
from pytest_agentproc.search import has_output_after_end
from pytest_agentproc.subjects import reference_supervisor


@pytest.mark.parametrize(
    ("agent", "script", "is_told"),
    [
        ("pi", "[{say: a}, {answer: b}, {exit: 0}]", False),
        ("pi", "[{answer: a}, {raw: {text: x}}, {silence: 1s}, {exit: 0}]", False),
        ("pi", "[{say: {text: a, stop: stop}}, {answer: b}, {exit: 0}]", False),
        ("pi", "[{answer: a}, {say: b}, {exit: 0}]", True),
        ("pi", "[{answer: a}, {drip: {stdout: x, every: 1s, for: 2s}}, {exit: 0}]", False),
        ("pi", "[{answer: a}, {drip: {say: x, every: 1s, for: 2s}}, {exit: 0}]", True),
        ("codex", "[{result: {text: a, is_error: true}}, {silence: 1s}, {answer: b}, {exit: 0}]", True),
        ("codex", "[{answer: a}, {event: {type: error, message: x}}, {exit: 0}]", True),
        ("raw", "[{answer: a}, {silence: 1s}, {say: b}, {exit: 0}]", False),
        ("claude", "[{answer: a}, {answer: b}, {exit: 0}]", True),
        ("claude", "[{task: b}, {answer: a}, {task_done: b}, {answer: c}, {exit: 0}]", False),
        ("claude", "[{answer: a}, {raw: {text: x, to: stderr}}, {exit: 0}]", False),
    ],
)
def test_output_after_the_result_is_not_part_of_the_text(agent: str, script: str, is_told: bool) -> None:
    """Lines without a word of the agent may come, and claude speaks again of tasks begun beside its turn."""
    scenario = loads(f"scenario: x\nagent: {agent}\nscript: {script}\n", "x.scenario.yaml")
    assert has_output_after_end(run_in_model(scenario, reference_supervisor())) is is_told


def test_an_agent_that_has_several_prompts_answers_each() -> None:
    """In a session an answer is the end of a turn."""
    text = "scenario: x\nagent: {dialect: pi, mode: rpc}\ndrive: [{prompt: a}, {wait_for: turn 1}, {prompt: b}]\n"
    script = "script: [{wait_for: prompt 1}, {answer: a}, {wait_for: prompt 2}, {answer: b}]\n"
    assert not has_output_after_end(run_in_model(loads(f"{text}{script}", "x.scenario.yaml"), reference_supervisor()))
