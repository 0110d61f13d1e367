"""The SDK of opencode against fakes of `opencode serve`, in real time. It runs the `opencode` that it finds on PATH."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.harness import write_fake
from pytest_agentproc.scenario import loads
from tests.clients.findings import mark_finding
from tests.clients.running import CEILING, IGNORES_TERM

if TYPE_CHECKING:
    from pathlib import Path

    from tests.clients.running import Client, Programs

pytestmark = pytest.mark.slow

ASKS = """
    - wait_for: prompt 1
    - tool: {id: a, name: bash, input: {command: ls}}
    - ask:
        permission: bash
        allowed: [{tool_done: {id: a, output: x}}, {answer: done}]
        denied: [{tool_done: {id: a, error: rejected}}]
"""


@pytest.fixture
def client(programs: Programs) -> Client:
    """Give the client, and an opencode that serves."""
    return programs.node("opencode_sdk.mjs", "opencode-sdk", "{dialect: opencode, mode: serve}")


@mark_finding("@opencode-ai/sdk", "uses a tool and answers", "gives the last message, and ends the server by TERM")
def test_a_prompt_is_answered(client: Client) -> None:
    """The answer has the parts of the last message only: the tool is in the one before."""
    script = """
        - wait_for: prompt 1
        - tool: {id: a, name: bash, input: {command: ls}}
        - tool_done: {id: a, output: x}
        - answer: done
    """
    run = client("prompt", script)
    assert run["answer"]["parts"] == ["step-start", "done", "step-finish"]
    assert run["answer"]["finish"] == "stop"
    assert run.argv == [["serve", "--hostname=127.0.0.1", "--port=0"]]
    assert run.ends == [{"signal": "TERM"}]


@mark_finding("@opencode-ai/sdk", "says that it is idle", "gives every event, in order")
def test_events_come_in_order(client: Client) -> None:
    """A program that only listens sees the busy session, the text and the end."""
    run = client("events", "- wait_for: prompt 1\n- answer: done")
    told = [row["what"] for row in run.told]
    assert run.list_values("session.status", "status") == ["busy", "busy", "busy", "idle"]
    assert run.list_values("message.part.updated", "text") == ["hi", "", "done"]
    assert told.index("message.part.delta") < told.index("session.idle") < told.index("stream ends")


@mark_finding("@opencode-ai/sdk", "asks for a permission", "has a call that answers it")
def test_a_permission_is_given(client: Client) -> None:
    """The question is an event, and the answer a request of its own."""
    run = client("permits", ASKS)
    assert run["answer"]["parts"] == ["step-start", "done", "step-finish"]
    assert "permission.replied" in [row["what"] for row in run.told]


@mark_finding(
    "@opencode-ai/sdk", "is refused a permission", "ends the turn without an answer: its finish is tool-calls"
)
def test_a_rejection_ends_the_turn(client: Client) -> None:
    """A caller that takes the last message for an answer has one without a text."""
    run = client("rejects", ASKS)
    assert run["answer"]["parts"] == ["step-start", "error", "step-finish"]
    assert run["answer"]["finish"] == "tool-calls"


@mark_finding("@opencode-ai/sdk", "is told to abort", "gives the message with its error, and takes the next prompt")
def test_an_abort_leaves_the_session_for_the_next_prompt(client: Client) -> None:
    """The request of the aborted prompt is answered as a good one is."""
    script = """
        - wait_for: prompt 1
        - delta: well
        - wait_for: cancel
        - acknowledge: cancel
        - wait_for: prompt 2
        - answer: two
    """
    run = client("aborts", script)
    assert run.list_values("answer", "error") == ["MessageAbortedError"]
    assert run.list_values("answer", "parts") == [["step-start", "well"], ["step-start", "two", "step-finish"]]
    assert run["session.error"]["error"] == "MessageAbortedError"


@mark_finding("@opencode-ai/sdk", "reports an error of its model", "returns as after a good one: the error is a field")
def test_an_error_is_a_field_of_the_answer(client: Client) -> None:
    """A caller that does not look at it has a message without parts."""
    run = client("prompt", "- wait_for: prompt 1\n- result: {text: no credit, is_error: true}")
    assert run["answer"]["error"] == "APIError"
    assert run["answer"]["parts"] == []


@mark_finding("@opencode-ai/sdk", "dies while it works", "throws an error of the connection")
def test_a_death_at_work_is_thrown(client: Client) -> None:
    """Nothing says that the server is gone but the connection."""
    run = client("prompt", "- wait_for: prompt 1\n- say: well\n- exit: 3")
    assert (run["threw"]["name"], run["threw"]["message"]) == ("TypeError", "fetch failed")
    assert run.ends == [{"code": 3}]


@mark_finding(
    "@opencode-ai/sdk",
    "works for an hour",
    "throws after 300.4 s in Node 20, whose limit for the head of an answer it does not lift; the turn goes on",
)
def test_an_hour_of_a_turn_is_given_up_after_five_minutes(client: Client, tmp_path: Path) -> None:
    """In virtual time. The SDK sets `timeout` on its request, which Bun reads and Node does not."""
    script = "script: [{wait_for: prompt 1}, {silence: 1h}, {answer: done}]"
    scenario = loads(f"scenario: a long turn\nagent: {{dialect: opencode, mode: serve}}\n{script}\n")
    write_fake(scenario, tmp_path / "opencode", scale=1, lifetime=60, harness=os.getpid())
    command = [sys.executable, "-m", "pytest_agentproc", "time", "--", *client.command, "outlasts", ""]
    environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    ran = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=CEILING, check=True)
    told = {row["what"]: row for row in map(json.loads, ran.stdout.splitlines())}
    assert (told["refused"]["name"], told["refused"]["message"]) == ("TypeError", "fetch failed")
    assert 300 <= (int(told["refused"]["at"]) - int(told["listens"]["at"])) / 1e9 < 301
    assert "answer" not in told


@mark_finding("@opencode-ai/sdk", "does not listen in time", "ends it by TERM, and throws")
def test_a_server_that_is_late_is_given_up(client: Client) -> None:
    """Its limit is five seconds; here it is one."""
    run = client("waits", "- handshake: never\n- wait_for: prompt 1")
    assert run["threw"]["message"] == "Timeout waiting for server to start after 1000ms"
    assert run.ends == [{"signal": "TERM"}]


@mark_finding("@opencode-ai/sdk", "ignores TERM", "returns from close() at once, and the server lives on")
def test_a_server_that_ignores_term_lives_on(client: Client) -> None:
    """There is no second signal. The real server misses a first one now and then."""
    run = client("leave", f"{IGNORES_TERM}\n- wait_for: prompt 1\n- answer: done", leaves=("agent",))
    assert run["answer"]["finish"] == "stop"
    assert [name for name, _ in run.signals] == ["TERM"]
