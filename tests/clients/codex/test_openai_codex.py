"""The Python package openai-codex against fakes of `codex app-server`, in real time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.clients.findings import mark_finding

if TYPE_CHECKING:
    from tests.clients.running import Client, Programs

pytestmark = pytest.mark.slow

THREADS = "01a20072-e39f-7280-8216-"


@pytest.fixture
def client(programs: Programs) -> Client:
    """Give the package, and a codex app-server."""
    return programs.python("openai_codex_program.py", "{dialect: codex, mode: app-server}")


@mark_finding("openai-codex", "answers two prompts", "returns both answers, from one process, which it ends with TERM")
def test_two_turns_are_answered_by_one_process(client: Client) -> None:
    """It reads every message of the fake into its generated types."""
    run = client("run", "- wait_for: prompt 1\n- answer: one\n- wait_for: prompt 2\n- say: well\n- answer: two")
    assert run["thread"]["id"].startswith(THREADS)
    assert run.list_values("turn", "text") == ["one", "two"]
    assert run.list_values("turn", "items") == [2, 3]
    assert run.argv == [["app-server", "--listen", "stdio://"]]
    assert len(run.ends) == 1


@mark_finding("openai-codex", "thinks, plans and uses tools", "yields each notification in its generated type")
def test_every_notification_has_its_type(client: Client) -> None:
    """A message that did not fit its type would be an unknown one."""
    script = """
        - wait_for: prompt 1
        - think: hm
        - plan: [a]
        - delta: ye
        - say: s
        - tool: {id: a, name: command_execution, input: {command: ls}}
        - tool_done: {id: a, output: x}
        - tool: {id: b, name: look}
        - tool_done: {id: b, error: bad}
        - answer: done
    """
    run = client("stream", script)
    assert "UnknownNotification" not in run.list_values("event", "typed")
    assert run.list_values("event", "method")[-1] == "turn/completed"
    assert "item/agentMessage/delta" in run.list_values("event", "method")


@mark_finding("openai-codex", "asks for an approval, and the caller has no handler", "accepts it at once")
def test_a_command_is_accepted_without_a_handler(client: Client) -> None:
    """No caller was asked."""
    script = """
        - wait_for: prompt 1
        - tool: {id: a, name: command_execution, input: {command: rm -rf /}}
        - ask:
            permission: rm -rf /
            allowed: [{tool_done: a}, {answer: removed}]
            denied: [{tool_done: {id: a, error: denied}}, {answer: not allowed}]
        - wait_for: prompt 2
        - answer: two
    """
    assert client("run", script).list_values("turn", "text") == ["removed", "two"]


@mark_finding(
    "openai-codex", "is interrupted", "returns when the interrupt is answered, and yields the end of the turn"
)
def test_an_interrupt_ends_the_turn(client: Client) -> None:
    """The answer to the interrupt comes with the end of the turn."""
    run = client("interrupt", "- wait_for: prompt 1\n- say: well\n- wait_for: cancel\n- acknowledge: cancel")
    assert '"turn/interrupt"' in run.stdin
    assert run["interrupted"]["at"] > 0
    assert run.list_values("event", "method")[-1] == "turn/completed"


@mark_finding("openai-codex", "refuses a prompt as overloaded", "raises its error, and does not ask again")
def test_an_overloaded_server_is_not_asked_again(client: Client) -> None:
    """The next prompt is answered."""
    script = """
        - wait_for: {stdin: "*turn/start*"}
        - event: {id: prompt 1, error: {code: -32001, message: Server overloaded; retry later.}}
        - wait_for: prompt 2
        - answer: two
    """
    run = client("run", script)
    assert "Server overloaded" in run["threw"]["message"]
    assert run["turn"]["text"] == "two"


@mark_finding("openai-codex", "fails in a turn", "raises the error of turn/completed")
def test_a_failed_turn_is_thrown(client: Client) -> None:
    """The next prompt is answered."""
    script = "- wait_for: prompt 1\n- result: {text: boom, is_error: true}\n- wait_for: prompt 2\n- answer: two"
    run = client("run", script)
    assert (run["threw"]["message"], run["turn"]["text"]) == ("boom", "two")


@mark_finding("openai-codex", "resumes a thread", "asks for it by its id, and returns the answer")
def test_a_thread_is_resumed(client: Client) -> None:
    """The fake knows one thread."""
    run = client("resume", "- wait_for: prompt 1\n- answer: done")
    assert run["turn"]["text"] == "done"
    assert '"thread/resume"' in run.stdin


@mark_finding(
    "openai-codex", "loses the end of a turn after a compaction", "waits until the agent is gone, and raises then"
)
def test_a_lost_end_is_waited_for(client: Client) -> None:
    """It has no limit of its own."""
    script = """
        - wait_for: prompt 1
        - event: {method: item/started, params: {item: {type: contextCompaction, id: c}}}
        - event: {method: item/completed, params: {item: {type: contextCompaction, id: c}}}
        - silence: 2s
        - exit: 1
    """
    run = client("run", script)
    assert run["threw"]["at"] >= 2
    assert run.list_values("turn", "text") == []
