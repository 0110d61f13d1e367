"""The ACP agent over Claude Code against fakes of claude, in real time, before its fix and after it.

They differ in when a turn is over: for 0.20.2 it is with the next result, for 0.23.1 when claude says that it is idle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.clients.findings import finding
from tests.clients.running import IGNORES_EOF

if TYPE_CHECKING:
    from tests.clients.running import Client, Programs, Ran

pytestmark = pytest.mark.slow


def client_of(programs: Programs, version: str) -> Client:
    """Give one version, over a claude that is talked to."""
    agent = "{dialect: claude, mode: session}"
    return programs.node("claude_agent_acp.mjs", f"claude-agent-acp-{version}", agent)


@pytest.fixture
def before(programs: Programs) -> Client:
    """Give the version before the fix."""
    return client_of(programs, "0.20.2")


@pytest.fixture
def after(programs: Programs) -> Client:
    """Give the version after it."""
    return client_of(programs, "0.23.1")


@pytest.fixture(params=["0.20.2", "0.23.1"])
def either(programs: Programs, request: pytest.FixtureRequest) -> Client:
    """Give both, one after the other."""
    return client_of(programs, request.param)


def answers(ran: Ran) -> list[str]:
    """Join the text shown in answer to each prompt."""
    shown: list[str] = []
    for one in ran.told:
        if one["what"] == "prompt":
            shown.append("")
        elif one.get("kind") == "agent_message_chunk":
            shown[-1] += one["text"] + ("|" if one["text"] else "")
    return shown


SEED = """
    - wait_for: prompt 1
    - task: build
    - task_done: build
    - answer: may I go on?
    - background_turn: {task: build, answer: I still wait for your answer}
    - wait_for: prompt 2
    - answer: the files are written
"""
"""The task ends within the turn, so that claude is not idle between its result and the background turn."""

LATE = """
    - wait_for: prompt 1
    - task: build
    - stdin: stop  # what is told from here on is told before the second prompt is read
    - answer: may I go on?
    - task_done: build
    - background_turn: {task: build, answer: I still wait for your answer}
    - stdin: read
    - wait_for: prompt 2
    - answer: the files are written
"""


@finding(
    "@zed-industries/claude-agent-acp 0.20.2",
    "goes on before it is idle, as a background task has ended",
    "answers the next prompt by that late output, and the prompt's own answer is not shown",
)
def test_before_the_fix_the_next_prompt_is_answered_by_stale_output(before: Client) -> None:
    """A result in the queue is taken for the one of the prompt that has just been sent."""
    ran = before("prompts", SEED)
    assert answers(ran) == ["may I go on?|", "I still wait for your answer|"]
    assert ran.all("turn", "stop") == ["end_turn", "end_turn"]


@finding(
    "@zed-industries/claude-agent-acp 0.23.1",
    "goes on before it is idle, as a background task has ended",
    "holds the turn until it is idle and shows the output there, and the next prompt has its own answer",
)
def test_after_the_fix_the_next_prompt_has_its_own_answer(after: Client) -> None:
    """The same agent, the same prompts."""
    ran = after("prompts", SEED)
    assert answers(ran) == ["may I go on?|I still wait for your answer|", "the files are written|"]
    assert ran.all("turn", "stop") == ["end_turn", "end_turn"]


@finding(
    "@zed-industries/claude-agent-acp 0.20.2",
    "says idle, and goes on when a background task ends",
    "answers the next prompt by that late output, and the prompt's own answer is not shown",
)
def test_before_the_fix_late_output_is_stale_too(before: Client) -> None:
    """The state of the session means nothing to it."""
    ran = before("prompts", LATE)
    assert answers(ran) == ["may I go on?|", "I still wait for your answer|"]


@finding(
    "@zed-industries/claude-agent-acp 0.23.1",
    "says idle, and goes on when a background task ends, as claude 2.1.330 does",
    "answers the next prompt by that late output, and the prompt's own answer is not shown",
)
def test_after_the_fix_late_output_is_stale_still(after: Client) -> None:
    """It drops the late result, and reads the late idle as the end of the prompt's turn."""
    ran = after("prompts", LATE)
    assert "consuming background task result" in ran.errors
    assert answers(ran) == ["may I go on?|", "I still wait for your answer|"]


CANCELLED = """
    - wait_for: prompt 1
    - say: well
    - wait_for: cancel
    - acknowledge: cancel
    - wait_for: prompt 2
    - answer: two
"""


@finding("@zed-industries/claude-agent-acp 0.20.2", "is told to cancel", "gives the stop reason, and the next answer")
def test_before_the_fix_a_cancel_leaves_the_session(before: Client) -> None:
    """The error result ends the turn."""
    ran = before("cancels", CANCELLED)
    assert ran.all("turn", "stop") == ["cancelled", "end_turn"]
    assert answers(ran) == ["well|", "two|"]


@finding(
    "@zed-industries/claude-agent-acp 0.23.1",
    "is told to cancel",
    "gives the stop reason, and ends the next prompt at once without an answer",
)
def test_after_the_fix_the_prompt_after_a_cancel_has_no_answer(after: Client) -> None:
    """The error result ends the turn, and the idle after it ends the next one."""
    ran = after("cancels", CANCELLED)
    assert ran.all("turn", "stop") == ["cancelled", "end_turn"]
    assert answers(ran) == ["well|", ""]


