"""The cost of virtual time for programs: a start and a step below the coordinator of the preload clock."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agentproc.clock.preload import find_coordinator
from tests.benchmarks._figures import Part, Ratio, measure_each, measure_mean
from tests.benchmarks.costs._bare import ENVIRONMENT, INTERPRETER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["measure_below_coordinator"]

_SUPERVISOR = Path(__file__).parents[2] / "process" / "preload" / "programs" / "supervisor.mjs"
_DRIP = "import os, time\nfor _ in range({}): time.sleep(1); os.write(1, b'.')"
_PONG = "process.stdin.on('data', () => process.stdout.write('.'))"


@contextmanager
def measure_below_coordinator(*, is_small: bool) -> Iterator[Part]:
    """Measure `node -e 0` below the coordinator and bare, and a step of a supervisor in Node and a bare round trip.

    In a step a Python agent sleeps for a second and writes a byte, and Node reads it and starts its timer again.
    """
    times, count = (1, 300) if is_small else (5, 1000)
    coordinator = str(find_coordinator())

    def drip(seconds: int) -> None:
        _run([coordinator, "node", str(_SUPERVISOR), INTERPRETER, "-ISc", _DRIP.format(seconds)])

    yield Part(
        {
            "bare node": partial(measure_mean, partial(_run, ["node", "-e", "0"]), times),
            "node below": partial(measure_mean, partial(_run, [coordinator, "node", "-e", "0"]), times),
            "step below": partial(measure_each, drip, count),
            "trip with node": partial(measure_each, _play_ping_pong_with_node, count),
        },
        {
            "node below over bare": Ratio("node below", "bare node", 1.5),
            "step below over trip": Ratio("step below", "trip with node", 20.0),
        },
    )


def _play_ping_pong_with_node(count: int) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen(["node", "-e", _PONG], bufsize=0, stdin=pipe, stdout=pipe, env=ENVIRONMENT) as node:
        assert node.stdin is not None
        assert node.stdout is not None
        for _ in range(count):
            node.stdin.write(b".")
            node.stdout.read(1)


def _run(words: Sequence[str]) -> None:
    subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, env=ENVIRONMENT, check=True, timeout=300)
