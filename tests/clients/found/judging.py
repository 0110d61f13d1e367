"""Installs a package and plays its scenario against it; gives the row of the results. Writes no page."""

from __future__ import annotations

import shutil
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agentproc.subjects import Command
from pytest_agentproc.verdict import Verdict, judge_all_expectations, list_unmet_checks
from tests.bundled import load_bundled
from tests.clients.comparison import shorten
from tests.clients.packages import fill_cached_folder, find_node

if TYPE_CHECKING:
    from pytest_agentproc.harness import ScenarioRunner
    from tests.clients.found.packages import Package

__all__ = ["judge_package"]

_HERE = Path(__file__).parent
_SAYS = {"outcome": {"exit_code": {0: "completed", "other": "failed"}}, "text": "stdout"}


def judge_package(runner: ScenarioRunner, package: Package) -> dict[str, str]:
    """Play it; the row is the first check at level `must` that failed, or has no check if none failed."""
    played = runner.play(load_bundled(package.scenario_id), _build_subject(package))
    assert played.record.header["clock"] == "virtual", f"{package.name}: {played.record.header}"
    row = {"package": package.name, "version": package.version, "scenario": package.scenario_id}
    for found in list_unmet_checks(judge_all_expectations(played)):
        assert found.verdict not in (Verdict.ADAPTER_ERROR, Verdict.KIT_ERROR), f"{package.name}: {found.seen}"
        if found.verdict is Verdict.FAILED and found.level == "must":
            return row | {"check": found.key, "expected": shorten(found.wanted), "seen": shorten(found.seen)}
    return row


def _build_subject(package: Package) -> Command:
    build = partial(
        Command,
        name=package.name,
        says=_SAYS,
        dialects=[package.agent],
        outcomes=["completed", "failed"],
        on_path=True,
    )
    if package.registry == "npm":
        folder = _install_from_npm(package)
        shutil.copyfile(_HERE / "adapters.mjs", folder / "adapters.mjs")
        words = [find_node(), "adapters.mjs", package.name, "{prompt}"]
        return build(words, cwd=str(folder))
    # One package wants a key before it starts a CLI that needs none.
    env = {"PYTHONPATH": str(_install_from_pypi(package)), "ANTHROPIC_API_KEY": "sk-ant-no-key-but-of-its-form-00000"}
    env["GEMINI_CLI_TRUST_WORKSPACE"] = "true"  # its user trusts the folder
    words = [sys.executable, "-P", str(_HERE / "adapters.py"), package.name, "{prompt}"]
    return build(words, env=env)


def _install_from_pypi(package: Package) -> Path:
    pins = [f"{package.name}=={package.version}", *package.beside.split()]
    key = [*pins, f"{sys.version_info[0]}.{sys.version_info[1]}"]

    def install(folder: Path) -> list[str]:
        return [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), *pins]

    return fill_cached_folder(f"found-{package.name}", key, install)


def _install_from_npm(package: Package) -> Path:
    pins = [f"{package.name}@{package.version}", *package.beside.split()]

    def install(folder: Path) -> list[str]:
        quiet = ("--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")
        return ["npm", "install", *quiet, "--ignore-scripts", "--omit=optional", "--prefix", str(folder), *pins]

    return fill_cached_folder(f"found-{package.name.strip('@').replace('/', '-')}", pins, install)
