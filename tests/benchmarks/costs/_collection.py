"""The cost of collecting thousands of scenario files, over that of reading their YAML. Owns a folder of copies."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from pytest_agentproc.corpus import SCENARIO_FILE_SUFFIX, list_corpus_files
from tests.benchmarks._figures import Part, Ratio, measure_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["measure_collection"]

_NOTHING_COLLECTED = 5
_COMPOSE = """
import pathlib, sys, time, yaml
texts = [file.read_text() for file in pathlib.Path(sys.argv[1]).iterdir()]
begun = time.process_time()
for text in texts:
    yaml.compose(text, Loader=yaml.CSafeLoader)
print(time.process_time() - begun)
"""


@contextmanager
def measure_collection(*, is_small: bool) -> Iterator[Part]:
    """Measure `pytest --collect-only` on scenarios, less that on none, over libyaml's composing of the same files.

    Every file is a copy of a bundled one with a content of its own. The kit's plugin is the only one beside pytest's
    own, and the modules that it loads for its first scenario count.
    """
    count = 10 if is_small else 2000
    corpus = list_corpus_files()
    with TemporaryDirectory(prefix="agentproc-benchmark-") as name:
        folder = Path(name)
        (folder / "pytest.ini").write_text("[pytest]\n")
        for part in ("none", "many"):
            (folder / part).mkdir()
        for number in range(count):
            text = corpus[number % len(corpus)].read_text()
            (folder / "many" / f"copy-{number}{SCENARIO_FILE_SUFFIX}").write_text(f"{text}# copy {number}\n")
        _collect(folder, "many")  # writes byte code
        yield Part(
            {
                "collect": lambda: _measure_collection(folder, "many") - _measure_collection(folder, "none"),
                "compose": lambda: _measure_composing(folder),
            },
            {"collect over compose": Ratio("collect", "compose", None if is_small else 6.0)},
            lambda: {"files": count},
        )


def _measure_collection(folder: Path, part: str) -> float:
    return measure_mean(partial(_collect, folder, part), 1)


def _collect(folder: Path, part: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PY")}
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    command = [sys.executable, "-m", "pytest", "-p", "pytest_agentproc.plugin", "--collect-only", "-q", part]
    code = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=False, timeout=300
    ).returncode
    if code != (_NOTHING_COLLECTED if part == "none" else 0):
        raise RuntimeError(f"pytest ended with {code} on {part}")


def _measure_composing(folder: Path) -> float:
    command = [sys.executable, "-c", _COMPOSE, str(folder / "many")]
    return float(subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=300).stdout)
