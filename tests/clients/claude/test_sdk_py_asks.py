"""PyPI's claude-agent-sdk, `ClaudeSDKClient`: permissions and hooks, and what its caller answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.clients.endings import read_stdin_bytes
from tests.clients.findings import mark_finding

if TYPE_CHECKING:
    from tests.clients.claude_py import ClaudePy


@pytest.mark.parametrize(("answer", "reported"), [("Allow", "tool ends built"), ("Deny", "tool fails not so")])
@mark_finding("claude-agent-sdk, ClaudeSDKClient", "asks for a permission", "asks can_use_tool and sends its answer")
def test_a_permission_is_the_callbacks(claude: ClaudePy, answer: str, reported: str) -> None:
    """However long the callback thinks: here a quarter of an hour."""
    claude.play_script("""
        - wait_for: prompt 1
        - tool: {id: t, name: Bash, input: {command: make}}
        - ask:
            permission: Bash
            allowed: [{tool_done: {id: t, output: built}}]
            denied: [{tool_done: {id: t, error: not so}}]
        - answer: done
    """)

    async def can_use_tool(name: str, given: dict[str, Any], _context: Any) -> Any:
        assert (name, given) == ("Bash", {"command": "make"})
        await anyio.sleep(900)
        return getattr(claude.sdk, f"PermissionResult{answer}")()

    given = claude.talk(lambda client: claude.run_turn(client, "build"), can_use_tool=can_use_tool)
    assert given[1:] == ["0 s: tool Bash", f"900 s: {reported}", "900 s: says done", "900 s: result done"]


@mark_finding(
    "claude-agent-sdk, ClaudeSDKClient", "asks for a permission nobody was named for", "answers with an error at once"
)
def test_a_permission_without_a_callback_is_an_error(claude: ClaudePy) -> None:
    """The agent reads it as a denial."""
    claude.play_script("- wait_for: prompt 1\n- ask: {permission: Bash, denied: [{answer: not allowed}]}")
    assert claude.talk(lambda client: claude.run_turn(client, "build"))[-1] == "0 s: result not allowed"
    assert b"canUseTool callback is not provided" in read_stdin_bytes(claude.record)


@mark_finding(
    "claude-agent-sdk, ClaudeSDKClient",
    "calls PreToolUse and PostToolUse hooks",
    "calls both callbacks, with what the tool got and gave",
)
def test_hooks_are_called_around_a_tool(claude: ClaudePy) -> None:
    """The first is `hook_0`, the second `hook_1`."""
    claude.play_script("""
        - wait_for: prompt 1
        - tool: {id: t, name: Bash, input: {command: make}}
        - ask: {hook: hook_0}
        - silence: 5s
        - ask: {hook: hook_1, event: PostToolUse, output: built}
        - tool_done: {id: t, output: built}
        - answer: done
    """)
    called: list[tuple[float, str, Any]] = []

    async def hook(given: dict[str, Any], tool: str | None, _context: Any) -> dict[str, Any]:
        assert (given["tool_input"], tool) == ({"command": "make"}, "t")
        called.append((claude.clock.now, given["hook_event_name"], given.get("tool_response")))
        return {}

    matcher = claude.sdk.HookMatcher(matcher="Bash", hooks=[hook])
    hooks = {"PreToolUse": [matcher], "PostToolUse": [matcher]}
    assert claude.talk(lambda client: claude.run_turn(client, "build"), hooks=hooks)[-1] == "5 s: result done"
    (before, after) = called
    assert (before, after[:2], after[2]["stdout"]) == ((0, "PreToolUse", None), (5, "PostToolUse"), "built")


@mark_finding(
    "claude-agent-sdk, ClaudeSDKClient", "asks a PreToolUse hook that denies", "sends the denial; the tool does not run"
)
def test_a_hook_denies_a_tool(claude: ClaudePy) -> None:
    """Its words go to the agent as they are."""
    claude.play_script("""
        - wait_for: prompt 1
        - tool: {id: t, name: Bash, input: {command: make}}
        - ask: {hook: hook_0, denied: [{tool_done: {id: t, error: not so}}]}
        - answer: done
    """)

    async def hook(*_: Any) -> dict[str, Any]:
        denial = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "not so"}
        return {"hookSpecificOutput": denial}

    hooks = {"PreToolUse": [claude.sdk.HookMatcher(hooks=[hook])]}
    assert "0 s: tool fails not so" in claude.talk(lambda client: claude.run_turn(client, "build"), hooks=hooks)


@mark_finding(
    "claude-agent-sdk, ClaudeSDKClient",
    "calls a hook whose callback raises",
    "answers with an error; its caller hears of nothing",
)
def test_a_hook_that_raises_is_an_error(claude: ClaudePy) -> None:
    """The fake continues: for it, only a hook that says no denies."""
    claude.play_script("- wait_for: prompt 1\n- ask: {hook: hook_0, allowed: [{answer: went on}]}")

    async def hook(*_: Any) -> dict[str, Any]:
        raise LookupError("no such rule")

    hooks = {"PreToolUse": [claude.sdk.HookMatcher(hooks=[hook])]}
    assert claude.talk(lambda client: claude.run_turn(client, "build"), hooks=hooks)[-1] == "0 s: result went on"
    assert b"no such rule" in read_stdin_bytes(claude.record)
