"""Spoilt scenario files: each loads and binds, or gives located problems, soon; never anything else."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_agentproc.errors import ScenarioError, ScenarioProblem
from pytest_agentproc.scenario import NotApplicable, loads
from pytest_agentproc.vocabulary import Policy
from tests.bundled import load_all_bundled
from tests.unit.mutations import MUTATIONS

if TYPE_CHECKING:
    from random import Random

ROOT = Path(__file__).resolve().parents[3]
TEXTS = [scenario.text for scenario in load_all_bundled()]
TEXTS += [file.read_text("utf-8") for file in sorted((Path(__file__).parents[1] / "malformed").glob("*.yaml"))]
LINE_ENDS = re.compile("\r\n|[\n\r]")
LONGEST_MESSAGE = 600
MAX_SECONDS = 2.0
"""Of processor time for one file; the slowest of some hundred thousand took a tenth of it."""


def find_problems(text: str) -> tuple[ScenarioProblem, ...] | None:
    """Load and bind, and give what is said about the text; None if nothing is."""
    try:
        loads(text, folder=ROOT / "tests").bind(Policy())
    except ScenarioError as error:
        return error.problems
    except NotApplicable:
        pass
    return None


def check_promises(text: str) -> None:
    """Hold what is promised for every text."""
    start = time.process_time()
    found = find_problems(text)
    took = time.process_time() - start
    assert took < MAX_SECONDS, f"it took {took:.1f} s"
    if found is None:
        return
    assert found
    lines = LINE_ENDS.split(text)
    for problem in found:
        assert problem.file == "<text>"
        assert 1 <= problem.line <= len(lines)
        assert 1 <= problem.column <= len(lines[problem.line - 1]) + 2
        assert problem.message.isprintable(), "a message is one line, without anything that a terminal obeys"
        assert 0 < len(problem.message) <= LONGEST_MESSAGE


def mutate_scenario(random: Random) -> str:
    """Take a scenario, maybe with the end of another, and spoil it in one to four ways."""
    lines = random.choice(TEXTS).split("\n")
    if random.random() < 0.1:
        other = random.choice(TEXTS).split("\n")
        lines = lines[: random.randrange(len(lines) + 1)] + other[random.randrange(len(other)) :]
    for _ in range(random.choice((1, 1, 2, 3, 4))):
        random.choice(MUTATIONS)(lines, random)
        lines = lines or [""]
    return "\n".join(lines)


@pytest.mark.once
@pytest.mark.slow
@settings(
    max_examples=2000,
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.randoms())
def test_a_spoilt_file_loads_or_gives_located_problems(random: Random) -> None:
    """A stack instead of a message is what users of YAML plugins complain about first."""
    check_promises(mutate_scenario(random))


STEPS = "scenario: a\nagent: raw\nscript:\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\ud800scenario: a",
        "%YAML 9.9\n---\nscenario: a",
        "scenario: a\nagent: raw\nscript: &x [*x]",
        f"{STEPS}  - silence: {'(' * 190}",
        f"{STEPS}  - raw: {{file: 'a\0b'}}",
        f"{STEPS}  - exit: \u0663",
        f"{STEPS}  - exit: 99999999999999999999999999",
        f"{STEPS}  - {{say: a\n      b? c}}",
        f"{STEPS}  - 'two\n\n  lines': x",
        f"{STEPS}  - say: a\u2028",
        "scenario: a\nagent: raw\nscript: []\nexpect: {text: {matches: 'a{99999999999}'}}",
        "scenario: a\nagent: raw\nscript: []\nexpect: {text: {matches: '[[a]--b]'}}",
        f"scenario: a\nagent: raw\npolicy: {{kill_grace: {'9' * 190}h}}\nscript: []",
        f"{STEPS}{'- sya: x' + chr(10)}" * 200 + "\t",
        f"{STEPS}  - silence: 1s\n      -",
        f"{STEPS}  - silence: '1s\n\n      +'",
    ],
)
def test_inputs_that_once_broke_the_checker_are_reported_in_place(text: str) -> None:
    """Each was a stack, a place outside of the file, or a message of several lines."""
    check_promises(text)
