"""Where a protocol can be read in two ways, a careful client of either reading is green: ACP, on raw pipes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

import anyio
import pytest

from pytest_agentproc.subjects import Client, Driven
from pytest_agentproc.verdict import Verdict, choose_overall_verdict, judge_all_expectations
from tests.bundled import load_bundled

if TYPE_CHECKING:
    from pytest_agentproc.harness import ScenarioRunner

pytestmark = pytest.mark.slow


class Acp(Client):
    """A client of ACP that ignores updates that it cannot assign, and has no abilities of its own."""

    denial: ClassVar[dict[str, str]] = {"outcome": "selected", "optionId": "reject-once"}

    async def start(self) -> None:
        """Start the agent, shake hands and open a session."""
        order = self.order
        self.agent = await self.enter_context(
            await anyio.open_process(order.argv, env=order.env, start_new_session=True)
        )
        self.number, self.rest, self.prompting = 0, b"", 0
        await self.request("initialize", {"protocolVersion": 1})
        self.session = (await self.request("session/new", {"cwd": "/", "mcpServers": []}))["result"]["sessionId"]

    async def prompt(self, text: str) -> Any:
        """Ask, and wait for the response; the pieces of the answer come before it."""
        self.text, self.prompting = "", self.number + 1
        about = {"sessionId": self.session, "prompt": [{"type": "text", "text": text}]}
        response = await self.request("session/prompt", about)
        self.prompting = 0
        if "error" in response:
            return {"outcome": "failed", "text": self.text}
        return {"outcome": "completed", "text": self.text}

    async def close(self) -> None:
        """Have the agent read the end of its stdin."""
        assert self.agent.stdin is not None
        await self.agent.stdin.aclose()
        await self.agent.wait()

    async def request(self, method: str, params: dict[str, Any]) -> Any:
        """Send a request, and take messages until its response."""
        self.number += 1
        own = self.number
        await self.send({"id": own, "method": method, "params": params})
        while True:
            response = await self.take(await self.message(), own)
            if response is not None:
                return response

    async def take(self, message: dict[str, Any], own: int) -> Any:
        """Take one message; give it if it is the response to a request."""
        if message.get("method") == "session/update":
            self.text += message["params"]["update"]["content"]["text"]
        elif "method" in message and "id" in message:
            await self.send({"id": message["id"], **self.answer(message["method"])})
        elif self.is_response(message, own):
            return message
        return None

    def answer(self, method: str) -> dict[str, Any]:
        """Refuse every request that is not offered, and deny every permission."""
        if method == "session/request_permission":
            return {"result": {"outcome": self.denial}}
        return {"error": {"code": -32601, "message": "there is no such method"}}

    def is_response(self, message: dict[str, Any], own: int) -> bool:
        """Say whether a message answers a request: only its id counts."""
        return message.get("id") == own and ("result" in message or "error" in message)

    async def message(self) -> dict[str, Any]:
        """Read the next line that holds an object."""
        assert self.agent.stdout is not None
        while True:
            line, end, rest = self.rest.partition(b"\n")
            if end:
                self.rest = rest
                found = json.loads(line)
                assert isinstance(found, dict)
                return found
            self.rest += await self.agent.stdout.receive()

    async def send(self, message: dict[str, Any]) -> None:
        """Write a line."""
        assert self.agent.stdin is not None
        await self.agent.stdin.send(f"{json.dumps({'jsonrpc': '2.0', **message})}\n".encode())


class TakesNull(Acp):
    """Takes an error without an id for that of the one request that is in flight."""

    def is_response(self, message: dict[str, Any], own: int) -> bool:
        """Look at such errors, too."""
        return super().is_response(message, own) or ("error" in message and message.get("id", own) is None)


class Cancelling(Acp):
    """Sends every cancel of its caller's, whether or not a turn runs: the agent has nothing to cancel then."""

    async def cancel(self) -> None:
        """Send the notification."""
        await self.send({"method": "session/cancel", "params": {"sessionId": self.session}})


class Dismissing(Acp):
    """Answers a question as if its dialog had been closed: no turn is cancelled, and nothing is allowed."""

    denial: ClassVar[dict[str, str]] = {"outcome": "cancelled"}


class Reading(Acp):
    """Has files and a terminal to offer."""

    def answer(self, method: str) -> dict[str, Any]:
        """Give the agent its answer."""
        given = {"fs/read_text_file": {"content": "notes"}, "terminal/create": {"terminalId": "t1"}}
        return {"result": given[method]} if method in given else super().answer(method)


@pytest.mark.parametrize(
    ("client", "name"),
    [
        *((client, "session-unknown-answer") for client in (Acp, TakesNull)),
        *((client, "acp-session-error-without-an-id") for client in (Acp, TakesNull)),
        (Acp, "acp-session-object-that-is-no-message"),
        *((client, "session-calls-in-acp-are-refused") for client in (Acp, Dismissing, Reading)),
        (Cancelling, "session-cancel-of-nothing[acp]"),
    ],
)
def test_both_readings_are_green(runner: ScenarioRunner, client: type[Acp], name: str, backend: str) -> None:
    """A red would say that the other reading is the only one."""
    scenario = load_bundled(name)
    rows = judge_all_expectations(runner.play(scenario, Driven(client, dialects=["acp"]), backend=backend))
    assert choose_overall_verdict(rows) is Verdict.PASSED, rows


class ByOrder(Acp):
    """Takes every response for that of the request in flight, whatever its id."""

    def is_response(self, message: dict[str, Any], own: int) -> bool:
        """Look at no id."""
        return "result" in message or "error" in message


@pytest.mark.parametrize("name", ["session-unknown-answer", "acp-session-error-without-an-id"])
def test_a_client_that_looks_at_no_id_is_red(runner: ScenarioRunner, name: str, backend: str) -> None:
    """It gives an answer to a prompt that it does not belong to."""
    scenario = load_bundled(name)
    rows = judge_all_expectations(runner.play(scenario, Driven(ByOrder, dialects=["acp"]), backend=backend))
    assert choose_overall_verdict(rows) is Verdict.FAILED, rows
