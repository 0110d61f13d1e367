"""The npm package @openai/codex-sdk as a subject: a program that asks one thread once. Judges nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

from pytest_agentproc.subjects import Command
from tests.clients.packages import from_npm, node

__all__ = ["subject"]

_PROGRAM = Path(__file__).parent / "programs" / "codex_supervisor.mjs"


def subject() -> Command:
    """Make it. The program stands beside its package: Node looks for packages where a program is."""
    program = from_npm("codex-sdk") / _PROGRAM.name
    if not program.exists() or program.read_bytes() != _PROGRAM.read_bytes():
        shutil.copyfile(_PROGRAM, program)
    return Command([node(), str(program), "{agent}"], name="codex-sdk", prints_text=True)
