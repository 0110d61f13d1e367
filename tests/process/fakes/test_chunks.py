"""Agents that write in small pieces, as real processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.harness import run_in_model
from pytest_agentproc.scenario import load, loads
from pytest_agentproc.subjects import reference_supervisor
from tests.bundled import find_bundled_path

if TYPE_CHECKING:
    from pytest_agentproc.harness import ScenarioRunner


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_the_model_writes_the_same_pieces(runner: ScenarioRunner, backend: str) -> None:
    """Otherwise a cut that the search finds would be a cut that no agent makes."""
    file = find_bundled_path("hook-given-up-is-called-no-more")
    text = load(file).text.replace("dialect: claude", "dialect: claude, chunk: 61 B")
    scenario = loads(text, str(file), file.parent)
    played = runner.play(scenario, reference_supervisor(), backend=backend)
    modelled = run_in_model(scenario, reference_supervisor())
    assert played.record.digest() == modelled.record.digest()
    assert played.answer == modelled.answer
