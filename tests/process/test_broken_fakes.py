"""Real fakes that fail: the error says so, with its place, and no supervisor is judged for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_agentproc import subjects
from pytest_agentproc.cli import main
from pytest_agentproc.errors import KitError, ScenarioError
from pytest_agentproc.harness import foresee
from pytest_agentproc.harness._margin import Foreseen
from pytest_agentproc.scenario import loads
from tests.unit.test_broken_fakes import EARLY, ENDLESS

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_agentproc.harness import Lab

FAILED = r"^x.scenario.yaml:8: the fake agent itself failed at the step tool_done: KeyError: 't' \(codex.py:\d+\); "


def test_a_fake_that_fails_is_no_verdict_in_virtual_time(lab: Lab, backend: str) -> None:
    """Its exit with 70 is nothing that its supervisor can answer for."""
    with pytest.raises(KitError, match=FAILED):
        lab.play(loads(EARLY, "x.scenario.yaml"), subjects.core(), backend=backend)


def test_the_next_play_of_the_same_fake_is_judged(lab: Lab) -> None:
    """Its files are used again; what broke in the one play says nothing of the other."""
    with pytest.raises(KitError, match=FAILED):
        lab.play(loads(EARLY, "x.scenario.yaml"), subjects.core())
    text = "scenario: a\nagent: codex\nscript: [{answer: done}]\nexpect: {outcome: completed}\n"
    assert lab.play(loads(text), subjects.core()).answer is not None


def test_a_fake_that_fails_is_no_verdict_in_real_time(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model knows it before; what it cannot know, such as a machine without room, the fake says itself."""
    told, core = loads(EARLY, "x.scenario.yaml"), subjects.core()
    with pytest.raises(KitError, match=FAILED.partition(r" \(")[0]):
        lab.play_real(told, core)
    sound = Foreseen(None, foresee(told, told.terms(core)).duration)
    monkeypatch.setattr("pytest_agentproc.harness._lab.foresee", lambda *_: sound)
    with pytest.raises(KitError, match=FAILED):
        lab.play_real(told, core)


@pytest.mark.slow
def test_an_agent_without_an_end_is_a_mistake_of_its_scenario(
    lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run once went on for ever, in gigabytes."""
    with pytest.raises(ScenarioError, match=r"^x.scenario.yaml:4:1: drip: it printed 25000 times, and nothing ended"):
        lab.play(loads(ENDLESS, "x.scenario.yaml"), subjects.core())
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
