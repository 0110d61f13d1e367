"""Owns how a command's argument names a scenario: a file, or the id of a bundled one. Plays none."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agentproc.corpus import SUFFIX, corpus_files
from pytest_agentproc.errors import UsageError
from pytest_agentproc.scenario import load

if TYPE_CHECKING:
    from pytest_agentproc.scenario import Scenario

__all__ = ["scenario_of"]


def scenario_of(word: str) -> Scenario:
    """Load the scenario that a word names.

    Raises:
        UsageError: there is none.
        ScenarioError: every problem of it.
    """
    path = Path(word)
    if path.is_file():
        return load(word)
    if path.is_dir():
        raise UsageError(f"{word} is a folder", "name one scenario file, or the id of a bundled scenario")
    bundled = {file.name.removesuffix(SUFFIX): file for file in corpus_files()}
    if word in bundled:
        return load(bundled[word])
    near = get_close_matches(path.name.removesuffix(SUFFIX), bundled, 1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise UsageError(
        f"{word}: there is no such file, and no such bundled scenario", f"{hint}agentproc list shows the bundled ones"
    )
