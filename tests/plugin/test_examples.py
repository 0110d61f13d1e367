"""Supervisors of other people, with other numbers and another style: who does it right is conformant."""

from __future__ import annotations

import pytest

from tests.architecture.sources import ROOT
from tests.plugin.test_summary import said


@pytest.mark.once
@pytest.mark.slow
def test_a_careful_supervisor_with_other_numbers_is_conformant(pytester: pytest.Pytester) -> None:
    """It claims plain text alone, so that is what it is judged by; a false red would cost more than a missed one."""
    subject = "--agentproc-subject=tests.plugin.examples.careful:subject"
    result = pytester.runpytest_subprocess("--agentproc-corpus", "-q", subject, "-o", f"pythonpath={ROOT}")
    [(name, verdict, figures, _, clock, _)] = said(result)
    assert (name, verdict, clock) == ("careful", "is conformant", "virtual")
    assert figures.startswith("0 failed, ")
    assert result.ret == pytest.ExitCode.OK
