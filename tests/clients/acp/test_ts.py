"""The TypeScript SDK of the Agent Client Protocol against fakes, in real time. Its user starts and ends the agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.clients.findings import mark_finding
from tests.clients.running import IGNORES_EOF

if TYPE_CHECKING:
    from tests.clients.running import Client, Programs

pytestmark = pytest.mark.slow


@pytest.fixture
def client(programs: Programs) -> Client:
    """Give the SDK, and an agent."""
    return programs.node("acp_sdk.mjs", "acp-sdk", "acp")


@mark_finding(
    "@agentclientprotocol/sdk", "answers its prompts", "gives its updates to the handlers, and its stop reasons back"
)
def test_prompts_are_answered(client: Client) -> None:
    """Its updates are those of the SDK's schema."""
    script = """
        - wait_for: prompt 1
        - think: hm
        - plan: [look, "write"]
        - tool: {id: a, name: Bash, input: {command: ls}}
        - tool_done: {id: a, output: x}
        - answer: one
        - wait_for: prompt 2
        - answer: two
    """
    run = client("prompts", script)
    assert run.list_values("update", "kind") == [
        "agent_thought_chunk",
        "plan",
        "tool_call",
        "tool_call_update",
        "agent_message_chunk",
        "agent_message_chunk",
    ]
    assert run.list_values("update", "text") == ["hm", "one", "two"]
    assert run.list_values("turn", "stop") == ["end_turn", "end_turn"]
    assert run.errors == ""
    assert run.ends == [{"code": 0}]


@mark_finding(
    "@agentclientprotocol/sdk", "asks for a permission", "gives its handler's answer, by which the agent goes on"
)
def test_a_permission_is_answered(client: Client) -> None:
    """The handler takes the first option."""
    script = """
        - wait_for: prompt 1
        - tool: {id: a, name: Bash}
        - ask: {permission: Bash, allowed: [{say: it may}]}
        - tool_done: {id: a, output: x}
        - answer: done
    """
    run = client("prompt", script)
    assert run.list_values("asked", "tool") == ["Bash"]
    assert run.list_values("update", "text") == ["it may", "done"]


@mark_finding("@agentclientprotocol/sdk", "is told to cancel", "gives the stop reason, and the next prompt is answered")
def test_a_cancelled_prompt_leaves_the_session(client: Client) -> None:
    """The answer to a cancel is the prompt's own."""
    script = """
        - wait_for: prompt 1
        - tool: {id: a, name: Bash}
        - say: well
        - wait_for: cancel
        - acknowledge: cancel
        - wait_for: prompt 2
        - answer: two
    """
    run = client("cancels", script)
    assert run.list_values("turn", "stop") == ["cancelled", "end_turn"]
    assert run.list_values("update", "status") == ["in_progress", "failed"]
    assert run.list_values("update", "text") == ["well", "two"]


@mark_finding("@agentclientprotocol/sdk", "is asked to load a session", "prompts it by the id that it had")
def test_a_loaded_session_is_prompted(client: Client) -> None:
    """The id is the client's, not one of the agent's."""
    run = client("loads", "- wait_for: prompt 1\n- answer: done")
    assert '"method":"session/load"' in run.stdin
    assert run.list_values("turn", "stop") == ["end_turn"]
    assert run.list_values("update", "text") == ["done"]


@mark_finding(
    "@agentclientprotocol/sdk", "dies in the middle of a prompt", "throws that the connection is closed, and no cause"
)
def test_a_crash_closes_the_connection(client: Client) -> None:
    """The end of the agent is for the caller, which started it."""
    run = client("prompt", "- wait_for: prompt 1\n- say: well\n- exit: 3")
    assert run["threw"]["message"] == "ACP connection closed"
    assert run["exit"]["code"] == 3


@mark_finding(
    "@agentclientprotocol/sdk", "dies before the handshake", "throws that the connection is closed, and no cause"
)
def test_a_death_before_the_handshake_closes_the_connection(client: Client) -> None:
    """The client learns of it at once."""
    script = """
        - handshake: never
        - wait_for: {stdin: "*initialize*"}
        - raw: {text: no licence, to: stderr}
        - exit: 1
    """
    run = client("prompt", script)
    assert run["threw"]["message"] == "ACP connection closed"
    assert run.errors == "no licence"


