"""A fake that fails, or that nothing ever ends, is a mistake of its scenario's and no failure of the supervisor's."""

from __future__ import annotations

import pytest

from pytest_agentproc import defects, subjects
from pytest_agentproc.errors import EndlessAgent, KitError, ScenarioError
from pytest_agentproc.fake_agents import player
from pytest_agentproc.harness import run_in_model
from pytest_agentproc.scenario import loads
from pytest_agentproc.subjects import ReferenceSupervisor
from pytest_agentproc.verdict import Verdict, choose_overall_verdict, judge_all_expectations

HEAD = "scenario: a\nagent: raw\nscript:\n"
ENDLESS = f'{HEAD}  - drip: {{stderr: ".", every: 60s}}\nexpect: {{outcome: completed}}\n'
AT_ONCE = f'{HEAD}  - meanwhile: [{{drip: {{stderr: ".", every: 1ns}}}}]\n  - silence: for ever\n'
REFORKS = f"{HEAD}  - spawn: {{id: h, how: refork, every: 1ns}}\n  - silence: for ever\n"
IN_PIECES = f"{HEAD.replace('raw', '{dialect: raw, chunk: 1 B}')}  - raw: {{text: xx, repeat: 200000}}\n"
STALLS = (
    "scenario: a\nagent: claude\npolicy: {progress_timeout: 10m}\nscript:\n"
    '  - drip: {stderr: ".", every: 1m}\nexpect: {outcome: stalled}\n'
)
EARLY = """\
scenario: a tool ends before it starts
agent: codex
script:
- meanwhile:
  - silence: 2s
  - tool: {id: t, name: command_execution, input: {command: make}}
- silence: 1s
- tool_done: {id: t, output: passed}
- answer: done
expect: {outcome: completed}
"""


def _build_defective_supervisor(name: str) -> ReferenceSupervisor:
    defect = defects.find_defect(name)
    return ReferenceSupervisor(name, defect.deciders, defect.session_deciders)


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(player, "MAX_DRIPS_PER_PROCESS", 100)
    monkeypatch.setattr(player, "MAX_SELF_FORKS", 20)
    monkeypatch.setattr(player, "MAX_ROOM_WAITS_PER_PROCESS", 100)


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ENDLESS, "drip: it printed 100 times, and nothing ended it"),
        (AT_ONCE, "drip: it printed 100 times, and nothing ended it"),
        (REFORKS, "spawn: it forked itself 20 times, and nothing ended it"),
        (IN_PIECES, "raw: it waited 100 times for room to write, and nothing ended it"),
    ],
    ids=["drip", "drip-at-once", "refork", "pieces"],
)
def test_a_step_without_an_end_is_a_mistake_of_the_scenario(text: str, said: str) -> None:
    """It once took gigabytes and all the time there was, and then the supervisor was judged for it."""
    with pytest.raises(ScenarioError) as error:
        run_in_model(loads(text, "x.scenario.yaml"), subjects.reference_supervisor())
    assert str(error.value) == (
        f"x.scenario.yaml:4:1: {said}; "
        "give it an end, such as `for: 10m`, or have a limit or an action of the caller end the agent"
    )


@pytest.mark.usefixtures("_small")
def test_a_drip_without_an_end_is_ended_by_a_limit() -> None:
    """Such a script is right as long as something ends the agent."""
    played = run_in_model(loads(STALLS), subjects.reference_supervisor())
    assert choose_overall_verdict(judge_all_expectations(played)) is Verdict.PASSED


@pytest.mark.usefixtures("_small")
def test_a_supervisor_that_does_not_end_it_is_judged_where_the_reference_does() -> None:
    """Then the script has an end, and this supervisor has none."""
    played = run_in_model(loads(STALLS), _build_defective_supervisor("bytes-are-progress"))
    assert isinstance(played.fault, EndlessAgent)
    assert str(played.fault) == "the supervisor does not end the agent: it printed 100 times, and nothing ended it"
    assert choose_overall_verdict(judge_all_expectations(played)) is Verdict.FAILED


def test_a_fake_that_fails_is_no_verdict() -> None:
    """Its exit once counted as the agent's, and the supervisor as wrong."""
    with pytest.raises(KitError) as error:
        run_in_model(loads(EARLY, "x.scenario.yaml"), subjects.reference_supervisor())
    assert str(error.value) == (
        "x.scenario.yaml:8: the fake agent itself failed at the step tool_done: KeyError: 't'; "
        "this says nothing of the supervisor"
    )


def test_each_of_several_branches_may_end_a_tool() -> None:
    """Of two answers to a question one happens, so that each may say the same."""
    ends = "[{tool_done: {id: t, output: x}}, {answer: done}]"
    loads(
        "scenario: a\nagent: claude\nscript:\n  - tool: {id: t, name: Bash}\n"
        f"  - when: {{signal: TERM}}\n    do: {ends}\n  - when: {{signal: INT}}\n    do: {ends}\n  - silence: 1s\n"
    )
