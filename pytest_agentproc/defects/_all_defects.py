"""All defects by their names. Each breaks one rule in one decider; production code knows nothing of them.

A class is a defect of the decider whose right class it inherits from, in runs, in sessions, or in both. So its
description stands beside it alone, and no list repeats its name.
"""

from __future__ import annotations

from dataclasses import fields

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
from pytest_agentproc.defects._defect import DESCRIPTIONS, SESSION_CLASS_BY_DEFECT, Defect, Description
from pytest_agentproc.errors import UsageError
from pytest_agentproc.supervisor import Deciders, Policy, SessionDeciders

_WHY_RUNS_ONLY = {
    "watchdog": "A turn of a session has a watchdog of its own, with defects of its own.",
    "completion": "A turn of a session ends by the response of its protocol, not by the agent's last message.",
    "ending": "The exit of an agent ends a run, while a session starts its next agent.",
    "feeder": "A session keeps stdin open and writes every prompt to it.",
    "artifacts": "Only a run keeps files.",
}
"""Why a defect has no like in sessions, by the decider that it replaces."""

_WHY_SESSIONS_ONLY = {
    "turns": "A run has one prompt, no turns and no questions.",
    "watchdog": "A run has a watchdog of its own, with defects of its own.",
    "restarts": "A run starts its agent once.",
    "outbox": "A run writes its prompt and then ends the input.",
    "hooks": "Only a session has hooks.",
    "router": "A run has one turn.",
    "status_rules": "A run has no status.",
    "transcript": "A run has no viewers.",
}
"""Why a defect has no like in runs, by the decider that it replaces."""


def _find_decider(wrong: type, deciders: type[Deciders | SessionDeciders]) -> tuple[str, type]:
    """Give the decider that a class replaces, and the right class; "" if there is none."""
    right = ((part.name, part.default) for part in fields(deciders) if isinstance(part.default, type))
    return next((found for found in right if issubclass(wrong, found[1])), ("", object))


def _make_defect(described: Description) -> Defect:
    wrong, name, rule, story, harmless, runs_only, sessions_only = described
    run, in_run = _find_decider(wrong, Deciders)
    session, in_session = _find_decider(wrong, SessionDeciders)
    if sessions_only or (session and in_run is not in_session):
        run = ""
    other = SESSION_CLASS_BY_DEFECT.get(name, wrong)
    session = "" if runs_only else _find_decider(other, SessionDeciders)[0]
    one_kind = ""
    if not (run and session):
        one_kind = runs_only or sessions_only or (_WHY_RUNS_ONLY[run] if run else _WHY_SESSIONS_ONLY[session])
    of_run, of_session = Deciders(**{run: wrong} if run else {}), SessionDeciders(**{session: other} if session else {})
    return Defect(name, rule, story, harmless, one_kind, of_run, of_session)


_TIMEOUT_IS_DURATION = Defect(
    "timeout-is-duration",
    "A9",
    "applies the one number to the whole runtime",
    one_kind="A session has no limit on silence unless the caller states it.",
    deciders=Deciders(one_number=lambda seconds: Policy(inactivity_timeout=None, max_runtime=seconds)),
)
DEFECTS: dict[str, Defect] = {made.name: made for made in (*map(_make_defect, DESCRIPTIONS), _TIMEOUT_IS_DURATION)}
DEFECT_NAMES = tuple(DEFECTS)


def find_defect(name: str) -> Defect:
    """Give a defect by its name.

    Raises:
        UsageError: there is none of that name.
    """
    if name not in DEFECTS:
        raise UsageError(f"defect is {name!r}, but must be one of {', '.join(DEFECT_NAMES)}")
    return DEFECTS[name]
