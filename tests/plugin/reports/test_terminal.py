"""The output of pytest for scenarios under common options, line by line; durations of the machine aside."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from tests.plugin.scenarios import EXPLAINED, GREEN, RED

FOR_EVER = """\
scenario: nobody ends an agent that waits for ever
agent: raw
policy: {inactivity_timeout: none}
script:
  - silence: 1m
  - silence: for ever
expect: {outcome: completed}
"""

LONG = """\
scenario: a dot a minute for two hours, and a bit more
agent: raw
script:
  - drip: {stderr: ".", every: 1m, for: 2h}
  - silence: 250ms
expect: {outcome: completed}
"""


@pytest.fixture(autouse=True)
def _two_scenarios(pytester: pytest.Pytester) -> None:
    """Have one that passes and one that fails."""
    (pytester.path / "one.scenario.yaml").write_text(GREEN)
    (pytester.path / "two.scenario.yaml").write_text(RED)


def run_pytest(pytester: pytest.Pytester, *arguments: str) -> list[str]:
    """Run pytest and give what it printed, the head left out, with N for real durations and one blank for padding."""
    lines = pytester.runpytest("-p", "no:terminalprogress", *arguments).outlines
    text = re.sub(r"[\d.]+ m?s real", "N real", "\n".join(lines))
    text = re.sub(r"^(FAILED \S+) - .*", r"\1", text, flags=re.MULTILINE)  # what follows depends on pytest's version
    text = re.sub(r" in [\d.]+s\b( \([\d:]+\))?", " in Ns", text)
    texts = re.sub(r" +(\[ *\d+%\])", r" \1", text).splitlines()
    begin = next((index for index, text in enumerate(texts) if text.startswith(("collect", "2 workers"))), 0)
    return [text.strip("=!_ ") for text in texts[begin:] if text.strip()]


def drop_failure_texts(lines: list[str]) -> list[str]:
    """Leave out the failures' own text."""
    if "FAILURES" not in lines:
        return lines
    return lines[: lines.index("FAILURES")] + lines[lines.index("short test summary info") :]


SUMMARY = [
    "short test summary info",
    "FAILED two.scenario.yaml::two[asyncio]",
]


def test_without_options_scenarios_are_dots_like_any_test(pytester: pytest.Pytester) -> None:
    """Without the option for durations, the lines are those of every test."""
    assert drop_failure_texts(run_pytest(pytester)) == [
        "collected 2 items",
        "one.scenario.yaml . [ 50%]",
        "two.scenario.yaml F [100%]",
        *SUMMARY,
        "1 failed, 1 passed in Ns",
    ]


def test_v_shows_the_virtual_and_the_real_duration(pytester: pytest.Pytester) -> None:
    """Two hours in milliseconds are what the kit is for; the summary keeps its words, which tools read."""
    (pytester.path / "limit.scenario.yaml").write_text(GREEN.replace("- say: hello", "- silence: max_runtime"))
    (pytester.path / "long.scenario.yaml").write_text(LONG)
    assert drop_failure_texts(run_pytest(pytester, "-v")) == [
        "collecting ... collected 4 items",
        "limit.scenario.yaml::limit[asyncio] SKIPPED (not applicable: line 4 ...) [ 25%]",
        "long.scenario.yaml::long[asyncio] PASSED (7200.25 s virtual, N real) [ 50%]",
        "one.scenario.yaml::one[asyncio] PASSED (0 s virtual, N real) [ 75%]",
        "two.scenario.yaml::two[asyncio] FAILED (2 s virtual, N real) [100%]",
        *SUMMARY,
        "1 failed, 2 passed, 1 skipped in Ns",
    ]


def test_v_leaves_other_tests_as_they_are(pytester: pytest.Pytester) -> None:
    """A plugin that changes the output of tests it has nothing to do with is uninstalled."""
    pytester.makepyfile(test_own="def test_own(): pass")
    assert run_pytest(pytester, "-v", "test_own.py") == [
        "collecting ... collected 1 item",
        "test_own.py::test_own PASSED [100%]",
        "1 passed in Ns",
    ]


def test_a_verbosity_of_test_cases_is_enough(pytester: pytest.Pytester) -> None:
    """Projects set it in their ini file instead of `-v`."""
    lines = run_pytest(pytester, "-o", "verbosity_test_cases=1", "one.scenario.yaml")
    assert lines[1] == "one.scenario.yaml::one[asyncio] PASSED (0 s virtual, N real) [100%]"


def test_collect_only_shows_files_and_items(pytester: pytest.Pytester) -> None:
    """It shows the tests that would run, and nothing runs."""
    assert run_pytest(pytester, "--collect-only", "--agentproc-backend=both") == [
        "collected 4 items",
        f"<Dir {pytester.path.name}>",
        "<ScenarioFile one.scenario.yaml>",
        "<ScenarioItem one[asyncio]>",
        "<ScenarioItem one[trio]>",
        "<ScenarioFile two.scenario.yaml>",
        "<ScenarioItem two[asyncio]>",
        "<ScenarioItem two[trio]>",
        "4 tests collected in Ns",
    ]


