"""PyPI's claude-agent-sdk, `ClaudeSDKClient`: a conversation, the events in its turns, and its close."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc.errors import Deadlock
from tests.clients.endings import COOPERATES, IGNORES_ALL, IGNORES_EOF
from tests.clients.findings import mark_finding

if TYPE_CHECKING:
    from tests.clients.claude_py import ClaudePy

SECOND = 1_000_000_000


@mark_finding(
    "claude-agent-sdk, ClaudeSDKClient", "answers two prompts", "gives each turn its own result, from one process"
)
def test_two_turns_have_two_answers(claude: ClaudePy) -> None:
    """`receive_response()` ends with the result."""
    claude.play_script("""
        - wait_for: prompt 1
        - answer: one
        - wait_for: prompt 2
        - answer: two
    """)

    async def caller(client: Any) -> None:
        await claude.run_turn(client, "first")
        await claude.run_turn(client, "second")

    first_turn, second_turn = ["init", "says one", "result one"], ["init", "says two", "result two"]
    assert claude.talk(caller) == [f"0 s: {words}" for words in (*first_turn, *second_turn)]


@mark_finding(
    "claude-agent-sdk, ClaudeSDKClient", "runs a tool that is silent for half an hour", "waits, and gives its end"
)
def test_a_silent_tool_is_waited_for(claude: ClaudePy) -> None:
    """No limit is on anything inside a turn."""
    claude.play_script("""
        - wait_for: prompt 1
        - tool: {id: t, name: Bash, input: {command: make}}
        - silence: 30m
        - tool_done: {id: t, output: built}
        - answer: done
    """)
    given = claude.talk(lambda client: claude.run_turn(client, "build"))
    assert given[1:] == ["0 s: tool Bash", "1800 s: tool ends built", "1800 s: says done", "1800 s: result done"]


@mark_finding("claude-agent-sdk, ClaudeSDKClient", "thinks, streams its words, and has a sub-agent", "gives all of it")
def test_a_rich_turn_is_given_whole(claude: ClaudePy) -> None:
    """Partial messages come beside the whole ones, and a sub-agent's words carry the tool that it is."""
    claude.play_script("""
        - wait_for: prompt 1
        - think: hm
        - tool: {id: sub, name: Task, input: {prompt: look}}
        - tool: {id: t, name: Read, input: {file_path: a}, parent: sub}
        - tool_done: {id: t, output: text}
        - tool_done: {id: sub, output: looked}
        - answer: done
    """)
    given = claude.talk(lambda client: claude.run_turn(client, "look"), include_partial_messages=True)
    lines = [words.removeprefix("0 s: ") for words in given]
    assert [
        words for words in lines if words not in ("status", "task_started", "task_updated", "task_notification")
    ] == [
        "init",
        "thinks hm",
        "tool Task",
        "tool Read of sub",
        "tool ends text of sub",
        "tool ends looked",
        "delta done",
        "says done",
        "result done",
    ]


@mark_finding(
    "claude-agent-sdk, ClaudeSDKClient", "is interrupted and says so", "gives an error result; the next turn is as ever"
)
def test_an_interrupted_turn_ends_as_an_error(claude: ClaudePy) -> None:
    """`interrupt()` returns with the control response, the turn ends with its result."""
    claude.play_script("""
        - wait_for: prompt 1
        - wait_for: cancel
        - silence: 2s
        - acknowledge: cancel
        - wait_for: prompt 2
        - answer: two
    """)

    async def caller(client: Any) -> None:
        await client.query("work")
        await client.interrupt()
        assert claude.clock.now == 2
        async for message in client.receive_response():
            claude.take(message)
        await claude.run_turn(client, "again")

    assert claude.talk(caller) == [
        "2 s: init",
        "2 s: says [Request interrupted by user]",
        "2 s: error error_during_execution",
        "2 s: init",
        "2 s: says two",
        "2 s: result two",
    ]


@mark_finding(
    "claude-agent-sdk, ClaudeSDKClient", "does not read an interrupt", "raises after exactly 60 s; the turn goes on"
)
def test_an_interrupt_that_nobody_reads_is_given_up(claude: ClaudePy) -> None:
    """The limit is that of all control requests."""
    claude.play_script("""
        - wait_for: prompt 1
        - stdin: stop
        - silence: 90s
        - answer: done
    """)

    async def caller(client: Any) -> None:
        await client.query("work")
        with pytest.raises(Exception, match=r"^Control request timeout: interrupt$"):
            await client.interrupt()
        assert claude.clock.now_ns == 60 * SECOND
        async for message in client.receive_response():
            claude.take(message)

    assert claude.talk(caller)[-1] == "90 s: result done"


@mark_finding(
    "claude-agent-sdk, ClaudeSDKClient", "floods stderr with 1 MiB, and there is a callback for it", "reads all of it"
)
def test_an_stderr_with_a_callback_is_read(claude: ClaudePy) -> None:
    """A line without an end comes as one line."""
    claude.play_script("- wait_for: prompt 1\n- flood: {stderr: 1 MiB}\n- answer: done")
    lines: list[str] = []
    given = claude.talk(lambda client: claude.run_turn(client, "build"), stderr=lines.append)
    assert (given[-1], sum(map(len, lines))) == ("0 s: result done", 1 << 20)


