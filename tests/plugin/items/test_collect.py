"""Scenario files become pytest items: stable ids, located errors, and no other tests disturbed."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

from tests.plugin.scenarios import BROKEN, GREEN, RED


def write_scenario_files(pytester: pytest.Pytester, **files: str) -> None:
    """Write scenario files into the folder `scenarios`."""
    folder = pytester.path / "scenarios"
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.scenario.yaml").write_text(text)


def list_collected_ids(result: pytest.RunResult) -> list[str]:
    """List the ids of a quiet collection."""
    return [line for line in result.outlines if "::" in line]


def test_a_scenario_is_one_item_with_a_stable_id(pytester: pytest.Pytester) -> None:
    """Ids stand in baselines, CI logs and bug reports: path, scenario, backend, nothing else."""
    write_scenario_files(pytester, one=GREEN, two=RED)
    result = pytester.runpytest("--collect-only", "-q")
    assert list_collected_ids(result) == [
        "scenarios/one.scenario.yaml::one[asyncio]",
        "scenarios/two.scenario.yaml::two[asyncio]",
    ]


@pytest.mark.parametrize(
    "selected",
    ["scenarios/one.scenario.yaml", "scenarios/one.scenario.yaml::one", "scenarios/one.scenario.yaml::one[asyncio]"],
)
def test_an_id_selects_its_scenario(pytester: pytest.Pytester, selected: str) -> None:
    """The ids that pytest prints can be given to it again."""
    write_scenario_files(pytester, one=GREEN, two=RED)
    result = pytester.runpytest("--collect-only", "-q", selected)
    assert list_collected_ids(result) == ["scenarios/one.scenario.yaml::one[asyncio]"]


def test_a_scenario_is_selected_by_a_keyword(pytester: pytest.Pytester) -> None:
    """`-k` works on names and backends."""
    write_scenario_files(pytester, one=GREEN, two=RED)
    result = pytester.runpytest("--collect-only", "-q", "--agentproc-backend=both", "-k", "two and trio")
    assert list_collected_ids(result) == ["scenarios/two.scenario.yaml::two[trio]"]


def test_other_yaml_files_are_left_alone(pytester: pytest.Pytester) -> None:
    """The kit takes its own suffix only."""
    (pytester.path / "compose.yaml").write_text(BROKEN)
    assert pytester.runpytest("--collect-only", "-q").ret == pytest.ExitCode.NO_TESTS_COLLECTED


@pytest.mark.parametrize(
    ("text", "hints"),
    [
        (
            "scenario: a\nagent: raw\nscript: [{answer: hi}]\n",
            ["ERROR: hang.yaml: pytest collects only *.scenario.yaml: call the file hang.scenario.yaml"],
        ),
        ("services: {}\n", []),
    ],
)
def test_a_scenario_with_another_name_is_named_if_the_command_line_names_it(
    pytester: pytest.Pytester, text: str, hints: list[str]
) -> None:
    """Pytest says only that there is no match. A YAML file of another tool is not ours to speak of."""
    pytester.path.joinpath("hang.yaml").write_text(text, "utf-8")
    result = pytester.runpytest("hang.yaml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    errors = [line for line in result.errlines if line.startswith("ERROR: ")]
    assert errors[0].startswith("ERROR: not found: ")
    assert errors[1:] == hints


def test_to_collect_is_to_know_names(pytester: pytest.Pytester) -> None:
    """Thousands of files are collected by every worker of a session, and each of them is played by one."""
    write_scenario_files(pytester, bad=BROKEN, one=GREEN)
    result = pytester.runpytest("--collect-only", "-q")
    assert list_collected_ids(result) == [
        "scenarios/bad.scenario.yaml::bad[asyncio]",
        "scenarios/one.scenario.yaml::one[asyncio]",
    ]


def test_a_malformed_file_shows_its_problems_and_no_stack(pytester: pytest.Pytester) -> None:
    """All problems at once, each with its place, and nothing of our own code."""
    write_scenario_files(pytester, bad=BROKEN)
    result = pytester.runpytest("--full-trace")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    text = result.stdout.str()
    result.stdout.fnmatch_lines(
        [
            "*ERROR at setup of bad?asyncio?*",
            "scenarios/bad.scenario.yaml:2:8: *rawr*",
            "scenarios/bad.scenario.yaml:4:5: *sya*",
        ]
    )
    assert "Traceback" not in text
    assert "pytest_agentproc" not in text


def test_a_malformed_file_breaks_only_itself(pytester: pytest.Pytester) -> None:
    """One bad file must not take the others away."""
    write_scenario_files(pytester, bad=BROKEN, one=GREEN)
    pytester.makepyfile("def test_other(): pass")
    pytester.runpytest().assert_outcomes(passed=2, errors=1)


def test_a_malformed_file_is_no_part_of_a_rule(pytester: pytest.Pytester) -> None:
    """Whether it would have been cannot be known, so the session says so before anything is played."""
    write_scenario_files(pytester, bad=BROKEN, one=GREEN)
    result = pytester.runpytest("--agentproc-rule=A1")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(
        ["*ERROR collecting scenarios/bad.scenario.yaml*", "scenarios/bad.scenario.yaml:2:8: *rawr*"]
    )


def test_with_a_malformed_file_nobody_is_called_conformant(pytester: pytest.Pytester) -> None:
    """It might have decided; that it could not be run is no verdict on any supervisor."""
    write_scenario_files(pytester, bad=BROKEN, one=GREEN)
    lines = []
    for selected in ("one", "one or bad"):
        pytester.runpytest("--agentproc-results=out.json", "-k", selected)
        results = json.loads((pytester.path / "out.json").read_text())
        lines += [subject["conformant"] for subject in results["subjects"]]
        verdicts = {result["scenario"]: result["verdict"] for result in results["results"]}
    assert lines == [True, False]
    assert verdicts == {"bad": "undecided", "one": "passed"}
    told_of_another = pytester.runpytest("--agentproc-subject=null", "-k", "bad")
    told_of_another.stdout.fnmatch_lines(
        [
            "*null has no verdict because a scenario file could*",
            "*no verdict on null in bad: scenarios/bad.scenario.yaml:2:8: unknown dialect*",
        ]
    )


def test_an_unreadable_file_is_a_located_error(pytester: pytest.Pytester) -> None:
    """Bytes that are no text are the file's problem, and no crash of the session."""
    write_scenario_files(pytester, bad="")
    (pytester.path / "scenarios" / "bad.scenario.yaml").write_bytes(b"scenario: \xff\n")
    result = pytester.runpytest()
    result.stdout.fnmatch_lines(["scenarios/bad.scenario.yaml:1:11: the file is not UTF-8"])


