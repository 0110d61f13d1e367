"""How fast the model plays: the whole corpus, one scenario after the other, in one process, and in one a core."""

from __future__ import annotations

import os
import time
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from pytest_agentproc.harness import run_in_model
from pytest_agentproc.scenario import NotApplicable
from pytest_agentproc.subjects import reference_supervisor
from tests.benchmarks._figures import Samples, compute_ratios, summarize_values
from tests.benchmarks._plain import measure_spawns
from tests.bundled import load_all_bundled

if TYPE_CHECKING:
    from pytest_agentproc.scenario import Scenario

__all__ = ["ModelPart"]


class ModelPart:
    """Scenarios a second: every bundled scenario that the model can play, warmed up.

    Of CPU time, of wall time, and of wall time if each core runs them all, as with `-n auto`. `model_spawns` is the
    cost of one in plain spawns on the same machine: a rate is the machine's as much as the model's.
    """

    name = "model"

    def __init__(self, interpreter: str) -> None:
        self._interpreter = interpreter
        loaded = list(load_all_bundled())
        self._scenarios = [scenario for scenario in loaded if _is_playable(scenario)]
        self._by_cpu, self._by_wall, self._by_cores = Samples(), Samples(), Samples()
        self._cost, self._spawn = Samples(), Samples()
        self._cores = len(os.sched_getaffinity(0))
        self._pool = get_context("fork").Pool(self._cores, _start_player, (self._scenarios,))

    def sample(self) -> None:
        """Play the corpus once here, and once on each core at the same time."""
        cpu, wall = time.process_time(), time.perf_counter()
        _play_all(self._scenarios)
        count, taken = len(self._scenarios), time.process_time() - cpu
        self._by_cpu.add([count / taken])
        self._by_wall.add([count / (time.perf_counter() - wall)])
        self._cost.add([taken / count])
        self._spawn.add(measure_spawns(self._interpreter, 10, "asyncio"))
        wall = time.perf_counter()
        self._pool.map(_play_kept, range(self._cores), chunksize=1)
        self._by_cores.add([count * self._cores / (time.perf_counter() - wall)])

    def report(self) -> dict[str, Any]:
        """Give the rates, of how many scenarios, and on how many cores the last of them."""
        return {
            "model_scenarios": len(self._scenarios),
            "model_per_cpu_second": summarize_values(self._by_cpu.rounds),
            "model_per_second": summarize_values(self._by_wall.rounds),
            "model_per_second_on_all_cores": summarize_values(self._by_cores.rounds),
            "model_cores": self._cores,
            "model_spawns": summarize_values(compute_ratios(self._cost, self._spawn)),
        }

    def close(self) -> None:
        """End the processes that played beside this one."""
        self._pool.terminate()
        self._pool.join()


_kept: list[Scenario] = []


def _start_player(scenarios: list[Scenario]) -> None:
    """Begin a process that plays."""
    _kept[:] = scenarios


def _play_kept(_number: int) -> None:
    _play_all(_kept)


def _play_all(scenarios: list[Scenario]) -> None:
    subject = reference_supervisor()
    for scenario in scenarios:
        run_in_model(scenario, subject)


def _is_playable(scenario: Scenario) -> bool:
    """Play it once, which warms up the things that are made once, too."""
    try:
        run_in_model(scenario, reference_supervisor())
    except NotApplicable:
        return False
    return True
