"""Plays scenarios.

With real processes in virtual or real time (`ScenarioRunner`), or in the model without any (`run_in_model`).
"""

from __future__ import annotations

from pytest_agentproc.harness._faults import require_startable_fakes
from pytest_agentproc.harness._open_stdin import restore_user_stdin
from pytest_agentproc.harness._pace import NotForRealTime, RunForecast, forecast_run
from pytest_agentproc.harness._runner import ScenarioRunner, predict_real_seconds
from pytest_agentproc.harness._supervise import build_run_request, explain_no_virtual_time, explain_real_time_only
from pytest_agentproc.harness.fakes._fake_agent import FakeAgent, MultiScriptFake, RealTimeLifetime
from pytest_agentproc.harness.fakes._refused_arguments import describe_refused_arguments, describe_unobeyed_options
from pytest_agentproc.harness.fakes._standalone import (
    COMMAND_BY_DIALECT,
    NAMES_OF_REFUSED_CLIS,
    can_overwrite,
    write_fake,
    write_missing_cli_stub,
)
from pytest_agentproc.harness.fakes._waiting_fakes import (
    describe_idle_fakes,
    describe_living_fakes,
    has_fake_in_real_time,
    list_fake_faults,
    list_fake_paths,
)
from pytest_agentproc.harness.model._in_memory_model import InMemoryModel
from pytest_agentproc.harness.model._play import ReferenceSubject, add_run_to_model, run_in_model

__all__ = [
    "COMMAND_BY_DIALECT",
    "NAMES_OF_REFUSED_CLIS",
    "FakeAgent",
    "InMemoryModel",
    "MultiScriptFake",
    "NotForRealTime",
    "RealTimeLifetime",
    "ReferenceSubject",
    "RunForecast",
    "ScenarioRunner",
    "add_run_to_model",
    "build_run_request",
    "can_overwrite",
    "describe_idle_fakes",
    "describe_living_fakes",
    "describe_refused_arguments",
    "describe_unobeyed_options",
    "explain_no_virtual_time",
    "explain_real_time_only",
    "forecast_run",
    "has_fake_in_real_time",
    "list_fake_faults",
    "list_fake_paths",
    "predict_real_seconds",
    "require_startable_fakes",
    "restore_user_stdin",
    "run_in_model",
    "write_fake",
    "write_missing_cli_stub",
]
