"""PyPI's claude-agent-sdk, `ClaudeSDKClient`: an MCP server in the client's process, whose tools the agent calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio

from tests.clients.findings import mark_finding

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.clients.claude_py import ClaudePy

_CALLS = """
    - wait_for: prompt 1
    - tool: {id: t, name: mcp__calc__add, input: {a: 1, b: 2}}
    - request:
        tool: t
        answered: [{tool_done: t}, {answer: done}]
        refused: [{tool_done: t}, {answer: sorry}]
"""


def _build_options(claude: ClaudePy, add: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
    tool = claude.sdk.tool("add", "Add two numbers", {"a": int, "b": int})(add)
    return {"mcp_servers": {"calc": claude.sdk.create_sdk_mcp_server("calc", tools=[tool])}}


@mark_finding(
    "claude-agent-sdk, ClaudeSDKClient",
    "calls a tool of an MCP server in the client",
    "runs the tool, and sends its result",
)
def test_a_tool_of_the_client_is_called(claude: ClaudePy) -> None:
    """However long the tool works: here a quarter of an hour."""
    called: list[Any] = []

    async def add(given: dict[str, Any]) -> dict[str, Any]:
        await anyio.sleep(900)
        called.append(given)
        return {"content": [{"type": "text", "text": str(given["a"] + given["b"])}]}

    given = claude.play_script(_CALLS).talk(
        lambda client: claude.run_turn(client, "add"), **_build_options(claude, add)
    )
    assert called == [{"a": 1, "b": 2}]
    ends = "900 s: tool ends [{'text': '3', 'type': 'text'}]"
    assert given == ["0 s: init", "0 s: tool mcp__calc__add", ends, "900 s: says done", "900 s: result done"]


@mark_finding(
    "claude-agent-sdk, ClaudeSDKClient",
    "calls a tool of the client that raises",
    "sends the error as the result of the tool",
)
def test_a_tool_of_the_client_that_raises_is_an_error(claude: ClaudePy) -> None:
    """The script goes on with the steps below `refused`."""

    async def add(_given: dict[str, Any]) -> dict[str, Any]:
        raise ValueError("no numbers today")

    given = claude.play_script(_CALLS).talk(
        lambda client: claude.run_turn(client, "add"), **_build_options(claude, add)
    )
    assert given[2:] == ["0 s: tool fails no numbers today", "0 s: says sorry", "0 s: result sorry"]


def test_a_tool_that_the_client_does_not_have_is_refused(claude: ClaudePy) -> None:
    """The words are those of the real CLI."""
    given = claude.play_script(_CALLS).talk(lambda client: claude.run_turn(client, "add"))
    error = "<tool_use_error>Error: No such tool available: mcp__calc__add</tool_use_error>"
    assert given[2:] == [f"0 s: tool fails {error}", "0 s: says sorry", "0 s: result sorry"]


@mark_finding(
    "claude-agent-sdk, ClaudeSDKClient",
    "is interrupted while it calls a tool of the client",
    "cancels the tool that runs",
)
def test_an_interrupt_cancels_the_call(claude: ClaudePy) -> None:
    """The agent sends `notifications/cancelled` to the server."""
    ended: list[str] = []

    async def add(_given: dict[str, Any]) -> dict[str, Any]:
        try:
            await anyio.sleep(900)
        finally:
            ended.append(f"{claude.clock.now:g} s")
        return {}

    async def host(client: Any) -> None:
        await client.query("add")
        await anyio.sleep(5)
        await client.interrupt()
        async for message in client.receive_response():
            claude.take(message)

    script = f"{_CALLS}    - wait_for: cancel\n    - acknowledge: cancel\n"
    given = claude.play_script(script).talk(host, **_build_options(claude, add))
    assert (ended, given[-1]) == (["5 s"], "5 s: error error_during_execution")
