"""`python -m tests.benchmarks.trees`: the cost of knowing that a tree is empty, and of holding one.

All parts are measured in turn, round by round, and the median over the rounds counts. Exit code 1: a limit is passed.
Run by hand; it is no test.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from pytest_agentproc.harness import ScenarioRunner
from tests.benchmarks.costs._keeper import KeeperPart
from tests.benchmarks.costs._lifeline import LifelinePart

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.benchmarks._figures import Part

PARTS: dict[str, Callable[[ScenarioRunner], Part]] = {"lifeline": LifelinePart, "keeper": KeeperPart}

LIMITS = {"lifeline_verdict_us": 200.0, "keeper_start_ratio": 1.5}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; return the exit code: 1 if a limit is passed."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.trees", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20, metavar="N", help="default: 20")
    parser.add_argument("--only", choices=PARTS, action="append", help="one part; may be given again; default: all")
    options = parser.parse_args(arguments)
    figures: dict[str, Any] = {}
    with ScenarioRunner() as runner:
        parts = [make(runner) for name, make in PARTS.items() if name in (options.only or PARTS)]
        try:
            for _ in range(options.rounds):
                for part in parts:
                    part.sample()
            for part in parts:
                figures |= part.report()
        finally:
            for part in parts:
                part.close()
    over = [name for name, figure in figures.items() if figure["median"] > LIMITS.get(name, figure["median"])]
    print(f"{'figure':34} {'median':>9} {'p10':>9} {'p90':>9} {'limit':>7}")
    for name, figure in figures.items():
        limit = f" {LIMITS[name]:7g} {'OVER' if name in over else 'ok'}" if name in LIMITS else ""
        print(f"{name:34} {figure['median']:9.4g} {figure['p10']:9.4g} {figure['p90']:9.4g}{limit}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
