"""`python -m tests.benchmarks.real_time`: the corpus in real time, again and again, while every core is burnt.

Prints each scenario that is not green, and each run with its number of scenarios, its duration and the latest step.
Run by hand; it is no test. The exit code is 1 if anything was not green.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from typing import TYPE_CHECKING

from pytest_agentproc import subjects
from pytest_agentproc.harness import NotForRealTime, ScenarioRunner
from pytest_agentproc.verdict import Verdict, choose_overall_verdict, explain_play, judge_all_expectations
from tests.benchmarks._burners import burn_all_cores
from tests.bundled import load_all_for_functions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_agentproc.scenario import Scenario

_LONGEST = 3600.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.real_time", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5, help="how often the whole corpus is played; default: 5")
    parser.add_argument("--scale", type=float, help="durations are divided by it; default: what suits each scenario")
    parser.add_argument("--idle", action="store_true", help="burn no core")
    parser.add_argument("--backend", choices=("asyncio", "trio"), default="asyncio")
    options = parser.parse_args(arguments)
    scenarios = [scenario for scenario in load_all_for_functions() if not scenario.openings]
    bad = 0
    with contextlib.nullcontext() if options.idle else burn_all_cores(_LONGEST), ScenarioRunner() as runner:
        for run in range(1, options.runs + 1):
            bad += _play_corpus(run, runner, scenarios, options)
    return 1 if bad else 0


def _play_corpus(run: int, runner: ScenarioRunner, scenarios: list[Scenario], options: argparse.Namespace) -> int:
    begin, played, bad, starved, latest = time.monotonic(), 0, 0, 0, 0.0
    for scenario in scenarios:
        try:
            played_run = runner.play_real(
                scenario, subjects.reference_supervisor(), backend=options.backend, scale=options.scale
            )
        except NotForRealTime:
            continue
        assert played_run.pace is not None
        played += 1
        starved += played_run.was_starved
        latest = max(latest, played_run.lateness / played_run.pace.scale)
        rows = judge_all_expectations(played_run)
        if choose_overall_verdict(rows) is not Verdict.PASSED:
            bad += 1
            print(explain_play(played_run, rows), flush=True)
    seconds = time.monotonic() - begin
    load = "idle" if options.idle else "every core burnt"
    late = f"latest step {latest / 1e6:.0f} ms late, {starved} starved"
    print(f"run {run} ({load}): {played} scenarios, {bad} not green, {seconds:.0f} s, {late}", flush=True)
    return bad


if __name__ == "__main__":
    sys.exit(main())
