"""Public bug reports, each as a scenario: right for the reference supervisor, red for a supervisor with the bug."""

from __future__ import annotations

import pytest

from pytest_agentproc.defects import find_defect
from pytest_agentproc.harness import run_in_model
from pytest_agentproc.scenario import Scenario, load
from pytest_agentproc.subjects import ReferenceSupervisor, reference_supervisor
from pytest_agentproc.verdict import Verdict, judge_all_expectations
from tests.architecture.sources import ROOT

REPORTS = ROOT / "tests" / "data" / "bug_reports"

DEFECT_BY_REPORT = {
    "answer-in-a-file": "silence-has-no-limit",
    "app-server-is-closed": "leftovers-stay",
    "cancel-during-session-new": "",
    "cancel-of-no-named-turn": "",
    "dead-while-idle": "never-restarts",
    "empty-answer": "",
    "error-notification-ends-the-turn": "any-result-is-good",
    "error-then-a-retry": "error-is-the-end",
    "errored-server-is-closed": "pipes-stay-open",
    "handshake-never-ends": "",
    "mode-switch-keeps-the-background": "mode-switch-ends-agent",
    "monitor-tool": "internal-tools-ignored",
    "plan-question-is-answered": "questions-wait-for-ever",
    "question-on-stderr": "",
    "spins-at-the-end-of-stdin": "close-waits-for-the-exit",
    "stop-of-an-agent-that-has-ended": "clean-exit-ends-no-turn",
    "timeout-does-not-replay": "timeout-repeats-the-run",
}
"""The reports that the reference supervisor handles, and a defect that each catches; empty: no defect has the bug."""

LIMIT_BY_REPORT = {
    "compaction-says-nothing": "outcome",
    "descendant-writes-on": "text",
    "gemini-empty-response": "outcome",
    "stale-resume-id": "turns.2.outcome",
}
"""The reports that show a documented limit of the reference supervisor, and the check that fails there.

A compaction that is not announced is silence; children end with their agent (T6); gemini in text or json completes by
its exit; and a session that cannot be resumed is not replaced by a new one.
"""


def _find_failed_keys(scenario: Scenario, subject: ReferenceSupervisor) -> list[str]:
    rows = judge_all_expectations(run_in_model(scenario, subject))
    return [row.key for row in rows if row.verdict in (Verdict.FAILED, Verdict.UNDECIDED)]


@pytest.mark.parametrize("name", DEFECT_BY_REPORT)
def test_a_report_is_green_for_the_reference_and_red_for_its_bug(name: str) -> None:
    """A file that is green for every supervisor says nothing about the report."""
    scenario = load(REPORTS / f"{name}.yaml")
    assert _find_failed_keys(scenario, reference_supervisor()) == []
    if DEFECT_BY_REPORT[name]:
        defect = find_defect(DEFECT_BY_REPORT[name])
        assert _find_failed_keys(scenario, ReferenceSupervisor(defect.name, defect.deciders, defect.session_deciders))


@pytest.mark.parametrize("name", LIMIT_BY_REPORT)
def test_a_limit_of_the_reference_is_where_the_documentation_says(name: str) -> None:
    """A limit that is gone must leave the documentation, too."""
    assert LIMIT_BY_REPORT[name] in _find_failed_keys(load(REPORTS / f"{name}.yaml"), reference_supervisor())


def test_each_report_is_judged() -> None:
    """A file that no test plays may be about something else."""
    assert {path.stem for path in REPORTS.iterdir()} == {*DEFECT_BY_REPORT, *LIMIT_BY_REPORT}
