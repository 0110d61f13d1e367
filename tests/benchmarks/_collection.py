"""The cost of collecting thousands of scenario files, over that of reading their YAML. Owns a folder of copies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pytest_agentproc.corpus import SUFFIX, corpus_files
from tests.benchmarks._figures import Samples, ratios, summary

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

_FLOOR = """
import pytest

class Item(pytest.Item):
    def runtest(self):
        pass

class File(pytest.File):
    def collect(self):
        self.path.read_bytes()
        yield Item.from_parent(self, name="item")

def pytest_collect_file(file_path, parent):
    if file_path.name.endswith(".scenario.yaml"):
        return File.from_parent(parent, path=file_path)
"""
"""A plugin that knows nothing of what it collects."""


class CollectionPart:
    """collection_ratio: CPU of `pytest --collect-only` on 2,000 files, less that on none, over libyaml's composing.

    Every file is a copy of a bundled one with a content of its own. `first` is without pytest's cache, so that each
    file is read and checked; `again` is with the cache of an earlier session, which found no mistake in these contents.
    The kit's plugin is the only one beside pytest's own, and what it loads for its first scenario counts. `floor` is a
    plugin that reads each file as bytes and gives one item for it: with the composing itself, which is 1, that is the
    least that a first collection can be.
    """

    name = "collection"

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="agentproc-benchmark-"))
        (self._folder / "pytest.ini").write_text("[pytest]\n")
        (self._folder / "floor.py").write_text(_FLOOR)
        for name in ("none", "many"):
            (self._folder / name).mkdir()
        corpus = corpus_files()
        for number in range(_FILES):
            file = corpus[number % len(corpus)]
            copy = self._folder / "many" / f"{file.name.removesuffix(SUFFIX)}-{number}{SUFFIX}"
            copy.write_text(f"{file.read_text()}# copy {number}\n")
        self._taken = {name: Samples() for name in ("first", "again", "floor", "compose")}
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("PY")}
        self._environment |= {
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONPATH": str(self._folder),
            "PYTHONPYCACHEPREFIX": str(self._folder / "bytecode"),
        }
        try:
            self._collect("many")  # writes byte code, and the cache of the session before
        except BaseException:
            self.close()
            raise

    def _collect(self, name: str, *options: str, plugin: str = "pytest_agentproc.plugin") -> float:
        """Give the CPU seconds of one collection."""
        command = [sys.executable, "-m", "pytest", "-p", plugin, "--collect-only", "-q", name]
        process = subprocess.Popen(
            [*command, *options], cwd=self._folder, env=self._environment, stdout=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wanted = _NOTHING_COLLECTED if name == "none" else 0
        if process.returncode != wanted:
            raise RuntimeError(f"pytest ended with {process.returncode} on {name}, not {wanted}")
        return usage.ru_utime + usage.ru_stime

    def _compose(self) -> float:
        """Give the CPU seconds that PyYAML takes to compose the files with libyaml."""
        command = [sys.executable, "-c", _COMPOSE, str(self._folder / "many")]
        return float(subprocess.run(command, env=self._environment, stdout=subprocess.PIPE, check=True).stdout)

    def sample(self) -> None:
        none = self._collect("none")
        self._taken["compose"].add([self._compose()])
        self._taken["again"].add([self._collect("many") - none])
        self._taken["first"].add([self._collect("many", "-p", "no:cacheprovider") - none])
        self._taken["floor"].add([self._collect("many", plugin="floor") - self._collect("none", plugin="floor")])

    def report(self) -> dict[str, Any]:
        taken = self._taken
        return {
            "collection_ratio": {
                name: summary(ratios(taken[name], taken["compose"])) for name in taken if name != "compose"
            },
            "collection_ms": {name: summary([one * 1e3 for one in samples.rounds]) for name, samples in taken.items()},
        }

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
