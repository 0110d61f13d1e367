"""The page of bugs from the wild is what the stored results give. Plays nothing and needs no network."""

from __future__ import annotations

import re
from pathlib import Path

from tests.bundled import load_bundled
from tests.wild.cases import CASES, DRIVERS, NOT_PLAYED, OWN_SCENARIOS
from tests.wild.page import PAGE, is_reproduced, read_results, write_page_text

_LONGEST_DRIVER = 60


def test_the_page_is_what_the_results_give() -> None:
    """Write it again with `python -m tests.wild --sources FOLDER`."""
    assert write_page_text() == PAGE.read_text("utf-8")


def test_each_case_has_a_result_and_a_name_of_its_own() -> None:
    """A case that was not played says nothing."""
    assert sorted(read_results()) == sorted(case.name for case in CASES)


def test_each_case_names_commits_a_driver_and_a_scenario_that_exist() -> None:
    """A commit that is named by its distance to another is none that a reader can look up."""
    for case in CASES:
        assert all(re.fullmatch("[0-9a-f]{7,40}", commit) for commit in (case.before, case.after)), case.name
        assert case.program.driver.split()[0] in DRIVERS, case.name
        assert case.scenario in OWN_SCENARIOS or load_bundled(case.scenario).id == case.scenario, case.name
    assert all(len(row) == 3 and all(row) for row in NOT_PLAYED)


def test_each_case_that_is_not_reproduced_says_why() -> None:
    """A row without a reason teaches nothing."""
    results = read_results()
    assert [case.name for case in CASES if not case.note and not is_reproduced(case, results[case.name])] == []


def test_each_written_scenario_and_each_driver_is_used_and_short() -> None:
    """A long driver has faults of its own."""
    used = {case.program.driver.split()[0] for case in CASES} | {"acp_front.py", "acp_front.mjs"}
    here = Path(__file__).parent
    assert {file.name for file in (here / "drivers").glob("[a-z]*.*")} <= used
    assert {file.name.removesuffix(".scenario.yaml") for file in here.glob("*.yaml")} <= {c.scenario for c in CASES}
    lines = {name: len(DRIVERS[name].read_text("utf-8").splitlines()) for name in used if "adapters" not in name}
    assert {name: count for name, count in lines.items() if count > _LONGEST_DRIVER} == {}