@mark_finding("@agentclientprotocol/sdk", "prints a line that is no JSON", "writes a parse error back, and goes on")
def test_noise_is_answered_by_a_parse_error(client: Client) -> None:
    """An agent must bear a response without an id."""
    script = """
        - wait_for: prompt 1
        - raw: "oops\\n"
        - wait_for: {stdin: "*-32700*"}
        - answer: done
    """
    run = client("prompt", script)
    assert '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}' in run.stdin
    assert run.list_values("turn", "stop") == ["end_turn"]


@mark_finding("@agentclientprotocol/sdk", "sends an update that nobody knows", "prints an error on stderr, and goes on")
def test_an_unknown_update_is_dropped(client: Client) -> None:
    """The handler never sees it."""
    script = """
        - wait_for: prompt 1
        - event:
            jsonrpc: "2.0"
            method: session/update
            params: {sessionId: sess_1, update: {sessionUpdate: unheard_of}}
        - answer: done
    """
    run = client("prompt", script)
    assert run.list_values("update", "kind") == ["agent_message_chunk"]
    assert "Error handling notification" in run.errors
    assert run.list_values("turn", "stop") == ["end_turn"]


@mark_finding("@agentclientprotocol/sdk", "answers a prompt by an error", "throws its text, and the connection stays")
def test_a_refused_prompt_is_thrown(client: Client) -> None:
    """An error of the protocol ends the prompt, not the connection."""
    run = client("prompt", "- wait_for: prompt 1\n- result: {text: no credit, is_error: true}")
    assert run["threw"]["message"] == "no credit"


@mark_finding(
    "@agentclientprotocol/sdk", "lingers after the last prompt", "returns, and leaves it: its end is its user's affair"
)
def test_an_agent_that_lingers_is_left(client: Client) -> None:
    """The SDK sends no signal, and does not end its stdin."""
    script = f"""
        {IGNORES_EOF}
        - wait_for: prompt 1
        - answer: done
        - silence: for ever
    """
    run = client("leaves", script, leaves=("agent",))
    assert run["left"]["exit"] is None
    assert run.signals == []


@mark_finding(
    "@agentclientprotocol/sdk",
    "reads and writes files and runs a command by its client",
    "calls its handlers, and gives their answers back",
)
def test_files_and_terminals_are_the_clients(client: Client) -> None:
    """The script waits for each answer."""
    script = """
        - wait_for: prompt 1
        - request:
            method: fs/read_text_file
            params: {path: /w/a}
            answered: [{say: read}]
        - request:
            method: fs/write_text_file
            params: {path: /w/b, content: new}
            answered: [{say: written}]
        - request:
            method: terminal/create
            params: {command: make}
            answered: [{say: started}]
        - request:
            method: terminal/wait_for_exit
            params: {terminalId: t1}
            answered: [{say: ended}]
        - request:
            method: terminal/release
            params: {terminalId: t1}
            answered: [{say: released}]
        - answer: done
    """
    run = client("prompt", script)
    assert run["reads"]["path"] == "/w/a"
    assert (run["writes"]["path"], run["writes"]["content"]) == ("/w/b", "new")
    assert run["terminal"]["command"] == "make"
    assert run.list_values("update", "text") == ["read", "written", "started", "ended", "released", "done"]
    assert '"content":"its text"' in run.stdin
    assert '"exitCode":0' in run.stdin


@mark_finding(
    "@agentclientprotocol/sdk", "calls a method without a handler", "answers that it is not found, and goes on"
)
def test_a_method_without_a_handler_is_refused(client: Client) -> None:
    """The agent must not wait for ever for a method without a handler."""
    script = """
        - wait_for: prompt 1
        - request:
            method: terminal/kill
            params: {terminalId: t1}
            refused: [{say: refused}]
        - answer: done
    """
    run = client("prompt", script)
    assert '"code":-32601' in run.stdin
    assert run.list_values("update", "text") == ["refused", "done"]
