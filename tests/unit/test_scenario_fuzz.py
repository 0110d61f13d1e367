"""Mutated scenario files: each loads and binds, or gives located problems; never anything else."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_agentproc.errors import ScenarioError
from pytest_agentproc.scenario import NotApplicable, loads
from pytest_agentproc.vocabulary import Policy

ROOT = Path(__file__).resolve().parents[2]
TEXTS = [file.read_text("utf-8") for file in sorted((ROOT / "scenarios").glob("*.scenario.yaml"))]
TEXTS += [file.read_text("utf-8") for file in sorted((Path(__file__).parent / "malformed").glob("*.yaml"))]
WORDS = sorted({word for text in TEXTS for word in re.findall(r"[\w.-]+|[^\w\s]+", text)})
PIECES = [
    *WORDS,
    "\n",
    "\n  - ",
    "  ",
    "\t",
    ": ",
    " #",
    "\\",
    "''",
    '"',
    "\0",
    "\ud800",
    "\ufeff",
    "\u2028",
    "1e9",
    "?",
]
LOCATED = re.compile(r"<text>:\d+:\d+: \S")

Edit = tuple[int, int, str]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """Take a scenario, and replace a few short stretches of it by words of others."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        text = text[:start] + draw(st.sampled_from(PIECES) | st.text(max_size=4)) + text[end:]
    return text


def problems(text: str) -> list[str] | None:
    """Load and bind, and give what is said about the text; None if nothing is."""
    try:
        loads(text, folder=ROOT / "tests").bind(Policy())
    except ScenarioError as error:
        return [str(problem) for problem in error.problems]
    except NotApplicable:
        pass
    return None


@settings(max_examples=400, deadline=None)
@given(mutated())
@example("scenario: a\nagent: raw\nscript:\n  - silence: " + "(" * 190)
@example("scenario: a\nagent: raw\nscript:\n  - raw: {file: 'a\0b'}")
@example("scenario: a\nagent: raw\nscript: []\nexpect: {text: {matches: 'a{99999999999}'}}")
@example("scenario: a\nagent: raw\nscript: []\nexpect: {text: {matches: '[[a]--b]'}}")
@example("scenario: a\nagent: raw\nscript: &x [*x]")
@example("scenario: a\nagent: raw\nscript:\n  - exit: ٣")
@example("\ud800scenario: a")
@example("%YAML 9.9\n---\nscenario: a")
@example("scenario: a\nagent: raw\nscript:\n  - exit: 99999999999999999999999999")
@example("scenario: a\nagent: raw\npolicy: {kill_grace: " + "9" * 190 + "h}\nscript: []")
@example("")
def test_a_mutated_file_loads_or_gives_located_problems(text: str) -> None:
    """A stack instead of a message is what users of YAML plugins complain about first."""
    messages = problems(text)
    assert messages is None or messages
    assert [line for line in messages or () if not LOCATED.match(line)] == []
