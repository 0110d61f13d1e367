"""PyPI's claude-agent-sdk, `query()`: one prompt, and the messages until the CLI has ended."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc.errors import Deadlock
from tests.clients.endings import list_end_events, read_stdin_bytes
from tests.clients.findings import mark_finding
from tests.event_lines import list_lines

if TYPE_CHECKING:
    from tests.clients.claude_py import ClaudePy

SECOND = 1_000_000_000
DAY = 24 * 3600
AT_EXIT = "claude_agent_sdk._internal.transport.subprocess_cli"
RESULT = (
    "{type: result, subtype: success, duration_ms: 1, duration_api_ms: 1, is_error: false, num_turns: 1, session_id: s}"
)


@mark_finding("claude-agent-sdk, query()", "is silent for half an hour, then answers", "waits, and gives the answer")
def test_an_answer_is_waited_for(claude: ClaudePy, backend: str) -> None:
    """There is no limit on silence; the prompt is followed by the end of stdin at once."""
    claude.backend = backend
    claude.play_script("""
        - wait_for: prompt 1
        - silence: 30m
        - answer: done
    """)
    assert claude.run_query() == ["0 s: init", "1800 s: says done", "1800 s: result done"]
    assert list_end_events(claude.record) == [(0, "EOF"), (1800 * SECOND, "exits 0")]


@mark_finding(
    "claude-agent-sdk, query()", "lives on after its result", "waits for the exit for ever: a day later it still does"
)
def test_an_agent_that_lingers_is_waited_for_a_day(claude: ClaudePy) -> None:
    """The messages end with stdout and nothing else; a caller that gives up waits 5 s more, until TERM."""
    claude.play_script("- wait_for: prompt 1\n- answer: done\n- silence: for ever")

    async def host() -> None:
        with anyio.move_on_after(DAY):
            async for message in claude.sdk.query(prompt="hi", options=claude.build_options()):
                claude.take(message)

    claude.clock.run(host)
    assert claude.given == ["0 s: init", "0 s: says done", "0 s: result done"]
    assert list_end_events(claude.record) == [
        (0, "EOF"),
        ((DAY + 5) * SECOND, "TERM"),
        ((DAY + 5) * SECOND, "exits 143"),
    ]


@mark_finding(
    "claude-agent-sdk, query()", "lives on after its result", "has no timer that runs: nobody can move any more"
)
def test_an_agent_that_lingers_is_a_deadlock(claude: ClaudePy) -> None:
    """Without a limit of the caller's own, virtual time has nowhere to go, and names each process and its wait."""
    claude.play_script("- wait_for: prompt 1\n- answer: done\n- silence: for ever")
    with pytest.raises(Deadlock, match=r"the supervising program waits, and no timer of it runs; agent .* last at"):
        claude.run_query()
    assert claude.given[-1] == "0 s: result done"


@mark_finding(
    "claude-agent-sdk, query()",
    "lives on after its result, at which the caller breaks",
    "returns from aclose() at once; in the background EOF follows, and TERM exactly 5 s later",
)
def test_a_caller_that_breaks_at_the_result_does_not_wait(claude: ClaudePy) -> None:
    """The closed generator is not the one with the agent: that one is closed when it is collected."""
    claude.play_script("- wait_for: prompt 1\n- answer: done\n- silence: for ever")

    async def host() -> None:
        await read_until_result(claude)
        assert claude.clock.now_ns == 0
        await anyio.sleep(60)

    claude.clock.run(host)
    assert list_end_events(claude.record) == [(0, "EOF"), (5 * SECOND, "TERM"), (5 * SECOND, "exits 143")]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # asyncio's, of what outlives its loop
@mark_finding(
    "claude-agent-sdk, query()",
    "lives on after its result, at which the caller breaks and its event loop ends",
    "leaves it running on CPython 3.11: only the interpreter's own exit sends TERM; on 3.13 TERM comes 5 s later",
)
def test_a_caller_that_ends_at_the_result_leaves_its_agent(claude: ClaudePy) -> None:
    """The loop cancels what would have closed it, unless the interpreter collects the generator before."""
    claude.play_script("- wait_for: prompt 1\n- answer: done\n- silence: for ever")
    claude.clock.run(read_until_result, claude)
    if sys.version_info >= (3, 13):
        assert list_end_events(claude.record) == [(0, "EOF"), (5 * SECOND, "TERM"), (5 * SECOND, "exits 143")]
        return
    assert list_end_events(claude.record) == []
    (pid,) = [event.data["pid"] for event in list_lines(claude.record) if "pid" in event.data]
    import_module(AT_EXIT)._kill_active_children()  # noqa: SLF001  # the SDK registered it with atexit
    claude.clock.run(anyio.sleep, 1)  # the clock had ended, and its agents exit on it
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 143
    gc.collect()


async def read_until_result(claude: ClaudePy) -> None:
    """Read `query()` as far as the result, and close it."""
    async with contextlib.aclosing(claude.sdk.query(prompt="hi", options=claude.build_options())) as messages:
        async for message in messages:
            if isinstance(message, claude.sdk.ResultMessage):
                break


