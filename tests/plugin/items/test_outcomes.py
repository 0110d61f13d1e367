"""Scenarios under pytest: green, red, leaking, deadlocked; what is printed, and how other tools see it."""

from __future__ import annotations

import json
import re

import pytest

from tests.plugin.scenarios import CORPUS, EXPLAINED, GREEN, RED


def test_a_green_scenario_passes_on_both_backends(pytester: pytest.Pytester) -> None:
    """The whole way, with a real process: file, runner, reference, verdict."""
    (pytester.path / "one.scenario.yaml").write_text(GREEN)
    pytester.runpytest("--agentproc-backend=both").assert_outcomes(passed=2)


@pytest.mark.parametrize("more", [[], ["--full-trace", "-vv", "--showlocals"]])
def test_a_red_scenario_is_explained_without_a_stack(pytester: pytest.Pytester, more: list[str]) -> None:
    """Where, expected, seen, the timeline of both sides, the digest; none of our code."""
    (pytester.path / "two.scenario.yaml").write_text(RED)
    result = pytester.runpytest("-p", "no:terminalprogress", *more)
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert EXPLAINED in text
    assert re.search(r"^ *time  supervisor  +agent and descendants$", text, re.MULTILINE)
    assert re.search(r"^ *2 s  .*stdout, 6 B .*  \[line 6\]$", text, re.MULTILINE)
    assert re.search(r"^failed, record [0-9a-f]{64}$", text, re.MULTILINE)
    assert not re.search(r"Traceback|pytest_agentproc|\.py:\d", text)


def test_equal_runs_print_equal_failures(pytester: pytest.Pytester) -> None:
    """Digest and timeline are the same in every run and on every backend: anything else is a bug of the kit."""
    (pytester.path / "two.scenario.yaml").write_text(RED)
    text = pytester.runpytest("--agentproc-backend=both", "-p", "no:cacheprovider").stdout.str()
    first, second = re.findall(
        r"^two\.scenario\.yaml:9: .*?^failed, record [0-9a-f]{64}$", text, re.MULTILINE | re.DOTALL
    )
    assert first == second


@pytest.mark.once
@pytest.mark.slow
def test_two_workers_share_the_corpus(pytester: pytest.Pytester) -> None:
    """The workers find the corpus by themselves, in the same order."""
    result = pytester.runpytest("-n", "2", "--agentproc-corpus", "-k", "silent or lingers")
    assert result.parseoutcomes() == {"passed": len([name for name in CORPUS if "silent" in name or "lingers" in name])}


def test_a_check_that_was_not_exercised_is_not_green(pytester: pytest.Pytester) -> None:
    """Steps of a process that never started must not count as seen."""
    text = GREEN.replace("script:\n", "script:\n  - {when: {signal: TERM}, do: [{spawn: child1}]}\n")
    text = text.replace("  elapsed: 0\n", "  processes: {child1: {gone_at: 0}}\n")
    (pytester.path / "one.scenario.yaml").write_text(text)
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["  processes.child1.gone_at: not exercised  one.scenario.yaml:9"])


def test_a_scenario_about_limits_that_are_off_is_skipped(pytester: pytest.Pytester) -> None:
    """A supervisor without max_runtime is not judged by it; that is no success either."""
    script = GREEN.replace("- say: hello", "- silence: max_runtime")
    checks = GREEN[: GREEN.index("  outcome")] + "  elapsed: max_runtime\n"
    (pytester.path / "script.scenario.yaml").write_text(script)
    (pytester.path / "checks.scenario.yaml").write_text(checks)
    result = pytester.runpytest("-rs")
    result.assert_outcomes(skipped=2)
    result.stdout.fnmatch_lines(
        [
            "SKIPPED [[]1] checks.scenario.yaml:1: not applicable: the subject has no max_runtime",
            "SKIPPED [[]1] script.scenario.yaml:1: not applicable: line 4 needs max_runtime, *",
        ]
    )


