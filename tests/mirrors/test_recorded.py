"""Record, make a scenario, play it: every recording of a real CLI, played by a fake, comes out as it went in."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.capture import (
    AgentIdentity,
    AgentInput,
    draft_scenario_from_recording,
    list_agent_input,
    list_recorded_moments,
    normalize_output_line,
    replay_agent,
)
from pytest_agentproc.events import Event, SignalCaught
from pytest_agentproc.scenario import Scenario, load
from pytest_agentproc.subjects import reference_supervisor
from tests.mirrors.recordings import NAMES, Recording, read_recording
from tests.mirrors.test_mirrors import find_mirror

if TYPE_CHECKING:
    from pathlib import Path

SIGNALS = {"HUP": 1, "INT": 2, "TERM": 15}
_DROPPED = 50_000_000
"""Nanoseconds: shorter pauses are not kept."""

IN_BYTES = {
    "claude/perm",
    "claude/perm-second",
    "claude/stream",
    "timed/bash-standalone-sleep-blocked",
    "timed/bg-stop-task",
    "timed/hooks-interrupt-while-waiting",
    "timed/interrupt-overlap-nopartial-replay",
    "timed/interrupt-with-bg-task",
    "timed/interrupt-with-bg-task-eof",
    "timed/two-prompts-midtool-uuid",
    "timed/two-prompts-queued-tool",
}
"""In these, the dialect's fake answers at another place than was recorded, unless a person writes the script: they are
written in bytes, and say so. A recording that leaves this list is a step forward."""


def build_input(recorded: Recording) -> list[AgentInput]:
    """Give the real CLI's input, each part after the lines that the CLI had printed."""
    found, lines = [], 0
    for moment in recorded.moments:
        if moment.kind == "out":
            lines += 1
        elif moment.kind == "in":
            found.append(AgentInput(json.dumps(moment.value).encode() + b"\n", lines))
        elif moment.kind == "eof":
            found.append(AgentInput(b"", lines))
        elif moment.kind == "signal" and moment.value[0] in SIGNALS:
            found.append(AgentInput(SIGNALS[moment.value[0]], lines))
    return found


def play_recorded(scenario: Scenario, argv: list[str] | None, what: list[AgentInput]) -> list[Event]:
    """Play a scenario, with the agent's recorded input, and record it."""
    bound = scenario.bind(scenario.request_limits(reference_supervisor()))
    done = replay_agent(bound, argv or [], scenario.prompt, what)
    return done.events


def normalize_events(events: list[Event]) -> tuple[list[Any], list[int]]:
    """Give what happened, without what varies, and when."""
    found = sorted(list_recorded_moments(events, by_line=True), key=lambda moment: moment.at)
    shown = [
        (moment.kind, normalize_output_line(moment.data) if moment.kind == "out" else _drop_instant(moment.data))
        for moment in found
    ]
    return shown, [moment.at for moment in found]


def _drop_instant(data: Any) -> Any:
    if isinstance(data, SignalCaught):
        return replace(data, at=0, met="")
    return replace(data, at=0) if isinstance(data, Event) else data


@pytest.mark.parametrize("name", NAMES)
def test_the_second_recording_equals_the_first(name: str, tmp_path: Path) -> None:
    """The scenario that is made of a recording does the same, at the same times, in the dialect's words if it can."""
    recorded, mirror = read_recording(name), load(find_mirror(name))
    first = play_recorded(mirror, recorded.argv, build_input(recorded))
    speaker = AgentIdentity(
        mirror.dialect,
        mirror.mode,
        tuple(recorded.argv or ()),
        mirror.prompt,
        mirror.model,
        partials=mirror.partials,
        states=mirror.states,
        version=mirror.version,
    )
    out = tmp_path / "made.scenario.yaml"
    draft = draft_scenario_from_recording(out, first, speaker, [], "as it was recorded")
    second = play_recorded(load(out), recorded.argv, list_agent_input(first))
    assert normalize_events(second)[0] == normalize_events(first)[0]
    for instant, other in zip(normalize_events(first)[1], normalize_events(second)[1], strict=True):
        assert abs(instant - other) <= _DROPPED + instant // 50
    assert bool(draft.notes) == (name in IN_BYTES), draft.notes
