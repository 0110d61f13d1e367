"""The reference supervisor at the very instant of a deadline: all acts of the agent then go first (A4)."""

from __future__ import annotations

import pytest

from pytest_agentproc.harness import run_in_model
from pytest_agentproc.scenario import loads
from pytest_agentproc.subjects import reference_supervisor
from pytest_agentproc.verdict import Verdict, judge_all_expectations

TOGETHER = '{spawn: {id: tool, for: 5s}}, {silence: 5s}, {raw: "no event\\n"}, {wait_for: {exit: tool}}'
"""The agent prints, and continues when it has seen that its tool has ended: two steps of one instant."""

SCRIPTS = {
    "noise, then the result": f"""
agent: pi
policy: {{progress_timeout: 5s}}
script: [{TOGETHER}, {{answer: done}}]
expect: {{outcome: completed, text: done, signals: []}}
""",
    "words, then the exit": f"""
agent: raw
policy: {{max_runtime: 5s}}
script: [{TOGETHER}, {{exit: 3}}]
expect: {{outcome: failed, exit_code: 3, signals: []}}
""",
    "noise, then the result of a turn": f"""
agent: {{dialect: claude, mode: session}}
policy: {{progress_timeout: 5s}}
drive: [{{prompt: one}}, {{wait_for: turn 1}}]
script: [{{wait_for: prompt 1}}, {TOGETHER}, {{answer: done}}]
expect: {{turns: [{{outcome: completed, text: done}}], spawns: [0s]}}
""",
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_a_deadline_waits_for_all_that_comes_at_its_instant(script: str) -> None:
    """The agent's first act at that instant is seen by itself, and the rest has not come yet."""
    rows = judge_all_expectations(run_in_model(loads(f"scenario: a tie\n{script}"), reference_supervisor()))
    assert [(row.key, row.seen) for row in rows if row.verdict is not Verdict.PASSED] == []
