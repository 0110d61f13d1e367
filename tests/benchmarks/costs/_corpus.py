"""The cost of all bundled scenarios under pytest on two cores, in plain spawns. Owns the run and the formula."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from typing import Any

from tests.benchmarks._figures import Samples, compute_ratios, summarize_values
from tests.benchmarks._plain import measure_spawns

__all__ = ["CorpusPart"]

_WORKERS = 2
_EVERY = 10
"""It takes as long as all else of a round, so that only every tenth round has it, the first one included."""

_PASSED = re.compile(r"agentproc: reference is conformant: 0 failed, (\d+) passed")


class CorpusPart:
    """corpus_spawns: `pytest --agentproc-corpus -n 2`, from its start to its end, for each scenario and core in spawns.

    The formula is wall seconds * cores / scenarios / seconds of a plain spawn; the spawns are timed before and after,
    alone.

    Args:
        interpreter: of the plain spawns.
    """

    name = "corpus"

    def __init__(self, interpreter: str) -> None:
        self._interpreter = interpreter
        self._calls = 0
        self._scenarios = 0
        self._cores = min(_WORKERS, len(os.sched_getaffinity(0)))
        self._walls = Samples()
        self._shares = Samples()
        self._spawns = Samples()

    def sample(self) -> None:
        self._calls += 1
        if self._calls % _EVERY != 1:
            return
        taken = measure_spawns(self._interpreter, 10, "asyncio")
        wall = self._play()
        self._spawns.add(taken + measure_spawns(self._interpreter, 10, "asyncio"))
        self._walls.add([wall])
        self._shares.add([wall * self._cores / self._scenarios])

    def _play(self) -> float:
        command = [sys.executable, "-m", "pytest", "--agentproc-corpus", "-n", str(_WORKERS), "-q"]
        environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            completed = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=600
            )
            taken = time.perf_counter() - start
        told = _PASSED.search(completed.stdout)
        if completed.returncode or told is None:
            raise RuntimeError(
                f"the corpus did not pass, exit code {completed.returncode}\n"
                f"{completed.stdout[-2000:]}{completed.stderr[-2000:]}"
            )
        self._scenarios = int(told[1])
        return taken

    def report(self) -> dict[str, Any]:
        wall, spawn = (
            summarize_values(self._walls.rounds),
            summarize_values([seconds * 1e3 for seconds in self._spawns.rounds]),
        )
        formula = (
            f"{wall['median']:g} s of wall time * {self._cores} cores / {self._scenarios} scenarios"
            f" / {spawn['median']:g} ms of a plain spawn"
        )
        return {
            "corpus_spawns": {**summarize_values(compute_ratios(self._shares, self._spawns)), "formula": formula},
            "corpus_wall_s": wall,
            "corpus_spawn_ms": spawn,
        }

    def close(self) -> None:
        """Nothing is left."""
