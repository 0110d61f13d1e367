"""A child in a session of its own that an agent leaves as it exits: what the failure says to whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.scenario import loads
from pytest_agentproc.subjects import Command, reference_supervisor
from pytest_agentproc.verdict import judge_all_expectations

if TYPE_CHECKING:
    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.vocabulary import Subject

LEFT = """\
scenario: an agent leaves its server
agent: claude
script: [{spawn: {id: mcp, how: new_session}}, {answer: done}]
expect: {outcome: completed}
"""
HINT = "then a process group does not lead to a child in a session of its own: "


@pytest.mark.parametrize(
    ("subject", "hint"),
    [
        (reference_supervisor(), f"{HINT}write policy: {{containment: subreaper}}"),
        (Command(["{agent}"]), f"{HINT}a subreaper or a keeper does"),
    ],
    ids=["reference", "program"],
)
def test_the_containment_that_finds_it_is_named(runner: ScenarioRunner, subject: Subject, hint: str) -> None:
    """Only the reference supervisor takes its containment from the file."""
    rows = {row.key: row for row in judge_all_expectations(runner.play(loads(LEFT), subject))}
    assert hint in rows["leaks"].hint


def test_an_agent_that_lives_on_has_not_ended_by_itself(runner: ScenarioRunner) -> None:
    """A program that leaves its agent leaves the child with it, whatever its session is."""
    text = LEFT.replace("{answer: done}", "{answer: done}, {silence: for ever}")
    subject = Command(["sh", "-c", '"$@" >/dev/null & sleep 1', "sh", "{agent}"])
    rows = {row.key: row for row in judge_all_expectations(runner.play(loads(text), subject))}
    assert "agent (still alive)" in rows["leaks"].seen
    assert HINT not in rows["leaks"].hint
