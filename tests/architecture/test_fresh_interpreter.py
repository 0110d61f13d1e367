"""What an import loads, measured in a fresh interpreter: parts that are used alone must come alone."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.architecture.sources import ROOT

LIGHT = {
    "pytest_agentproc": ("pytest_agentproc.", "pytest", "yaml", "anyio", "psutil", "freezegun", "fake_agents"),
    "pytest_agentproc.supervisor": ("pytest", "_pytest", "yaml", "freezegun", "fake_agents"),
    "pytest_agentproc.plugin": ("yaml", "anyio", "trio", "psutil", "freezegun", "fake_agents"),
    "pytest_agentproc.capture": ("pytest", "_pytest", "anyio", "psutil", "freezegun", "fcntl", "resource"),
    "pytest_agentproc.scenario": ("pytest", "_pytest", "anyio", "psutil", "freezegun"),
}


@pytest.mark.slow
@pytest.mark.parametrize("module", LIGHT)
def test_an_import_loads_nothing_that_it_does_not_need(module: str) -> None:
    """A supervisor in production has no pytest, and every pytest start pays for what the plugin loads."""
    code = f"import sys, {module}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = [name for name in loaded for banned in LIGHT[module] if _is(name, banned)]
    assert heavy == []


def _is(name: str, banned: str) -> bool:
    return name.startswith(banned) if banned.endswith(".") else name.partition(".")[0] == banned


@pytest.mark.slow
def test_the_fakes_load_nothing_but_the_standard_library() -> None:
    """A fake starts in a foreign environment, where nothing of ours is installed, and must start fast."""
    code = "import sys, fake_agents.player; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": str(ROOT)}
    ).stdout.split()
    foreign = {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names - {"fake_agents", "__main__"}
    assert foreign == set()
