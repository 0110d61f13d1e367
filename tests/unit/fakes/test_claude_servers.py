"""The fake of a claude whose client runs MCP servers: handshakes, calls, and calls without an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_agentproc.errors import ScenarioError
from pytest_agentproc.scenario import loads
from tests.unit.bookkeeping import FOR_EVER, StagedPlay, number_steps
from tests.unit.conversations import Conversation

TOOL = {"id": "t", "name": "mcp__calc__add", "input": {"a": 1}}
PROMPT = {"type": "user", "message": {"role": "user", "content": "hi"}}
INITIALIZE = {
    "type": "control_request",
    "request_id": "r",
    "request": {"subtype": "initialize", "sdkMcpServers": ["calc"]},
}
SECOND = 1_000_000_000


def encode_line(value: Any) -> bytes:
    """Make a line."""
    return json.dumps(value).encode()


def answer_mcp(talk: Conversation, request: dict[str, Any], **reported: Any) -> None:
    """Answer a message of MCP: with `result`, or with `error`."""
    message = {"jsonrpc": "2.0", "id": request["request"]["message"].get("id"), **reported}
    response = {"subtype": "success", "request_id": request["request_id"], "response": {"mcp_response": message}}
    talk.send_requests(encode_line({"type": "control_response", "response": response}))


def begin_turn_with_server() -> Conversation:
    """Begin a turn with a server that has one tool."""
    talk = Conversation("claude", "session")
    talk.send_requests(encode_line(INITIALIZE), encode_line(PROMPT))
    for result in ({}, {}, {"tools": [{"name": "add"}]}):
        assert not talk.host.has_received_prompt(1)
        answer_mcp(talk, next(line for line in talk.take_printed() if line["type"] == "control_request"), result=result)
    talk.tell("begin_prompt", 1)
    talk.tell("tool", TOOL)
    return talk


def call_tool(talk: Conversation) -> tuple[Any, list[dict[str, Any]]]:
    """Call the tool; give the question, and what was printed since the handshake."""
    question, data = talk.host.ask_client({"kind": "request", "tool": "t", "id": None}, 0)
    return question, [*talk.take_printed(), *map(json.loads, data.splitlines())]


def end_tool(talk: Conversation) -> tuple[Any, Any]:
    """End the tool; give its content and whether that is an error."""
    talk.tell("tool_done", {"id": "t", "output": "", "error": None})
    block = talk.take_printed()[-1]["message"]["content"][0]
    return block["content"], block.get("is_error")


def test_a_call_has_the_number_and_the_input_of_its_tool() -> None:
    """The handshake took the numbers 0 and 1."""
    talk = begin_turn_with_server()
    question, (init, tool, request) = call_tool(talk)
    assert (init["mcp_servers"], init["tools"][-1]) == (
        [{"name": "calc", "status": "connected", "source": "sdk"}],
        "mcp__calc__add",
    )
    assert tool["tool_use_meta"][0]["display_name"] == "Add"
    assert (request["request"]["message"]["id"], request["request"]["message"]["params"]["arguments"]) == (2, {"a": 1})
    answer_mcp(talk, request, result={"content": []})
    assert (question.answer, end_tool(talk)) == ("answered", ("(mcp__calc__add completed with no output)", None))


@pytest.mark.parametrize(
    "response",
    [{"result": {"content": [{"type": "text", "text": "odd"}], "isError": True}}, {"error": {"message": "odd"}}],
    ids=["of the tool", "of the server"],
)
def test_an_error_is_the_end_of_the_tool(response: dict[str, Any]) -> None:
    """An error of JSON-RPC and an error in a result look alike to the model."""
    talk = begin_turn_with_server()
    question, printed = call_tool(talk)
    answer_mcp(talk, printed[-1], **response)
    assert (question.answer, end_tool(talk)) == ("refused", ("odd", True))


def test_the_end_of_stdin_ends_a_call() -> None:
    """No answer can come any more."""
    talk = begin_turn_with_server()
    question, _ = call_tool(talk)
    talk.host.note_stdin_end()
    assert question.answer == "refused"
    assert end_tool(talk)[0].startswith("The tool call was interrupted before a result was received.")


def test_an_interrupt_ends_a_call_that_no_server_has_got() -> None:
    """There is no server to which the agent could say so."""
    talk = begin_turn_with_server()
    talk.tell("tool", {"id": "u", "name": "mcp__none__add", "input": {}})
    question, _ = talk.host.ask_client({"kind": "request", "tool": "u", "id": None}, 0)
    talk.send_requests(encode_line({"type": "control_request", "request_id": "i", "request": {"subtype": "interrupt"}}))
    talk.tell("acknowledge")
    assert question.answer == "cancelled"
    assert talk.take_printed()[-1]["type"] == "result"


@pytest.mark.parametrize(("handshake", "begins"), [((), 60), (("handshake", "never", None), 0)])
def test_a_silent_server_holds_the_first_prompt_back_for_a_minute(handshake: tuple[Any, ...], begins: int) -> None:
    """With the servers out of the handshake nothing is held back."""
    steps = number_steps(*([handshake] if handshake else []), ("await_prompt", 1), ("say", "hi", None), FOR_EVER)
    play = StagedPlay(program={"dialect": "claude", "mode": "session", "code": 0, "serves": True, "steps": steps})
    play.grant(0)
    lines = encode_line(INITIALIZE) + b"\n" + encode_line(PROMPT) + b"\n"
    done = play.grant(0, stdin=lines)
    if begins:
        assert not any(b'"init"' in str(entry[1]).encode() for entry in done)
        assert play.player.earliest_wake_instant == begins * SECOND
        done = play.grant(begins * SECOND)
        assert any(b'"status":"failed"' in entry[1] for entry in done if entry[0] == "stdout")
    assert any(b'"text":"hi"' in entry[1] for entry in done if entry[0] == "stdout")


@pytest.mark.parametrize(
    ("agent", "step", "wanted"),
    [
        ("claude", "{method: a}", "the dialect claude calls no method of its client: write tool"),
        ("claude", "{tool: t}", "no tool was started before"),
        ("acp", "{tool: t}", "the dialect acp calls no tool of its client: write method"),
    ],
)
def test_a_request_that_the_dialect_cannot_make_is_a_mistake(agent: str, step: str, wanted: str) -> None:
    """The message says which key the dialect has."""
    text = f"scenario: a\nagent: {{dialect: {agent}, mode: session}}\nscript: [{{request: {step}}}]\n"
    with pytest.raises(ScenarioError) as found:
        loads(text, "x")
    assert str(found.value).endswith(wanted)
