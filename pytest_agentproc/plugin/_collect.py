"""Owns which files are scenarios as pytest sees them, and which words of its command line name bundled ones.

Opens none of them: a suite without scenarios pays for a look at names only.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.corpus import SUFFIX

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["CORPUS", "place_in_corpus", "pytest_collect_file", "pytest_load_initial_conftests"]

CORPUS = "agentproc-corpus"
"""The beginning of the node ids of bundled scenarios, wherever these are installed."""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None]:
    """Load the conftest files of this directory for node ids of bundled scenarios: their folder exists nowhere."""
    _spare_rewriting(early_config)
    given = early_config.known_args_namespace
    given.file_or_dir = [word for word in given.file_or_dir if place_in_corpus(early_config, word) is None]
    return (yield)


def _spare_rewriting(config: pytest.Config) -> None:
    """Have pytest load the kit's modules as they are: it rewrites the assertions of every plugin."""
    # Rewriting the whole kit takes half a second of a first run. It also parses modules while tests run, which fails on
    # CPython before 3.11.8 and 3.12.2 if an object that a test left is finalized meanwhile.
    marked: set[str] = getattr(config.pluginmanager.rewrite_hook, "_must_rewrite", set())
    marked -= {"fake_agents", "pytest_agentproc"}


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Take every file called `*.scenario.yaml`."""
    if not file_path.name.endswith(SUFFIX):
        return None
    from pytest_agentproc.plugin._items import ScenarioFile

    return ScenarioFile.from_parent(parent, path=file_path)


def place_in_corpus(config: pytest.Config, word: str) -> str | None:
    """Give what follows `agentproc-corpus/` in a node id; None if the word is no node id of a bundled scenario.

    pytest prints a node id relative to the rootdir, and in its summary relative to the directory of the call.
    """
    path, colons, name = word.partition("::")
    if CORPUS not in path:
        return None
    here = config.invocation_params.dir
    file = Path(os.path.normpath(here / path))
    folder = next((base / CORPUS for base in (config.rootpath, here) if file.is_relative_to(base / CORPUS)), None)
    return None if folder is None or file.exists() else f"{file.relative_to(folder).as_posix()}{colons}{name}"
