"""Scenario files become pytest items: stable ids, located errors, and nobody else's tests disturbed."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from pytest_agentproc import scenario
from tests.plugin.scenarios import BROKEN, GREEN, RED


def write(pytester: pytest.Pytester, **files: str) -> None:
    """Write scenario files into the folder `scenarios`."""
    folder = pytester.path / "scenarios"
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.scenario.yaml").write_text(text)


def ids(result: pytest.RunResult) -> list[str]:
    """List the ids of a quiet collection."""
    return [line for line in result.outlines if "::" in line]


def test_a_scenario_is_one_item_with_a_stable_id(pytester: pytest.Pytester) -> None:
    """Ids stand in baselines, CI logs and bug reports: path, scenario, backend, nothing else."""
    write(pytester, one=GREEN, two=RED)
    result = pytester.runpytest("--collect-only", "-q")
    assert ids(result) == ["scenarios/one.scenario.yaml::one[asyncio]", "scenarios/two.scenario.yaml::two[asyncio]"]


@pytest.mark.parametrize(
    "selected",
    ["scenarios/one.scenario.yaml", "scenarios/one.scenario.yaml::one", "scenarios/one.scenario.yaml::one[asyncio]"],
)
def test_an_id_selects_its_scenario(pytester: pytest.Pytester, selected: str) -> None:
    """What pytest prints can be given to it again."""
    write(pytester, one=GREEN, two=RED)
    result = pytester.runpytest("--collect-only", "-q", selected)
    assert ids(result) == ["scenarios/one.scenario.yaml::one[asyncio]"]


def test_a_scenario_is_selected_by_a_keyword(pytester: pytest.Pytester) -> None:
    """`-k` works on names and backends."""
    write(pytester, one=GREEN, two=RED)
    result = pytester.runpytest("--collect-only", "-q", "--agentproc-backend=both", "-k", "two and trio")
    assert ids(result) == ["scenarios/two.scenario.yaml::two[trio]"]


def test_other_yaml_files_are_left_alone(pytester: pytest.Pytester) -> None:
    """The kit takes its own suffix only."""
    (pytester.path / "compose.yaml").write_text(BROKEN)
    assert pytester.runpytest("--collect-only", "-q").ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_a_malformed_file_shows_its_problems_and_no_stack(pytester: pytest.Pytester) -> None:
    """All problems at once, each with its place, and nothing of our own code."""
    write(pytester, bad=BROKEN, one=GREEN)
    result = pytester.runpytest("--collect-only", "--full-trace")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    text = result.stdout.str()
    result.stdout.fnmatch_lines(
        [
            "*<ScenarioItem one?asyncio?>",
            "*ERROR collecting scenarios/bad.scenario.yaml*",
            "scenarios/bad.scenario.yaml:2:8: *rawr*",
            "scenarios/bad.scenario.yaml:4:5: *sya*",
        ]
    )
    assert "Traceback" not in text
    assert "pytest_agentproc" not in text


def test_a_malformed_file_breaks_only_itself(pytester: pytest.Pytester) -> None:
    """One bad file must not take the others away."""
    write(pytester, bad=BROKEN)
    pytester.makepyfile("def test_other(): pass")
    result = pytester.runpytest("--continue-on-collection-errors")
    result.assert_outcomes(passed=1, errors=1)


def test_an_unreadable_file_is_a_located_error(pytester: pytest.Pytester) -> None:
    """Bytes that are no text are the file's problem, not a crash of the collection."""
    write(pytester, bad="")
    (pytester.path / "scenarios" / "bad.scenario.yaml").write_bytes(b"scenario: \xff\n")
    result = pytester.runpytest()
    result.stdout.fnmatch_lines(["scenarios/bad.scenario.yaml:1:11: the file is not UTF-8"])


def test_an_item_points_at_its_claim(pytester: pytest.Pytester) -> None:
    """Other plugins need an integer line, people need the right one."""
    write(pytester, two=RED)
    items, _ = pytester.inline_genitems()
    assert [(item.reportinfo()[1:], item.location[1]) for item in items] == [((1, "two[asyncio]"), 1)]
    assert all(isinstance(item, pytest.Item) for item in items)


