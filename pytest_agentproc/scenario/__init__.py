"""The scenario language: load, check once, bind to a policy.

`load` reads a file into a `Scenario` or raises every problem at once. `Scenario.bind` turns it, under the policy that a
subject states, into a `Bound`: the program that the fake plays and the expectations that the verdict compares. The
tables of steps (`_steps`), expect keys (`_expect`) and file keys (`_file`) make checker, compiler and reference. In a
file with several sessions, each session is a `Scenario` of its own, in `parts`, with a `Bound` of its own. Other
packages extend the language through the `Language` that the caller passes in: nothing here changes.
"""

from __future__ import annotations

from pytest_agentproc.errors import NotApplicable
from pytest_agentproc.scenario._additions import BUNDLED, with_dialect, with_step
from pytest_agentproc.scenario._check import Key, Language
from pytest_agentproc.scenario._expect import TIME_KEYS
from pytest_agentproc.scenario._load import load, load_each, loads, read_agents
from pytest_agentproc.scenario._movable import Movable, movables, moved, restated
from pytest_agentproc.scenario._open import Choice, Opening
from pytest_agentproc.scenario._scenario import Bound, Expectation, Scenario, Terms
from pytest_agentproc.scenario._schema import MODELINE, schema
from pytest_agentproc.scenario._tables import Table, Use, tables, uses
from pytest_agentproc.scenario._yaml import Entry, entries

__all__ = [
    "BUNDLED",
    "MODELINE",
    "TIME_KEYS",
    "Bound",
    "Choice",
    "Entry",
    "Expectation",
    "Key",
    "Language",
    "Movable",
    "NotApplicable",
    "Opening",
    "Scenario",
    "Table",
    "Terms",
    "Use",
    "entries",
    "load",
    "load_each",
    "loads",
    "movables",
    "moved",
    "read_agents",
    "restated",
    "schema",
    "tables",
    "uses",
    "with_dialect",
    "with_step",
]
