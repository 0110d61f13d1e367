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


@pytest.mark.parametrize("agent", ["claude session", "{dialect: claude, mode: session}", "{each: [claude session]}"])
def test_an_agent_is_named_by_its_dialect_and_its_mode_everywhere(agent: str) -> None:
    """What a list of agents accepts is accepted for a single one, too."""
    scenario = loads(f"scenario: x\nagent: {agent}\nscript: [{{wait_for: prompt 1}}, {{answer: hi}}]\n")
    assert (scenario.dialect, scenario.mode) == ("claude", "session")


BLOCK_LIST = """\
scenario: x
agent:
  each:
  - claude

  # a comment
  - pi   # another one
policy: {kill_grace: 1s}
script:
  - silence: {between: [1s, 2s]}
  - answer: hi
"""


@pytest.mark.parametrize(
    "text", [BLOCK_LIST, BLOCK_LIST.replace("  - claude", "      - claude").replace("  - pi", "      - pi")]
)
def test_a_list_may_have_a_line_for_each_agent(text: str) -> None:
    """Formatters of YAML turn a list in brackets into such a list."""
    for agent in ("claude", "pi"):
        scenario = loads(text, agent=agent)
        assert scenario.dialect == agent
        assert scenario.text.splitlines()[7:] == text.splitlines()[7:]
        assert loads(scenario.text).dialect == agent


@pytest.mark.parametrize("each", ["[claude, pi]", "[claude,\n    pi]", "\n    - claude\n    - pi"])
def test_open_values_are_filled_in_for_each_agent(each: str) -> None:
    """The text of one agent is another text than that of the file, and its places are those of its own."""
    text = f"scenario: x\nagent: {{each: {each}}}\n" if "-" not in each else f"scenario: x\nagent:\n  each: {each}\n"
    text += "script:\n  - silence: {between: [1s, 2s]}\n  - answer: hi\n"
    filled = loads(text, agent="pi").fill_open_values(["1500ms"])
    assert filled.splitlines()[-3:] == ["script:", "  - silence: 1500ms", "  - answer: hi"]


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
            "x.scenario.yaml:2:15: the scenario runs once for each of pi and acp: name one of them, as in x[pi]",
        ),
        ("{each: [pi, acp]}", "pio", 'x.scenario.yaml:2:15: unknown agent of this scenario "pio": did you mean "pi"?'),
        ("pi", "pi", 'x.scenario.yaml:1:1: the scenario has one agent and no list of them: leave "[pi]" out'),
        (
            "{each: claude session}",
            "",
            "x.scenario.yaml:2:15: each must be a list: write each: [claude session]",
        ),
        ("{each: []}", "", f"x.scenario.yaml:2:15: each must be a list: {FORM}"),
        (
            "{dialect: claude session}",
            "",
            "x.scenario.yaml:2:18: dialect is one word: write {dialect: claude, mode: session}",
        ),
        (
            "{each: pi}",
            "",
            "x.scenario.yaml:2:15: each must be a list: write each: [pi]",
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
        "x.scenario.yaml:3:21: sessions.a.agent.each is for a scenario with one agent at a time: leave sessions out"
    )
