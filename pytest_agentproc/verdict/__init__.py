"""Judge a run: compare its scenario with its record. Knows values and records, no process and no pytest."""

from __future__ import annotations

from pytest_agentproc.verdict._baseline import Baseline, Known, accepted
from pytest_agentproc.verdict._compare import compare, conclude, unmet
from pytest_agentproc.verdict._explain import alike, differing, explain, explain_leaks, findings
from pytest_agentproc.verdict._facts import Leak, last_step, leaks, returned_at, signals
from pytest_agentproc.verdict._instants import instants, retimed
from pytest_agentproc.verdict._judgement import (
    NOT_IN_REAL_TIME,
    Judged,
    JudgedRow,
    Judgement,
    confirmed,
    corpus_hash,
    digest_of,
    judged,
    kept,
    repeated,
)
from pytest_agentproc.verdict._marks import marks
from pytest_agentproc.verdict._results import RESULTS_VERSION, results
from pytest_agentproc.verdict._rows import VERDICT_TEXTS, Played, Row, Verdict
from pytest_agentproc.verdict._summary import is_conformant, summary, undecided

__all__ = [
    "NOT_IN_REAL_TIME",
    "RESULTS_VERSION",
    "VERDICT_TEXTS",
    "Baseline",
    "Judged",
    "JudgedRow",
    "Judgement",
    "Known",
    "Leak",
    "Played",
    "Row",
    "Verdict",
    "accepted",
    "alike",
    "compare",
    "conclude",
    "confirmed",
    "corpus_hash",
    "differing",
    "digest_of",
    "explain",
    "explain_leaks",
    "findings",
    "instants",
    "is_conformant",
    "judged",
    "kept",
    "last_step",
    "leaks",
    "marks",
    "repeated",
    "results",
    "retimed",
    "returned_at",
    "signals",
    "summary",
    "undecided",
    "unmet",
]
