"""The fakes end with the exit code of the real CLIs for each command line; `real-command-lines.jsonl` has the facts."""

from __future__ import annotations

import pytest

from tests.fidelity.command_lines import COMMAND_LINES, measure_fake, measure_real, read_measured

pytestmark = pytest.mark.slow

OTHER_CODES = {("gemini", "-m gemini-2.5-flash -p hi"): 0}
"""The command lines for which the code of a fake is another one, and that code. A fake does not know which folders the
user trusts; it trusts all."""


@pytest.mark.parametrize("cli", COMMAND_LINES)
def test_a_fake_ends_with_the_code_of_the_real_cli(cli: str) -> None:
    """It answers where the real CLI asks its model. The listed lines are those that a fake cannot judge."""
    measured = read_measured()
    codes = {line: OTHER_CODES.get((cli, line), measured[cli, line].code) for line in COMMAND_LINES[cli]}
    assert {line: measure_fake(cli, line).code for line in COMMAND_LINES[cli]} == codes


@pytest.mark.parametrize("cli", COMMAND_LINES)
def test_the_facts_about_command_lines_are_those_of_the_pinned_releases(cli: str) -> None:
    """Mended by `python -m tests.fidelity.command_lines`, whose diff shows what a new release changes."""
    measured = read_measured()
    lines = COMMAND_LINES[cli]
    assert {line: measure_real(cli, line).code for line in lines} == {line: measured[cli, line].code for line in lines}
