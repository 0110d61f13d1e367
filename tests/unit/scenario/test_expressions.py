"""Times: numbers with units and expressions over policy names, exact to the nanosecond."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agentproc.scenario import Expectation, NotApplicable, loads
from pytest_agentproc.vocabulary import Policy

if TYPE_CHECKING:
    from pytest_agentproc.scenario import Scenario

SECOND = 1_000_000_000


def bind_elapsed(time: str, policy: Policy | None = None, head: str = "") -> Expectation:
    """Bind `elapsed: TIME`, as QA would write it."""
    text = f"scenario: a\nagent: raw\n{head}script: []\nexpect: {{elapsed: {time}}}\n"
    return loads(text).bind(policy or Policy()).expect[0]


@pytest.mark.parametrize(
    ("time", "nanoseconds"),
    [
        ("0", 0),
        ("1ns", 1),
        ("1us", 1_000),
        ("1ms", 1_000_000),
        ("1s", SECOND),
        ("1m", 60 * SECOND),
        ("1h", 3_600 * SECOND),
        ("0.1s", 100_000_000),
        ("0.000000001s", 1),
        ("10 s", 10 * SECOND),
        ("1h+1m+1s", 3_661 * SECOND),
        ("inactivity_timeout", 120 * SECOND),
        ("inactivity_timeout + 10s", 130 * SECOND),
        ("linger_grace + linger_kill_grace", 500_000_000),
        ("inactivity_timeout * 5 / 2", 300 * SECOND),
        ("5 / 2 * inactivity_timeout", 300 * SECOND),
        ("inactivity_timeout - kill_grace * 2", 116 * SECOND),
        ("(inactivity_timeout - kill_grace) * 2", 236 * SECOND),
        ("10s - 3s - 2s", 5 * SECOND),
        ("10s / 2 / 5", SECOND),
        ("inactivity_timeout / kill_grace * 1s", 60 * SECOND),
        ("0 * 1h", 0),
        ("0 + 1s", SECOND),
        ("1s / 3 * 3", SECOND),
        ("0.1s + 0.2s", 300_000_000),
        ("'kill_grace'", 2 * SECOND),
    ],
)
def test_a_time_is_exact(time: str, nanoseconds: int) -> None:
    """A float's last digit would be a wrong verdict: thirds cancel out, tenths add up."""
    assert bind_elapsed(time).wanted == nanoseconds


def test_a_time_follows_the_policy_of_the_subject() -> None:
    """A supervisor with other numbers is judged by its own."""
    policy = Policy(inactivity_timeout=30.0, kill_grace=0.125)
    assert bind_elapsed("inactivity_timeout + kill_grace", policy).wanted == 30_125_000_000


def test_a_check_on_a_missing_limit_is_not_applicable() -> None:
    """Only the check falls away: the rest of the scenario still judges."""
    expectation = bind_elapsed("max_runtime + 1s")
    assert (expectation.wanted, expectation.not_applicable) == (None, "max_runtime")


def test_a_script_on_a_missing_limit_is_not_applicable_as_a_whole() -> None:
    """A fake cannot wait for a limit that the supervisor lacks; the line says who asked."""
    scenario = loads("scenario: a\nagent: raw\nscript:\n  - say: hi\n  - silence: inactivity_timeout\n")
    with pytest.raises(NotApplicable) as caught:
        scenario.bind(Policy(inactivity_timeout=None))
    assert (caught.value.name, caught.value.line) == ("inactivity_timeout", 5)


@pytest.mark.parametrize(
    ("time", "limit", "nanoseconds"),
    [
        ("kill_grace / 2", 2 / 3, 333_333_334),
        ("kill_grace * 2", 1 / 3, 666_666_667),
        ("kill_grace", 1 / 3, 333_333_334),
        ("kill_grace / 2", 1e-9, 1),
    ],
)
def test_a_part_of_a_limit_counts_upwards_as_limits_do(time: str, limit: float, nanoseconds: int) -> None:
    """A supervisor with a limit of thirds has done nothing wrong, and is judged."""
    assert bind_elapsed(time, Policy(kill_grace=limit)).wanted == nanoseconds


