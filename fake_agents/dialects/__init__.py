"""Encoders, one module a dialect: text in, a CLI's bytes out. They share no code with the supervisor's decoders."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fake_agents.contracts import Encoder
    from fake_agents.program import Program

DIALECTS = ("raw", "claude", "pi", "codex", "gemini", "acp")
_OWN = {("pi", "rpc"): "pi_rpc", ("claude", "session"): "claude_session"}
"""Modes that have a module of their own, which may build on the dialect's."""

_WITH_TASKS = {("claude", "print"): "claude_behind"}
"""Those that have another one for a program with background tasks."""


def module_of(program: Program) -> str:
    """Name the module here that encodes the program's dialect in its mode."""
    spoken = program["dialect"], program.get("mode", "")
    more = _WITH_TASKS.get(spoken) if program.get("tasks") else None
    return more or _OWN.get(spoken, str(program["dialect"]))


def encoder(program: Program) -> Encoder:
    """Give the encoder of the program's dialect; only the module that it needs is loaded."""
    added = program.get("encoder")
    name = added[-1] if added else "fake_agents.dialects." + module_of(program)
    if name not in sys.modules:
        __import__(name)
    made: Encoder = sys.modules[name].Encoder(program)
    return made
