"""Real fakes that fail: the error says so, with its place, and no supervisor is judged for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_agentproc import subjects
from pytest_agentproc.cli import main
from pytest_agentproc.errors import KitError, ScenarioError
from pytest_agentproc.harness import ScenarioRunner, forecast_run
from pytest_agentproc.harness._pace import RunForecast
from pytest_agentproc.scenario import loads
from tests.unit.fakes.test_broken import AT_ONCE, EARLY, ENDLESS, IN_PIECES

if TYPE_CHECKING:
    from pathlib import Path

SOUND = "scenario: a\nagent: raw\nscript: [{answer: x}]\nexpect: {outcome: completed}\n"
FAILED = r"^x.scenario.yaml:8: the fake agent itself failed at the step tool_done: KeyError: 't' \(codex.py:\d+\); "


def test_a_fake_that_fails_is_no_verdict_in_virtual_time(runner: ScenarioRunner, backend: str) -> None:
    """Its exit with 70 is nothing that its supervisor can answer for."""
    with pytest.raises(KitError, match=FAILED):
        runner.play(loads(EARLY, "x.scenario.yaml"), subjects.reference_supervisor(), backend=backend)


def test_the_next_play_of_the_same_fake_is_judged(runner: ScenarioRunner) -> None:
    """Its files are used again; the failure in the first run says nothing of the second."""
    with pytest.raises(KitError, match=FAILED):
        runner.play(loads(EARLY, "x.scenario.yaml"), subjects.reference_supervisor())
    text = "scenario: a\nagent: codex\nscript: [{answer: done}]\nexpect: {outcome: completed}\n"
    assert runner.play(loads(text), subjects.reference_supervisor()).answer is not None


def test_a_fake_that_fails_is_no_verdict_in_real_time(runner: ScenarioRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model knows it before; the fake itself reports other faults, such as a machine without room."""
    reported, reference_supervisor = loads(EARLY, "x.scenario.yaml"), subjects.reference_supervisor()
    with pytest.raises(KitError, match=FAILED.partition(r" \(")[0]):
        runner.play_real(reported, reference_supervisor)
    sound = RunForecast(None, forecast_run(reported, reported.request_limits(reference_supervisor)).duration)
    monkeypatch.setattr("pytest_agentproc.harness._runner.forecast_run", lambda *_: sound)
    with pytest.raises(KitError, match=FAILED):
        runner.play_real(reported, reference_supervisor)


@pytest.mark.slow
def test_an_agent_without_an_end_is_a_mistake_of_its_scenario(
    runner: ScenarioRunner, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run once went on for ever, in gigabytes."""
    with pytest.raises(ScenarioError, match=r"^x.scenario.yaml:4:1: drip: it printed 25000 times, and nothing ended"):
        runner.play(loads(ENDLESS, "x.scenario.yaml"), subjects.reference_supervisor())
    path = tmp_path / "x.scenario.yaml"
    path.write_text(EARLY, "utf-8")
    assert main(["run", str(path)]) == 3
    assert ":8: the fake agent itself failed" in capsys.readouterr().err


def test_a_test_whose_fake_fails_is_an_error(pytester: pytest.Pytester) -> None:
    """Code under test that meets such a fake is right whatever it does."""
    pytester.makepyfile(f"""
        import subprocess

        SCRIPT = {EARLY!r}

        def test_mine(fake_agent):
            fake = fake_agent(SCRIPT, scale=60)
            subprocess.run(fake.argv, stdout=subprocess.DEVNULL, check=False)
    """)
    result = pytester.runpytest_subprocess(timeout=60)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*the fake agent itself failed at the step tool_done: KeyError: 't' (codex.py:*"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ENDLESS, "drip: it printed 25000 times"),
        (AT_ONCE, "drip: it printed 25000 times"),
        (IN_PIECES, "raw: it waited 100000 times for room to write"),
    ],
    ids=["drip", "drip-at-once", "pieces"],
)
def test_an_agent_without_an_end_is_a_mistake_of_its_scenario_in_real_time_too(
    runner: ScenarioRunner, text: str, said: str
) -> None:
    """It was not applicable there, as if another clock could judge it."""
    with pytest.raises(ScenarioError) as error:
        runner.play_real(loads(text, "x.scenario.yaml"), subjects.reference_supervisor())
    assert str(error.value) == (
        f"x.scenario.yaml:4:1: {said}, and nothing ended it; "
        "give it an end, such as `for: 10m`, or have a limit or an action of the caller end the agent"
    )


@pytest.mark.slow
def test_a_fake_that_the_kit_ends_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker ends a fake after its longest life; that once counted as the agent's own end by a signal."""
    told = loads("scenario: a\nagent: raw\nscript: [{silence: 4s}, {answer: x}]\nexpect: {outcome: completed}\n")
    with ScenarioRunner() as runner:
        with monkeypatch.context() as patch:
            patch.setattr("pytest_agentproc.harness._runner.FAKE_LIFETIME_SECONDS", 0.3)
            runner.make_fake(told)
        with pytest.raises(KitError) as error:
            runner.play_real(told, subjects.reference_supervisor(), scale=1)
        assert str(error.value) == (
            "<text>: the kit ended the fake agent after 0.3 s of real time, the longest life of a fake; "
            "this says nothing of the supervisor"
        )
        assert runner.play_real(loads(SOUND), subjects.reference_supervisor()).answer is not None


@pytest.mark.parametrize("is_real", [False, True], ids=["virtual", "real"])
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("#!/not/there", "No such file or directory (errno 2)"),
        ("#!/bin/sh\necho no room >&2\nexit 126", "it exits with 126 before its first line and prints no room"),
        ("#!/bin/sh\nkill -9 $$", "it dies by SIGKILL before its first line"),
    ],
    ids=["no-interpreter", "exit", "killed"],
)
def test_a_fake_that_does_not_come_to_its_first_line_is_no_verdict(
    text: str, why: str, is_real: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It can write no report of its own; its end once counted as the agent's."""
    monkeypatch.setattr("pytest_agentproc.harness.fakes._launch._format_launcher", lambda _: text)
    reported, reference_supervisor = loads(SOUND, "x.scenario.yaml"), subjects.reference_supervisor()
    with ScenarioRunner() as runner, pytest.raises(KitError) as error:
        (runner.play_real if is_real else runner.play)(reported, reference_supervisor)
    assert str(error.value) == (
        f"x.scenario.yaml: the fake agent cannot start on this machine: {why}; this says nothing of the supervisor"
    )


def test_a_fake_that_nobody_starts_is_none_that_cannot_start(runner: ScenarioRunner) -> None:
    """A supervisor that starts no agent is judged for that."""
    text = "scenario: a\nagent: {dialect: raw, cannot_spawn: not_executable}\nexpect: {outcome: spawn_failed}\n"
    assert runner.play(loads(text), subjects.reference_supervisor()).answer is not None
    fake = runner.make_fake(loads(SOUND))
    assert fake.first_fault is None
