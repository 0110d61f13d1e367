"""Limits that are off: the reference supervisor takes the step never, which another value of the limit begins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_agentproc.harness._limit_binding import StepLimitedModel
from pytest_agentproc.harness.model._in_memory_model import DEFAULT_REFERENCE_SUBJECT
from pytest_agentproc.harness.model._play import play_bound_scenario
from pytest_agentproc.vocabulary import Policy
from tests.bundled import load_bundled
from tests.event_lines import list_lines


def list_armed_timers(name: str, **limits: Any) -> set[str]:
    """Play a bundled scenario with the reference supervisor under its own limits, but for some."""
    scenario = load_bundled(name)
    policy = scenario.request_limits(DEFAULT_REFERENCE_SUBJECT)
    assert isinstance(policy, Policy)
    played = play_bound_scenario(
        scenario.bind(replace(policy, **limits)), DEFAULT_REFERENCE_SUBJECT, model=StepLimitedModel
    )
    return {event.data["timer"] for event in list_lines(played.record) if event.code == "t"}


@pytest.mark.parametrize(
    ("limit", "name"),
    [
        ("linger_grace", "artifacts-of-a-failed-run"),
        ("linger_kill_grace", "pi-goes-on-and-falls-silent"),
        ("leftover_kill_grace", "pi-crashes-and-leaves-a-child"),
        ("kill_grace", "closes-both-and-lingers"),
        ("cancel_grace", "background-after-a-cancelled-turn"),
        ("permission_timeout", "acp-session-question-outlives-its-turn"),
        ("hook_timeout", "hook-before-a-tool-is-denied"),
        ("close_grace", "background-after-a-cancelled-turn"),
    ],
)
def test_a_grace_that_is_off_never_ends(limit: str, name: str) -> None:
    """No timer of that limit counts. With a number one does."""
    assert limit in list_armed_timers(name)
    assert limit not in list_armed_timers(name, **{limit: None})
