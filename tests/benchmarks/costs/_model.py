"""The cost of playing a scenario in the model, in one process."""

from __future__ import annotations

import statistics
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from pytest_agentproc.harness import run_in_model
from pytest_agentproc.scenario import NotApplicable
from pytest_agentproc.subjects import reference_supervisor
from tests.benchmarks._figures import Part, Ratio, measure_mean
from tests.benchmarks.costs._bare import spawn_bare_interpreter
from tests.bundled import load_all_bundled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_agentproc.scenario import Scenario

__all__ = ["measure_model"]


@contextmanager
def measure_model(*, is_small: bool) -> Iterator[Part]:
    """Measure every bundled scenario that the model can play, over a spawn of a bare interpreter.

    The limit is on the median: six scenarios print 2.5 MiB, and reading these lines is a quarter of the whole.
    """
    scenarios = [scenario for scenario in load_all_bundled()[:: 40 if is_small else 1] if _is_playable(scenario)]
    subject = reference_supervisor()

    def measure() -> list[float]:
        return [measure_mean(partial(run_in_model, scenario, subject), 1) for scenario in scenarios]

    yield Part(
        {
            "model median": lambda: statistics.median(measure()),
            "model mean": lambda: statistics.mean(measure()),
            "bare spawn": partial(measure_mean, spawn_bare_interpreter, 1 if is_small else 10),
        },
        {
            "model median over spawn": Ratio("model median", "bare spawn", 0.2),
            "model mean over spawn": Ratio("model mean", "bare spawn"),
        },
        lambda: {"scenarios": len(scenarios)},
    )


def _is_playable(scenario: Scenario) -> bool:
    """Play it once, which warms up the things that are made once, too."""
    try:
        run_in_model(scenario, reference_supervisor())
    except NotApplicable:
        return False
    return True
