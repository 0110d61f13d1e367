"""Look for the failing timing: settings of a scenario under which a supervisor breaks a promise.

`search` draws settings of the values that a scenario leaves open, plays each in the model (another supervisor:
with real processes) beside the reference, and shrinks what it finds. `explore` does so with a scenario that
leaves none open: it moves what is there (`_exploration` says which settings count). `confirm_failure` plays a find
with real processes; `format_failure_scenario` makes it an ordinary file.
"""

from __future__ import annotations

from pytest_agentproc.search._draws import require_hypothesis
from pytest_agentproc.search._finding import FailingSetting, confirm_failure
from pytest_agentproc.search._finding_file import format_failure_scenario
from pytest_agentproc.search._invariants import find_broken_invariant
from pytest_agentproc.search._piece_exploration import explore
from pytest_agentproc.search._result_expectations import collect_expect_keys
from pytest_agentproc.search._search import has_output_after_end, search
from pytest_agentproc.search._trials import SearchResult

__all__ = [
    "FailingSetting",
    "SearchResult",
    "collect_expect_keys",
    "confirm_failure",
    "explore",
    "find_broken_invariant",
    "format_failure_scenario",
    "has_output_after_end",
    "require_hypothesis",
    "search",
]
