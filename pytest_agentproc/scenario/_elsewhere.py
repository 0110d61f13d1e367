"""Owns the words that authors bring from other tools, and what to write instead. Checks nothing itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["COMMANDS", "STEP_WORDS", "words"]


def words(remedy: str, them: Iterable[str]) -> dict[str, str]:
    """Give the same answer to several words."""
    return dict.fromkeys(them, remedy)


COMMANDS = words(
    "a scenario starts no command: every process is a fake, its script says what it does",
    ("args", "argv", "bash", "cmd", "command", "exec", "executable", "program", "run", "shell", "system"),
)
"""Where somebody wants to start a program, which no scenario can."""

STEP_WORDS = {
    **COMMANDS,
    **words("write silence", ("delay", "idle", "pause", "sleep", "wait")),
    **words("write say", ("echo", "output", "print", "stdout", "write")),
    **words("write when", ("catch", "on", "trap")),
    "crash": "write die",
    "signal": "write die, or kill for a child",
    "stderr": "write raw with to: stderr",
    "fork": "write spawn",
    **words("write ask", ("can_use_tool", "hook", "permission", "request_permission")),
    "do": 'it belongs to a when, without a "-" before it',
}
"""What is written for a step."""
