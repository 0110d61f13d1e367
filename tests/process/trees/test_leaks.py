"""Processes that outlive a run: known by name, state and command; a scenario may expect exactly these."""

from __future__ import annotations

import os
import re
import signal
import textwrap
from typing import TYPE_CHECKING

import anyio
import pytest

from pytest_agentproc.scenario import loads
from pytest_agentproc.subjects import NeverStartsAgent, StartsAgentAndReturns
from pytest_agentproc.subjects._trivial import _report_success, _start_agent
from pytest_agentproc.verdict import Verdict, choose_overall_verdict, explain_play, judge_all_expectations
from tests.event_lines import list_lines
from tests.process.stand import CEILING

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.scenario import Scenario
    from pytest_agentproc.vocabulary import RunReport, RunRequest


class DirectChildOnly(NeverStartsAgent):
    """Gives each agent two seconds, kills it, reaps it, and never looks further.

    Args:
        starts: how many agents, one after the other.
    """

    name = "direct-child-only"

    def __init__(self, starts: int = 1) -> None:
        self.starts = starts

    async def run_one(self, order: RunRequest) -> RunReport:
        """Start, wait, kill, reap."""
        for _ in range(self.starts):
            process = _start_agent(order)
            await anyio.sleep(2)
            process.kill()
            process.wait()
        return _report_success(order)


class Forgetful(StartsAgentAndReturns):
    """Starts an agent a given number of times, and does something to the last one.

    Args:
        starts: how often.
        signum: the signal that each is sent; None: nothing.
    """

    def __init__(self, starts: int = 1, signum: signal.Signals | None = None) -> None:
        super().__init__()
        self.starts = starts
        self.signum = signum

    async def run_one(self, order: RunRequest) -> RunReport:
        """Start and be done."""
        for _ in range(self.starts):
            answer = await super().run_one(order)
        if self.signum is not None:
            os.kill(self.forgotten[-1].pid, self.signum)
        return answer


@pytest.fixture
def forgetful() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Reap at the end the processes that a supervisor forgot; the runner has killed them by then."""
    forgotten: list[subprocess.Popen[bytes]] = []
    yield forgotten
    for process in forgotten:
        process.wait(CEILING)


def load_indented(text: str) -> Scenario:
    """Make a scenario of a text that is indented as its test is."""
    return loads(textwrap.dedent(text).strip() + "\n")


ONE = """
    scenario: an agent with a helper and a tool
    agent: pi
    script:
      - spawn: helper
      - spawn: {id: tool, ignores_signals: true}
      - silence: 5s
    expect:
      leaks: LEAKS
"""
SESSION = """
    scenario: a session's agent with a helper
    agent: {dialect: claude, mode: session}
    script:
      - spawn: helper
      - wait_for: prompt 1
      - answer: done
    expect:
      leaks: LEAKS
"""
SEVERAL = """
    scenario: two sessions, each with a helper of its own
    sessions:
      left:
        agent: {dialect: acp, mode: session}
        script: [{spawn: lamp}, {wait_for: prompt 1}, {answer: one}]
      right:
        agent: {dialect: pi, mode: rpc}
        script: [{spawn: rope}, {wait_for: prompt 1}, {answer: two}]
    drive:
      - {session: left, prompt: work}
      - {session: right, prompt: work}
    expect:
      leaks: LEAKS
"""
LATER = """
    scenario: an agent that is started again, each time with a helper
    agent: raw
    scripts:
      - [{spawn: tool}, {silence: 5s}]
      - [{spawn: helper}, {silence: 5s}]
    expect:
      leaks: LEAKS