@mark_finding(
    "claude-agent-sdk, query()",
    "reports an error and exits 1",
    "gives the result, then raises ResultError with its text",
)
def test_an_error_result_is_given_and_raised(claude: ClaudePy) -> None:
    """A reader of the messages sees it twice."""
    claude.play_script("- wait_for: prompt 1\n- result: {text: no credit, is_error: true}")
    with pytest.raises(claude.sdk.ResultError, match=r"^Claude Code returned an error result: no credit"):
        claude.run_query()
    assert claude.given == ["0 s: init", "0 s: says no credit", "0 s: error no credit"]


@mark_finding("claude-agent-sdk, query()", "is killed before its result", "raises ProcessError with exit code -9")
def test_a_death_is_an_error(claude: ClaudePy) -> None:
    """The words until then were given."""
    claude.play_script("""
        - wait_for: prompt 1
        - say: {text: half, stop: end_turn}
        - silence: 3s
        - die: KILL
    """)
    with pytest.raises(claude.sdk.ProcessError) as raised:
        claude.run_query()
    assert (raised.value.exit_code, claude.clock.now_ns) == (-9, 3 * SECOND)
    assert claude.given == ["0 s: init", "0 s: says half"]


@mark_finding("claude-agent-sdk, query()", "exits 0 without a result", "ends as if all were well: no result, no error")
def test_an_exit_without_a_result_goes_unsaid(claude: ClaudePy) -> None:
    """Only the missing ResultMessage shows that the answer is not whole."""
    claude.play_script("""
        - wait_for: prompt 1
        - say: {text: half, stop: end_turn}
        - exit: 0
    """)
    assert claude.run_query() == ["0 s: init", "0 s: says half"]


@mark_finding(
    "claude-agent-sdk, query()",
    "prints a line that begins with a brace and is no JSON",
    "raises, and the answer is lost",
)
def test_a_line_that_only_begins_as_json_is_fatal(claude: ClaudePy) -> None:
    """The good answer after it is never read."""
    claude.play_script(r"""
        - wait_for: prompt 1
        - raw: "{not json}\n"
        - answer: done
    """)
    with pytest.raises(claude.sdk.CLIJSONDecodeError, match="not json"):
        claude.run_query()
    assert claude.given == ["0 s: init"]


@mark_finding("claude-agent-sdk, query()", "prints a line that is no JSON and has no brace", "skips it")
def test_a_line_that_is_no_json_is_skipped(claude: ClaudePy) -> None:
    """Warnings of node and the like."""
    claude.play_script(r"""
        - wait_for: prompt 1
        - raw: "(node:1) Warning: old\n"
        - answer: done
    """)
    assert claude.run_query()[-1] == "0 s: result done"


@mark_finding(
    "claude-agent-sdk, query()", "prints a line of more than 1 MiB", "raises, unless max_buffer_size is raised"
)
def test_a_line_over_a_mebibyte_is_fatal(claude: ClaudePy) -> None:
    """The limit is on one message, whatever it says."""
    script = r"""
        - wait_for: prompt 1
        - raw: {text: x, size: 1 MiB}
        - raw: "x\n"
        - answer: done
    """
    with pytest.raises(claude.sdk.CLIJSONDecodeError, match="maximum buffer size of 1048576 bytes"):
        claude.play_script(script).run_query()
    assert claude.given == ["0 s: init"]
    assert claude.play_script(script).run_query(max_buffer_size=2 << 20)[-1].endswith("result done")


@mark_finding("claude-agent-sdk, query()", "never answers initialize", "raises after exactly 60 s and closes stdin")
def test_a_handshake_is_waited_for_a_minute(claude: ClaudePy) -> None:
    """To the nanosecond."""
    claude.play_script("- handshake: never")
    with pytest.raises(Exception, match=r"^Control request timeout: initialize$"):
        claude.run_query()
    assert list_end_events(claude.record) == [(60 * SECOND, "EOF"), (60 * SECOND, "exits 0")]


@mark_finding(
    "claude-agent-sdk, query()",
    "reads no stdin for two hours, and the prompt is 1 MiB",
    "waits for room, and has no limit on that",
)
def test_a_prompt_that_is_not_read_waits_for_room(claude: ClaudePy) -> None:
    """No timer runs on a write."""
    claude.play_script("""
        - wait_for: {stdin: "*initialize*"}
        - stdin: stop
        - silence: 2h
        - stdin: read
        - wait_for: prompt 1
        - answer: done
    """)
    assert claude.run_query("x" * (1 << 20)) == ["7200 s: init", "7200 s: says done", "7200 s: result done"]
    assert read_stdin_bytes(claude.record).count(b"x") == 1 << 20


@mark_finding(
    "claude-agent-sdk, query() with hooks", "gives its result and never says idle", "closes stdin after exactly 10 min"
)
def test_with_hooks_the_end_of_stdin_waits_for_idle(claude: ClaudePy) -> None:
    """Hooks need stdin: it stays open until the CLI is idle, for ten minutes at most."""
    claude.play_script(f"- wait_for: prompt 1\n- event: {RESULT}\n- wait_for: eof")

    async def hook(*_: Any) -> dict[str, Any]:
        return {}

    hooks = {"PreToolUse": [claude.sdk.HookMatcher(hooks=[hook])]}
    assert claude.run_query(hooks=hooks) == ["0 s: init", "0 s: result success"]
    assert list_end_events(claude.record) == [(600 * SECOND, "EOF"), (600 * SECOND, "exits 0")]
