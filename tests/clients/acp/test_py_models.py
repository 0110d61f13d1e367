"""Every line of a fake ACP agent fits the models of agent-client-protocol, with nothing left over."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.event_lines import list_lines

if TYPE_CHECKING:
    from pytest_agentproc.record import Record
    from tests.clients.acp_py import AcpPy

NOTIFICATIONS = {"session/update": "SessionNotification"}
REQUESTS = {
    "session/request_permission": "RequestPermissionRequest",
    "fs/read_text_file": "ReadTextFileRequest",
    "fs/write_text_file": "WriteTextFileRequest",
    "terminal/create": "CreateTerminalRequest",
    "terminal/output": "TerminalOutputRequest",
    "terminal/wait_for_exit": "WaitForTerminalExitRequest",
    "terminal/kill": "KillTerminalRequest",
    "terminal/release": "ReleaseTerminalRequest",
}
RESPONSES = {
    "initialize": "InitializeResponse",
    "authenticate": "AuthenticateResponse",
    "session/new": "NewSessionResponse",
    "session/load": "LoadSessionResponse",
    "session/resume": "ResumeSessionResponse",
    "session/close": "CloseSessionResponse",
    "session/set_mode": "SetSessionModeResponse",
    "session/set_config_option": "SetSessionConfigOptionResponse",
    "session/prompt": "PromptResponse",
}
SCRIPT = """
    - handshake: {modes: [ask, code]}
    - handshake: {options: [{id: model, values: [fast, deep]}]}
    - handshake: {history: [{prompt: hi}, {think: hm}, {answer: hello}]}
    - wait_for: prompt 1
    - think: hm
    - plan: [look, {content: mend, status: in_progress, priority: high}]
    - delta: Let me
    - say: " look."
    - tool: {id: t, name: cat a, kind: read, input: {path: a}, locations: [/w/a, {path: /w/b, line: 3}]}
    - ask: {permission: cat a}
    - request: {method: fs/read_text_file, params: {path: /w/notes.txt, line: 1, limit: 10}}
    - request: {method: fs/write_text_file, params: {path: /w/new.txt, content: three}}
    - tool_done: {id: t, output: one}
    - tool: {id: u, name: make, kind: execute}
    - request: {method: terminal/create, params: {command: make, args: [all], cwd: /w, outputByteLimit: 1024}}
    - request: {method: terminal/wait_for_exit, params: {terminalId: t1}}
    - request: {method: terminal/output, params: {terminalId: t1}}
    - request: {method: terminal/kill, params: {terminalId: t1}}
    - request: {method: terminal/release, params: {terminalId: t1}}
    - tool_done: {id: u, error: no such target}
    - event: {sessionUpdate: usage_update, used: 10, size: 100}
    - event: {sessionUpdate: available_commands_update, availableCommands: [{name: plan, description: makes a plan}]}
    - event: {sessionUpdate: current_mode_update, currentModeId: code}
    - event: {sessionUpdate: session_info_update, title: a talk}
    - result: {text: done, usage: {tokens: 3}}
    - wait_for: prompt 2
    - tool: {id: v, name: sleep}
    - wait_for: cancel
    - acknowledge: cancel
    - wait_for: prompt 3
    - result: {text: no credit, is_error: true}
"""


def test_every_line_is_what_the_models_say(acp_client: AcpPy) -> None:
    """A conversation with all messages of a script: each is read by its model and comes out as it went in."""
    acp_client.play_script(SCRIPT)
    acp_client.connect(lambda connection: call_every_method(acp_client, connection))
    record = acp_client.record
    asked = {
        request["id"]: request["method"]
        for request in list_messages(record, "i")
        if "id" in request and "method" in request
    }
    told = set()
    for message in list_messages(record, "o"):
        name, body = validate_with_model(message, asked)
        told.add(name)
        model = getattr(acp_client.acp.schema, name).model_validate(body)
        assert model.model_dump(mode="json", by_alias=True, exclude_unset=True) == body
    assert told == {*NOTIFICATIONS.values(), *REQUESTS.values(), *RESPONSES.values(), "Error"}


async def call_every_method(acp_client: AcpPy, connection: Any) -> None:
    """Call every method that the fake knows."""
    await connection.initialize(protocol_version=1)
    await connection.authenticate(method_id="key")
    await connection.load_session(cwd="/w", session_id="old")
    await connection.resume_session(cwd="/w", session_id="older")
    session = (await connection.new_session(cwd="/w")).session_id
    await connection.set_session_mode(session_id=session, mode_id="code")
    await connection.set_config_option(session_id=session, config_id="model", value="deep")
    await connection.cancel(session_id=session)
    await acp_client.prompt(connection, session)
    async with anyio.create_task_group() as group:
        group.start_soon(acp_client.prompt, connection, session)
        await anyio.sleep(1)
        await connection.cancel(session_id=session)
    with pytest.raises(acp_client.acp.RequestError, match="no credit"):
        await acp_client.prompt(connection, session)
    await connection.close_session(session_id=session)


def list_messages(record: Record, code: str) -> list[dict[str, Any]]:
    """Give the messages in one direction: `o` from the agent, `i` to it."""
    data = b"".join(event.data.get("bytes", b"") for event in list_lines(record) if event.code == code)
    return [json.loads(line) for line in data.splitlines()]


def validate_with_model(message: dict[str, Any], asked: dict[Any, str]) -> tuple[str, Any]:
    """Give the name of a message's model, and what that reads."""
    assert message["jsonrpc"] == "2.0"
    if "method" in message:
        return (REQUESTS if "id" in message else NOTIFICATIONS)[message["method"]], message["params"]
    if "error" in message:
        return "Error", message["error"]
    return RESPONSES[asked[message["id"]]], message["result"]
