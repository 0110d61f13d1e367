"""The npm package @openai/codex-sdk as a subject: a program that asks one thread once. Judges nothing."""

from __future__ import annotations

from pytest_agentproc.subjects import Command
from tests.clients.packages import beside, node

__all__ = ["subject"]


def subject() -> Command:
    """Make it."""
    program = beside("codex-sdk", "codex_supervisor.mjs")
    return Command(
        [node(), str(program), "{agent}"], name="codex-sdk", says={"exit_code": "exit_code", "text": "stdout"}
    )
