"""A few plays of the soak test, so that its command works when somebody needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.attacks import SEED, TIMES
from tests.attacks.soak import parse_options, run_soak

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def test_random_faults_make_no_wrong_verdict_and_leave_nothing(tmp_path: Path) -> None:
    """A verdict after a fault that nobody names is worse than none."""
    figures = run_soak(tmp_path / "soak", parse_options([f"--seed={SEED}", f"--plays={12 * TIMES}"]))
    assert sum(figures.plays.values()) == 12 * TIMES
    assert (figures.wrong, figures.left) == ([], [])
