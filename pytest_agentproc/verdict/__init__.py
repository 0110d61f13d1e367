"""Judge a run: compare its scenario with its record. Knows values and records, no process and no pytest."""

from __future__ import annotations

from pytest_agentproc.verdict._baseline import Baseline, accept_failures
from pytest_agentproc.verdict._comparison import choose_overall_verdict, judge_all_expectations, list_unmet_checks
from pytest_agentproc.verdict._facts import find_last_step, find_returned_at, list_leaks, list_signals
from pytest_agentproc.verdict._failure_text import (
    are_plays_alike,
    describe_findings,
    explain_leaks,
    explain_play,
    find_first_difference,
)
from pytest_agentproc.verdict._instants import find_instants, replace_instants
from pytest_agentproc.verdict._judgement import (
    REASON_IN_REAL_TIME,
    JudgedCheck,
    JudgedScenario,
    Judgement,
    build_judged_scenario,
    compare_with_repeat,
    compute_results_digest,
    confirm_red_judgement,
    hash_corpus,
    judge_play,
)
from pytest_agentproc.verdict._marks import find_failure_marks
from pytest_agentproc.verdict._results_file import format_results
from pytest_agentproc.verdict._rows import VERDICT_TEXTS, CheckRow, Verdict
from pytest_agentproc.verdict._summary import (
    Conformance,
    describe_unstated_limits,
    format_summary,
    format_verdict_line,
    is_red_at_should_only,
    judge_conformance,
    list_counted_columns,
)

__all__ = [
    "REASON_IN_REAL_TIME",
    "VERDICT_TEXTS",
    "Baseline",
    "CheckRow",
    "Conformance",
    "JudgedCheck",
    "JudgedScenario",
    "Judgement",
    "Verdict",
    "accept_failures",
    "are_plays_alike",
    "build_judged_scenario",
    "choose_overall_verdict",
    "compare_with_repeat",
    "compute_results_digest",
    "confirm_red_judgement",
    "describe_findings",
    "describe_unstated_limits",
    "explain_leaks",
    "explain_play",
    "find_failure_marks",
    "find_first_difference",
    "find_instants",
    "find_last_step",
    "find_returned_at",
    "format_results",
    "format_summary",
    "format_verdict_line",
    "hash_corpus",
    "is_red_at_should_only",
    "judge_all_expectations",
    "judge_conformance",
    "judge_play",
    "list_counted_columns",
    "list_leaks",
    "list_signals",
    "list_unmet_checks",
    "replace_instants",
]
