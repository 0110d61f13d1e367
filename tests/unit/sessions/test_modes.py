"""A caller switches the mode or the model of a session: what goes to the agent, and to the agents after it."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_agentproc.errors import UsageError
from pytest_agentproc.supervisor import Policy
from pytest_agentproc.supervisor import _events as machine_events
from tests.unit.session_stage import Stage

PLAN = machine_events.SwitchSetting("mode", "plan")
MODEL = machine_events.SwitchSetting("model", "m2")
POLICY = Policy(restart_backoff=1.0)


def greet(stage: Stage, dialect: str) -> None:
    """Have the agent do its handshake, and read what the client wrote for it."""
    [hello] = stage.take_sent()
    if dialect == "claude":
        response = {"subtype": "success", "request_id": hello["request_id"], "response": {}}
        stage.print_lines({"type": "control_response", "response": response})
        return
    if dialect == "codex":
        assert hello["params"]["capabilities"] == {"experimentalApi": True}  # without it a switch is refused
        stage.print_lines({"id": 0, "result": {}})
        [_, opening] = stage.take_sent()
        stage.print_lines({"id": opening["id"], "result": {"thread": {"id": "s"}, "model": "m1"}})
        return
    stage.print_lines({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": 1}})
    stage.take_sent()
    stage.print_lines({"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s"}})


def list_switches(lines: list[dict[str, Any]]) -> list[str]:
    """Give the mode or the model of each line that sets one."""
    asked = [line.get("request", line.get("params", {})) for line in lines]
    codex = [found.get("collaborationMode", found) for found in asked]
    found = [each.get("modeId") or each.get("mode") or each.get("model") for each in codex]
    return [str(name) for name in found if name]


SWITCHES = [("claude", PLAN), ("acp", PLAN), ("codex", PLAN), ("claude", MODEL), ("codex", MODEL)]


@pytest.mark.parametrize(("dialect", "switch"), SWITCHES)
def test_each_agent_gets_the_setting_after_its_handshake(dialect: str, switch: machine_events.SwitchSetting) -> None:
    """Without it the agent after a crash would write files in a mode that the user has left."""
    stage = Stage(dialect, policy=POLICY)
    stage.send_intents(switch)
    greet(stage, dialect)
    assert list_switches(stage.take_sent()) == [switch.name]
    stage.exit_agent(1)
    stage.advance_to(1.0)
    greet(stage, dialect)
    assert list_switches(stage.take_sent()) == [switch.name]


@pytest.mark.parametrize(("dialect", "switch"), SWITCHES)
def test_a_setting_is_switched_at_once_within_a_turn(dialect: str, switch: machine_events.SwitchSetting) -> None:
    """The turn goes on, and its agent lives."""
    stage = Stage(dialect, policy=POLICY)
    greet(stage, dialect)
    stage.prompt()
    stage.take_sent()
    stage.send_intents(switch)
    assert (list_switches(stage.take_sent()), stage.status, len(stage.agents)) == ([switch.name], "prompting", 1)


def test_a_mode_of_codex_keeps_the_model() -> None:
    """A collaboration mode names the model, too; another one would be a second switch."""
    stage = Stage("codex", policy=POLICY)
    greet(stage, "codex")
    stage.send_intents(PLAN, MODEL, PLAN)
    modes = [line["params"].get("collaborationMode", {}) for line in stage.take_sent()]
    assert [mode.get("settings") for mode in modes] == [{"model": "m1"}, None, {"model": "m2"}]


@pytest.mark.parametrize(("dialect", "switch"), SWITCHES)
def test_a_setting_that_the_agent_refuses_is_a_warning(dialect: str, switch: machine_events.SwitchSetting) -> None:
    """The session goes on; the caller reads why."""
    stage = Stage(dialect, policy=POLICY)
    greet(stage, dialect)
    stage.send_intents(switch)
    [request] = stage.take_sent()
    refused = {"subtype": "error", "request_id": request.get("request_id"), "error": "not here"}
    error = {"jsonrpc": "2.0", "id": request.get("id"), "error": {"code": -32602, "message": "not here"}}
    stage.print_lines({"type": "control_response", "response": refused} if dialect == "claude" else error)
    assert stage.session.warnings == (f"the agent refused the {switch.what}: not here",)


def test_a_protocol_without_modes_is_a_mistake_of_the_caller() -> None:
    """Nothing would be written, and nobody would know: pi has none."""
    with pytest.raises(UsageError, match="switches no mode\na session has modes with claude, codex, acp"):
        Stage("pi").session.set_mode("plan")
    with pytest.raises(UsageError, match="switches no model\na session has models with claude, codex"):
        Stage("acp").session.set_model("m2")
