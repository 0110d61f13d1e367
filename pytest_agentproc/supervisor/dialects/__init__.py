"""Decoders, one module a dialect: a CLI's bytes in, meanings out. They share no code with the fakes' encoders."""

from __future__ import annotations

from pytest_agentproc.supervisor.dialects._base import (
    MOST_TOOLS,
    Asked,
    Failure,
    Finished,
    Line,
    Meaning,
    Message,
    Nested,
    Noise,
    Other,
    Resumed,
    ToolEnded,
    ToolStarted,
)
from pytest_agentproc.supervisor.dialects._choice import DIALECTS, decoder

__all__ = [
    "DIALECTS",
    "MOST_TOOLS",
    "Asked",
    "Failure",
    "Finished",
    "Line",
    "Meaning",
    "Message",
    "Nested",
    "Noise",
    "Other",
    "Resumed",
    "ToolEnded",
    "ToolStarted",
    "decoder",
]
