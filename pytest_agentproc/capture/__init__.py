"""Records a real program and makes a scenario of it: run it in our place, redact, convert, play again, compare.

`run_recorded` passes everything through and keeps it in memory; `write_capture` takes every secret out of it and only
then writes: the record, and beside it the scenario. Only the running needs Linux.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.capture._redactor import Redacted, Redactor
from pytest_agentproc.capture._written import Captured, check_target, redacted_record, write_capture

if TYPE_CHECKING:
    from pytest_agentproc.capture._recorder import CannotStart, run_recorded

__all__ = [
    "CannotStart",
    "Captured",
    "Redacted",
    "Redactor",
    "check_target",
    "redacted_record",
    "run_recorded",
    "write_capture",
]


def __getattr__(name: str) -> Any:
    if name in ("CannotStart", "run_recorded"):
        from pytest_agentproc.capture import _recorder

        return getattr(_recorder, name)
    raise AttributeError(name)
