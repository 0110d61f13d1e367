"""The modules that an import loads, in a fresh interpreter: a part that is used alone must not load the others."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.architecture.sources import ROOT

LIGHT = {
    "pytest_agentproc": ("pytest_agentproc.", "pytest", "yaml", "anyio", "psutil", "freezegun"),
    "pytest_agentproc.supervisor": (
        "pytest",
        "_pytest",
        "yaml",
        "psutil",
        "freezegun",
        "pytest_agentproc.fake_agents.",
    ),
    "pytest_agentproc.plugin": (
        "yaml",
        "anyio",
        "trio",
        "psutil",
        "freezegun",
        "detect_secrets",
        "pytest_agentproc.fake_agents.",
    ),
    "pytest_agentproc.capture": (
        "pytest",
        "_pytest",
        "anyio",
        "psutil",
        "freezegun",
        "detect_secrets",
        "fcntl",
        "resource",
    ),
    "pytest_agentproc.scenario": ("pytest", "_pytest", "anyio", "psutil", "freezegun"),
}


@pytest.mark.slow
@pytest.mark.parametrize("module", LIGHT)
def test_an_import_loads_nothing_that_it_does_not_need(module: str) -> None:
    """A supervisor in production has no pytest, and every pytest start pays for the modules that the plugin loads."""
    code = f"import sys, {module}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = [name for name in loaded for banned in LIGHT[module] if _is_banned(name, banned)]
    assert heavy == []


def _is_banned(name: str, banned: str) -> bool:
    return name.startswith(banned) if banned.endswith(".") else name.partition(".")[0] == banned


def test_the_help_of_the_command_loads_no_command() -> None:
    """Help and a mistyped word answer at once: within twice the time of an interpreter that does nothing."""
    code = (
        "import sys, __future__; bare = set(sys.modules)\n"
        "from pytest_agentproc.cli import main; main(['--help']); print(*sorted({*sys.modules} - bare))"
    )
    printed = subprocess.run([sys.executable, "-Ic", code], capture_output=True, text=True, check=True).stdout
    ours = ["pytest_agentproc", *(f"pytest_agentproc.cli{name}" for name in ("", "._commands", "._door"))]
    assert printed.splitlines()[-1].split() == ours


ELSEWHERE = ("fcntl", "grp", "pwd", "resource", "termios", "_posixsubprocess", "psutil", "anyio", "pytest")
"""Modules that another platform, or an installation of the language alone, does not have.

The test's platform calls itself darwin: the standard library of a CPython built for Linux cannot be that of Windows."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["check", "scenarios/completion/lives-on/lingers-and-ignores-term.scenario.yaml"],
        ["list", "lingers-and-ignores-term"],
        ["new"],
    ],
)
def test_commands_of_the_language_run_on_any_platform(command: list[str]) -> None:
    """An author of scenarios on another platform can check them there."""
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({ELSEWHERE!r})); sys.platform = 'darwin'\n"
        f"from pytest_agentproc.cli import main; sys.exit(main({command!r}))"
    )
    completed = subprocess.run([sys.executable, "-Ic", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert (completed.returncode, completed.stderr) == (0, "")


@pytest.mark.slow
def test_the_fakes_load_nothing_but_the_standard_library() -> None:
    """A fake starts in a foreign environment, where nothing of ours is installed, and must start fast."""
    code = "import sys, pytest_agentproc.fake_agents.player; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": str(ROOT)}
    ).stdout.split()
    foreign = [name for name in loaded if name.partition(".")[0] not in sys.stdlib_module_names | {"__main__"}]
    home = "pytest_agentproc.fake_agents"
    assert [name for name in foreign if not f"{name}.".startswith(f"{home}.")] == ["pytest_agentproc"]
