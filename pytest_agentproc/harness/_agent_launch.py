"""How an agent of a scenario is started, and what it accepts; for the scenario runner and the model. Pure functions."""

from __future__ import annotations

import os
import sys
import tempfile
from typing import TYPE_CHECKING, Any

from pytest_agentproc.vocabulary import StdinReading

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_agentproc.scenario import BoundScenario, Scenario


MAX_PROMPT_CHARS_KNOWN = 1 << 16
"""So much of its prompt a fake knows, for dialects that repeat it; the rest reaches it by its own way."""

SESSION_FOLDER = "/"
"""The folder of a session's agent: it is sent to the agent, and a record must not depend on today's folder."""


def build_command_line(scenario: Scenario) -> tuple[str, ...]:
    """Give the arguments that a real supervisor would start such an agent with."""
    record = scenario.dialect_record
    options = (*record.options.get(scenario.mode, ()), *(record.partials if scenario.partials else ()))
    if scenario.continues is not None and record.command_line is not None:
        resuming = record.command_line.resuming
        command = resuming.command.rpartition(" ")[2]
        if not command or options[0] == resuming.command.split()[0]:
            options += (command or resuming.options[0], scenario.continues.id)
    is_told = scenario.prompt_by == "argv" and not scenario.is_session
    return (*options, scenario.prompt) if is_told else options


def describe_accepted_flags(scenario: Scenario, *, trusts: bool = False) -> dict[str, Any]:
    """Give what a fake needs to obey its arguments; nothing if it takes any.

    The fake does not read the kit's own arguments, which ask for its mode: a verdict must not depend on them.

    Args:
        scenario: the fake's.
        trusts: whether any session or command that the arguments name exists.
    """
    record = scenario.dialect_record
    if record.command_line is None or (scenario.takes_any_flags and not scenario.lacks_session):
        return {}
    kinds = {mode: "session" if mode in record.session_modes else "run" for mode in record.modes}
    accepted = [] if scenario.lacks_session else list(build_command_line(scenario))
    own: dict[str, Any] = {"own": accepted, "kinds": kinds, "prompt_by": scenario.prompt_by}
    reading = record.stdin or StdinReading()
    own["stdin"] = reading.to_step_values(has_prompt=True)
    own["resumed_reads_stdin"] = reading.resumed
    own["prompt_notice"] = reading.to_step_values(has_prompt=False)[1]
    own["kept_below"] = [os.path.realpath(tempfile.gettempdir())] if record.command_line.resuming.kept else []
    own |= {"version": record.probes["--version"], "tells_on_stderr": record.tells_on_stderr, "trusts": trusts}
    return {"flags": {**record.command_line.to_plain_table(), **own, "prompt_shown": MAX_PROMPT_CHARS_KNOWN}}


def find_requested_model(scenario: Scenario) -> str | None:
    """Give the model that the command line asks for; None if it names none."""
    return scenario.dialect_record.model or None


def build_environment(scenario: Scenario, folder: str) -> Mapping[str, str]:
    """Give the whole environment that a subject is told to give its agent: a PATH of fakes only.

    ORDER_TOKEN stands in no other environment, so that an agent which has it was given the environment of its order.
    """
    states = scenario.dialect_record.states if scenario.states else {}
    return {"PATH": folder, "LANG": "C.UTF-8", "ORDER_TOKEN": "kept", **states}


def build_record_header(bound: BoundScenario, subject: str) -> Mapping[str, Any]:
    """Give the head of a record: the description of the run."""
    scenario = bound.scenario
    limits = {name: dict(part.policy.items()) for name, part in bound.parts.items()} or dict(bound.policy.items())
    python = ".".join(str(part) for part in sys.version_info[:3])
    return {"scenario": scenario.id, "subject": subject, "clock": "virtual", "policy": limits, "python": python}
