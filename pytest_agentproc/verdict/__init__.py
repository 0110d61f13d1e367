"""Judge a run: compare its scenario with its record. Knows values and records, no process and no pytest."""

from __future__ import annotations

from pytest_agentproc.verdict._baseline import Baseline, accept_failures
from pytest_agentproc.verdict._compare import compare, conclude, list_unmet
from pytest_agentproc.verdict._explain import describe_findings, explain, explain_leaks, find_first_difference, is_alike
from pytest_agentproc.verdict._facts import find_last_step, find_returned_at, list_leaks, list_signals
from pytest_agentproc.verdict._instants import find_instants, replace_instants
from pytest_agentproc.verdict._judgement import (
    NOT_IN_REAL_TIME,
    Judged,
    JudgedRow,
    Judgement,
    build_judged,
    check_repeat,
    compute_digest,
    confirm_red,
    hash_corpus,
    judge_play,
)
from pytest_agentproc.verdict._marks import find_marks
from pytest_agentproc.verdict._results import format_results
from pytest_agentproc.verdict._rows import VERDICT_TEXTS, PlayResult, Row, Verdict
from pytest_agentproc.verdict._summary import describe_not_stated, format_summary, is_conformant

__all__ = [
    "NOT_IN_REAL_TIME",
    "VERDICT_TEXTS",
    "Baseline",
    "Judged",
    "JudgedRow",
    "Judgement",
    "PlayResult",
    "Row",
    "Verdict",
    "accept_failures",
    "build_judged",
    "check_repeat",
    "compare",
    "compute_digest",
    "conclude",
    "confirm_red",
    "describe_findings",
    "describe_not_stated",
    "explain",
    "explain_leaks",
    "find_first_difference",
    "find_instants",
    "find_last_step",
    "find_marks",
    "find_returned_at",
    "format_results",
    "format_summary",
    "hash_corpus",
    "is_alike",
    "is_conformant",
    "judge_play",
    "list_leaks",
    "list_signals",
    "list_unmet",
    "replace_instants",
]
