"""The cost of one virtual step, of one agent and of many at once."""

from __future__ import annotations

import contextlib
import resource
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from pytest_agentproc.harness import ScenarioRunner
from pytest_agentproc.scenario import loads
from tests.benchmarks._figures import Part, Ratio, measure_each
from tests.benchmarks._together import bind_all, play_together
from tests.benchmarks.costs._bare import play_ping_pong
from tests.benchmarks.costs._starts import BACKENDS

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["measure_agents", "measure_steps"]

_DRIP = """
scenario: a byte a second
agent: raw
script:
  - drip: {{stdout: ".", every: 1s, for: {seconds}s}}
expect: {{outcome: completed}}
"""


@contextmanager
def measure_steps(*, is_small: bool) -> Iterator[Part]:
    """Measure a virtual step: an agent writes a byte, and its supervisor reads it. Beside it a bare round trip."""
    count = 500 if is_small else 2000
    with ScenarioRunner() as runner:
        measures = {"round trip": partial(measure_each, play_ping_pong, count)}
        ratios = {}
        for backend, limit in zip(BACKENDS, (8.0, 12.0), strict=True):
            _drip(runner, 1, backend, 1)  # it imports what it needs
            measures[f"step {backend}"] = partial(measure_each, partial(_drip, runner, 1, backend), count)
            ratios[f"step {backend} over trip"] = Ratio(f"step {backend}", "round trip", limit)
        yield Part(measures, ratios)


@contextmanager
def measure_agents(*, is_small: bool) -> Iterator[Part]:
    """Measure one step of one agent when many agents drip at once, each due at the same instants."""
    few, many = 5, 10 if is_small else 100
    steps = 3000 if is_small else 9000  # fewer are lost in what the starts of the agents cost
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, most) if most > 0 else 4096, most))
    with ScenarioRunner() as runner:

        def measure(count: int) -> float:
            return measure_each(partial(_drip, runner, count, "asyncio"), steps // count) / count

        measure(1)  # it imports what it needs
        measures = {f"step of {count} agents": partial(measure, count) for count in (1, few, many)}
        yield Part(measures, {f"{many} over {few}": Ratio(f"step of {many} agents", f"step of {few} agents", 4.0)})


def _drip(runner: ScenarioRunner, agents: int, backend: str, seconds: int) -> None:
    scenario = loads(_DRIP.format(seconds=seconds), "drip")
    _, answers = play_together(runner, bind_all([scenario] * agents), backend)
    assert all(answer is not None and answer.outcome == "completed" for answer in answers)
