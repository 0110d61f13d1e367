"""`agent: {each: [...]}`: one file is one scenario for each of its agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.errors import ScenarioError
from pytest_agentproc.scenario import load, load_for_each_agent, loads, read_agent_names

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """\
scenario: an agent answers
agent:
  each: [claude, claude session,
         gemini stream]
  newline: crlf
script:
  - answer: hi
expect: {outcome: completed}
"""
FORM = "write each: [claude, gemini stream, ...]"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Write the file."""
    path = tmp_path / "answers.scenario.yaml"
    path.write_text(TEXT.replace("claude session", "pi"))
    return path


def _list_problems(text: str, agent: str = "") -> list[str]:
    with pytest.raises(ScenarioError) as found:
        loads(text, "x.scenario.yaml", agent=agent)
    return [str(problem) for problem in found.value.problems]


def test_a_file_is_a_scenario_for_each_of_its_agents(file: Path) -> None:
    """Every scenario has its own dialect and mode; all else is the same."""
    found = load_for_each_agent(file)
    assert [(entry.id, entry.dialect, entry.mode, entry.newline) for entry in found] == [
        ("answers[claude]", "claude", "print", "crlf"),
        ("answers[pi]", "pi", "json", "crlf"),
        ("answers[gemini]", "gemini", "stream", "crlf"),
    ]
    assert read_agent_names(file) == ("claude", "pi", "gemini")
    assert load(file, agent="pi") == found[1]
    assert found[1].command_argument == f"{file}[pi]"


def test_the_text_of_a_scenario_has_its_own_agent_alone_and_the_same_lines(file: Path) -> None:
    """A search writes that text to a file: it must run for the one agent."""
    for scenario in load_for_each_agent(file):
        lines = scenario.text.splitlines()
        assert lines.index("  - answer: hi") == TEXT.splitlines().index("  - answer: hi")
        assert [entry.id for entry in [loads(scenario.text, "answers.scenario.yaml")]] == [scenario.id]


def test_a_dialect_in_two_modes_is_named_by_both() -> None:
    """Two names must differ."""
    text = "scenario: x\nagent: {each: [claude, claude session]}\nscript: [{answer: hi}]\n"
    assert loads(text, "x.scenario.yaml", agent="claude-session").mode == "session"


def test_a_file_with_one_agent_stays_one_scenario(tmp_path: Path) -> None:
    """The word `each` in a text is no list of agents."""
    path = tmp_path / "x.scenario.yaml"
    path.write_text("scenario: each is for all\nagent: pi\nscript: [{answer: hi}]\n")
    assert [scenario.id for scenario in load_for_each_agent(path)] == ["x"]
    assert read_agent_names(path) == read_agent_names(tmp_path / "nothing") == ()


@pytest.mark.parametrize(
    ("agent", "name", "message"),
    [
        (
            "{each: [pi, acp]}",
            "",
            "x.scenario.yaml:2:15: the file runs once for each of pi and acp: name one of them, as in x[pi]",
        ),
        ("{each: [pi, acp]}", "pio", 'x.scenario.yaml:2:15: unknown agent of this file "pio": did you mean "pi"?'),
        ("pi", "pi", 'x.scenario.yaml:1:1: the file has one agent and no list of them: leave "[pi]" out'),
        (
            "{each: pi}",
            "",
            f"x.scenario.yaml:2:15: each must be a list in brackets: {FORM}",
        ),
        ("{each: [pi, pi]}", "pi", "x.scenario.yaml:2:20: each has pi twice"),
        (
            "{each: [pi, [pi]]}",
            "pi",
            f"x.scenario.yaml:2:20: each item of each must be a dialect, or a dialect and a mode: {FORM}",
        ),
        ("{each: [pi], mode: rpc}", "", "x.scenario.yaml:2:21: each item of each says its mode: leave mode out"),
    ],
)
def test_a_wrong_list_is_named_with_its_place(agent: str, name: str, message: str) -> None:
    """The message has the place, the value and the remedy."""
    assert _list_problems(f"scenario: x\nagent: {agent}\nscript: [{{answer: hi}}]\n", name) == [message]


def test_a_mistake_that_all_agents_share_is_reported_once(tmp_path: Path) -> None:
    """A mistake of one agent alone is reported beside it."""
    path = tmp_path / "x.scenario.yaml"
    path.write_text("scenario: x\nagent: {each: [pi, foo]}\nscript: [{sya: hi}]\n")
    with pytest.raises(ScenarioError) as found:
        load_for_each_agent(path)
    assert [problem.message.partition(":")[0] for problem in found.value.problems] == [
        'unknown dialect "foo"',
        'unknown step "sya"',
    ]


def test_agents_of_sessions_are_not_listed() -> None:
    """They run at the same time, each by its own name."""
    text = "scenario: x\nsessions:\n  a: {agent: {each: [pi]}, script: []}\n  b: {agent: pi, script: []}\ndrive: []\n"
    assert _list_problems(text)[0] == (
        "x.scenario.yaml:3:21: sessions.a.agent.each is for a file with one agent at a time: leave sessions out"
    )
