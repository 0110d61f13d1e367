"""The results of a session in a file, for programs that make reports of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.plugin.scenarios import GREEN, RED
from tests.plugin.subjects.test_choice import MINE


@pytest.fixture(autouse=True)
def _scenarios(pytester: pytest.Pytester) -> None:
    """Have a scenario that `supervise` passes, and one that it fails."""
    (pytester.path / "one.scenario.yaml").write_text(GREEN)
    (pytester.path / "two.scenario.yaml").write_text(f"covers: [A1]\n{RED}")
    (pytester.path / "mine.py").write_text(MINE)


def run_and_read_results(pytester: pytest.Pytester, *arguments: str) -> dict[str, Any]:
    """Run a session, and read its file; the machine's own times are left out."""
    pytester.runpytest("--agentproc-results=out/results.json", *arguments)
    found: dict[str, Any] = json.loads((pytester.path / "out" / "results.json").read_text("utf-8"))
    for result in found["results"]:
        assert result.pop("real_s") >= 0
    return found


def test_it_has_every_scenario_with_its_rows(pytester: pytest.Pytester) -> None:
    """One object; nothing else is left in the folder."""
    found = run_and_read_results(pytester, "--agentproc-subject=mine:supervise")
    assert [file.name for file in (pytester.path / "out").iterdir()] == ["results.json"]
    assert list(found) == ["version", "kit", "whole", "corpus", "subjects", "results"]
    assert (found["version"], len(found["corpus"])) == (1, 64)
    [subject] = found["subjects"]
    assert (subject["name"], subject["conformant"], subject["undecided"], len(subject["digest"])) == (
        "supervise",
        False,
        1,
        64,
    )
    result, two = found["results"]
    assert (result["scenario"], result["verdict"], result["virtual_s"]) == ("one", "passed", 0)
    assert len(two.pop("digest")) == len(two.pop("file")) == 64
    assert two == {
        "scenario": "two",
        "level": "must",
        "covers": ["A1"],
        "subject": "supervise",
        "clock": "virtual",
        "backend": "asyncio",
        "verdict": "undecided",
        "reason": "",
        "rerun": "pytest 'two.scenario.yaml::two[supervise-asyncio]' --agentproc-subject=mine:supervise",
        "out_of_reach": "",
        "virtual_s": 2,
        "rows": [
            {
                "key": "outcome",
                "verdict": "passed",
                "expected": "completed",
                "seen": "completed",
                "level": "must",
                "unstated": [],
            },
            {
                "key": "exit_code",
                "verdict": "undecided",
                "expected": "0",
                "seen": "not reported by the subject",
                "level": "must",
                "unstated": [],
            },
            {
                "key": "leaks",
                "verdict": "passed",
                "expected": "none",
                "seen": "none",
                "level": "must",
                "unstated": [],
            },
        ],
    }


def test_the_plain_reference_has_them_too(pytester: pytest.Pytester) -> None:
    """An option asks for the file; the end names its path, and reports an error of writing."""
    found = run_and_read_results(pytester)
    assert [result["verdict"] for result in found["results"]] == ["passed", "failed"]
    result = pytester.runpytest("--agentproc-results=one.scenario.yaml/x.json", "one.scenario.yaml")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*conformant*")
    result.stdout.fnmatch_lines(["agentproc: one.scenario.yaml/x.json cannot be written: *"])


@pytest.mark.once
@pytest.mark.slow
def test_workers_write_the_same_file(pytester: pytest.Pytester) -> None:
    """The process that reports writes it, in an order of its own."""
    arguments = ["--agentproc-subject=mine:make,reference", "--agentproc-backend=both"]
    assert run_and_read_results(pytester, "-n", "2", *arguments) == run_and_read_results(pytester, *arguments)


def test_what_fails_before_it_is_played_is_an_entry_of_its_own(pytester: pytest.Pytester) -> None:
    """A name of one agent that begins like the name of another leads to neither's supervisor."""
    for name in ("one", "two"):
        (pytester.path / f"{name}.scenario.yaml").unlink()
    text = "scenario: it answers\nagent: {each: [gemini, gemini stream]}\nscript: [{answer: hi}]\nexpect: {text: hi}\n"
    (pytester.path / "both.scenario.yaml").write_text(text)
    pytester.makeconftest("def pytest_runtest_setup(item):\n    raise OSError('no room')\n")
    found = run_and_read_results(pytester, "--agentproc-subject=mine:supervise")["results"]
    assert [(result["scenario"], result["subject"], result["verdict"], result["reason"]) for result in found] == [
        (f"both[{agent}]", "supervise", "kit error", "something failed before it was played")
        for agent in ("gemini-stream", "gemini")
    ]
