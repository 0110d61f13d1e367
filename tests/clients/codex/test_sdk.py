"""The TypeScript SDK of Codex against fakes of it, in real time. It starts a process for each turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.clients.findings import mark_finding
from tests.clients.running import IGNORES_TERM

if TYPE_CHECKING:
    from tests.clients.running import Client, Programs

pytestmark = pytest.mark.slow


@pytest.fixture
def client(programs: Programs) -> Client:
    """Give the SDK, and a codex that reads its prompt from stdin."""
    return programs.node("codex_sdk.mjs", "codex-sdk", "{dialect: codex, prompt: stdin}")


@mark_finding("@openai/codex-sdk, run()", "answers and exits", "returns the last message and the usage")
def test_a_run_is_answered(client: Client) -> None:
    """The prompt comes on stdin, which is closed after it."""
    run = client("run", "- wait_for: eof\n- say: well\n- answer: done")
    assert run["turn"]["text"] == "done"
    assert run["turn"]["usage"]["output_tokens"] == 5
    assert run.stdin == "hi"
    assert run.ends == [{"code": 0}]


@mark_finding("@openai/codex-sdk, runStreamed()", "uses a tool", "yields every event as it stands")
def test_a_streamed_run_yields_every_event(client: Client) -> None:
    """The fake's events are those of the SDK."""
    script = """
        - tool: {id: a, name: command_execution, input: {command: ls}}
        - tool_done: {id: a, output: x}
        - answer: done
    """
    run = client("streamed", script)
    assert run.list_values("event", "type") == [
        "thread.started",
        "turn.started",
        "item.started",
        "item.completed",
        "item.completed",
        "turn.completed",
    ]
    assert run.list_values("event", "item") == ["command_execution", "command_execution", "agent_message"]


@mark_finding(
    "@openai/codex-sdk, run()", "is asked again", "starts another process, which resumes the thread by its id"
)
def test_a_second_turn_resumes_the_thread(client: Client) -> None:
    """The id is from the report of the first process."""
    run = client("resume", "- wait_for: eof\n- answer: done")
    [thread, _] = run.list_values("turn", "thread")
    first, second = run.argv
    assert "resume" not in first
    assert second[second.index("resume") :] == ["resume", thread]
    assert run.stdin == "firstsecond"
    assert run.ends == [{"code": 0}, {"code": 0}]


@mark_finding("@openai/codex-sdk, run()", "reports turn.failed and lingers", "throws its text at once, and sends TERM")
def test_a_failed_turn_is_thrown_at_once(client: Client) -> None:
    """It ends the process after a failed turn, but not after a good one."""
    run = client("run", "- say: hm\n- result: {text: no credit, is_error: true}\n- silence: for ever")
    assert run["threw"]["message"] == "no credit"
    assert run.ends == [{"signal": "TERM"}]


@mark_finding("@openai/codex-sdk, run()", "exits 3 after turn.completed", "throws, and the answer is lost")
def test_an_exit_code_after_the_answer_loses_it(client: Client) -> None:
    """A later act of the process turns a success into a failure."""
    run = client("run", "- answer: done\n- raw: {text: boom, to: stderr}\n- exit: 3")
    assert run["threw"]["message"] == "Codex Exec exited with code 3: Reading prompt from stdin...\nboom"
    assert run.list_values("turn", "text") == []


@pytest.mark.parametrize("noise", ["", "oops", "{half"])
@mark_finding("@openai/codex-sdk, run()", "prints a line that is no JSON, a blank one too", "throws, and sends TERM")
def test_noise_ends_the_run(client: Client, noise: str) -> None:
    """One stray line costs the turn."""
    run = client("run", f'- say: well\n- raw: "{noise}\\n"\n- silence: for ever')
    assert run["threw"]["message"] == f"Failed to parse item: {noise}"
    assert run.ends == [{"signal": "TERM"}]


@mark_finding(
    "@openai/codex-sdk, run()", "completes the turn without usage", "throws a TypeError, and the answer is lost"
)
def test_a_completion_without_usage_is_a_type_error(client: Client) -> None:
    """An older CLI than the SDK knows is no agent for it."""
    run = client("run", "- say: done\n- event: {type: turn.completed}\n- silence: for ever")
    assert run["threw"]["name"] == "TypeError"
    assert "cache_write_input_tokens" in run["threw"]["message"]
    assert run.ends == [{"signal": "TERM"}]


@mark_finding("@openai/codex-sdk, run()", "lingers after turn.completed", "waits for its end, and sends it no signal")
def test_a_run_waits_for_an_agent_that_lingers(client: Client) -> None:
    """The answer is there, and its caller has not got it."""
    run = client("run", "- answer: done\n- silence: 1s")
    assert run["turn"]["at"] >= 1
    assert run.signals == []
    assert run.ends == [{"code": 0}]


@mark_finding(
    "@openai/codex-sdk, run()", "exits after its answer, and a child of it holds stdout", "waits for that child"
)
def test_a_run_waits_for_a_grandchild_that_holds_stdout(client: Client) -> None:
    """It waits for the end of the stream, and not for the exit."""
    run = client("run", "- spawn: {id: helper, inherits: [stdout], for: 1s}\n- answer: done\n- exit: 0")
    assert run["turn"]["at"] >= 1
    assert run.find_instant("x", process="agent") < run["turn"]["at"]


@mark_finding("@openai/codex-sdk, abort signal", "works on", "sends TERM, and throws an AbortError when it is gone")
def test_an_abort_ends_the_agent(client: Client) -> None:
    """There is no other way to cancel a turn."""
    run = client("abort", "- say: well\n- silence: for ever")
    assert run["threw"]["name"] == "AbortError"
    assert run.ends == [{"signal": "TERM"}]


@mark_finding(
    "@openai/codex-sdk, abort signal",
    "ignores TERM, and says more",
    "yields what it says, and throws when it ends by itself, 2 s later: there is no KILL by then",
)
def test_an_abort_waits_for_an_agent_that_ignores_term(client: Client) -> None:
    """An agent that never ends is never given up."""
    script = f"""
        {IGNORES_TERM}
        - say: well
        - silence: 1s
        - say: and more
        - silence: 1s
    """
    run = client("abort", script)
    assert len(run.list_values("aborts", "at")) == 2
    assert run["threw"]["name"] == "AbortError"
    assert run["threw"]["at"] >= 2
    assert [name for name, _ in run.signals] == ["TERM"]
    assert run.ends == [{"code": 0}]
