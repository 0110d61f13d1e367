"""Makes scenarios of what really happened: of a program that is run in our place, or of a log that was pasted.

`run_and_record_program` passes everything through and keeps it in memory; `write_capture_files` takes every secret out
of it and only then writes: the record, and beside it the scenario. Only the running needs Linux. Modules that are not
needed to start a program are imported after its end.

`draft_scenario_from_log` reads a log from a bug report (`_paste`), asks the dialect's reader what each event means
(`_meaning` and the like), has the fake's own encoder confirm it (`_replay`), takes from the reporter's words how
it ended (`_paste`), and writes the text (`_paste_content`, `_paste_draft`). It starts no process, on any platform.
`find_draft_differences` plays the draft in the model and compares what its fake prints with the log.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_agentproc.capture._capture_files import CapturedFiles, redact_record, write_capture_files
    from pytest_agentproc.capture._draft import (
        ScenarioDraft,
        draft_scenario_from_recording,
        find_draft_differences,
        list_agent_input,
    )
    from pytest_agentproc.capture._guesses import normalize_output_line
    from pytest_agentproc.capture._identity import AgentIdentity, identify_agent
    from pytest_agentproc.capture._moments import RecordedMoment, list_recorded_moments
    from pytest_agentproc.capture._paste_draft import LOG_DIALECTS, draft_scenario_from_log
    from pytest_agentproc.capture._recorder import ProgramStartError, run_and_record_program
    from pytest_agentproc.capture._replay import AgentInput, ReplayStage, replay_agent
    from pytest_agentproc.capture._targets import check_scenario_output_path, require_linux
    from pytest_agentproc.capture.secrets import RedactedSecret, Redactor

__all__ = [
    "LOG_DIALECTS",
    "AgentIdentity",
    "AgentInput",
    "CapturedFiles",
    "ProgramStartError",
    "RecordedMoment",
    "RedactedSecret",
    "Redactor",
    "ReplayStage",
    "ScenarioDraft",
    "check_scenario_output_path",
    "draft_scenario_from_log",
    "draft_scenario_from_recording",
    "find_draft_differences",
    "identify_agent",
    "list_agent_input",
    "list_recorded_moments",
    "normalize_output_line",
    "redact_record",
    "replay_agent",
    "require_linux",
    "run_and_record_program",
    "write_capture_files",
]

_PUBLIC_NAMES_BY_MODULE = {
    "_draft": ("ScenarioDraft", "draft_scenario_from_recording", "find_draft_differences", "list_agent_input"),
    "_guesses": ("normalize_output_line",),
    "_moments": ("RecordedMoment", "list_recorded_moments"),
    "_paste_draft": ("LOG_DIALECTS", "draft_scenario_from_log"),
    "_recorder": ("ProgramStartError", "run_and_record_program"),
    "secrets": ("RedactedSecret", "Redactor"),
    "_replay": ("AgentInput", "ReplayStage", "replay_agent"),
    "_identity": ("AgentIdentity", "identify_agent"),
    "_targets": ("check_scenario_output_path", "require_linux"),
    "_capture_files": ("CapturedFiles", "redact_record", "write_capture_files"),
}


def __getattr__(name: str) -> Any:
    for file, names in _PUBLIC_NAMES_BY_MODULE.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{file}"), name)
    raise AttributeError(name)
