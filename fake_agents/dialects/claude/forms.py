"""The parts of claude's lines that no script says: lists, counts and words as the real CLI has them. Values only."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_PLUGIN_NAME = "cc-plugin-agents-md"
INIT_LINE_FIELDS = {
    "tools": ["Task", "Bash"],
    "mcp_servers": [],
    "model": "",
    "permissionMode": "default",
    "slash_commands": ["deep-research", "dataviz"],
    "terminal_slash_commands": ["doctor", "color", "focus", "reload-plugins"],
    "apiKeySource": "ANTHROPIC_API_KEY",
    "claude_code_version": "2.1.332",
    "output_style": "default",
    "agents": ["claude", "Explore"],
    "skills": ["deep-research", "dataviz"],
    "plugins": [{"name": _PLUGIN_NAME, "path": "builtin", "source": f"{_PLUGIN_NAME}@builtin"}],
    "capabilities": ["interrupt_receipt_v1", "interrupt_cancel_queued_v1", "msg_lifecycle_v1"],
    "analytics_disabled": True,
    "product_feedback_disabled": True,
    "served_by_anthropic": False,
    "uuid": "",
    "sandbox_enabled": False,
    "memory_paths": {"auto": "/home/u/x"},
    "original_cwd": "/",
    "additional_directories": [],
    "messaging_socket_path": "/home/u/x",
    "fast_mode_state": "off",
    "fast_mode_disabled_reason": "sdk_opt_in_required",
    "per_turn_effort_active": False,
    "ultrathink_available": False,
    "ultrathink_typed_raises": False,
    "view_mode": "default",
}
MESSAGE_TOKEN_USAGE = {
    "input_tokens": 10,
    "output_tokens": 5,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
}
UNFINISHED_MESSAGE_FIELDS = {"stop_reason": None, "stop_sequence": None, "usage": MESSAGE_TOKEN_USAGE}
MORE_TOKEN_USAGE: dict[str, object] = {
    "output_tokens_details": {"thinking_tokens": 0},
    "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
    "service_tier": "standard",
    "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0},
    "inference_geo": "",
    "iterations": [],
    "speed": "standard",
    "fallback_credit": None,
}
RESULT_TOKEN_USAGE = {
    "input_tokens": 0,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "output_tokens": 0,
    **MORE_TOKEN_USAGE,
}
MODEL_TOKEN_USAGE = {
    "inputTokens": 0,
    "outputTokens": 0,
    "cacheReadInputTokens": 0,
    "cacheCreationInputTokens": 0,
    "webSearchRequests": 0,
    "costUSD": 0,
    "contextWindow": 200_000,
    "maxOutputTokens": 32_000,
    "thinkingTokens": 0,
    "cacheCreationEphemeral5mInputTokens": 0,
    "cacheCreationEphemeral1hInputTokens": 0,
    "canonicalModel": "",
    "provider": "firstParty",
    "costBasis": "list",
}
ZERO_SUBAGENT_COUNTS = {
    "spawned": 0,
    "requested": {"background": 0, "foreground": 0, "unset": 0},
    "started_in_background": 0,
    "max_depth": 0,
    "spawned_by_subagents": 0,
    "completed": 0,
    "failed": 0,
    "killed": {"parent": 0, "user": 0, "system": 0},
    "refused": {"depth_limit": 0, "concurrency_limit": 0, "budget": 0},
    "by_type": {},
}
_FAILED_MESSAGE_USAGE = {
    "output_tokens_details": None,
    "input_tokens": 0,
    "output_tokens": 0,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
    "service_tier": None,
    "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0},
    "inference_geo": None,
    "iterations": None,
    "speed": None,
    "fallback_credit": None,
}
TERMINAL_REASONS_BY_SUBTYPE = {
    "success": "completed",
    "error_during_execution": "aborted_streaming",
    "error_max_turns": "max_turns",
}
EMPTY_STOP_FIELDS = {"container": None, "stop_details": None, "stop_reason": None, "stop_sequence": None}
ABANDONED_MESSAGE_USAGE = {
    "output_tokens_details": {"thinking_tokens": 0},
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "input_tokens": 10,
    "iterations": [],
    "output_tokens": 5,
    "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
    "fallback_credit": None,
}
FAILED_MESSAGE_FIELDS = {
    "container": None,
    "model": "<synthetic>",
    "role": "assistant",
    "stop_details": None,
    "stop_reason": "stop_sequence",
    "stop_sequence": "",
    "type": "message",
    "usage": _FAILED_MESSAGE_USAGE,
}
"""The message that claude writes itself, but for its id and its text."""

ABORTED_TURN_ERROR_PREFIX = "[ede_diagnostic] result_type=user last_content_type=n/a stop_reason="
"""What the result of an interrupted turn says, with its stop reason behind it."""
REJECTED_TOOL_TEXT = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
    "new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed."
)
KILLED_TOOL_TEXT = "Exit code 137"

_SUBAGENT_TOOL_NAMES = ("Task", "Agent")
_PERMISSION_REASON_TYPES = {"subcommands": "subcommandResults"}


def describe_unasked_permission(name: str, allowed_by: str | None) -> dict[str, Any]:
    """Say why a tool of that name may run without a question; sub-agents may run without a reason."""
    reason = (
        {} if name in _SUBAGENT_TOOL_NAMES else {"reason_type": _PERMISSION_REASON_TYPES.get(allowed_by or "", "rule")}
    )
    return {"permission_decision": {"decision": "accept", "source": "config", **reason}}


def build_tool_result_block(fields: dict[str, Any], name: str) -> dict[str, Any]:
    """Give the block that reports to the model how a tool of that name has ended."""
    number, error, output = fields["id"], fields["error"], fields["output"]
    if error is not None:
        shown = f"<tool_use_error>{error}</tool_use_error>" if fields.get("refused") else error
        return {"type": "tool_result", "content": shown, "is_error": True, "tool_use_id": number}
    quiet = f"({name} completed with no output)"
    if isinstance(output, list):
        return {"tool_use_id": number, "type": "tool_result", "content": output or quiet}
    shown = output or (quiet if name == "Bash" else "")
    return {"tool_use_id": number, "type": "tool_result", "content": shown, "is_error": False}
