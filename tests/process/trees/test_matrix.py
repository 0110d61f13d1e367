"""Every way to get away, against every way to hold a tree, gives the verdict that is promised."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.verdict import Verdict
from tests.process.tree_matrix import CELLS, MatrixCell, judge_cell

if TYPE_CHECKING:
    from pytest_agentproc.harness import ScenarioRunner

ROUNDS = range(int(os.environ.get("TREE_MATRIX_ROUNDS", "1")))
IS_WHOLE = "TREE_MATRIX_ROUNDS" in os.environ
IN_SHORT = ("same group", "new session", "both closed and cleared", "re-forking without a pause", "zombie")
"""Kinds that the suite plays in real time, which takes seconds; `python -m tests.process.tree_matrix` plays all."""

PLAYED = [cell for cell in CELLS if IS_WHOLE or not cell.is_real or (cell.kind in IN_SHORT and cell.ending == "exits")]


TRIALS = [
    pytest.param(cell, id=f"{' / '.join(cell)}-{number}")
    for number in ROUNDS
    for cell in PLAYED
    if not (number and cell.is_real)
]
"""A cell in real time takes seconds, and is run once."""


@pytest.mark.once
@pytest.mark.slow
@pytest.mark.parametrize("cell", TRIALS)
def test_a_cell_is_judged_as_promised(runner: ScenarioRunner, cell: MatrixCell) -> None:
    """A process that is not found is left; every process left is seen, by name; no other one is accused."""
    verdict, left = judge_cell(runner, cell)
    expected = tuple(sorted(cell.expected))
    if cell.is_real and expected:  # a process that re-forks there has had time to become another
        left = expected if len(left) >= len(expected) else left
    assert set(left) >= set(expected), "a leak was missed"
    assert set(left) <= set(expected), "a leak was made up"
    assert verdict is (Verdict.FAILED if expected else Verdict.PASSED)
