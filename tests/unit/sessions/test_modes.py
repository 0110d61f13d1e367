"""A caller switches the mode of a session: what goes to the agent, and to the agents after it."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_agentproc.errors import UsageError
from pytest_agentproc.supervisor import Policy
from pytest_agentproc.supervisor import _events as machine_events
from tests.unit.session_stage import Stage

PLAN = machine_events.SetMode("plan")
POLICY = Policy(restart_backoff=1.0)


def greet(stage: Stage, dialect: str) -> None:
    """Have the agent do its handshake, and read what the client wrote for it."""
    [hello] = stage.take_sent()
    if dialect == "claude":
        response = {"subtype": "success", "request_id": hello["request_id"], "response": {}}
        stage.print_lines({"type": "control_response", "response": response})
        return
    stage.print_lines({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": 1}})
    stage.take_sent()
    stage.print_lines({"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s"}})


def list_modes(lines: list[dict[str, Any]]) -> list[str]:
    """Give the mode of each line that sets one."""
    claude = [line["request"]["mode"] for line in lines if line.get("request", {}).get("subtype")]
    return claude + [line["params"]["modeId"] for line in lines if line.get("method") == "session/set_mode"]


@pytest.mark.parametrize("dialect", ["claude", "acp"])
def test_each_agent_gets_the_mode_after_its_handshake(dialect: str) -> None:
    """Without it the agent after a crash would write files in a mode that the user has left."""
    stage = Stage(dialect, policy=POLICY)
    stage.send_intents(PLAN)
    greet(stage, dialect)
    assert list_modes(stage.take_sent()) == ["plan"]
    stage.exit_agent(1)
    stage.advance_to(1.0)
    greet(stage, dialect)
    assert list_modes(stage.take_sent()) == ["plan"]


@pytest.mark.parametrize("dialect", ["claude", "acp"])
def test_a_mode_is_set_at_once_within_a_turn(dialect: str) -> None:
    """The turn goes on, and its agent lives."""
    stage = Stage(dialect, policy=POLICY)
    greet(stage, dialect)
    stage.prompt()
    stage.take_sent()
    stage.send_intents(PLAN)
    assert (list_modes(stage.take_sent()), stage.status, len(stage.agents)) == (["plan"], "prompting", 1)


def test_a_mode_that_the_agent_refuses_is_a_warning() -> None:
    """The session goes on; the caller reads why."""
    told = {}
    for dialect in ("claude", "acp"):
        stage = Stage(dialect, policy=POLICY)
        greet(stage, dialect)
        stage.send_intents(PLAN)
        [request] = stage.take_sent()
        refused = {"subtype": "error", "request_id": request.get("request_id"), "error": "not here"}
        error = {"jsonrpc": "2.0", "id": request.get("id"), "error": {"code": -32602, "message": "not here"}}
        stage.print_lines({"type": "control_response", "response": refused} if dialect == "claude" else error)
        told[dialect] = stage.session.warnings
    assert told == dict.fromkeys(("claude", "acp"), ("the agent refused the mode: not here",))


def test_a_protocol_without_modes_is_a_mistake_of_the_caller() -> None:
    """Nothing would be written, and nobody would know: pi has none."""
    with pytest.raises(UsageError, match="switches no mode\na session has modes with claude, acp"):
        Stage("pi").session.set_mode("plan")
