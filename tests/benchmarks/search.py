"""`python -m tests.benchmarks.search`: the search finds the timing defects by itself, from the generic open scenarios.

Every defect of the rules about timing is looked for in the open scenarios that cover its rule. They take turns, for a
bounded number of seconds. A find counts if its file, loaded from its text alone, is red on the defect and green on the
core. The last line is `found N of M`. Run by hand; it is no test. The exit code is 1 below 90 %.
"""

from __future__ import annotations

import argparse
import sys
from time import process_time
from typing import TYPE_CHECKING

from pytest_agentproc.defects import DEFECTS
from pytest_agentproc.harness import ScenarioRunner, run_in_model
from pytest_agentproc.scenario import Scenario, loads
from pytest_agentproc.search import confirm_failure, format_failure_scenario, search
from pytest_agentproc.subjects import ReferenceSupervisor, reference_supervisor
from pytest_agentproc.verdict import Verdict, judge_play
from tests.bundled import load_all_bundled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_agentproc.defects import Defect
    from pytest_agentproc.search import FailingSetting

RULES = (
    *("A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8", "C1", "C2", "C4"),
    *("P1", "P2", "P3", "P5", "P6", "P7", "P8", "B1", "B2", "B3", "B4"),
)
_SHARE = 0.9
_RUNS = 100_000
_SLICE = 1.5
_SHRINK = 2.0


def load_scenarios_with_open_values() -> list[Scenario]:
    """Load the generic open scenarios."""
    return [scenario for scenario in load_all_bundled() if scenario.openings]


def confirm_finding(find: FailingSetting, defect: Defect) -> str:
    """Name the fault in the file of a find; "" if it is red on the defect and green on the reference supervisor."""
    text = format_failure_scenario(find, subject=defect.name, seed=0, run=0, replay="", is_defect=True)
    scenario = loads(text, "found.scenario.yaml")
    if judge_play(run_in_model(scenario, build_defective_supervisor(defect))).verdict is not Verdict.FAILED:
        return "its file is not red on the defect"
    seen = judge_play(run_in_model(scenario, reference_supervisor())).verdict
    return "" if seen is Verdict.PASSED else f"its file is {seen} on the reference supervisor"


def build_defective_supervisor(defect: Defect) -> ReferenceSupervisor:
    """Give the reference supervisor with a defect built in."""
    return ReferenceSupervisor(defect.name, defect.deciders, defect.session_deciders)


def _search_for_defect(
    defect: Defect, scenarios: Sequence[Scenario], seconds: float, runner: ScenarioRunner | None
) -> tuple[bool, str]:
    """Search in turns, a slice of time in each scenario that covers the rule."""
    start, seed, runs = process_time(), 0, 0
    covering = [candidate for candidate in scenarios if defect.breaks in candidate.covers] or scenarios
    while process_time() - start < seconds:
        for scenario in covering:
            left = seconds - (process_time() - start)
            if left <= 0:
                break
            result = search(
                scenario,
                build_defective_supervisor(defect),
                runs=_RUNS,
                seed=seed,
                seconds=min(_SLICE, left),
                shrinking=_SHRINK,
                clock=process_time,
            )
            runs += result.runs
            if result.find is None:
                continue
            trouble = confirm_finding(result.find, defect)
            if not trouble and runner is not None:
                confirmed = confirm_failure(result.find, build_defective_supervisor(defect), runner)
                trouble = "" if confirmed.repeats else f"not deterministic: {confirmed.difference}"
            spent = f"{runs} settings, {process_time() - start:.1f} s"
            return not trouble, f"{scenario.id}, {spent}: {trouble or result.find.reason}"
        seed += 1
    return False, f"not found in {runs} settings, {seconds:.0f} s"


def main(arguments: Sequence[str] | None = None) -> int:
    """Search for each defect; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.search", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="at most, for each defect (default: 60)")
    parser.add_argument("--only", default="", help="only defects, or rules, that contain this")
    parser.add_argument("--model-only", action="store_true", help="confirm no find with real processes")
    options = parser.parse_args(arguments)
    chosen = [
        fault for fault in DEFECTS.values() if fault.breaks in RULES and options.only in f"{fault.breaks} {fault.name}"
    ]
    scenarios = load_scenarios_with_open_values()
    found = 0
    with ScenarioRunner() as runner:
        for defect in chosen:
            is_found, reported = _search_for_defect(
                defect, scenarios, options.seconds, None if options.model_only else runner
            )
            found += is_found
            print(f"{'found    ' if is_found else 'NOT FOUND'} {defect.breaks} {defect.name}: {reported}", flush=True)
    print(f"found {found} of {len(chosen)}")
    return 0 if found >= _SHARE * len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