@finding(
    "@zed-industries/claude-agent-acp 0.20.2 and 0.23.1",
    "asks for a permission",
    "asks its client, and its answer decides what the agent does",
)
def test_a_permission_is_the_clients(either: Client) -> None:
    """Two protocols lie between the question and its answer."""
    script = """
        - wait_for: prompt 1
        - tool: {id: a, name: Bash, input: {command: ls}}
        - ask: {permission: Bash, allowed: [{say: it may}]}
        - tool_done: {id: a, output: x}
        - answer: done
    """
    ran = either("prompt", script)
    assert ran.all("asked", "input") == [{"command": "ls"}]
    assert answers(ran) == ["it may|done|"]
    assert ran.ends == [{"code": 0}]


@finding(
    "@zed-industries/claude-agent-acp 0.20.2 and 0.23.1",
    "calls the hook of a tool before the tool is shown",
    "complains on stderr that nobody waits for it: the callback comes with the tool",
)
def test_a_hook_before_its_tool_has_no_callback(either: Client) -> None:
    """The race of docs/explanation/five-reports.md: the callback is registered when the tool is shown."""
    script = """
        - wait_for: prompt 1
        - ask: {hook: hook_0, event: PostToolUse}
        - tool: {id: toolu_asked_1, name: Bash, input: {command: ls}}
        - tool_done: {id: toolu_asked_1, output: x}
        - answer: done
    """
    ran = either("prompt", script)
    assert "No onPostToolUseHook found for tool use ID: toolu_asked_1" in ran.errors
    assert answers(ran) == ["done|"]


@finding(
    "@zed-industries/claude-agent-acp 0.20.2 and 0.23.1", "dies in the middle of a prompt", "answers it by an error"
)
def test_a_crash_is_an_error_of_the_prompt(either: Client) -> None:
    """Its code is on stderr only."""
    ran = either("prompt", "- wait_for: prompt 1\n- say: well\n- exit: 3")
    told = "Internal error: The Claude Agent process exited unexpectedly. Please start a new session."
    assert ran["threw"]["message"] == told
    assert "Claude Code process exited with code 3" in ran.errors


@finding(
    "@zed-industries/claude-agent-acp 0.20.2 and 0.23.1", "exits 0 without a result", "answers the prompt by an error"
)
def test_an_exit_without_a_result_is_an_error_of_the_prompt(either: Client) -> None:
    """A good code is no answer."""
    ran = either("prompt", "- wait_for: prompt 1\n- say: well\n- exit: 0")
    assert ran["threw"]["message"] == "Internal error Session did not end in result"


@finding("@zed-industries/claude-agent-acp 0.20.2 and 0.23.1", "reports an error result", "answers it by an error")
def test_an_error_result_is_an_error_of_the_prompt(either: Client) -> None:
    """The text of the result is in the message."""
    ran = either("prompt", "- wait_for: prompt 1\n- say: well\n- result: {text: no credit, is_error: true}")
    assert ran["threw"]["message"] == "Internal error: no credit"


@finding(
    "@zed-industries/claude-agent-acp 0.20.2 and 0.23.1",
    "prints a line that is no JSON",
    "answers the prompt by an error: the stream of claude is over",
)
def test_noise_is_an_error_of_the_prompt(either: Client) -> None:
    """The SDK inside drops such lines by now, and threw at that time."""
    ran = either("prompt", '- wait_for: prompt 1\n- raw: "oops\\n"\n- answer: done')
    assert ran["threw"]["message"].startswith("Internal error CLI output was not valid JSON.")
    assert answers(ran) == [""]


@finding(
    "@zed-industries/claude-agent-acp 0.20.2 and 0.23.1",
    "dies before the handshake",
    "answers session/new by an error that does not tell why",
)
def test_a_death_before_the_handshake_is_an_error_without_a_cause(either: Client) -> None:
    """Claude's words on stderr are nowhere."""
    ran = either("prompt", "- raw: {text: no licence, to: stderr}\n- exit: 1")
    assert ran["threw"]["message"] == "Internal error Query closed before response received"
    assert "no licence" not in ran.errors


@finding(
    "@zed-industries/claude-agent-acp 0.20.2 and 0.23.1",
    "serves a client that closes its stdin",
    "lives on, and claude with it",
)
def test_the_end_of_stdin_is_not_noticed(either: Client) -> None:
    """An editor that quits must kill it."""
    ran = either("quits", "- wait_for: prompt 1\n- answer: done")
    assert ran["waited"]["lives"] is True
    assert ran.at("i", eof=True) > ran["waited"]["at"]


@finding(
    "@zed-industries/claude-agent-acp 0.20.2 and 0.23.1",
    "ignores the end of stdin, and the client ends the agent by TERM",
    "goes without a word to claude, which lives on",
)
def test_an_agent_that_is_terminated_leaves_its_claude(either: Client) -> None:
    """It has no handler, and a signal does not run the steps that its SDK does at an exit."""
    script = f"""
        {IGNORES_EOF}
        - wait_for: prompt 1
        - answer: done
        - linger: for ever
    """
    ran = either("prompt", script, leaves=("agent",))
    assert ran["exit"]["signal"] == "SIGTERM"
    assert ran.signals == []
