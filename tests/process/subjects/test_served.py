"""A client that speaks with `opencode serve` over HTTP is judged by scenarios as every other client is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc.scenario import NotApplicable, loads
from pytest_agentproc.subjects import Client, Driven, reference_supervisor
from pytest_agentproc.verdict import Verdict, choose_overall_verdict, explain_play, judge_all_expectations
from tests.process.fakes.test_serve import ask, read_port

if TYPE_CHECKING:
    from pytest_agentproc.harness import ScenarioRunner

AGENT = "agent: {dialect: opencode, mode: serve}\n"
TWO_TURNS = f"""
scenario: the second prompt is answered after a turn of two hours
{AGENT}script:
  - wait_for: prompt 1
  - tool: {{id: t, name: bash}}
  - silence: 2h
  - tool_done: t
  - answer: first
  - wait_for: prompt 2
  - answer: second
drive:
  - prompt: one
  - wait_for: turn 1
  - prompt: two
  - wait_for: turn 2
  - close: {{}}
expect:
  turns:
    - {{outcome: completed, text: first, elapsed: 2h}}
    - {{outcome: completed, text: second, elapsed: 0s}}
  leaks: []
"""
CANCELLED = f"""
scenario: a cancelled turn ends, and its agent with the session
{AGENT}script:
  - wait_for: prompt 1
  - say: half
  - wait_for: cancel
  - acknowledge: cancel
drive:
  - prompt: one
  - {{cancel: {{}}, at: 5s}}
  - wait_for: turn 1
  - close: {{}}
expect:
  turns: [{{outcome: cancelled}}]
  leaks: []
"""


class Served(Client):
    """The shortest client of `opencode serve`."""

    async def start(self) -> None:
        """Start the server, and make a session."""
        self.agent = await anyio.open_process(self.order.argv, env=self.order.env, stdin=None, stderr=None)
        self.port = await read_port(self.agent)
        _, session = await ask(self.port, "POST", "/session", {})
        self.path = f"/session/{session['id']}"

    async def prompt(self, text: str) -> dict[str, Any]:
        """Prompt, and wait for the answer."""
        _, message = await ask(self.port, "POST", f"{self.path}/message", {"parts": [{"type": "text", "text": text}]})
        texts = [part["text"] for part in message["parts"] if part["type"] == "text"]
        return {"outcome": "failed" if "error" in message["info"] else "completed", "text": "".join(texts)}

    async def cancel(self) -> None:
        """Abort the turn."""
        await ask(self.port, "POST", f"{self.path}/abort")

    async def close(self) -> None:
        """End the server."""
        self.agent.terminate()
        await self.agent.wait()
        await self.agent.aclose()


@pytest.mark.parametrize("text", [TWO_TURNS, CANCELLED], ids=["two-turns", "cancelled"])
def test_a_client_of_a_server_is_judged(runner: ScenarioRunner, text: str) -> None:
    """The two hours are virtual, and exact."""
    play = runner.play(loads(text), Driven(Served, dialects=["opencode serve"]))
    rows = judge_all_expectations(play)
    assert choose_overall_verdict(rows) is Verdict.PASSED, explain_play(play, rows)


class Trusting(Served):
    """A client that takes every answer with status 200 for a good one."""

    async def prompt(self, text: str) -> dict[str, Any]:
        """Prompt, and do not look at the error."""
        return {**await super().prompt(text), "outcome": "completed"}


FAILED = f"""
scenario: the server's answer to a failed turn says so in a field
{AGENT}script:
  - wait_for: prompt 1
  - result: {{text: no credit, is_error: true}}
drive: [{{prompt: one}}, {{wait_for: turn 1}}, {{close: {{}}}}]
expect: {{turns: [{{outcome: failed}}]}}
"""


@pytest.mark.parametrize(
    ("client", "failed"), [(Served, []), (Trusting, ["turns.1.outcome"])], ids=["served", "trusting"]
)
def test_a_client_that_does_not_look_at_the_error_fails(
    runner: ScenarioRunner, client: type[Client], failed: list[str]
) -> None:
    """The status of the answer is 200."""
    rows = judge_all_expectations(runner.play(loads(FAILED), Driven(client, dialects=["opencode serve"])))
    assert [row.key for row in rows if row.verdict is Verdict.FAILED] == failed


@pytest.mark.parametrize("subject", [reference_supervisor(), Driven(Served), Driven(Served, dialects=["opencode"])])
def test_a_server_is_for_those_who_name_it(runner: ScenarioRunner, subject: Any) -> None:
    """Other supervisors of opencode speak with `opencode run` alone."""
    with pytest.raises(NotApplicable, match="agents of opencode serve"):
        runner.play(loads(TWO_TURNS), subject)
