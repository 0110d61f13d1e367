"""Plays scenarios: with real processes in virtual time (`Lab`), or in the model, without any (`model_play`)."""

from __future__ import annotations

from pytest_agentproc.harness._fake import FakeAgent
from pytest_agentproc.harness._lab import Lab, order_of
from pytest_agentproc.harness._model import Model, add_run, model_play
from pytest_agentproc.harness._played import Played

__all__ = ["FakeAgent", "Lab", "Model", "Played", "add_run", "model_play", "order_of"]
