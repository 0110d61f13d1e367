"""A client of claude's that sends no `initialize`: it has no handshake that could be refused, or be late."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc.scenario import loads
from pytest_agentproc.subjects import Client, Driven, reference_supervisor
from pytest_agentproc.verdict import Verdict, choose_overall_verdict, judge_all_expectations
from tests.bundled import load_bundled

if TYPE_CHECKING:
    from pytest_agentproc.harness import ScenarioRunner

pytestmark = pytest.mark.slow

ABOUT_A_HANDSHAKE = (
    "session-dies-before-the-handshake",
    "session-handshake-answers-somebody-else",
    "session-handshake-late",
    "claude-session-handshake-never",
    "session-handshake-never-ends-the-tree",
    "session-handshake-refused[claude]",
)


class PlainClient(Client):
    """Writes prompts and reads results: the stream-json format without its control protocol."""

    async def start(self) -> None:
        """Start the agent."""
        order = self.order
        self.agent = await self.enter_context(
            await anyio.open_process(order.argv, env=order.env, start_new_session=True)
        )

    async def prompt(self, text: str) -> Any:
        """Write the prompt, and read until its result."""
        assert self.agent.stdin is not None
        assert self.agent.stdout is not None
        message = {"type": "user", "message": {"role": "user", "content": text}}
        await self.agent.stdin.send(f"{json.dumps(message)}\n".encode())
        rest = b""
        while not (ends := [line for line in rest.split(b"\n")[:-1] if b'"type":"result"' in line]):
            rest += await self.agent.stdout.receive()
        result = json.loads(ends[0])
        return {"outcome": "failed" if result["is_error"] else "completed", "text": result.get("result", "")}

    async def close(self) -> None:
        """Have the agent read the end of its stdin."""
        assert self.agent.stdin is not None
        await self.agent.stdin.aclose()


LIMITS = {"handshake_timeout": 30, "prompt_timeout": 10, "kill_grace": 2}
SUBJECT = Driven(PlainClient, limits=LIMITS, dialects=["claude"])


@pytest.mark.parametrize("name", ABOUT_A_HANDSHAKE)
def test_a_client_without_a_handshake_is_not_judged_by_one(runner: ScenarioRunner, name: str, backend: str) -> None:
    """The agent never got a request for a handshake, so what becomes of its answer says nothing of the client."""
    rows = judge_all_expectations(runner.play(load_bundled(name), SUBJECT, backend=backend))
    assert choose_overall_verdict(rows) is Verdict.NOT_APPLICABLE, rows
    assert {row.verdict for row in rows} <= {Verdict.NOT_APPLICABLE, Verdict.PASSED}
    assert any("asks for no handshake" in row.seen for row in rows)


def test_where_no_handshake_is_withheld_such_a_client_is_judged(runner: ScenarioRunner) -> None:
    """An ordinary scenario does not ask how the conversation began."""
    text = "scenario: s\nagent: {dialect: claude, mode: session}\nscript:\n  - wait_for: prompt 1\n  - answer: done\n"
    rows = judge_all_expectations(
        runner.play(loads(f"{text}expect:\n  turns: [{{outcome: completed, text: done}}]\n"), SUBJECT)
    )
    assert choose_overall_verdict(rows) is Verdict.PASSED, rows


class Silent(PlainClient):
    """Starts its agent, and never says a word to it."""

    async def prompt(self, text: str) -> Any:
        """Wait for ever."""
        await anyio.Event().wait()


@pytest.mark.parametrize("name", ["session-handshake-refused[claude]", "claude-session-handshake-never"])
def test_a_client_that_says_nothing_at_all_is_still_red(runner: ScenarioRunner, name: str) -> None:
    """Only a prompt shows that the client has begun without a handshake."""
    subject = Driven(Silent, limits=LIMITS, dialects=["claude"])
    rows = judge_all_expectations(runner.play(load_bundled(name), subject))
    assert choose_overall_verdict(rows) is Verdict.FAILED, rows


@pytest.mark.parametrize("name", ABOUT_A_HANDSHAKE)
def test_the_reference_supervisor_shakes_hands_and_is_judged(runner: ScenarioRunner, name: str) -> None:
    """The same scenarios count for a client that sends the request."""
    rows = judge_all_expectations(runner.play(load_bundled(name), reference_supervisor()))
    assert choose_overall_verdict(rows) is Verdict.PASSED, rows


class PromptsDuringHandshake(PlainClient):
    """Sends its prompt together with the request for a handshake, and waits for no answer to that."""

    async def start(self) -> None:
        """Start the agent, and ask for a handshake."""
        await super().start()
        assert self.agent.stdin is not None
        request = {"type": "control_request", "request_id": "1", "request": {"subtype": "initialize"}}
        await self.agent.stdin.send(f"{json.dumps(request)}\n".encode())


def test_a_client_that_asked_for_a_handshake_is_judged_by_it(runner: ScenarioRunner) -> None:
    """Not to wait for the answer is another thing than to ask for none."""
    subject = Driven(PromptsDuringHandshake, limits=LIMITS, dialects=["claude"])
    scenario = load_bundled("session-handshake-refused[claude]")
    assert choose_overall_verdict(judge_all_expectations(runner.play(scenario, subject))) is Verdict.FAILED
