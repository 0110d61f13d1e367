"""What pytest sees of the kit: options, collected scenario files, fixtures. Loads everything else when it is used."""

from __future__ import annotations

from pytest_agentproc.plugin._collect import pytest_collect_file
from pytest_agentproc.plugin._figures import pytest_report_teststatus, pytest_sessionfinish
from pytest_agentproc.plugin._fixtures import (
    agent_run,
    agent_session,
    agent_timeline,
    fake_agent,
    process_tree,
    pytest_collection_modifyitems,
    virtual_clock,
    wall_clock,
)
from pytest_agentproc.plugin._marked import agent_scenario, pytest_generate_tests, pytest_pyfunc_call
from pytest_agentproc.plugin._options import pytest_addhooks, pytest_addoption, pytest_configure, pytest_unconfigure

__all__ = [
    "agent_run",
    "agent_scenario",
    "agent_session",
    "agent_timeline",
    "fake_agent",
    "process_tree",
    "pytest_addhooks",
    "pytest_addoption",
    "pytest_collect_file",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_generate_tests",
    "pytest_pyfunc_call",
    "pytest_report_teststatus",
    "pytest_sessionfinish",
    "pytest_unconfigure",
    "virtual_clock",
    "wall_clock",
]