def test_a_setup_plan_runs_nothing(pytester: pytest.Pytester) -> None:
    """`--setup-plan` asks every item for things that only functions have."""
    write(pytester, two=RED)
    result = pytester.runpytest("--setup-plan")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*scenarios/two.scenario.yaml::two?asyncio?*"])


def test_without_the_plugin_scenarios_are_just_files(pytester: pytest.Pytester) -> None:
    """`-p no:agentproc` switches everything off."""
    write(pytester, bad=BROKEN)
    assert pytester.runpytest("-p", "no:agentproc").ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_a_collection_error_is_in_the_junit_file(pytester: pytest.Pytester) -> None:
    """CI shows the located problems."""
    write(pytester, bad=BROKEN)
    pytester.runpytest("--junitxml=out.xml")
    (error,) = ET.parse(pytester.path / "out.xml").iter("error")  # noqa: S314 - pytest has just written it
    assert error.text is not None
    assert error.text.startswith("scenarios/bad.scenario.yaml:2:8: ")


def watched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have the name of every file that is checked from now on told."""
    checked: list[str] = []
    loaded = scenario.loaded

    def telling(data: bytes, name: str) -> scenario.Scenario:
        checked.append(name)
        return loaded(data, name)

    monkeypatch.setattr(scenario, "loaded", telling)
    return checked


def test_a_file_without_mistake_is_checked_once_and_collected_as_before(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands of files are checked in the session that brings them; whoever edits one has it checked again."""
    write(pytester, one=GREEN, two=RED, bad=BROKEN)
    first = pytester.runpytest("--collect-only", "-q")
    checked = watched(monkeypatch)
    again = pytester.runpytest("--collect-only", "-q")
    assert checked == ["scenarios/bad.scenario.yaml"]
    assert again.outlines[:-1] == first.outlines[:-1]
    write(pytester, one=BROKEN)
    edited = pytester.runpytest("--collect-only", "-q")
    assert checked[1:] == ["scenarios/bad.scenario.yaml", "scenarios/one.scenario.yaml"]
    edited.stdout.fnmatch_lines(["scenarios/one.scenario.yaml:*"])
    pytester.runpytest("--collect-only", "-q", "--cache-clear")
    assert sorted(checked[3:]) == [f"scenarios/{name}.scenario.yaml" for name in ("bad", "one", "two")]


def test_a_file_that_names_another_is_checked_every_time(pytester: pytest.Pytester) -> None:
    """The other file may be gone by then, and nothing in this one tells."""
    write(pytester, one=GREEN.replace("script:\n", "script:\n  - raw: {file: bytes}\n"))
    other = pytester.path / "scenarios" / "bytes"
    other.write_text("x")
    assert pytester.runpytest("--collect-only", "-q").ret == pytest.ExitCode.OK
    other.unlink()
    result = pytester.runpytest("--collect-only", "-q")
    result.stdout.fnmatch_lines(['*raw.file "bytes" is no file in the folder of the scenario*'])


@pytest.mark.parametrize("how", ["edition", "torn", "none"])
def test_what_is_known_counts_for_this_edition_of_the_kit_alone(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """A newer kit may find a mistake where an older one found none; a list that cannot be read is none."""
    write(pytester, one=GREEN)
    pytester.runpytest("--collect-only", "-q")
    checked = watched(monkeypatch)
    options = ["-p", "no:cacheprovider"] if how == "none" else []
    if how == "edition":
        monkeypatch.setattr(scenario, "edition", lambda: "another")
    elif how == "torn":
        [known] = pytester.path.glob(".pytest_cache/d/agentproc-sound/*")
        known.write_bytes(b"\xff")
    assert pytester.runpytest("--collect-only", "-q", *options).ret == pytest.ExitCode.OK
    assert checked == ["scenarios/one.scenario.yaml"]
