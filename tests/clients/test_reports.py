"""Each program of the five reports fails the scenario of its report before its fix, and passes it after the fix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.clients.reports import PAGE, PROGRAMS, run_report, write_page_text

if TYPE_CHECKING:
    from pytest_agentproc.harness import ScenarioRunner
    from tests.clients.reports import Program


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: f"{program.report}, {program.name}")
def test_a_program_is_red_before_its_fix_and_green_after_it(runner: ScenarioRunner, program: Program) -> None:
    """A scenario that a real fault does not turn red, or that its fix does not turn green, is of no use."""
    failed, row = run_report(runner, program)
    assert failed == program.failed
    assert row in PAGE.read_text("utf-8").splitlines()


def test_the_page_has_a_row_for_each_program() -> None:
    """Write it again with `python -m tests.clients.reports`."""
    text = PAGE.read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| [")]
    assert len(rows) == len(PROGRAMS)
    assert write_page_text(rows) == text
