"""The cost of an installed plugin: two fresh virtual environments, one with it. Owns these; knows no scenario."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.architecture.sources import ROOT
from tests.benchmarks._figures import Samples, compute_ratios, summarize_values

__all__ = ["PluginPart"]

_NOTHING_COLLECTED = 5
_HEAVY = ("yaml", "anyio", "psutil", "freezegun")
_PROBE = f"""
import json, sys, pytest
pytest.main(["--collect-only", "-q", "-p", "no:anyio"])
own = sum(name.partition(".")[0] == "pytest_agentproc" for name in sys.modules)
print(json.dumps([[name for name in {_HEAVY} if name in sys.modules], own]))
"""


class PluginPart:
    """plugin_import_ratio: user CPU of `pytest --collect-only` on an empty suite, with the plugin over without it.

    Both environments hold the same other packages; the plugin comes as a wheel. The pytest
    plugin of anyio loads anyio in both. So it is switched off while the benchmark counts the kit's modules.

    Args:
        interpreter: of what the environments are made.
        pairs: alternating pairs in each round.
    """

    name = "plugin"

    def __init__(self, interpreter: str, pairs: int = 2) -> None:
        self._pairs = pairs
        self._folder = Path(tempfile.mkdtemp(prefix="agentproc-benchmark-"))
        self._suite = self._folder / "suite"
        self._suite.mkdir()
        self._taken = {name: Samples() for name in ("without", "with", "without_all", "with_all")}
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        for name in ("PYTEST_ADDOPTS", "VIRTUAL_ENV"):
            self._environment.pop(name, None)
        try:
            self._install(interpreter)
        except BaseException:
            self.close()
            raise
        for name in ("without", "with"):
            self._collect(name)  # the first run writes byte code
        self.loaded, self.own_modules = self._probe("with")

    def _install(self, interpreter: str) -> None:
        for name in ("without", "with"):
            self._run(interpreter, "-m", "venv", str(self._folder / name))
        self._pip("with", "wheel", "--no-deps", "--wheel-dir", str(self._folder), str(ROOT))
        wheel = next(self._folder.glob("*.whl"))
        self._pip("with", "install", str(wheel))
        frozen = self._pip("with", "freeze", "--exclude", "pytest-agentproc")
        self._pip("without", "install", "--no-deps", *frozen.split())

    def _pip(self, name: str, *arguments: str) -> str:
        quiet = () if arguments[0] == "freeze" else ("-qq",)
        return self._run(str(self._folder / name / "bin/pip"), "--disable-pip-version-check", *arguments, *quiet)

    def _run(self, *command: str) -> str:
        completed = subprocess.run(
            command, cwd=self._suite, env=self._environment, stdout=subprocess.PIPE, text=True, check=True
        )
        return completed.stdout

    def _collect(self, name: str) -> tuple[float, float]:
        """Give the user CPU seconds, and those with the system's, of one collection."""
        process = subprocess.Popen(
            [str(self._folder / name / "bin/pytest"), "--collect-only"],
            cwd=self._suite,
            env=self._environment,
            stdout=subprocess.DEVNULL,
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != _NOTHING_COLLECTED:
            raise RuntimeError(f"pytest {name} the plugin ended with {process.returncode}, not {_NOTHING_COLLECTED}")
        return usage.ru_utime, usage.ru_utime + usage.ru_stime

    def _probe(self, name: str) -> tuple[list[str], int]:
        said = self._run(str(self._folder / name / "bin/python"), "-c", _PROBE)
        loaded, own = json.loads(said.splitlines()[-1])
        return loaded, own

    def sample(self) -> None:
        for pair in range(self._pairs):
            order = ("without", "with") if pair % 2 else ("with", "without")
            for name in order:
                user, everything = self._collect(name)
                self._taken[name].add([user])
                self._taken[f"{name}_all"].add([everything])

    def report(self) -> dict[str, Any]:
        taken = self._taken
        return {
            "plugin_import_ratio": summarize_values(compute_ratios(taken["with"], taken["without"])),
            "plugin_import_ratio_with_system": summarize_values(
                compute_ratios(taken["with_all"], taken["without_all"])
            ),
            "plugin_import_ms": {
                name: summarize_values([seconds * 1e3 for seconds in taken[name].rounds])
                for name in ("without", "with")
            },
            "plugin_loads": {"heavy": self.loaded, "own_modules": self.own_modules, "must_not_load": list(_HEAVY)},
        }

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
