"""Real time from the command line: which items there are, what is skipped and why, and what a slow machine means."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.plays import PlayResult
from tests.plugin.items.test_options import list_collected_ids
from tests.plugin.scenarios import GREEN, RED

if TYPE_CHECKING:
    from pathlib import Path

TIE = """\
scenario: an agent speaks when its time is up
agent: raw
script:
  - silence: inactivity_timeout
  - say: late
expect:
  outcome: completed
"""


@pytest.fixture
def one(pytester: pytest.Pytester) -> Path:
    """Give a folder with one green scenario."""
    file = pytester.path / "one.scenario.yaml"
    file.write_text(GREEN)
    return file


@pytest.mark.parametrize(
    ("arguments", "ini", "names"),
    [
        (["--agentproc-clock=real"], "", ["asyncio-real"]),
        (["--agentproc-clock=both"], "", ["asyncio", "asyncio-real"]),
        (["--agentproc-clock=real", "--agentproc-backend=both"], "", ["asyncio-real", "trio-real"]),
        ([], "agentproc_clock = real", ["asyncio-real"]),
        (["--agentproc-clock=virtual"], "agentproc_clock = real", ["asyncio"]),
    ],
)
@pytest.mark.usefixtures("one")
def test_a_scenario_is_played_under_each_chosen_clock(
    pytester: pytest.Pytester, arguments: list[str], ini: str, names: list[str]
) -> None:
    """The name of an item says so; virtual time is what goes without saying."""
    pytester.makeini(f"[pytest]\n{ini}\n")
    result = pytester.runpytest("--collect-only", "-q", *arguments)
    assert list_collected_ids(result) == [f"one.scenario.yaml::one[{name}]" for name in names]


@pytest.mark.parametrize(
    ("arguments", "ini", "message"),
    [
        ([], "agentproc_clock = wall", "agentproc_clock = wall: must be one of virtual, real, both, model"),
        (["--agentproc-scale=0.5"], "", "--agentproc-scale=0.5: must be auto, or a number from 1 to 1000"),
        ([], "agentproc_scale = fast", "agentproc_scale = fast: must be auto, or a number from 1 to 1000"),
        (["--agentproc-scale=nan"], "", "--agentproc-scale=nan: must be auto, or a number from 1 to 1000"),
    ],
)
def test_what_is_no_clock_or_scale_is_refused(
    pytester: pytest.Pytester, arguments: list[str], ini: str, message: str
) -> None:
    """Before anything is played."""
    pytester.makeini(f"[pytest]\n{ini}\n")
    result = pytester.runpytest(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.errlines[0] == f"ERROR: {message}"


@pytest.mark.usefixtures("one")
def test_what_real_time_cannot_judge_is_skipped_with_the_reason(pytester: pytest.Pytester) -> None:
    """A tie is for virtual time; the other one is green, and a wrong claim is red on any clock."""
    (pytester.path / "tie.scenario.yaml").write_text(TIE)
    (pytester.path / "wrong.scenario.yaml").write_text(RED)
    result = pytester.runpytest("--agentproc-clock=real", "-rs")
    result.assert_outcomes(passed=1, skipped=1, failed=1)
    result.stdout.fnmatch_lines(
        ["*not applicable in real time: two of its competing instants are at the same time, and 250 ms are needed"]
    )
    result.stdout.fnmatch_lines(["  outcome: failed  wrong.scenario.yaml:9", "    expected  completed"])


def test_a_red_play_on_a_starved_machine_is_no_verdict(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is played three times in all; a green one would have counted, whatever the machine."""
    plays = []

    def was_starved(played: PlayResult) -> bool:
        plays.append(played)
        return True

    monkeypatch.setattr(PlayResult, "was_starved", property(was_starved))
    (pytester.path / "wrong.scenario.yaml").write_text(RED)
    result = pytester.runpytest("--agentproc-clock=real", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*undecided: in real time the machine was too slow 3 times"])
    assert len({id(played) for played in plays}) == 3  # each is asked by the page, too


def test_what_real_time_takes_is_said_before_anything_is_played(pytester: pytest.Pytester) -> None:
    """Limits in the code of a program are judged at scale 1: a session of minutes should be no surprise."""
    for name, seconds in (("one", 12), ("two", 90)):
        text = f"scenario: an agent ends\nagent: raw\nscript: [{{silence: {seconds}s}}, {{exit: 0}}]\n"
        (pytester.path / f"{name}.scenario.yaml").write_text(f"{text}expect: {{outcome: completed}}\n")
    (pytester.path / "mine.toml").write_text("command = 'timeout 60 {agent}'\nlimits = {inactivity_timeout = 60}\n")
    result = pytester.runpytest("--collect-only", "--agentproc-clock=real", "--agentproc-subject=mine.toml")
    line = "agentproc: real time: about 12 s one after the other; scenarios played: 1, not judged in real time: 1"
    result.stdout.fnmatch_lines([line])


OUT_OF_REACH = """\
import subprocess
from pytest_agentproc.subjects import Function

def make():
    def inner(order):
        subprocess.run(order.argv, env=order.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        return "completed"
    return inner

subject = Function(make(), name="inner")
"""


@pytest.mark.slow
@pytest.mark.usefixtures("one")
def test_a_supervisor_out_of_reach_is_judged_in_real_time_and_the_summary_says_why(pytester: pytest.Pytester) -> None:
    """A reader must know which clock a verdict is about."""
    pytester.makepyfile(mine=OUT_OF_REACH)
    result = pytester.runpytest("--agentproc-subject=mine:subject")
    result.stdout.fnmatch_lines(
        [
            "agentproc: inner *",
            "*; real clock",
            "agentproc: inner was judged in real time: inner cannot be sent to another process: Can't * local object *",
        ]
    )
