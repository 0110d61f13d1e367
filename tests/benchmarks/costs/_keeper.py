"""The cost of a keeper before it holds a process, and of an agent's start below one. Owns how it is measured."""

from __future__ import annotations

import subprocess
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_agentproc.tree import AgentChild, Keeper
from pytest_agentproc.tree._keeper import find_interpreter
from tests.benchmarks._figures import Samples, compute_ratios, summarize_values

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.harness import ScenarioRunner

__all__ = ["KeeperPart"]

_REPETITIONS = 5
_BARE = [find_interpreter(), "-I", "-S", "-c", "pass"]
_AGENT = ["/bin/true"]


class KeeperPart:
    """keeper_start_ratio: a keeper that is ready, over a bare spawn of the same interpreter that does nothing.

    Beside it the whole start, end and burial of a program that does nothing, at each containment, over `group`.
    """

    name = "keeper"

    def __init__(self, _runner: ScenarioRunner) -> None:
        self._bare, self._keeper = Samples(), Samples()
        self._held = {containment: Samples() for containment in ("group", "subreaper", "keeper")}

    def sample(self) -> None:
        """Take each in turn."""
        self._bare.add([_measure_work(_spawn_bare) for _ in range(_REPETITIONS)])
        self._keeper.add([_measure_keeper_start() for _ in range(_REPETITIONS)])
        for containment, samples in self._held.items():
            samples.add([_measure_work(partial(_hold_agent, containment)) for _ in range(_REPETITIONS)])

    def report(self) -> dict[str, Any]:
        """Give the ratios, and the keeper's start in milliseconds."""
        return {
            "keeper_start_ratio": summarize_values(compute_ratios(self._keeper, self._bare)),
            "keeper_start_ms": summarize_values([1e3 * seconds for seconds in self._keeper.rounds]),
            "subreaper_over_group": summarize_values(compute_ratios(self._held["subreaper"], self._held["group"])),
            "keeper_over_group": summarize_values(compute_ratios(self._held["keeper"], self._held["group"])),
        }

    def close(self) -> None:
        """Nothing of it stays."""


def _spawn_bare() -> None:
    subprocess.run(_BARE, check=True)


def _measure_keeper_start() -> float:
    start = time.perf_counter()
    keeper = Keeper()
    taken = time.perf_counter() - start
    keeper.close()
    return taken


def _hold_agent(containment: str) -> None:
    child = AgentChild(_AGENT, containment=containment)
    assert child.containment == containment
    child.kill_and_reap()


def _measure_work(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
