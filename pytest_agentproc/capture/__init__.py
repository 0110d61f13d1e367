"""Makes scenarios of what really happened: of a program that is run in our place, or of a log that was pasted.

`run_recorded` passes everything through and keeps it in memory; `write_capture` takes every secret out of it and only
then writes: the record, and beside it the scenario. Only the running needs Linux. Modules that are not needed to start
a program are imported after its end.

`draft_pasted` reads a log from a bug report (`_paste`), asks the dialect's reader what each event means
(`_meaning` and the like), has the fake's own encoder confirm it (`_replay`), takes from the reporter's words how
it ended (`_paste`), and writes the text (`_paste_content`, `_paste_draft`). It starts no process, on any platform.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_agentproc.capture._draft import Draft, draft, given_of
    from pytest_agentproc.capture._guesses import likeness
    from pytest_agentproc.capture._identity import AgentIdentity, identify_agent
    from pytest_agentproc.capture._moments import Moment, moments
    from pytest_agentproc.capture._paste_draft import DIALECTS, draft_pasted
    from pytest_agentproc.capture._recorder import CannotStart, run_recorded
    from pytest_agentproc.capture._replay import Given, Replayed, replay
    from pytest_agentproc.capture._secrets import Redacted, Redactor
    from pytest_agentproc.capture._targets import check_target, require_linux
    from pytest_agentproc.capture._written import Captured, redacted_record, write_capture

__all__ = [
    "DIALECTS",
    "AgentIdentity",
    "CannotStart",
    "Captured",
    "Draft",
    "Given",
    "Moment",
    "Redacted",
    "Redactor",
    "Replayed",
    "check_target",
    "draft",
    "draft_pasted",
    "given_of",
    "identify_agent",
    "likeness",
    "moments",
    "redacted_record",
    "replay",
    "require_linux",
    "run_recorded",
    "write_capture",
]

_FILES = {
    "_draft": ("Draft", "draft", "given_of"),
    "_guesses": ("likeness",),
    "_moments": ("Moment", "moments"),
    "_paste_draft": ("DIALECTS", "draft_pasted"),
    "_recorder": ("CannotStart", "run_recorded"),
    "_secrets": ("Redacted", "Redactor"),
    "_replay": ("Given", "Replayed", "replay"),
    "_identity": ("AgentIdentity", "identify_agent"),
    "_targets": ("check_target", "require_linux"),
    "_written": ("Captured", "redacted_record", "write_capture"),
}


def __getattr__(name: str) -> Any:
    for file, names in _FILES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{file}"), name)
    raise AttributeError(name)
