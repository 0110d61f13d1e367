"""The part of the kit that pytest sees: options, collected scenario files, fixtures. Loads the rest when it is used.

The types of the fixtures are here for annotations: `fake_agent: Fakes`, which makes a `FakeAgent`; `agent_run: Runner`,
which gives an `AgentRun`; `agent_session: Sessions`, which opens an `AgentSession`; `agent_scenario: AgentRun`;
`agent_timeline: AgentTimeline`; `virtual_clock: VirtualClock`; `process_tree: ProcessTree`; `fake_agents: FakeAgents`.
`with FakeAgents() as agents:` serves code without fixtures as well.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import pytest_agentproc.plugin._rewriting  # noqa: F401  # first: what is imported from here on is not rewritten
from pytest_agentproc.plugin._fixtures import *  # noqa: F403  # every fixture: its list of public names is the one list
from pytest_agentproc.plugin._hooks import (
    pytest_addhooks,
    pytest_cmdline_main,
    pytest_collect_file,
    pytest_collection,
    pytest_collection_finish,
    pytest_collection_modifyitems,
    pytest_configure,
    pytest_enter_pdb,
    pytest_generate_tests,
    pytest_load_initial_conftests,
    pytest_pyfunc_call,
    pytest_report_collectionfinish,
    pytest_runtest_makereport,
    pytest_runtestloop,
    pytest_sessionstart,
    pytest_xdist_node_collection_finished,
    pytest_xdist_setupnodes,
)
from pytest_agentproc.plugin._options import pytest_addoption

if TYPE_CHECKING:
    from pytest_agentproc.clock import VirtualClock
    from pytest_agentproc.harness import FakeAgent
    from pytest_agentproc.plugin._fakes import FakeAgents, Fakes
    from pytest_agentproc.plugin._process_tree import ProcessTree
    from pytest_agentproc.plugin._run_fixture import AgentRun, AgentTurn, Runner
    from pytest_agentproc.plugin._session_fixture import AgentSession, Sessions, StartedTurn
    from pytest_agentproc.plugin.reports._timelines import AgentTimeline

__all__ = [
    "AgentRun",
    "AgentSession",
    "AgentTimeline",
    "AgentTurn",
    "FakeAgent",
    "FakeAgents",
    "Fakes",
    "ProcessTree",
    "Runner",
    "Sessions",
    "StartedTurn",
    "VirtualClock",
    "pytest_addhooks",
    "pytest_addoption",
    "pytest_cmdline_main",
    "pytest_collect_file",
    "pytest_collection",
    "pytest_collection_finish",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_enter_pdb",
    "pytest_generate_tests",
    "pytest_load_initial_conftests",
    "pytest_pyfunc_call",
    "pytest_report_collectionfinish",
    "pytest_runtest_makereport",
    "pytest_runtestloop",
    "pytest_sessionstart",
    "pytest_xdist_node_collection_finished",
    "pytest_xdist_setupnodes",
]

_MODULE_BY_PUBLIC_NAME = {
    "AgentRun": "plugin._run_fixture",
    "AgentSession": "plugin._session_fixture",
    "AgentTimeline": "plugin.reports._timelines",
    "AgentTurn": "plugin._run_fixture",
    "StartedTurn": "plugin._session_fixture",
    "FakeAgent": "harness",
    "FakeAgents": "plugin._fakes",
    "Fakes": "plugin._fakes",
    "ProcessTree": "plugin._process_tree",
    "Runner": "plugin._run_fixture",
    "Sessions": "plugin._session_fixture",
    "VirtualClock": "clock",
}


def __getattr__(name: str) -> Any:
    if name in _MODULE_BY_PUBLIC_NAME:
        return getattr(importlib.import_module(f"pytest_agentproc.{_MODULE_BY_PUBLIC_NAME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
