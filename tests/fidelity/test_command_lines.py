"""The fakes end with the exit code of the real CLIs for each command line; `real-command-lines.jsonl` has the facts."""

from __future__ import annotations

import pytest

from tests.fidelity.command_lines import COMMAND_LINES, measure_fake, measure_real, read_measured

pytestmark = pytest.mark.slow

OTHER_COMMANDS = ("mcp ", "exec review", "login ", "auth list", "models", "session list", "list")
"""Commands that a fake does not have: it ends with 70."""
OTHER_CODES = {
    "claude": ('--json-schema \'{"type": "nope"}\'', "--agents '{\"a\": {}}'", "--worktree"),
    "codex": ("--json ''", "model_provider=nope", "--oss", "able nosuch", "-o nodir", "-o sub"),
    "gemini": ("--list-", "--delete-session", "-m gemini-2.5-flash -p hi"),
    "opencode": ("--dir good.txt", "--attach", "--command nope", "--model nope", "--model fake/nope"),
    "pi": ("--model nope", "--provider nope --model m1", "@nodir", "--export bad"),
}
"""Parts of command lines for which a fake does not know what the real CLI knows: a schema of schemas, the models,
providers, features and servers that there are, the folders that the user trusts, what is in a session's file, and
whether a file can be written."""


def _is_other(cli: str, line: str) -> bool:
    return line.startswith(OTHER_COMMANDS) or any(part in line for part in OTHER_CODES[cli])


@pytest.mark.parametrize("cli", COMMAND_LINES)
def test_a_fake_ends_with_the_code_of_the_real_cli(cli: str) -> None:
    """It answers where the real CLI asks its model. The listed lines are those that a fake cannot judge."""
    measured = read_measured()
    lines = [line for line in COMMAND_LINES[cli] if not _is_other(cli, line)]
    assert {line: measure_fake(cli, line).code for line in lines} == {line: measured[cli, line].code for line in lines}


@pytest.mark.parametrize("cli", COMMAND_LINES)
def test_the_facts_about_command_lines_are_those_of_the_pinned_releases(cli: str) -> None:
    """Mended by `python -m tests.fidelity.command_lines`, whose diff shows what a new release changes."""
    measured = read_measured()
    lines = COMMAND_LINES[cli]
    assert {line: measure_real(cli, line).code for line in lines} == {line: measured[cli, line].code for line in lines}
