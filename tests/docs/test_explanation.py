"""The explanations name what is there: versions, words, states. A name that changes in the code changes here."""

from __future__ import annotations

import re

import pytest

from pytest_agentproc.corpus import split_agent
from pytest_agentproc.errors import ClockError
from pytest_agentproc.scenario._script import _SPAWN_KINDS
from pytest_agentproc.supervisor import SessionStatus
from pytest_agentproc.supervisor._machine import RunState
from pytest_agentproc.vocabulary import CONTAINMENT_NAMES, DIALECTS, LEVELS, RULES, Dialect
from tests.architecture.sources import ROOT
from tests.bundled import load_all_bundled
from tests.mirrors.recordings import NAMES

EXPLANATION = ROOT / "docs" / "explanation"
TERM = re.compile(r"^(?P<term>\S.*)\n  (?P<meaning>\S.*(?:\n  \S.*)*)$", re.MULTILINE)


def _read_page(name: str) -> str:
    return (EXPLANATION / f"{name}.md").read_text("utf-8")


def _read_glossary() -> dict[str, str]:
    text = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    return {found["term"]: found["meaning"] for found in TERM.finditer(text.partition(":::{glossary}")[2])}


@pytest.mark.parametrize(
    "dialect", [dialect for dialect in DIALECTS.values() if dialect.probes], ids=lambda dialect: dialect.name
)
def test_the_version_that_a_fake_imitates_is_on_its_pages(dialect: Dialect) -> None:
    """A reader compares it with the version of the real CLI."""
    assert dialect.versions
    for name in ("fidelity", "protocols", f"protocol-{dialect.name}"):
        assert [version for version in dialect.versions if version not in _read_page(name)] == [], name


def test_each_dialect_but_raw_has_a_page_of_its_protocol() -> None:
    """The overview leads to all of them."""
    pages = {file.stem.removeprefix("protocol-") for file in EXPLANATION.glob("protocol-*.md")}
    assert pages == {*DIALECTS} - {"raw"}
    assert [name for name in pages if f"(protocol-{name}.md)" not in _read_page("protocols")] == []


def test_the_number_of_recordings_is_the_number_of_recordings() -> None:
    """Each of them is mirrored by a scenario."""
    timed = sum(name.startswith("timed/") for name in NAMES)
    assert f"each of the {len(NAMES)} recordings" in _read_page("fidelity")
    assert f"most of the {timed} timed ones" in _read_page("fidelity")


def test_each_word_for_a_run_that_stops_is_explained() -> None:
    """Such a word stands at the beginning of a failure."""
    reasons = {fault.reason for fault in ClockError.__subclasses__()}
    assert reasons - {*_read_glossary()} == set()
    assert [reason for reason in reasons if f"{{term}}`{reason}`" not in _read_page("virtual-time")] == []


def test_each_way_out_of_a_tree_and_each_way_to_hold_it_is_explained() -> None:
    """The words are those of scenarios and of a policy."""
    page = _read_page("process-trees")
    assert [word for word in (*_SPAWN_KINDS, *CONTAINMENT_NAMES) if f"`{word}`" not in page] == []


def test_each_state_and_each_level_is_explained() -> None:
    """The page draws the machines with the names of the code."""
    page = _read_page("reference-supervisor")
    assert [state.name for state in (*RunState, *SessionStatus) if state.name not in page] == []
    assert [level for level in LEVELS if f"| `{level}` |" not in _read_page("conformance")] == []


def _read_fault_table() -> list[tuple[str, str, list[str], list[str]]]:
    """List the rows of the table of the five programs: program, when, defects, scenarios."""
    rows = [line.split(" | ") for line in _read_page("five-reports").splitlines() if line.count(" | ") == 4]
    names = re.compile(r"`([a-z0-9-]+)")
    return [(row[0].strip("| "), row[1], names.findall(row[3]), names.findall(row[4])) for row in rows[1:]]


def test_each_of_the_five_programs_has_a_fault_before_and_after_its_fix() -> None:
    """Each fault is a defect that the named scenarios catch."""
    programs = set(re.findall(r"^## (\S+): ", _read_page("five-reports"), re.MULTILINE))
    assert {(program, when) for program, when, _, _ in _read_fault_table()} == {
        (program, f"{when} the fix") for program in programs for when in ("before", "after")
    }
    catches = {split_agent(scenario.id)[0]: scenario.catches for scenario in load_all_bundled()}
    assert [
        row
        for row in _read_fault_table()
        for name in row[2]
        if not any(name in catches[scenario] for scenario in row[3])
    ] == []


def test_each_group_of_rules_is_explained() -> None:
    """A new letter needs a word on what it is about."""
    assert [letter for letter in {name[0] for name in RULES} if f"\n| {letter} |" not in _read_page("rules")] == []


def test_the_glossary_has_each_term_once_in_order_and_in_sentences() -> None:
    """A reader looks it up by the alphabet."""
    terms = _read_glossary()
    assert [*terms] == sorted(terms, key=str.lower)
    assert [term for term, meaning in terms.items() if not meaning.endswith(".")] == []
    assert (ROOT / "docs" / "glossary.md").read_text("utf-8").count("\n  ") - sum(
        meaning.count("\n") for meaning in terms.values()
    ) == len(terms)