"""
CASES = [
    (ONE, 1, ["helper", "tool"]),
    (SESSION, 1, ["helper"]),
    (SEVERAL, 1, ["lamp", "rope"]),
    (LATER, 3, ["tool", "helper", "helper 2"]),
]
IDS = ["one agent", "a session", "several sessions", "a later start"]


def judge_leaks(played: PlayResult) -> tuple[str, str, str]:
    """Give verdict, seen and hint of the check on leaks."""
    (row,) = [row for row in judge_all_expectations(played) if row.key == "leaks"]
    return str(row.verdict), row.seen, row.hint


@pytest.mark.parametrize(("text", "starts", "left"), CASES, ids=IDS)
def test_exactly_those_that_a_file_names_may_be_left(
    runner: ScenarioRunner, backend: str, text: str, starts: int, left: list[str]
) -> None:
    """A file about a supervisor that is known to leak says so, and is green as long as it leaks no more and no less."""

    def row(wanted: list[str]) -> tuple[str, str, str]:
        message = load_indented(text.replace("LEAKS", f"[{', '.join(wanted)}]"))
        return judge_leaks(runner.play(message, DirectChildOnly(starts), backend=backend))

    assert row(left) == ("passed", ", ".join(left), "")
    verdict, seen, hint = row(left[:-1])
    assert (verdict, seen) == ("failed", ", ".join(f"{name} (still alive)" for name in left))
    assert hint.startswith(f"{left[-1]} was started by line ")
    agent = "left" if text is SEVERAL else "agent"
    verdict, _, hint = row([*left, agent])
    assert (verdict, hint) == ("failed", f"{agent} was to be left, but is gone")


def test_the_agent_itself_may_be_the_one(runner: ScenarioRunner, forgetful: list[subprocess.Popen[bytes]]) -> None:
    """Each of its starts is one; the first is called by the name alone."""
    subject = Forgetful(2)
    subject.forgotten = forgetful
    told = ONE.replace("LEAKS", "[agent, agent 2]")
    assert judge_leaks(runner.play(load_indented(told), subject)) == ("passed", "agent, agent 2", "")
    told = ONE.replace("LEAKS", "[agent]")
    verdict, seen, hint = judge_leaks(runner.play(load_indented(told), subject))
    assert (verdict, seen) == ("failed", "agent (still alive), agent 2 (still alive)")
    assert hint == "agent 2 was not to be left"


@pytest.mark.parametrize("is_real", [False, True], ids=["virtual", "real"])
def test_who_is_left_stopped_is_called_so(
    runner: ScenarioRunner, forgetful: list[subprocess.Popen[bytes]], *, is_real: bool
) -> None:
    """It burns no time and says no word, and it is there."""
    subject = Forgetful(1, signal.SIGSTOP)
    subject.forgotten = forgetful
    told = load_indented("{scenario: an agent that is silent, agent: pi, script: [{silence: 50s}], expect: {noise: 0}}")
    played = runner.play_real(told, subject, scale=1) if is_real else runner.play(told, subject)
    assert judge_leaks(played) == ("failed", "agent (stopped)", "")
    text = explain_play(played, judge_all_expectations(played))
    assert f"    agent (pid {forgetful[0].pid}): stopped  pi --mode json -p hi" in text.splitlines()
    (leak,) = [event.data for event in list_lines(played.record) if "leaked" in event.data]
    assert list(leak["argv"]) == ["pi", "--mode", "json", "-p", "hi"]


def test_the_tree_is_drawn_with_the_steps_that_started_it(runner: ScenarioRunner) -> None:
    """Name, pid, end; file, line and step; parents above children; what each left one holds."""
    played = runner.play(load_indented(ONE.replace("LEAKS", "[]")), DirectChildOnly())
    lines = explain_play(played, judge_all_expectations(played)).splitlines()
    start = lines.index("  the tree at the end:")
    agent, helper, tool = [event.data["pid"] for event in list_lines(played.record) if event.data.get("seen")]
    width = max(len(f"agent (pid {agent}): gone, signal KILL, at 2 s"), len(f"  helper (pid {helper}): still alive"))
    drawing = [re.sub(r"^ +\d+\.\d s old in real time, \d+\.\d MiB of memory$", "HELD", line) for line in lines]
    assert drawing[start + 1 : start + 6] == [
        f"    agent (pid {agent}): gone, signal KILL, at 2 s",
        f"    {f'  helper (pid {helper}): still alive':<{width}}  <text>:4: - spawn: helper",
        "HELD",
        f"    {f'  tool (pid {tool}): still alive':<{width}}  <text>:5: - spawn: {{id: tool, ignores_signals: true}}",
        "HELD",
    ]


def test_a_run_that_leaks_nobody_draws_nothing(runner: ScenarioRunner) -> None:
    """The reader of a wrong text needs no list of processes."""
    told = load_indented("""
        scenario: a wrong expectation
        agent: raw
        script: [{answer: one}]
        expect: {text: two}
    """)
    played = runner.play(told, KillNobody())
    rows = judge_all_expectations(played)
    assert choose_overall_verdict(rows) is Verdict.FAILED
    assert "the tree at the end:" not in explain_play(played, rows)


class KillNobody(NeverStartsAgent):
    """Waits for its agent."""

    async def run_one(self, order: RunRequest) -> RunReport:
        """Start it and let it end by itself."""
        process = _start_agent(order)
        await anyio.sleep(1)
        process.wait()
        return _report_success(order)
