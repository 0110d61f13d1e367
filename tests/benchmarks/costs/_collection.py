"""The cost of collecting thousands of scenario files, over that of reading their YAML. Owns a folder of copies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pytest_agentproc.corpus import SCENARIO_FILE_SUFFIX, list_corpus_files
from tests.benchmarks._figures import Samples, compute_ratios, summarize_values

__all__ = ["CollectionPart"]

_FILES = 2000
_NOTHING_COLLECTED = 5
_COMPOSE = """
import pathlib, sys, time, yaml
texts = [file.read_text() for file in pathlib.Path(sys.argv[1]).iterdir()]
begun = time.process_time()
for text in texts:
    yaml.compose(text, Loader=yaml.CSafeLoader)
print(time.process_time() - begun)
"""

_CHECK = """
import pathlib, sys, time
from pytest_agentproc.scenario import load
files = [*pathlib.Path(sys.argv[1]).iterdir()]
begun = time.process_time()
for file in files:
    load(file)
print(time.process_time() - begun)
"""

_FLOOR = """
import pytest

class Item(pytest.Item):
    def runtest(self):
        pass

class File(pytest.File):
    def collect(self):
        yield Item.from_parent(self, name="item")

def pytest_collect_file(file_path, parent):
    if file_path.name.endswith(".scenario.yaml"):
        return File.from_parent(parent, path=file_path)
"""
"""A plugin that knows nothing of the files that it collects."""


class CollectionPart:
    """collection_ratio: CPU of `pytest --collect-only` on 2,000 files, less that on none, over libyaml's composing.

    Every file is a copy of a bundled one with a content of its own. The kit's plugin is the only one beside pytest's
    own, and the modules that it loads for its first scenario count. `floor` is a plugin that gives one item for each
    file, and knows nothing of its content. `check_ratio` is the cost of reading and checking for a user that runs them
    all; it is no part of the collection.
    """

    name = "collection"

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="agentproc-benchmark-"))
        (self._folder / "pytest.ini").write_text("[pytest]\n")
        (self._folder / "floor.py").write_text(_FLOOR)
        for name in ("none", "many"):
            (self._folder / name).mkdir()
        corpus = list_corpus_files()
        for number in range(_FILES):
            file = corpus[number % len(corpus)]
            copy = (
                self._folder / "many" / f"{file.name.removesuffix(SCENARIO_FILE_SUFFIX)}-{number}{SCENARIO_FILE_SUFFIX}"
            )
            copy.write_text(f"{file.read_text()}# copy {number}\n")
        self._taken = {name: Samples() for name in ("kit", "floor", "check", "compose")}
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("PY")}
        self._environment |= {
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONPATH": str(self._folder),
            "PYTHONPYCACHEPREFIX": str(self._folder / "bytecode"),
        }
        try:
            self._collect("many")  # writes byte code
        except BaseException:
            self.close()
            raise

    def _collect(self, name: str, plugin: str = "pytest_agentproc.plugin") -> float:
        """Give the CPU seconds of one collection."""
        command = [sys.executable, "-m", "pytest", "-p", plugin, "--collect-only", "-q", name]
        process = subprocess.Popen(command, cwd=self._folder, env=self._environment, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wanted = _NOTHING_COLLECTED if name == "none" else 0
        if process.returncode != wanted:
            raise RuntimeError(f"pytest ended with {process.returncode} on {name}, not {wanted}")
        return usage.ru_utime + usage.ru_stime

    def _run(self, program: str) -> float:
        """Give the CPU seconds that a program says it took with the files."""
        command = [sys.executable, "-c", program, str(self._folder / "many")]
        return float(subprocess.run(command, env=self._environment, stdout=subprocess.PIPE, check=True).stdout)

    def sample(self) -> None:
        self._taken["compose"].add([self._run(_COMPOSE)])
        self._taken["check"].add([self._run(_CHECK)])
        self._taken["kit"].add([self._collect("many") - self._collect("none")])
        self._taken["floor"].add([self._collect("many", plugin="floor") - self._collect("none", plugin="floor")])

    def report(self) -> dict[str, Any]:
        taken = self._taken
        over = {name: summarize_values(compute_ratios(taken[name], taken["compose"])) for name in taken}
        return {
            "collection_ratio": over["kit"],
            "collection_floor_ratio": over["floor"],
            "check_ratio": over["check"],
            "collection_ms": {
                name: summarize_values([seconds * 1e3 for seconds in samples.rounds]) for name, samples in taken.items()
            },
        }

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
