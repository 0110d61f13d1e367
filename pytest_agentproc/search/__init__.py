"""Look for the failing timing: settings of a scenario's open values under which a supervisor breaks a promise.

`search` draws settings, plays each in the model (a supervisor that is not the core: with real processes) beside the
reference, and shrinks what it finds; `confirm` plays a find with real processes; `written` makes it an ordinary file.
"""

from __future__ import annotations

from pytest_agentproc.search._confirm import Confirmed, confirm
from pytest_agentproc.search._draws import require_hypothesis
from pytest_agentproc.search._find import Find
from pytest_agentproc.search._invariants import broken
from pytest_agentproc.search._search import Search, Searched, search
from pytest_agentproc.search._told import told
from pytest_agentproc.search._written import written

__all__ = [
    "Confirmed",
    "Find",
    "Search",
    "Searched",
    "broken",
    "confirm",
    "require_hypothesis",
    "search",
    "told",
    "written",
]
