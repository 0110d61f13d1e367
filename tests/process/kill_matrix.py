"""Which scenario turns red for which defect, and on which keys. Starts no process.

`python -m tests.process.kill_matrix` runs every defect through the bundled scenarios in the model and prints the table.
It takes some minutes. Compare the tables of two commits to see the faults that a change of a scenario or a rule lets
pass.
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING

from pytest_agentproc import defects
from pytest_agentproc.harness import run_in_model
from pytest_agentproc.subjects import ReferenceSupervisor
from pytest_agentproc.supervisor import Deciders, SessionDeciders
from pytest_agentproc.verdict import Verdict, judge_all_expectations
from tests.bundled import load_all_for_functions

if TYPE_CHECKING:
    from pytest_agentproc.scenario import Scenario

__all__ = ["format_matrix", "list_failed_keys"]

_REFERENCE = {False: Deciders(), True: SessionDeciders()}
_HEAD = """\
Defects x scenarios: the expect keys that a defect turns red, * where the scenario's `catches` claims it.
"""


def list_failed_keys(scenario: Scenario, name: str) -> list[str]:
    """Play a scenario against a defect in the model, and list the keys that failed."""
    defect = defects.find_defect(name)
    if (defect.session_deciders if scenario.is_session else defect.deciders) == _REFERENCE[scenario.is_session]:
        return []  # it is the reference supervisor here
    played = run_in_model(scenario, ReferenceSupervisor(name, defect.deciders, defect.session_deciders))
    return [row.key for row in judge_all_expectations(played) if row.verdict is Verdict.FAILED]


def _format_defect(name: str) -> str:
    """Write what one defect turns red."""
    defect = defects.find_defect(name)
    width = max(len(scenario.id) for scenario in load_all_for_functions())
    lines = [f"\n{defect.name} ({defect.breaks}): {defect.story}\n"]
    for scenario in load_all_for_functions():
        claim = scenario.catches.get(name)
        keys = [f"{key}*" if key == claim else key for key in list_failed_keys(scenario, name)]
        if keys:
            lines.append(f"  {scenario.id:{width}}  {' '.join(keys)}\n")
    return "".join(lines)


def format_matrix() -> str:
    """Write the whole matrix, on every core."""
    with ProcessPoolExecutor() as workers:
        blocks = list(workers.map(_format_defect, defects.DEFECT_NAMES))
    return "".join(
        [_HEAD, f"{len(defects.DEFECT_NAMES)} defects, {len(load_all_for_functions())} scenarios\n", *blocks]
    )


def main() -> int:
    """Print the table."""
    sys.stdout.write(format_matrix())
    return 0


if __name__ == "__main__":
    sys.exit(main())
