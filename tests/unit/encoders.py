"""Encoders of the kit's dialects for programs that tests write by hand."""

from __future__ import annotations

from typing import Any

from pytest_agentproc.fake_agents.dialects import make_encoder as made_encoder
from pytest_agentproc.vocabulary import DIALECTS


def make_encoder(program: Any) -> Any:
    """Make the encoder of a program that does not name its modules."""
    record = DIALECTS[program["dialect"]].find_version(program.get("version", ""))
    assert record is not None
    mode = program.get("mode") or record.default_mode
    modules = record.list_encoder_modules(mode, has_tasks=bool(program.get("tasks")))
    return made_encoder({"encoder": modules, **program})
