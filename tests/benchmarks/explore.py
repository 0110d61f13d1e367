"""`python -m tests.benchmarks.explore`: explore finds defects from scenarios that do not claim to catch them.

Each defect of a rule about timing is looked for in bundled scenarios. Such a scenario covers its rule, does not name it
under `catches`, and is green on it as it stands. A find counts if its file, loaded from its text alone, is red on the
defect and green on the reference. A defect for which there is no such scenario is printed, and not counted. The last
line is `found N of M`.

With `--reference` the reference itself is explored, in all bundled scenarios, for the given seconds each. Every
find is printed, and the exit code is 1. Run by hand; it is no test.
"""

from __future__ import annotations

import argparse
import sys
from time import monotonic
from typing import TYPE_CHECKING

from pytest_agentproc.corpus import list_corpus_files
from pytest_agentproc.defects import DEFECTS
from pytest_agentproc.harness import run_in_model
from pytest_agentproc.scenario import NotApplicable, Scenario, load
from pytest_agentproc.search import explore
from pytest_agentproc.subjects import ReferenceSupervisor, reference_supervisor
from pytest_agentproc.verdict import Verdict, judge_play
from tests.benchmarks.search import RULES, build_defective_supervisor, confirm_finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_agentproc.defects import Defect

_RUNS = 300
_SHRINK = 2.0


def list_unclaimed_scenarios(defect: Defect, scenarios: Sequence[Scenario]) -> list[Scenario]:
    """List the scenarios of a defect's rule that do not claim to catch it, and do not as they stand."""
    covering = [
        scenario for scenario in scenarios if defect.breaks in scenario.covers and defect.name not in scenario.catches
    ]
    return [scenario for scenario in covering if _is_green(scenario, build_defective_supervisor(defect))]


def _is_green(scenario: Scenario, subject: ReferenceSupervisor) -> bool:
    try:
        return judge_play(run_in_model(scenario, subject)).verdict is Verdict.PASSED
    except NotApplicable:
        return False


def _explore_for_defect(defect: Defect, chosen: Sequence[Scenario], seconds: float) -> tuple[bool, str]:
    """Explore one after the other, until one shows the defect or the time is over."""
    start, runs = monotonic(), 0
    for number, scenario in enumerate(chosen):
        left = seconds - (monotonic() - start)
        if left <= 0:
            break
        share = left / (len(chosen) - number)
        result = explore(
            scenario, build_defective_supervisor(defect), runs=_RUNS, seed=0, seconds=share, shrinking=_SHRINK
        )
        runs += result.runs
        if result.find is not None:
            trouble = confirm_finding(result.find, defect)
            text = f"{scenario.id}, {runs} settings, {monotonic() - start:.1f} s: {trouble or result.find.reason}"
            return not trouble, text
    return False, f"not found in {len(chosen)} scenarios, {runs} settings, {monotonic() - start:.0f} s"


def _explore_defects(only: str, every: int, seconds: float) -> int:
    scenarios = list(_iterate_bundled_scenarios())
    found = count = 0
    timing = [fault for fault in DEFECTS.values() if fault.breaks in RULES and only in f"{fault.breaks} {fault.name}"]
    for defect in timing[::every]:
        chosen = list_unclaimed_scenarios(defect, scenarios)
        if not chosen:
            print(f"no scenario {defect.breaks} {defect.name}: all that cover its rule catch it", flush=True)
            continue
        is_found, reported = _explore_for_defect(defect, chosen, seconds)
        found, count = found + is_found, count + 1
        print(f"{'found    ' if is_found else 'NOT FOUND'} {defect.breaks} {defect.name}: {reported}", flush=True)
    print(f"found {found} of {count}")
    return 0


def _iterate_bundled_scenarios() -> Iterator[Scenario]:
    return (scenario for scenario in map(load, list_corpus_files()) if not scenario.openings)


def _explore_reference(only: str, seconds: float, seed: int) -> int:
    found = runs = 0
    start = monotonic()
    for scenario in _iterate_bundled_scenarios():
        if only not in scenario.id:
            continue
        try:
            result = explore(
                scenario, reference_supervisor(), runs=_RUNS, seed=seed, seconds=seconds, shrinking=_SHRINK
            )
        except NotApplicable:
            continue
        runs += result.runs
        if result.find is not None:
            found += 1
            print(f"FOUND {scenario.id}: {result.find.reason}\n{result.find.scenario.text}", flush=True)
    print(f"found {found} in {runs} settings, {monotonic() - start:.0f} s")
    return 1 if found else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Explore for each defect, or the reference supervisor; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.explore", description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="for each defect, or scenario (default: 30)")
    parser.add_argument("--only", default="", help="only defects, rules or scenarios that contain this")
    parser.add_argument("--every", type=int, default=1, help="only each N-th of these defects (default: 1)")
    parser.add_argument("--reference", action="store_true", help="explore the reference supervisor")
    parser.add_argument("--seed", type=int, default=0, help="of the settings of the reference supervisor (default: 0)")
    options = parser.parse_args(arguments)
    if options.reference:
        return _explore_reference(options.only, options.seconds, options.seed)
    return _explore_defects(options.only, options.every, options.seconds)


if __name__ == "__main__":
    sys.exit(main())