def test_a_part_of_a_limit_counts_upwards_in_another_process_too() -> None:
    """A function with threads is judged in one, and a time that is measured as bytes there is no time."""
    scenario = loads("scenario: a\nagent: raw\nscript: []\nexpect: {elapsed: inactivity_timeout / 3}\n")
    copied: Scenario = pickle.loads(pickle.dumps(scenario))  # noqa: S301  # it was made here
    assert copied.bind(Policy(inactivity_timeout=100)).expect[0].wanted == 33_333_333_334


def test_a_time_that_another_policy_makes_none_is_not_applicable_there() -> None:
    """The file is sound for most supervisors, and this one has done nothing wrong; the row says what is the matter."""
    seen = bind_elapsed("inactivity_timeout - 10s", Policy(inactivity_timeout=5.0)).not_applicable
    assert seen == 'other limits ("inactivity_timeout - 10s" is -5s: a time cannot be negative)'


def test_a_file_is_checked_with_the_limits_that_it_gives() -> None:
    """A value that is negative by default may be right under the file's own policy."""
    head = "policy: {kill_grace: 20s}\n"
    assert bind_elapsed("kill_grace - 10s", Policy(kill_grace=20.0), head).wanted == 10 * SECOND


_VALUES = st.integers(0, 10**6).flatmap(lambda n: st.sampled_from([(f"{n}ns", n), (f"{n}us", n * 1000)]))


def _draw_joined_expression(parts: st.SearchStrategy[tuple[str, int]]) -> st.SearchStrategy[tuple[str, int]]:
    sums = st.tuples(parts, parts).map(lambda two: (f"({two[0][0]} + {two[1][0]})", two[0][1] + two[1][1]))
    scaled = st.tuples(parts, st.integers(0, 99)).map(lambda two: (f"{two[0][0]} * {two[1]}", two[0][1] * two[1]))
    return sums | scaled


@settings(max_examples=100, deadline=None)
@given(st.recursive(_VALUES, _draw_joined_expression, max_leaves=6).filter(lambda case: len(case[0]) <= 200))
def test_a_sum_of_products_is_what_python_computes(case: tuple[str, Any]) -> None:
    """An independent evaluation beside the parser's own."""
    text, nanoseconds = case
    assert bind_elapsed(text).wanted == nanoseconds


@pytest.mark.parametrize("stated", [(), ("bash",)])
def test_an_outcome_of_tool_use_needs_a_host_with_those_tools(stated: tuple[str, ...]) -> None:
    """A supervisor that executes no tool, or other tools, is right to let pi execute this one."""
    text = "scenario: a\nagent: pi\npolicy: {host_tools: [edit]}\nscript: []\nexpect: {outcome: tool_use}\n"
    assert loads(text).bind(Policy(host_tools=("edit",))).expect[0].wanted == "tool_use"
    with pytest.raises(NotApplicable) as caught:
        loads(text).bind(Policy(host_tools=stated))
    assert (caught.value.name, caught.value.line) == ("host_tools", 5)


def test_a_fixed_list_of_host_tools_applies_if_it_covers_the_tools_of_the_script() -> None:
    """The tools of it that the script does not use are no difference; those that the agent executes itself are one."""
    tools = "[{tool: {id: a, name: bash}}, {tool_done: a}, {tool: {id: b, name: edit}}]"
    text = f"scenario: a\nagent: pi\npolicy: {{host_tools: [edit]}}\nscript: {tools}\nexpect: {{outcome: tool_use}}\n"
    assert loads(text).bind(Policy(host_tools=("edit", "write", "mcp__*"))).expect[0].wanted == "tool_use"
    with pytest.raises(NotApplicable):
        loads(text).bind(Policy(host_tools=("edit", "bash")))
