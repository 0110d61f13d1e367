"""Judge a run: what its scenario expects against what was seen. Knows values and records, no process and no pytest."""

from __future__ import annotations

from pytest_agentproc.verdict._compare import compare, conclude, unmet
from pytest_agentproc.verdict._explain import explain, explain_leaks
from pytest_agentproc.verdict._facts import Leak, last_step, leaks, returned_at, signals
from pytest_agentproc.verdict._rows import Played, Row, Verdict

__all__ = [
    "Leak",
    "Played",
    "Row",
    "Verdict",
    "compare",
    "conclude",
    "explain",
    "explain_leaks",
    "last_step",
    "leaks",
    "returned_at",
    "signals",
    "unmet",
]
