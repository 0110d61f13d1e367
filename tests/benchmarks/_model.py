"""How fast the model plays: the whole corpus, one scenario after the other, in one process. No process is started."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pytest_agentproc.harness import model_play
from pytest_agentproc.scenario import NotApplicable, load
from pytest_agentproc.subjects import core
from tests.architecture.sources import ROOT
from tests.benchmarks._figures import Samples, summary

if TYPE_CHECKING:
    from pytest_agentproc.scenario import Scenario

__all__ = ["ModelPart"]


class ModelPart:
    """Scenarios a second, of CPU time and of wall time: every bundled scenario that the model can play, warmed up."""

    name = "model"

    def __init__(self) -> None:
        loaded = [load(file) for file in sorted((ROOT / "scenarios").glob("*.scenario.yaml"))]
        self._scenarios = [scenario for scenario in loaded if _is_playable(scenario)]
        self._by_cpu, self._by_wall = Samples(), Samples()

    def sample(self) -> None:
        """Play the corpus once."""
        subject = core()
        cpu, wall = time.process_time(), time.perf_counter()
        for scenario in self._scenarios:
            model_play(scenario, subject)
        count = len(self._scenarios)
        self._by_cpu.add([count / (time.process_time() - cpu)])
        self._by_wall.add([count / (time.perf_counter() - wall)])

    def report(self) -> dict[str, Any]:
        """Give both rates, and of how many scenarios."""
        return {
            "model_scenarios": len(self._scenarios),
            "model_per_cpu_second": summary(self._by_cpu.rounds),
            "model_per_second": summary(self._by_wall.rounds),
        }

    def close(self) -> None:
        """End nothing: nothing was started."""


def _is_playable(scenario: Scenario) -> bool:
    """Play it once, which warms up what is made once, too."""
    try:
        model_play(scenario, core())
    except NotApplicable:
        return False
    return True
