"""Encoders, one module a dialect: text in, a CLI's bytes out. They share no code with the supervisor's decoders."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fake_agents.player import Encoder
    from fake_agents.program import Program

DIALECTS = ("raw", "claude", "pi", "codex", "gemini")


def encoder(program: Program) -> Encoder:
    """Give the encoder of the program's dialect; only that dialect's module is loaded."""
    name = "fake_agents.dialects." + program["dialect"]
    __import__(name)
    made: Encoder = sys.modules[name].Encoder(program)
    return made
