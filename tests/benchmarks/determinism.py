"""`python -m tests.benchmarks.determinism`: every run's complete timeline equals the model's, under any load.

Each run is a scenario of the corpus or a case of `_cases`, with real processes, on asyncio or unseeded trio. The
machine is idle, or every core is burnt. It compares each event of the record's normal form with its nanosecond
and its place, each answer, each fault. `--arm preload` plays programs and threads below the coordinator instead: each
timeline must equal the first one. A run that raises deviates. Run by hand; it is no test.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import itertools
import sys
import time
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_agentproc.harness import ScenarioRunner
from tests.benchmarks._burners import burn_all_cores
from tests.benchmarks._cases import list_cases
from tests.benchmarks._difference import describe_difference
from tests.benchmarks._preloaded import list_preload_cases

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.benchmarks._cases import Case
    from tests.benchmarks._preloaded import PreloadCase

BACKENDS = ("asyncio", "trio")
LOADS = ("idle", "burnt")

HANG = 60.0
"""Real seconds after which one run is given up, with the stacks of all threads and exit code 1."""

_LONGEST = 3600.0
_PROGRESS = 10.0


@dataclass(frozen=True, slots=True)
class _Run:
    number: int
    case: Case | PreloadCase
    backend: str
    load: str


class _DeviationCounter:
    """Counts runs and deviations, and prints."""

    def __init__(self, total: int) -> None:
        self.runs = 0
        self.deviations = 0
        self._total = total
        self._start = self._told = time.perf_counter()

    def count(self, run: _Run, deviation: str) -> None:
        """Take one run's result: its deviations, or nothing."""
        self.runs += 1
        if deviation:
            self.deviations += 1
            print(f"\nrun {run.number}: {run.case.id} on {run.backend}, {run.load}: deviates\n{deviation}", flush=True)
        now = time.perf_counter()
        if now - self._told >= _PROGRESS:
            self._told = now
            spent = now - self._start
            pace = f"{spent:.0f} s, {spent / self.runs * 1e3:.0f} ms a run"
            print(f"{self.runs} of {self._total} runs ({run.load}), {self.deviations} deviations, {pace}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; return the exit code: 1 if a run deviates."""
    options = _parse_options(arguments)
    chosen: Sequence[Case | PreloadCase] = (list_cases if options.arm == "lockstep" else list_preload_cases)(
        options.only
    )
    if not chosen:
        print(f"no case is called {options.only}", file=sys.stderr)
        return 2
    for case in chosen:
        if case.predicted is not None and case.predicted.fault:
            print(f"{case.id}: the model itself ends in a {case.predicted.fault}", file=sys.stderr)
            return 2
    backends = BACKENDS if options.backend == "both" else (options.backend,)
    loads = LOADS if options.load == "both" else (options.load,)
    print(f"{len(chosen)} cases on {', '.join(backends)}, {' and '.join(loads)}: {options.runs} runs", flush=True)
    tally = _DeviationCounter(options.runs)
    with ScenarioRunner() as runner:
        for load, runs in itertools.groupby(_plan_runs(chosen, backends, loads, options.runs), lambda run: run.load):
            with burn_all_cores(_LONGEST) if load == "burnt" else contextlib.nullcontext():
                for run in runs:
                    tally.count(run, _find_deviation(runner, run))
    print(f"{tally.runs} runs, {tally.deviations} deviations")
    return 1 if tally.deviations else 0


def _plan_runs(
    chosen: Sequence[Case | PreloadCase], backends: Sequence[str], loads: Sequence[str], total: int
) -> Iterator[_Run]:
    """Share the runs out: each load in one block, in which the cases take turns on each backend."""
    number = 0
    for index, load in enumerate(loads):
        share = (total + len(loads) - 1 - index) // len(loads)
        turns = itertools.cycle(itertools.product(chosen, backends))
        for case, backend in itertools.islice(turns, share):
            number += 1
            yield _Run(number, case, backend, load)


def _find_deviation(runner: ScenarioRunner, run: _Run) -> str:
    faulthandler.dump_traceback_later(HANG, exit=True)
    try:
        seen = run.case.play(runner, run.backend)
        return describe_difference(run.case.predicted or seen, seen)
    except Exception:  # noqa: BLE001  # whatever it is, it is a deviation and is printed
        return traceback.format_exc()
    finally:
        faulthandler.cancel_dump_traceback_later()


def _parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.determinism", description=__doc__)
    parser.add_argument("--runs", type=int, default=4000, metavar="N", help="runs in all (default: 4000)")
    parser.add_argument("--arm", choices=("lockstep", "preload"), default="lockstep")
    parser.add_argument("--backend", choices=(*BACKENDS, "both"), default="both")
    parser.add_argument("--load", choices=(*LOADS, "both"), default="both", help="both: half of the runs each")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="only cases whose id contains this")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