def test_an_item_points_at_its_claim(pytester: pytest.Pytester) -> None:
    """Other plugins need an integer line, people need the right one."""
    write_scenario_files(pytester, two=RED)
    items, _ = pytester.inline_genitems()
    assert [(item.reportinfo()[1:], item.location[1]) for item in items] == [((1, "two[asyncio]"), 1)]
    assert all(isinstance(item, pytest.Item) for item in items)


def test_a_setup_plan_runs_nothing(pytester: pytest.Pytester) -> None:
    """`--setup-plan` asks every item for things that only functions have."""
    write_scenario_files(pytester, two=RED)
    result = pytester.runpytest("--setup-plan")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*scenarios/two.scenario.yaml::two?asyncio?*"])


def test_without_the_plugin_scenarios_are_just_files(pytester: pytest.Pytester) -> None:
    """`-p no:agentproc` switches everything off."""
    write_scenario_files(pytester, bad=BROKEN)
    assert pytester.runpytest("-p", "no:agentproc").ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_the_problems_of_a_file_are_in_the_junit_file(pytester: pytest.Pytester) -> None:
    """CI shows the located problems."""
    write_scenario_files(pytester, bad=BROKEN)
    pytester.runpytest("--junitxml=out.xml")
    (error,) = ET.parse(pytester.path / "out.xml").iter("error")  # noqa: S314 - pytest has just written it
    assert error.text is not None
    assert error.text.startswith("scenarios/bad.scenario.yaml:2:8: ")


def test_a_file_is_read_once_for_all_its_items(pytester: pytest.Pytester) -> None:
    """Both event loops play the same text, though a user edits the file meanwhile."""
    write_scenario_files(pytester, one=GREEN)
    pytester.makeconftest(
        f"""
        import pathlib

        def pytest_runtest_teardown(item):
            item.path.write_text({BROKEN!r})
        """
    )
    pytester.runpytest("--agentproc-backend=both").assert_outcomes(passed=2)
    pytester.runpytest("--agentproc-backend=both").assert_outcomes(errors=2)


def test_a_scenario_is_found_and_named_wherever_tests_go(pytester: pytest.Pytester) -> None:
    """A test that changes the folder must not change what is played after it, nor what that is called."""
    write_scenario_files(pytester, bad=BROKEN, one=GREEN)
    pytester.makepyfile(a_test="import os\n\ndef test_going():\n    os.chdir('/')\n")
    result = pytester.runpytest("a_test.py", "scenarios")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["scenarios/bad.scenario.yaml:2:8: *rawr*"])


def test_pytest_rewrites_no_module_of_the_kit(pytester: pytest.Pytester) -> None:
    """Rewritten modules load slowly, in every session. Those of a test's run would be parsed there."""
    pytester.makepyfile(
        """
        import sys

        FIRST = {"pytest_agentproc", "pytest_agentproc.plugin", "pytest_agentproc.plugin._rewriting"}

        def test_loaders(fake_agent, agent_run):
            names = {name for name in sys.modules if name.startswith("pytest_agentproc")} - FIRST
            assert {"pytest_agentproc.plugin._fixtures", "pytest_agentproc.harness"} < names
            assert {type(sys.modules[name].__loader__).__name__ for name in names} == {"SourceFileLoader"}
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)
