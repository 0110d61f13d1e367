"""Encoders, one for each dialect: text in, a CLI's bytes out. They share no code with the supervisor's decoders."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pytest_agentproc.fake_agents.contracts import Encoder
    from pytest_agentproc.fake_agents.program import Program


def make_encoder(program: Program) -> Encoder:
    """Give the encoder of the program, which names the modules that it needs; the last one has it."""
    name = program["encoder"][-1]
    if name not in sys.modules:
        __import__(name)
    encoder: Encoder = sys.modules[name].Encoder(program)
    return encoder
