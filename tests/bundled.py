"""The bundled scenarios for tests: one by its id, or all of them, each loaded once."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from pytest_agentproc.corpus import index_corpus_files, list_corpus_files, split_agent
from pytest_agentproc.scenario import Scenario, load, load_for_each_agent
from pytest_agentproc.vocabulary import WAYS_TO_END_A_PROGRAM

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = [
    "find_bundled_path",
    "load_all_bundled",
    "load_all_for_functions",
    "load_bundled",
    "load_first_of_each_file",
]


@cache
def load_bundled(scenario_id: str) -> Scenario:
    """Load a scenario by its id: `NAME`, or `NAME[AGENT]`."""
    return load(find_bundled_path(scenario_id), agent=split_agent(scenario_id)[1])


def find_bundled_path(scenario_id: str) -> Path:
    """Give the file of a scenario by its id."""
    return index_corpus_files()[split_agent(scenario_id)[0]]


@cache
def load_all_bundled() -> tuple[Scenario, ...]:
    """Load every scenario, in the order of their files."""
    return tuple(scenario for file in list_corpus_files() for scenario in load_for_each_agent(file))


def load_all_for_functions() -> tuple[Scenario, ...]:
    """Load every scenario but those whose caller ends the program of the supervisor; the reference is no program."""
    return tuple(
        scenario
        for scenario in load_all_bundled()
        if not any(item.kind == "abandon" and item.value in WAYS_TO_END_A_PROGRAM for item in scenario.drive)
    )


def load_first_of_each_file(scenarios: Iterable[Scenario]) -> list[Scenario]:
    """Keep one scenario of each file: its agents differ in what they print, and in nothing that they start."""
    return [*{split_agent(scenario.id)[0]: scenario for scenario in reversed([*scenarios])}.values()][::-1]
