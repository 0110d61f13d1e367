"""The scenario language: load, check once, bind to a policy.

`load` reads a file into a `Scenario`, or raises every problem at once; `load_data` does so with Python data.
`Scenario.bind` turns it, under the policy that a subject states, into a `BoundScenario`: the program that the fake
plays and the expectations that the verdict compares. The tables of steps (`_steps`), expect keys (`_expect`) and file
keys (`_file`) make checker, compiler and reference. In a file with several sessions, each session is a `Scenario` of
its own, in `parts`, with a `BoundScenario` of its own. Other packages extend the language through the
`ScenarioLanguage` that the caller passes in: nothing here changes.
"""

from __future__ import annotations

from pytest_agentproc.errors import NotApplicable
from pytest_agentproc.scenario._additions import BUNDLED_LANGUAGE, add_dialect, add_step
from pytest_agentproc.scenario._expect import TIME_EXPECT_KEYS
from pytest_agentproc.scenario._file_check import Key, ScenarioLanguage
from pytest_agentproc.scenario._loading import load, load_data, load_for_each_agent, loads, read_agent_names
from pytest_agentproc.scenario._movable_pieces import (
    MovablePiece,
    apply_moves,
    find_movable_pieces,
    replace_expected_times,
)
from pytest_agentproc.scenario._open_values import OpenValue, OpenValueChoice
from pytest_agentproc.scenario._python_data import DataCall, find_pair_literal
from pytest_agentproc.scenario._scenario import BoundScenario, Expectation, Scenario, StatedLimits
from pytest_agentproc.scenario._yaml import ListEntry, quote_yaml_text, read_list_entries
from pytest_agentproc.scenario.tables._schema import (
    SCHEMA_FILE_NAME,
    SCHEMA_MODELINE_FORMAT,
    build_schema,
    format_schema,
)
from pytest_agentproc.scenario.tables._tables import KeyTable, KeyUse, find_key_uses, list_key_tables

__all__ = [
    "BUNDLED_LANGUAGE",
    "SCHEMA_FILE_NAME",
    "SCHEMA_MODELINE_FORMAT",
    "TIME_EXPECT_KEYS",
    "BoundScenario",
    "DataCall",
    "Expectation",
    "Key",
    "KeyTable",
    "KeyUse",
    "ListEntry",
    "MovablePiece",
    "NotApplicable",
    "OpenValue",
    "OpenValueChoice",
    "Scenario",
    "ScenarioLanguage",
    "StatedLimits",
    "add_dialect",
    "add_step",
    "apply_moves",
    "build_schema",
    "find_key_uses",
    "find_movable_pieces",
    "find_pair_literal",
    "format_schema",
    "list_key_tables",
    "load",
    "load_data",
    "load_for_each_agent",
    "loads",
    "quote_yaml_text",
    "read_agent_names",
    "read_list_entries",
    "replace_expected_times",
]
