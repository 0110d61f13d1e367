"""Dialects, one module each: a CLI's bytes in, meanings out; a session's intents in, bytes out.

They share no code with the fakes' encoders: one mistake must not cancel itself out.
"""

from __future__ import annotations

from pytest_agentproc.supervisor.dialects._base import (
    LONGEST_ID,
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
from pytest_agentproc.supervisor.dialects._choice import DIALECTS, SESSIONS, decoder, talk
from pytest_agentproc.supervisor.dialects._talk import (
    BACKGROUND,
    Begun,
    Declined,
    Ended,
    Malformed,
    Question,
    Refusal,
    Reply,
    Said,
    Setting,
    Settled,
    Spoken,
    Talk,
    Turned,
    Welcome,
    Withdrawn,
)

__all__ = [
    "BACKGROUND",
    "DIALECTS",
    "LONGEST_ID",
    "MOST_TOOLS",
    "SESSIONS",
    "Asked",
    "Begun",
    "Declined",
    "Ended",
    "Failure",
    "Finished",
    "Line",
    "Malformed",
    "Meaning",
    "Message",
    "Nested",
    "Noise",
    "Other",
    "Question",
    "Refusal",
    "Reply",
    "Resumed",
    "Said",
    "Setting",
    "Settled",
    "Spoken",
    "Talk",
    "ToolEnded",
    "ToolStarted",
    "Turned",
    "Welcome",
    "Withdrawn",
    "decoder",
    "talk",
]
