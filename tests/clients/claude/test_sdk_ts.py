"""The TypeScript SDK of Claude Code against fakes of it, in real time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.clients.findings import mark_finding
from tests.clients.running import IGNORES_EOF, IGNORES_TERM, TICK

if TYPE_CHECKING:
    from tests.clients.running import Client, Programs

pytestmark = pytest.mark.slow


@pytest.fixture
def client(programs: Programs) -> Client:
    """Give the SDK, and a claude that is talked to."""
    return programs.node("claude_agent_sdk.mjs", "claude-agent-sdk", "{dialect: claude, mode: session}")


@mark_finding("@anthropic-ai/claude-agent-sdk, query()", "answers and exits", "yields its messages and returns")
def test_a_query_is_answered(client: Client) -> None:
    """The fake is taken for the CLI."""
    run = client("drain", "- wait_for: prompt 1\n- answer: done")
    assert [(row.get("type"), row.get("text")) for row in run.told] == [
        ("system", None),
        ("assistant", "done"),
        ("result", "done"),
        (None, None),
    ]
    assert run.told[-1]["what"] == "returned"
    assert run.ends == [{"code": 0}]


@mark_finding("@anthropic-ai/claude-agent-sdk, query()", "gets a prompt after each result", "gives each its own answer")
def test_a_chat_has_an_answer_to_each_prompt(client: Client) -> None:
    """One process serves them all."""
    script = """
        - wait_for: prompt 1
        - answer: one
        - wait_for: prompt 2
        - answer: two
    """
    run = client("turns", script)
    assert run.list_values("message", "text") == ["one", "one", "two", "two"]
    assert run.ends == [{"code": 0}]


@mark_finding(
    "@anthropic-ai/claude-agent-sdk, interrupt()",
    "ends the turn with an error result",
    "yields that result, and the next prompt is answered",
)
def test_an_interrupt_leaves_the_agent_for_the_next_prompt(client: Client) -> None:
    """The error result ends the turn, not the session."""
    script = """
        - wait_for: prompt 1
        - say: well
        - wait_for: cancel
        - acknowledge: cancel
        - wait_for: prompt 2
        - answer: two
    """
    run = client("interrupt", script)
    assert run.list_values("message", "is_error") == [True, False]
    assert run.list_values("message", "text") == ["well", "two", "two"]
    assert run.ends == [{"code": 0}]


@mark_finding(
    "@anthropic-ai/claude-agent-sdk, query()",
    "calls hooks and asks for permissions",
    "answers each, and its answer decides what the agent does",
)
def test_hooks_and_permissions_are_answered(client: Client) -> None:
    """The script continues with the answer that it gets."""
    script = """
        - wait_for: prompt 1
        - tool: {id: a, name: Bash, input: {command: ls}}
        - ask: {hook: hook_0}
        - ask: {permission: Bash, allowed: [{say: it may}]}
        - ask: {hook: hook_1, event: PostToolUse}
        - tool_done: {id: a, output: x}
        - tool: {id: b, name: Bash, input: {command: rm}}
        - ask: {permission: Bash, denied: [{say: it may not}]}
        - tool_done: {id: b, error: "no"}
        - answer: done
    """
    run = client("asks", script)
    assert run.list_values("hook", "event") == ["PreToolUse", "PostToolUse"]
    assert run.list_values("asked", "input") == [{"command": "ls"}, {"command": "rm"}]
    assert run.list_values("message", "text") == ["it may", "it may not", "done", "done"]


@mark_finding(
    "@anthropic-ai/claude-agent-sdk, query()",
    "goes on by itself when a background task ends",
    "yields two results for one prompt",
)
def test_a_background_task_brings_a_second_result(client: Client) -> None:
    """A reader that stops at the first result misses the second, or reads it as the next prompt's."""
    script = """
        - wait_for: prompt 1
        - task: build
        - answer: it is being built
        - task_done: build
        - background_turn: {task: build, answer: it is built}
    """
    run = client("drain", script)
    results = [row["text"] for row in run.told if row.get("type") == "result"]
    assert results == ["it is being built", "it is built"]


@mark_finding(
    "@anthropic-ai/claude-agent-sdk, query()", "lingers after its result", "waits for its end, and sends it no signal"
)
def test_a_drain_waits_for_an_agent_that_lingers(client: Client) -> None:
    """It has the result, and its caller has not got the end of the loop."""
    script = f"""
        {IGNORES_EOF}
        - wait_for: prompt 1
        - answer: done
        - silence: 1s
        - exit: 0
    """
    run = client("drain", script)
    assert run["returned"]["at"] >= 1
    assert run.signals == []
    assert run.ends == [{"code": 0}]


@mark_finding(
    "@anthropic-ai/claude-agent-sdk, query()",
    "exits after its result, and a child of it holds stdout",
    "waits for that child",
)
def test_a_drain_waits_for_a_grandchild_that_holds_stdout(client: Client) -> None:
    """It waits for the end of the stream, and not for the exit."""
    script = """
        - wait_for: prompt 1
        - spawn: {id: helper, inherits: [stdout], for: 1s}
        - answer: done
        - exit: 0
    """
    run = client("drain", script)
    assert run["returned"]["at"] >= 1
    assert run.find_instant("x", process="agent") < run["returned"]["at"]


