"""Public bug reports as scenarios: each can be said, and the reference supervisor does what its file expects."""

from __future__ import annotations

import pytest

from pytest_agentproc.harness import run_in_model
from pytest_agentproc.scenario import Scenario, load_for_each_agent
from pytest_agentproc.subjects import reference_supervisor
from pytest_agentproc.verdict import Verdict, choose_overall_verdict, judge_all_expectations
from tests.architecture.sources import ROOT
from tests.bundled import load_all_bundled

REPORTS = (
    "anthropics/claude-code/issues/94392",
    "gabrielkoerich/orch/issues/3496",
    "frankbria/ralph-claude-code/pull/170",
    "anomalyco/opencode/issues/17282",
    "earendil-works/pi/issues/2388",
    "vercel-labs/fx/issues/993",
    "clawbench-dev/clawbench/pull/433",
    "severity1/claude-agent-sdk-go/issues/126",
    "openai/codex/issues/26984",
    "RyderFreeman4Logos/cli-sub-agent/issues/1840",
    "anomalyco/opencode/issues/27559",
    "YishenTu/claudian/issues/1306",
    "openai/codex/issues/28495",
    "mattapperson/noetic/issues/100",
    "node-honeycomb/honeycomb-server/issues/147",
    "PrimeIntellect-ai/prime-agent/pull/1918",
    "atomantic/PortOS/issues/5655",
    "openclaw/openclaw/issues/151671",
    "wong2/weixin-agent-sdk/issues/15",
    "vicoa-ai/vicoa/pull/37",
)
"""Reports that a tester tried. Where no bundled scenario is about one, `tests/reports` has a file."""

OWN = [scenario for file in sorted((ROOT / "tests" / "reports").iterdir()) for scenario in load_for_each_agent(file)]


@pytest.mark.parametrize("report", REPORTS)
def test_a_report_is_a_scenario(report: str) -> None:
    """A report that cannot be written as a file is a hole in the language."""
    address = f"https://github.com/{report}"
    assert [scenario.id for scenario in (*load_all_bundled(), *OWN) if f"source: {address}\n" in scenario.text]


@pytest.mark.parametrize("scenario", OWN, ids=lambda scenario: scenario.id)
def test_the_reference_supervisor_does_what_a_report_expects(scenario: Scenario) -> None:
    """Each file says what is right, not what the program of the report did."""
    assert (
        choose_overall_verdict(judge_all_expectations(run_in_model(scenario, reference_supervisor()))) is Verdict.PASSED
    )
