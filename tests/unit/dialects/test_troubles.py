"""Ready-made trouble: one word stands for the steps that the real CLI plays."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_agentproc.errors import ScenarioError
from pytest_agentproc.fake_agents.dialects import make_encoder
from pytest_agentproc.scenario import loads
from pytest_agentproc.vocabulary import DIALECTS, TROUBLES, Policy

AGENTS = [
    (word, f"{{dialect: {dialect}, mode: {mode}}}")
    for word, trouble in TROUBLES.items()
    for known in trouble.steps
    for dialect, _, only in [known.partition(" ")]
    for mode in DIALECTS[dialect].modes
    if only in ("", mode)
]


def bind(word: str, agent: str) -> dict[str, Any]:
    """Give the program of one word."""
    return loads(f"scenario: a\nagent: {agent}\nscript:\n  - trouble: {word}\n").bind(Policy()).program


def sum_waits(program: dict[str, Any]) -> float:
    """Give the seconds that it waits."""
    waits: list[int] = [args[0] for _, op, args in program["steps"] if op == "sleep"]
    return sum(waits) / 1e9


@pytest.mark.parametrize(("word", "agent"), AGENTS)
def test_each_word_compiles_for_each_agent_that_knows_it(word: str, agent: str) -> None:
    """Its steps stand in the line of the word; line 0 is what the agent does by itself."""
    steps = [step for step in bind(word, agent)["steps"] if step[1] != "read_stdin"]
    assert steps
    assert {line for line, _, _ in steps} - {0} == {4}


@pytest.mark.parametrize(
    ("word", "agent", "seconds"),
    [
        ("retries", "claude", 1.756),
        ("rate_limit", "claude", 187.776),
        ("overload", "codex", 24.5),
        ("login_expired", "codex", 6.1),
        ("rate_limit", "{dialect: gemini, mode: stream}", 222.3),
        ("overload", "pi", 14),
    ],
)
def test_trouble_takes_as_long_as_it_took_the_real_cli(word: str, agent: str, seconds: float) -> None:
    """A supervisor whose limit is shorter ends an agent that would have come back."""
    assert sum_waits(bind(word, agent)) == pytest.approx(seconds)


def test_a_retry_says_its_number_and_its_delay() -> None:
    """They are those of the wait that follows."""
    lines = [args[1] for _, op, args in bind("retries", "claude")["steps"] if op == "event" and args[0] == "line"]
    assert [(line["attempt"], line["retry_delay_ms"], line["error_status"]) for line in lines] == [
        (1, 580, 500),
        (2, 1176, 500),
    ]


def test_an_api_error_has_its_status() -> None:
    """Claude names it twice."""
    program = bind("rate_limit", "claude")
    *_, (_, _, (fields,)) = program["steps"]
    printed = make_encoder({**program, "argv": (), "prompt": "hi"}).encode_result(fields, 0).decode()
    assert printed.count('"api_error_status":429') == printed.count('"api_error_type":"rate_limit_error"') == 2


REFUSED = [
    ("raw", "compaction", "a:4:14: the dialect raw has no trouble compaction in mode text: known by claude"),
    (
        "{dialect: codex, mode: app-server}",
        "denied_tool",
        "a:4:14: the dialect codex has no trouble denied_tool in mode app-server: known by claude or opencode",
    ),
]


@pytest.mark.parametrize(("agent", "word", "message"), REFUSED)
def test_trouble_that_a_dialect_does_not_know_is_refused(agent: str, word: str, message: str) -> None:
    """The message names the agents that know it."""
    with pytest.raises(ScenarioError) as caught:
        loads(f"scenario: a\nagent: {agent}\nscript:\n  - trouble: {word}\n", "a")
    assert str(caught.value) == message
