"""What pytest sees of the kit: options, collected scenario files, fixtures. Loads everything else when it is used."""

from __future__ import annotations

from pytest_agentproc.plugin._collect import pytest_collect_file
from pytest_agentproc.plugin._figures import pytest_report_teststatus, pytest_sessionfinish
from pytest_agentproc.plugin._fixtures import (
    agent_run,
    fake_agent,
    process_tree,
    pytest_collection_modifyitems,
    virtual_clock,
    wall_clock,
)
from pytest_agentproc.plugin._options import pytest_addhooks, pytest_addoption, pytest_configure, pytest_unconfigure
from pytest_agentproc.plugin._progress import pytest_sessionstart

__all__ = [
    "agent_run",
    "fake_agent",
    "process_tree",
    "pytest_addhooks",
    "pytest_addoption",
    "pytest_collect_file",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_report_teststatus",
    "pytest_sessionfinish",
    "pytest_sessionstart",
    "pytest_unconfigure",
    "virtual_clock",
    "wall_clock",
]
