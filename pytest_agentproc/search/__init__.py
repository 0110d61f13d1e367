"""Look for the failing timing: settings of a scenario under which a supervisor breaks a promise.

`search` draws settings of the values that a scenario leaves open, plays each in the model (another supervisor:
with real processes) beside the reference, and shrinks what it finds. `explore` does so with a scenario that
leaves none open: it moves what is there (`_exploration` says which settings count). `confirm` plays a find with real
processes; `written` makes it an ordinary file.
"""

from __future__ import annotations

from pytest_agentproc.search._draws import require_hypothesis
from pytest_agentproc.search._explore import explore
from pytest_agentproc.search._find import Confirmed, Find, confirm
from pytest_agentproc.search._hunt import Searched
from pytest_agentproc.search._invariants import broken
from pytest_agentproc.search._search import Search, search, speaks_past_its_end
from pytest_agentproc.search._told import told
from pytest_agentproc.search._written import written

__all__ = [
    "Confirmed",
    "Find",
    "Search",
    "Searched",
    "broken",
    "confirm",
    "explore",
    "require_hypothesis",
    "search",
    "speaks_past_its_end",
    "told",
    "written",
]
