"""The cost of virtual time for programs: a start, a step, a long run. Owns how each is measured."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_agentproc.clock.preload import find_coordinator
from tests.benchmarks._figures import Samples, compute_ratios, summarize_values
from tests.benchmarks._plain import ENVIRONMENT

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["BelowPart"]

_SUPERVISOR = Path(__file__).parents[2] / "process" / "preload" / "programs" / "supervisor.mjs"
_DRIP = "import os, time\nfor _ in range({}): time.sleep(1); os.write(1, b'.')"
_PONG = "process.stdin.on('data', () => process.stdout.write('.'))"
_TIMES = 5
_STEPS = 1000


class BelowPart:
    """below_start_ratio: `node -e 0` below the coordinator over the same command bare.

    `below_step_ratio` is one step over one bare round trip. In a step a Python agent sleeps for a second and writes a
    byte, and a Node supervisor reads it and starts its timer of 180 s again. In a bare round trip Python writes a byte
    and Node writes one back. `below_1000_s` is the real time, in seconds, of 1,000 virtual ones of that supervisor, its
    start and its end included.
    """

    name = "below"

    def __init__(self, interpreter: str) -> None:
        self._interpreter = interpreter
        self._taken = {name: Samples() for name in ("bare", "below", "step", "trip", "run")}

    def sample(self) -> None:
        taken: dict[str, list[float]] = {name: [] for name in self._taken}
        time_command = [str(find_coordinator())]
        for _ in range(_TIMES):
            taken["bare"].append(_measure_seconds(["node", "-e", "0"]))
            taken["below"].append(_measure_seconds([*time_command, "node", "-e", "0"]))
        supervisor = [*time_command, "node", str(_SUPERVISOR), self._interpreter, "-ISc"]
        start, run = (_measure_seconds([*supervisor, _DRIP.format(count)]) for count in (0, _STEPS))
        taken["run"].append(run)
        taken["step"].append((run - start) / _STEPS)
        taken["trip"].append(_measure_round_trip(_STEPS))
        for name, samples in self._taken.items():
            samples.add(taken[name])

    def report(self) -> dict[str, Any]:
        taken = self._taken
        return {
            "below_start_ratio": summarize_values(compute_ratios(taken["below"], taken["bare"])),
            "below_step_ratio": summarize_values(compute_ratios(taken["step"], taken["trip"])),
            "below_step_us": summarize_values([seconds * 1e6 for seconds in taken["step"].rounds]),
            "below_1000_s": summarize_values(taken["run"].rounds),
        }

    def close(self) -> None:
        """Nothing is kept."""


def _measure_round_trip(count: int) -> float:
    """Give the seconds of one round trip between this process and Node."""
    pipe = subprocess.PIPE
    with subprocess.Popen(["node", "-e", _PONG], bufsize=0, stdin=pipe, stdout=pipe, env=ENVIRONMENT) as node:
        assert node.stdin is not None
        assert node.stdout is not None
        begin = 0.0
        for number in range(count + _TIMES):
            if number == _TIMES:
                begin = time.perf_counter()
            node.stdin.write(b".")
            node.stdout.read(1)
        return (time.perf_counter() - begin) / count


def _measure_seconds(words: Sequence[str]) -> float:
    begin = time.perf_counter()
    subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, env=ENVIRONMENT, check=True)
    return time.perf_counter() - begin