def test_an_informational_scenario_binds_the_reference_supervisor_alone(pytester: pytest.Pytester) -> None:
    """It is a choice of the reference supervisor: another one may do otherwise."""
    (pytester.path / "two.scenario.yaml").write_text(f"level: info\n{RED}")
    pytester.makepyfile(mine="async def blind(order): return {'outcome': 'failed', 'exit_code': 3}")
    pytester.runpytest().assert_outcomes(failed=1)
    result = pytester.runpytest("-rs", "--agentproc-subject=mine:blind")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED * informational: two.scenario.yaml:*: an agent says hello*"])


def test_a_defect_is_built_into_the_subject(pytester: pytest.Pytester) -> None:
    """A limit on silence that is taken for one on the whole run turns an agent that drips red."""
    text = (
        "scenario: a dot now and then\n"
        "agent: raw\n"
        "script:\n"
        '  - drip: {stderr: ".", every: inactivity_timeout / 2, for: 3 * inactivity_timeout}\n'
        "expect: {outcome: completed}\n"
    )
    (pytester.path / "dots.scenario.yaml").write_text(text)
    pytester.runpytest().assert_outcomes(passed=1)
    result = pytester.runpytest("--agentproc-defect=duration-timeout")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["    seen      inactive", "*(the last byte came at 120 s, the same instant; inactivity_timeout is 120 s)"]
    )


def test_other_plugins_can_watch_the_record_of_a_run(pytester: pytest.Pytester) -> None:
    """Reports, recorders and statistics need no place of their own in the kit."""
    pytester.makeconftest(
        """
        def pytest_agentproc_record(nodeid, record):
            print("WATCHED", nodeid, *list(record.lines())[:1])
        """
    )
    (pytester.path / "one.scenario.yaml").write_text(GREEN)
    result = pytester.runpytest("-s")
    (line,) = [line for line in result.outlines if "WATCHED" in line]
    _, _, rest = line.partition("WATCHED one.scenario.yaml::one[asyncio] ")
    assert json.loads(rest)["subject"] == "reference"


def test_a_scenario_of_a_session_is_played_by_its_drive(pytester: pytest.Pytester) -> None:
    """The timeline of a red one shows what the caller did, what the session told, and each turn's row by its number."""
    pytester.path.joinpath("talk.scenario.yaml").write_text(
        "scenario: a conversation\nagent: {dialect: pi, mode: rpc}\n"
        "drive: [{prompt: one}, {wait_for: turn 1}, {prompt: two}]\n"
        "script: [{wait_for: prompt 1}, {answer: hi}, {wait_for: prompt 2}, {answer: ho}]\n"
        "expect: {turns: [{text: hi}, {text: hi}]}\n"
    )
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "  turns.2.text: failed  *talk.scenario.yaml:5",
            '    expected  "hi"',
            '    seen      "ho"',
            "*caller: waits for turn 1*",
            "*OUTCOME of turn 2: completed*",
        ]
    )


def test_a_file_with_several_agents_is_a_test_for_each(pytester: pytest.Pytester) -> None:
    """Each test has the agent's name in its id, and the printed command runs that agent alone."""
    text = "scenario: x\nagent: {each: [claude, codex]}\nscript: [{answer: hi}]\nexpect: {text: ho}\n"
    (pytester.path / "x.scenario.yaml").write_text(text)
    result = pytester.runpytest("-q")
    assert result.parseoutcomes() == {"failed": 2}
    for agent in ("claude", "codex"):
        result.stdout.fnmatch_lines([f"rerun: pytest 'x.scenario.yaml::x?{agent}-asyncio?'"])
        result.stdout.fnmatch_lines([f"FAILED x.scenario.yaml::x?{agent}-asyncio?*"])
    alone = pytester.runpytest("-q", "x.scenario.yaml::x[codex-asyncio]")
    assert alone.parseoutcomes() == {"failed": 1}