@mark_finding(
    "@anthropic-ai/claude-agent-sdk, break out of query()",
    "lingers after its result",
    "closes its stdin, and ends it by TERM after 2 s, for which the loop's caller waits",
)
def test_a_break_ends_an_agent_that_lingers(client: Client) -> None:
    """The loop is left when the agent has ended."""
    script = f"""
        {IGNORES_EOF}
        - wait_for: prompt 1
        - answer: done
        - silence: for ever
    """
    run = client("break", script)
    assert run.ends == [{"code": 143}]
    assert run["returned"]["at"] - run.told[-2]["at"] >= 2 - TICK


@mark_finding(
    "@anthropic-ai/claude-agent-sdk, break out of query()",
    "lingers after its result and ignores TERM",
    "goes on after 2 s while the agent lives, and kills it 5 s later",
)
def test_a_break_kills_an_agent_that_ignores_term(client: Client) -> None:
    """The caller continues at TERM, so that a new agent may run beside the old one."""
    script = f"""
        {IGNORES_EOF}
        {IGNORES_TERM}
        - wait_for: prompt 1
        - answer: done
        - silence: for ever
    """
    run = client("break", script)
    result = run.told[-2]["at"]
    [(name, term)] = run.signals
    assert (name, run.ends) == ("TERM", [{"signal": "KILL"}])
    assert term - result >= 2 - TICK
    assert run.find_instant("x") - result >= 7 - 2 * TICK
    assert run["returned"]["at"] < run.find_instant("x")


@mark_finding(
    "@anthropic-ai/claude-agent-sdk, close()",
    "lingers after its result",
    "returns at once, and ends the agent by TERM after 2 s",
)
def test_close_ends_an_agent_that_lingers(client: Client) -> None:
    """The caller gets no notice when the agent has ended."""
    script = f"""
        {IGNORES_EOF}
        - wait_for: prompt 1
        - answer: done
        - silence: for ever
    """
    run = client("close", script)
    assert run.ends == [{"code": 143}]
    assert run.find_instant("x") - run["closes"]["at"] >= 2 - TICK
    assert run["returned"]["at"] < run.find_instant("x")


@mark_finding(
    "@anthropic-ai/claude-agent-sdk, close()",
    "ignores TERM, and the program exits right after close()",
    "sends TERM once, at its exit, and leaves the agent running",
)
def test_an_exit_after_close_leaves_an_agent_that_ignores_term(client: Client) -> None:
    """The steps that were to follow go with the program."""
    script = f"""
        {IGNORES_EOF}
        {IGNORES_TERM}
        - wait_for: prompt 1
        - answer: done
        - silence: for ever
    """
    run = client("leave", script, leaves=("agent",))
    assert [name for name, _ in run.signals] == ["TERM"]


@mark_finding(
    "@anthropic-ai/claude-agent-sdk, abortController",
    "does not end with its stdin",
    "throws after 2 s, when TERM has ended the agent",
)
def test_an_abort_waits_for_term(client: Client) -> None:
    """Abort takes the same steps as close, and its caller waits for them."""
    script = f"""
        {IGNORES_EOF}
        - wait_for: prompt 1
        - say: well
        - silence: for ever
    """
    run = client("abort", script)
    assert run["threw"]["message"] == "Claude Code process aborted by user"
    assert run["threw"]["at"] - run["message"]["at"] >= 2 - TICK
    assert run.ends == [{"code": 143}]


@mark_finding(
    "@anthropic-ai/claude-agent-sdk, query()", "reports an error result", "yields that result, and throws its text then"
)
def test_an_error_result_is_yielded_and_thrown(client: Client) -> None:
    """A reader that stops at the result never sees the error."""
    run = client("drain", "- wait_for: prompt 1\n- result: {text: no credit, is_error: true}")
    assert run.list_values("message", "is_error") == [True]
    assert run["threw"]["message"] == "Claude Code returned an error result: no credit"


@mark_finding(
    "@anthropic-ai/claude-agent-sdk, query()", "exits 3 without a result", "throws the code and the end of stderr"
)
def test_an_exit_without_a_result_is_thrown(client: Client) -> None:
    """The earlier messages are yielded."""
    run = client("drain", "- wait_for: prompt 1\n- say: well\n- raw: {text: boom, to: stderr}\n- exit: 3")
    assert run.list_values("message", "text") == ["well"]
    assert run["threw"]["message"] == "Claude Code process exited with code 3. stderr: boom"


@mark_finding(
    "@anthropic-ai/claude-agent-sdk, query()", "exits 3 after a good result", "yields the result, and throws then"
)
def test_an_exit_code_after_a_good_result_is_thrown(client: Client) -> None:
    """A later act of the process turns a success into a failure."""
    run = client("drain", "- wait_for: prompt 1\n- answer: done\n- exit: 3")
    assert run.list_values("message", "is_error") == [False]
    assert run["threw"]["message"] == "Claude Code process exited with code 3"


@mark_finding("@anthropic-ai/claude-agent-sdk, query()", "prints lines that are no JSON", "drops them without a word")
def test_garbage_is_dropped(client: Client) -> None:
    """Blank lines and halves of objects, too."""
    run = client("drain", '- wait_for: prompt 1\n- raw: "garbage\\n\\n{half\\n"\n- answer: done')
    assert run.list_values("message", "text") == ["done", "done"]
    assert run.errors == ""


@mark_finding(
    "@anthropic-ai/claude-agent-sdk, query()",
    "dies before the handshake",
    "throws the code and what stderr said, without waiting for the handshake's limit",
)
def test_a_death_before_the_handshake_is_thrown_at_once(client: Client) -> None:
    """The cause is in the message."""
    run = client("drain", "- raw: {text: no licence, to: stderr}\n- exit: 1")
    assert run["threw"]["message"] == "Claude Code process exited with code 1. stderr: no licence"
