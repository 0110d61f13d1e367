"""Owns what the reference takes from the bundled scenarios: which of them uses a key, covers a rule, shows a defect.

Examples of keys that none of them uses are in `examples.scenario.yaml` files beside this module.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

from pytest_agentproc.corpus import SCENARIO_FILE_SUFFIX, list_corpus_files
from pytest_agentproc.scenario import find_key_uses, load_for_each_agent

_FOLDER_OF_THIS_MODULE = Path(__file__).parent
_MAX_PREFERRED_EXCERPT_LINES = 10
"""Lines of an excerpt from which on a shorter one is better."""


class BundledScenario(NamedTuple):
    """One scenario, as far as the reference speaks of it.

    Args:
        id: its id; of an example of the reference, empty.
        claim: what must be true.
        level: how much its checks count.
        covers: its rules.
        catches: its defects.
        agent: the dialect and mode of its agent; of several sessions, and of an example of the reference, empty.
        text: the whole file.
    """

    id: str
    claim: str
    level: str
    covers: tuple[str, ...]
    catches: tuple[str, ...]
    agent: str
    text: str


@cache
def read_bundled_scenarios() -> tuple[BundledScenario, ...]:
    """Read every bundled scenario; a file for several agents counts once for each of them."""
    return tuple(
        BundledScenario(
            scenario.id,
            scenario.claim,
            scenario.level,
            scenario.covers,
            tuple(scenario.catches),
            f"{scenario.dialect} {scenario.mode}".strip(),
            scenario.text,
        )
        for file in list_corpus_files()
        for scenario in load_for_each_agent(file)
    )


@cache
def choose_excerpts() -> dict[tuple[int, str], tuple[str, str]]:
    """Give the best example of each key: the lines of a file, and the id of that bundled scenario.

    The key of this mapping is the identity of the entry in its table, and the value there if that is a single word, or
    an empty text for any value. Short excerpts of short files are best, and an empty list shows nothing.
    """
    examples = [
        BundledScenario("", "", "", (), (), "", file.read_text("utf-8"))
        for file in sorted(_FOLDER_OF_THIS_MODULE.glob(f"*{SCENARIO_FILE_SUFFIX}"))
    ]
    files = {example.text: example for example in (*examples, *reversed(read_bundled_scenarios()))}
    found: dict[tuple[int, str], tuple[tuple[int, ...], str, str]] = {}
    for text, example in files.items():
        lines = text.splitlines()
        for use in find_key_uses(text):
            excerpt = _cut_excerpt(lines, use.line)
            rank = (len(excerpt) > _MAX_PREFERRED_EXCERPT_LINES, not example.id, excerpt[-1].endswith("[]"), len(text))
            for value in {"", *use.words}:
                place = (id(use.key), value)
                if place not in found or rank < found[place][0]:
                    found[place] = rank, "\n".join(excerpt), example.id
    return {place: (excerpt, scenario) for place, (_, excerpt, scenario) in found.items()}


def _cut_excerpt(lines: list[str], line: int) -> list[str]:
    """Take a line, and the deeper lines below it."""
    first = lines[line - 1]
    indent = len(first) - len(first.lstrip(" "))
    taken = [first[indent:]]
    for below in lines[line:]:
        if below.strip() and len(below) - len(below.lstrip(" ")) <= indent:
            break
        taken.append(below[indent:])
    while not taken[-1].strip():
        taken.pop()
    return taken
