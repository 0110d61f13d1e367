"""The corpus: every file loads, binds to any policy, and says nothing that only the default numbers make true."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pytest_agentproc.corpus import split_agent
from pytest_agentproc.defects import NAMES
from pytest_agentproc.scenario import Expectation, Scenario, loads, reference
from pytest_agentproc.scenario.__main__ import main, refresh
from pytest_agentproc.vocabulary import Policy
from tests.bundled import all_bundled

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"
CORPUS = all_bundled()
OTHER = {
    "inactivity_timeout": 37.0,
    "internal_tool_timeout": 211.0,
    "max_runtime": 1001.0,
    "linger_grace": 0.7,
    "linger_kill_grace": 0.11,
    "leftover_kill_grace": 0.13,
    "kill_grace": 5.3,
}
"""Another supervisor's numbers, odd enough that no sum of some is another."""

REPORTS = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+/(issues/\d+|pull/\d+|blob/[0-9a-f]{40}/[\w./%-]+)")


def _by_id(scenario: Scenario) -> str:
    return scenario.id


def _others(scenario: Scenario) -> dict[str, Any]:
    return {**OTHER, **scenario.policy}


def _times(checks: tuple[Expectation, ...]) -> dict[str, list[int]]:
    """List every instant that is expected, by key."""
    times: dict[str, list[int]] = {}
    for check in checks:
        if check.key.endswith("signals"):
            times[check.key] = [at for _, at in check.wanted]
        elif check.key.rpartition(".")[2] in ("elapsed", "returned", "gone_at", "alive_at"):
            times[check.key] = [check.wanted]
    return times


@pytest.mark.parametrize("scenario", CORPUS, ids=_by_id)
def test_a_scenario_of_the_corpus_says_what_it_is_for(scenario: Scenario) -> None:
    """In the corpus covers and source are not optional."""
    assert scenario.covers
    assert REPORTS.fullmatch(scenario.source), scenario.source


@pytest.mark.parametrize("scenario", CORPUS, ids=_by_id)
def test_a_scenario_of_the_corpus_binds_to_another_policy(scenario: Scenario) -> None:
    """A supervisor with other numbers is judged by its own: nothing turns negative, uneven or out of order."""
    parts = {name: Policy(**_others(part)) for name, part in scenario.parts.items()}
    times = _times(scenario.bind(parts or Policy(**_others(scenario))).expect)
    assert all(at == sorted(at) for at in times.values())
    elapsed, returned = times.get("elapsed", [0])[0], times.get("returned")
    assert returned is None or elapsed <= returned[0]
    assert returned is None or all(at <= returned[0] for key in times for at in times[key])


def test_ids_are_unique() -> None:
    """An id is what baselines and reports name."""
    ids = [scenario.id for scenario in CORPUS]
    assert sorted(set(ids)) == sorted(ids)


def test_the_page_of_the_language_has_the_current_tables() -> None:
    """The reference is generated from the tables that check; the command in its mark brings it up to date."""
    page = (SCENARIOS / "README.md").read_text("utf-8")
    assert page == refresh(page)
    assert reference() in page


def test_a_page_without_a_place_for_the_tables_stays_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A scenario that was named by mistake is no page."""
    page = tmp_path / "a.scenario.yaml"
    page.write_text(text := "scenario: a\nagent: raw\n", "utf-8")
    assert main([str(page)]) == 2
    assert page.read_text("utf-8") == text
    assert capsys.readouterr().err.startswith(f"{page} has no place for the tables, and stays as it is\nwrite into it:")
    assert main([str(tmp_path / "none.md")]) == 2


def test_the_examples_of_the_page_are_scenarios() -> None:
    """A reader's first copy must work."""
    page = (SCENARIOS / "README.md").read_text("utf-8")
    examples = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert [loads(example).dialect or [*loads(example).parts] for example in examples] == [
        "pi",
        "pi",
        "claude",
        "acp",
        ["left", "right"],
    ]


def _rows() -> list[tuple[str, list[str], list[str]]]:
    """List the rows of the page's tables of reports: the line, the defects that it names, its files."""
    page = (SCENARIOS / "README.md").read_text("utf-8").partition("## Which line of a report is which file")[2]
    rows = []
    for line in page.splitlines():
        files = re.findall(r"\]\([a-z]+/([a-z0-9-]+)\.scenario\.yaml\)", line)
        if files:
            rows.append((line, [name for name in re.findall(r"`([a-z0-9-]+)`", line) if name in NAMES], files))
    return rows


def test_what_a_table_says_of_a_defect_its_files_claim() -> None:
    """A line that names a defect is read as: these files show it. Their claims are tested elsewhere."""
    claims = {split_agent(scenario.id)[0]: scenario.catches for scenario in CORPUS}
    wrong = [
        (name, files)
        for _, names, files in _rows()
        for name in names
        if not any(name in claims.get(file, {}) for file in files)
    ]
    assert wrong == []


def test_every_kind_of_bug_report_has_two_files_at_least() -> None:
    """Each with its source; one file of a kind is an anecdote."""
    ids = {split_agent(scenario.id)[0] for scenario in CORPUS if scenario.source}
    kinds = {line[2:5]: files for line, _, files in _rows() if re.match(r"\| K\d\d ", line)}
    assert sorted(kinds) == [f"K{number:02}" for number in range(1, 20)]
    assert [kind for kind, files in kinds.items() if len(ids & set(files)) < 2] == []


def test_every_program_has_its_fault_before_and_after_the_fix() -> None:
    """The reference supervisor is green where each of the five programs was red, and where it stayed so."""
    told = {
        (line.split("|")[1].strip(), "before" if " before: " in line else "stayed")
        for line, names, _ in _rows()
        if names
    }
    programs = ("pi-claude-cli", "pi-subagents", "simple-agent-manager", "surreal-mind", "claude-agent-acp")
    assert {(program, when) for program in programs for when in ("before", "stayed")} <= told
