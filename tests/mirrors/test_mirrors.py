"""Each fake prints the output of the real CLI: the same lines in the same order, and the same tree of processes."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.scenario import load
from tests.mirrors.recordings import NAMES, Recording, read_recording
from tests.mirrors.replaying import describe_shape, replay
from tests.mirrors.varies import IdNames, cut_like_recorder, keep_until_cut, normalize_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.clock import VirtualClock
    from pytest_agentproc.harness import FakeAgent

SCENARIOS = Path(__file__).parent / "scenarios"


def find_mirror(name: str) -> Path:
    """Give the scenario that mirrors a recording."""
    return SCENARIOS / f"{name}.scenario.yaml"


@pytest.mark.parametrize("name", NAMES)
def test_the_fake_prints_what_the_real_cli_printed(
    name: str, fake_agent: Callable[[Any], FakeAgent], virtual_clock: VirtualClock
) -> None:
    """Every line, key and word in order, but for what `varies` names; and the exit code, if it was recorded."""
    scenario, recorded = load(str(find_mirror(name))), read_recording(name)
    fake = fake_agent(scenario)
    argv = [fake.path, *recorded.argv] if recorded.argv is not None else fake.argv

    seen = replay(virtual_clock, argv, recorded)
    ours, theirs = IdNames(), IdNames()
    for number, (made, real) in enumerate(zip_longest(seen.lines, recorded.printed), 1):
        if isinstance(real, str) and real.endswith("..."):
            assert (number, made[: len(keep_until_cut(real))]) == (number, keep_until_cut(real))
            continue
        own = normalize_line(scenario.dialect, cut_like_recorder(made, real), ours)
        assert (number, own) == (number, normalize_line(scenario.dialect, real, theirs))
    assert seen.code in list_exit_codes(recorded)
    assert seen.shapes == [describe_shape(moment.value) for moment in recorded.moments if moment.kind == "ps"]


def test_nothing_is_mirrored_that_was_not_recorded() -> None:
    """A mirror without its recording would be compared with nothing."""
    assert {
        path.relative_to(SCENARIOS).as_posix().removesuffix(".scenario.yaml") for path in SCENARIOS.rglob("*.yaml")
    } == {*NAMES}


def list_exit_codes(recorded: Recording) -> list[int | None]:
    """Give the exit code of the real one; where none was kept, none."""
    return [moment.value for moment in recorded.moments if moment.kind == "exit"] or [None]