def test_k_selects_by_name_and_backend(pytester: pytest.Pytester) -> None:
    """Names and backends are keywords."""
    assert run_pytest(pytester, "-v", "--agentproc-backend=both", "-k", "one and trio") == [
        "collecting ... collected 4 items / 3 deselected / 1 selected",
        "one.scenario.yaml::one[trio] PASSED (0 s virtual, N real) [100%]",
        "1 passed, 3 deselected in Ns",
    ]


def test_x_stops_at_the_first_red_scenario(pytester: pytest.Pytester) -> None:
    """Scenarios count as failures like any test."""
    (pytester.path / "zzz.scenario.yaml").write_text(RED)
    assert drop_failure_texts(run_pytest(pytester, "-x")) == [
        "collected 3 items",
        "one.scenario.yaml . [ 33%]",
        "two.scenario.yaml F",
        *SUMMARY,
        "stopping after 1 failures",
        "1 failed, 1 passed in Ns",
    ]


def test_lf_runs_the_red_ones_again(pytester: pytest.Pytester) -> None:
    """Ids are stable, so the cache knows them."""
    run_pytest(pytester)
    assert drop_failure_texts(run_pytest(pytester, "--lf")) == [
        "collected 1 item",
        "run-last-failure: rerun previous 1 failure (skipped 1 file)",
        "two.scenario.yaml F [100%]",
        *SUMMARY,
        "1 failed in Ns",
    ]


def test_a_defect_is_seen_with_the_scenarios_that_catch_it(pytester: pytest.Pytester) -> None:
    """The supervisor is another one; names and places of the scenarios are the same."""
    (pytester.path / "long.scenario.yaml").write_text(LONG)
    lines = run_pytest(pytester, "-v", "--agentproc-defect=duration-timeout", "-k", "not two")
    assert drop_failure_texts(lines) == [
        "collecting ... collected 3 items / 1 deselected / 2 selected",
        "long.scenario.yaml::long[duration-timeout-asyncio] FAILED (120 s virtual, N real) [ 50%]",
        "one.scenario.yaml::one[duration-timeout-asyncio] PASSED (0 s virtual, N real) [100%]",
        "short test summary info",
        "FAILED long.scenario.yaml::long[duration-timeout-asyncio]",
        "1 failed, 1 passed, 1 deselected in Ns",
    ]


def read_junit_cases(
    pytester: pytest.Pytester,
) -> dict[str | None, tuple[dict[str | None, str | None], list[str | None]]]:
    """Read the junit file: properties and failures of every case."""
    return {
        case.get("name"): (
            {node.get("name"): node.get("value") for node in case.iter("property")},
            [node.text for node in case.iter("failure")],
        )
        for case in ET.parse(pytester.path / "out.xml").iter("testcase")  # noqa: S314  # pytest has just written it
    }


def test_the_junit_file_has_figures_and_explanation(pytester: pytest.Pytester) -> None:
    """CI shows what the terminal shows; the digest is that of the verdict's line."""
    (pytester.path / "zzz.scenario.yaml").write_text(FOR_EVER)
    run_pytest(pytester, "--junitxml=out.xml")
    found = read_junit_cases(pytester)
    assert {name: [*figures] for name, (figures, _) in found.items()} == {
        f"{name}[asyncio]": ["agentproc_virtual_s", "agentproc_real_s", "agentproc_outcome", "agentproc_digest"]
        for name in ("one", "two", "zzz")
    }
    shown = [(figures["agentproc_virtual_s"], figures["agentproc_outcome"]) for figures, _ in found.values()]
    assert shown == [("0.0", "completed"), ("2.0", "failed"), ("60.0", "deadlock")]
    assert all(0 < float(str(figures["agentproc_real_s"])) < 60 for figures, _ in found.values())
    figures, [failure] = found["two[asyncio]"]
    assert failure is not None
    assert failure.startswith(EXPLAINED)
    rerun = "rerun: pytest 'two.scenario.yaml::two[asyncio]'"
    assert failure.endswith(f"\n\nfailed, record {figures['agentproc_digest']}\n{rerun}")


@pytest.mark.once
@pytest.mark.slow
def test_two_workers_show_the_same(pytester: pytest.Pytester) -> None:
    """Each worker of xdist has a runner of its own; reports cross the wire whole, figures and explanations too."""
    run_pytest(pytester, "--junitxml=out.xml")
    alone = read_junit_cases(pytester)
    result = pytester.runpytest("-n", "2", "-v", "--junitxml=out.xml", "-p", "no:terminalprogress")
    text = re.sub(r"[\d.]+ m?s real", "N real", result.stdout.str())
    words = re.findall(r"^\[gw\d\] \[ *\d+%\] (.*)$", text, re.MULTILINE)
    assert sorted(word.strip() for word in words) == [
        "FAILED (2 s virtual, N real) two.scenario.yaml::two[asyncio]",
        "PASSED (0 s virtual, N real) one.scenario.yaml::one[asyncio]",
    ]
    assert EXPLAINED in text
    shared = read_junit_cases(pytester)
    for name, (figures, failures) in alone.items():
        assert shared[name] == ({**figures, "agentproc_real_s": shared[name][0]["agentproc_real_s"]}, failures)