@mark_finding(
    "claude-agent-sdk, ClaudeSDKClient",
    "never acknowledges an interrupt",
    "raises after exactly 60 s, and waits for the result for ever",
)
def test_an_interrupt_that_ends_nothing(claude: ClaudePy) -> None:
    """Only the request itself has a limit."""
    claude.play_script("- wait_for: prompt 1\n- wait_for: cancel\n- silence: for ever")

    async def caller(client: Any) -> None:
        await client.query("work")
        with pytest.raises(Exception, match=r"^Control request timeout: interrupt$"):
            await client.interrupt()
        async for message in client.receive_response():
            claude.take(message)

    with pytest.raises(Deadlock, match="no timer of it runs"):
        claude.talk(caller)
    assert claude.clock.now_ns == 60 * SECOND


@mark_finding(
    "claude-agent-sdk, ClaudeSDKClient",
    "has a background task end between two prompts",
    "gives its result as the second prompt's answer",
)
def test_a_background_result_answers_the_next_prompt(claude: ClaudePy) -> None:
    """The answers lag by one from there on: the real second answer stays in the stream."""
    claude.play_script("""
        - wait_for: prompt 1
        - task: b
        - answer: go on?
        - silence: 10s
        - task_done: b
        - background_turn: {task: b, answer: finished}
        - wait_for: prompt 2
        - answer: went on
        - wait_for: prompt 3
    """)

    async def caller(client: Any) -> None:
        await claude.run_turn(client, "build")
        await anyio.sleep(20)
        await claude.run_turn(client, "yes")
        await claude.run_turn(client, "thanks")

    results = [words for words in claude.talk(caller) if "result" in words]
    assert results == ["0 s: result go on?", "20 s: result finished", "20 s: result went on"]


@mark_finding(
    "claude-agent-sdk, ClaudeSDKClient",
    "swallows a prompt that came while a tool ran",
    "waits for a second result for ever",
)
def test_a_swallowed_prompt_is_waited_for_for_ever(claude: ClaudePy) -> None:
    """One result is the answer to both prompts, as the real CLI does it."""
    claude.play_script("""
        - wait_for: prompt 1
        - tool: {id: t, name: Bash}
        - silence: 5s
        - tool_done: t
        - answer: both
    """)

    async def caller(client: Any) -> None:
        await client.query("first")
        await anyio.sleep(1)
        await claude.run_turn(client, "second")
        async for message in client.receive_response():
            claude.take(message)

    with pytest.raises(Deadlock, match="no timer of it runs"):
        claude.talk(caller)
    assert claude.given[-1] == "5 s: result both"


@mark_finding(
    "claude-agent-sdk, ClaudeSDKClient",
    "is killed in a turn",
    "raises ProcessError in the turn; then CLIConnectionError at a prompt",
)
def test_a_death_in_a_turn_is_an_error(claude: ClaudePy) -> None:
    """Nothing starts the agent anew."""
    claude.play_script("- wait_for: prompt 1\n- say: half\n- die: KILL")

    async def caller(client: Any) -> None:
        with pytest.raises(claude.sdk.ProcessError) as raised:
            await claude.run_turn(client, "work")
        assert raised.value.exit_code == -9
        with pytest.raises(claude.sdk.CLIConnectionError, match="terminated process"):
            await client.query("still there?")

    claude.talk(caller)


@mark_finding(
    "claude-agent-sdk, ClaudeSDKClient", "exits 0 in a turn", "ends the turn without a result, and raises nothing"
)
def test_an_exit_in_a_turn_ends_it_unsaid(claude: ClaudePy) -> None:
    """Only the missing result shows it."""
    claude.play_script("- wait_for: prompt 1\n- say: {text: half, stop: end_turn}\n- exit: 0")
    assert claude.talk(lambda client: claude.run_turn(client, "work")) == ["0 s: init", "0 s: says half"]


@mark_finding("claude-agent-sdk, ClaudeSDKClient", "exits at the end of its stdin", "returns from close at once")
def test_close_ends_an_agent_that_cooperates(claude: ClaudePy, backend: str) -> None:
    """No signal."""
    assert claude.close_after(COOPERATES, backend) == [(0, "EOF"), (0, "exits 0"), (0, "returns")]


@mark_finding("claude-agent-sdk, ClaudeSDKClient", "ignores the end of its stdin", "sends TERM after exactly 5 s")
def test_close_terminates_after_five_seconds(claude: ClaudePy, backend: str) -> None:
    """To the nanosecond."""
    assert claude.close_after(IGNORES_EOF, backend) == [
        (0, "EOF"),
        (5 * SECOND, "TERM"),
        (5 * SECOND, "exits 143"),
        (5 * SECOND, "returns"),
    ]


@mark_finding("claude-agent-sdk, ClaudeSDKClient", "ignores TERM, too", "sends KILL exactly 5 s later, 10 s in all")
def test_close_kills_after_ten_seconds(claude: ClaudePy, backend: str) -> None:
    """To the nanosecond."""
    assert claude.close_after(IGNORES_ALL, backend) == [
        (0, "EOF"),
        (5 * SECOND, "TERM"),
        (10 * SECOND, "dies of KILL"),
        (10 * SECOND, "returns"),
    ]
