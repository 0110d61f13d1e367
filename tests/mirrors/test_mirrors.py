"""Each fake prints what the real CLI printed: the same lines in the same order, and the same tree of processes."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.scenario import load
from tests.mirrors.recordings import NAMES, Recording, recording
from tests.mirrors.replaying import replay, shape
from tests.mirrors.varies import Names, as_cut, normal

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.clock import VirtualClock
    from pytest_agentproc.harness import FakeAgent

SCENARIOS = Path(__file__).parent / "scenarios"


def mirror_of(name: str) -> Path:
    """Give the scenario that mirrors a recording."""
    return SCENARIOS / f"{name}.scenario.yaml"


MIRRORED = [name for name in NAMES if mirror_of(name).exists()]


@pytest.mark.parametrize("name", MIRRORED)
def test_the_fake_prints_what_the_real_cli_printed(
    name: str, fake_agent: Callable[[Any], FakeAgent], virtual_clock: VirtualClock
) -> None:
    """Every line, key and word in order, but for what `varies` names; and the exit code, if it was recorded."""
    scenario, recorded = load(str(mirror_of(name))), recording(name)
    fake = fake_agent(scenario)
    argv = [fake.path, *recorded.argv] if recorded.argv is not None else fake.argv

    seen = replay(virtual_clock, argv, recorded)
    ours, theirs = Names(), Names()
    for number, (made, real) in enumerate(zip_longest(seen.lines, recorded.printed), 1):
        own = normal(scenario.dialect, as_cut(made, real), ours)
        assert (number, own) == (number, normal(scenario.dialect, real, theirs))
    assert seen.code in codes(recorded)
    assert seen.shapes == [shape(moment.value) for moment in recorded.moments if moment.kind == "ps"]


def codes(recorded: Recording) -> list[int | None]:
    """Give the exit code of the real one; where none was kept, none."""
    return [moment.value for moment in recorded.moments if moment.kind == "exit"] or [None]
