"""All defects by their names. Each breaks one rule in one decider; production code knows nothing of them."""

from __future__ import annotations

from dataclasses import replace

from pytest_agentproc.defects import (  # noqa: F401  # a file that is read makes its defects known
    _agent_defects,
    _background_defects,
    _crossing_defects,
    _ending_defects,
    _escalation_defects,
    _question_defects,
    _result_defects,
    _stream_defects,
    _tool_defects,
    _turn_defects,
    _watchdog_defects,
)
from pytest_agentproc.defects._defect import MADE_DEFECTS, SESSION_CLASS_BY_DEFECT, Defect, find_decider
from pytest_agentproc.errors import UsageError
from pytest_agentproc.supervisor import Deciders, Policy, SessionDeciders

_TIMEOUT_IS_DURATION = Defect(
    "timeout-is-duration",
    "A9",
    "applies the one number to the whole runtime",
    one_kind="A session has no limit on silence unless the caller states it.",
    deciders=Deciders(one_number=lambda seconds: Policy(inactivity_timeout=None, max_runtime=seconds)),
)
DEFECTS: dict[str, Defect] = {made.name: made for made in (*MADE_DEFECTS, _TIMEOUT_IS_DURATION)}
for _name, _wrong in SESSION_CLASS_BY_DEFECT.items():
    _like = SessionDeciders(**{find_decider(_wrong, SessionDeciders)[0]: _wrong})
    DEFECTS[_name] = replace(DEFECTS[_name], one_kind="", session_deciders=_like)
DEFECT_NAMES = tuple(DEFECTS)


def find_defect(name: str) -> Defect:
    """Give a defect by its name.

    Raises:
        UsageError: there is none of that name.
    """
    if name not in DEFECTS:
        raise UsageError(f"defect is {name!r}, but must be one of {', '.join(DEFECT_NAMES)}")
    return DEFECTS[name]
