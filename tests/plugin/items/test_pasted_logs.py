"""Drafts of pasted logs are scenarios like all others: the reference plays them, and does what each expects."""

from __future__ import annotations

import sys

import pytest

from tests.architecture.sources import ROOT
from tests.unit.capture.test_pasted_verdicts import KNOWN_DIFFERENCES

pytestmark = pytest.mark.once

LOGS = sorted((ROOT / "tests" / "unit" / "pasted").glob("*.txt"))


@pytest.mark.slow
def test_every_draft_runs_as_it_is(pytester: pytest.Pytester) -> None:
    """A draft that has to be mended before it runs is a puzzle, not a beginning."""
    code = "import sys; from pytest_agentproc.cli import main; sys.exit(main())"
    for log in LOGS:
        dialect, out = log.stem.rpartition(".")[2], pytester.path / f"{log.stem}.scenario.yaml"
        run = pytester.run(
            sys.executable, "-c", code, "import", "--yes", str(log), "--dialect", dialect, "--out", str(out)
        )
        assert (run.ret, run.outlines) == (0, [str(out)])
        notes = [line for line in run.errlines if not line.startswith("agentproc import: not faithful: ")]
        assert len(run.errlines) - len(notes) == KNOWN_DIFFERENCES.get(log.stem, 0)
        assert notes == ([] if log.stem in KNOWN_DIFFERENCES else ["agentproc import: played again: the same"])
    assert len(LOGS) >= 10
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=len(LOGS))
