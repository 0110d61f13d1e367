"""The npm package @openai/codex-sdk as a subject: a program that asks one thread once. Judges nothing."""

from __future__ import annotations

from pytest_agentproc.subjects import Command
from tests.clients.packages import find_node, find_program_beside

__all__ = ["build_subject"]


def build_subject() -> Command:
    """Make it."""
    program = find_program_beside("codex-sdk", "codex_supervisor.mjs")
    return Command(
        [find_node(), str(program), "{agent}"],
        name="codex-sdk",
        says={"exit_code": "exit_code", "text": "stdout"},
        prompt_on_stdin=True,
    )
