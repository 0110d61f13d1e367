"""Decoders, one module a dialect: a CLI's bytes in, meanings out. They share no code with the fakes' encoders."""

from __future__ import annotations

from pytest_agentproc.supervisor.dialects._base import Failure, Finished, Line, Meaning, Message, Noise, Other, Resumed
from pytest_agentproc.supervisor.dialects._choice import DIALECTS, decoder

__all__ = ["DIALECTS", "Failure", "Finished", "Line", "Meaning", "Message", "Noise", "Other", "Resumed", "decoder"]
