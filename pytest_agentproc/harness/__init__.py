"""Plays scenarios.

With real processes in virtual or real time (`ScenarioRunner`), or in the model without any (`model_play`).
"""

from __future__ import annotations

from pytest_agentproc.harness._fake import FakeAgent, FakeByArguments, Outside
from pytest_agentproc.harness._faults import require_machine
from pytest_agentproc.harness._model import Model
from pytest_agentproc.harness._model_play import ReferenceSubject, add_run, model_play
from pytest_agentproc.harness._pace import Foreseen, NotForReal, foresee
from pytest_agentproc.harness._played import Played
from pytest_agentproc.harness._runner import ScenarioRunner, seconds_in_real_time
from pytest_agentproc.harness._standalone import COMMANDS, REFUSED, is_ours, write_fake, write_refusal
from pytest_agentproc.harness._supervise import not_virtual, order_of, real_time_only

__all__ = [
    "COMMANDS",
    "REFUSED",
    "FakeAgent",
    "FakeByArguments",
    "Foreseen",
    "Model",
    "NotForReal",
    "Outside",
    "Played",
    "ReferenceSubject",
    "ScenarioRunner",
    "add_run",
    "foresee",
    "is_ours",
    "model_play",
    "not_virtual",
    "order_of",
    "real_time_only",
    "require_machine",
    "seconds_in_real_time",
    "write_fake",
    "write_refusal",
]
