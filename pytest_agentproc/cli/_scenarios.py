"""Owns how a command's argument names a scenario: a file, or the id of a bundled one. Plays none."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agentproc.corpus import SCENARIO_FILE_SUFFIX, describe_wrong_file_name, index_corpus_files, split_agent
from pytest_agentproc.errors import UsageError, suggest_known_word
from pytest_agentproc.scenario import load

if TYPE_CHECKING:
    from pytest_agentproc.errors import ScenarioProblem
    from pytest_agentproc.scenario import Scenario


UNKNOWN_WORD_HINT = "dialects and steps that a conftest.py or a plugin adds are known to pytest alone: try pytest FILE"
"""The hint for a scenario that may be right where its words are known."""


def is_unknown_word_problem(problem: ScenarioProblem) -> bool:
    """Say whether a problem may be a word that another package adds, and not a typing mistake."""
    return problem.message.startswith(("unknown dialect", "unknown step")) and '": known ' in problem.message


def report_wrong_file_name(command: str, path: str) -> None:
    """Say on stderr that pytest does not collect a file that this command takes, because of its name."""
    hint = describe_wrong_file_name(path)
    if hint:
        sys.stderr.write(f"agentproc {command}: {path}: {hint}\n")


def load_scenario(word: str) -> Scenario:
    """Load the scenario that a word names.

    Raises:
        UsageError: there is none.
        ScenarioError: every problem of it.
    """
    name, agent = split_agent(word)
    path = Path(name)
    if path.is_dir():
        raise UsageError(f"{word} is a folder", "name one scenario file, or the id of a bundled scenario")
    if path.exists():
        return load(name, agent=agent)
    bundled = index_corpus_files()
    if name in bundled:
        return load(bundled[name], agent=agent)
    words = [
        suggest_known_word(path.name.removesuffix(SCENARIO_FILE_SUFFIX), bundled, ""),
        "agentproc list shows the bundled ones",
    ]
    raise UsageError(f"{word}: there is no such file, and no such bundled scenario", " ".join(filter(None, words)))
