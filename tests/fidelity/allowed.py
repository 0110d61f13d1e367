"""How the fakes may differ from the real CLIs: where, which difference, and why. Values only."""

from __future__ import annotations

__all__ = ["ALLOWED"]

ALLOWED = [
    (
        "claude: trouble: compaction",
        "*",
        "The fake prints no summary of the conversation, and counts its tokens otherwise.",
    ),
    (
        "claude: trouble: refusal",
        "*",
        "The lines about a refusal have no ids in the script, and the result has the status of an API error.",
    ),
    (
        "pi: trouble: *",
        "agent_end: * messages[[][]].*",
        "The end of a run that is tried again lists the message that failed alone.",
    ),
    (
        "pi: trouble: retries",
        "after message_end.assistant.text: the fake lacks auto_retry_end",
        "The real CLI prints it within the last message, where a script cannot place it.",
    ),
    (
        "claude: a sub-agent",
        "*result.success*",
        "The real CLI keeps the first result back until the sub-agent's turn. A script cannot place it there.",
    ),
    (
        "codex: app-server: *",
        "first line of stderr: *bubblewrap*",
        "The line depends on the machine.",
    ),
    (
        "codex: app-server: *",
        "*the fake lacks configWarning",
        "The notice depends on the machine.",
    ),
    (
        "codex: app-server: *",
        "*the fake lacks remoteControl/status/changed",
        "The fake has no remote control, and prints nothing about it.",
    ),
    (
        "codex: app-server: *",
        "*the fake lacks warning",
        "The real CLI does not know the model of the scripted server. The fake has no model.",
    ),
    (
        "codex: app-server: *",
        "*the fake lacks account/rateLimits/updated",
        "The fake has no account.",
    ),
    (
        "codex: app-server: *, with the experimental part",
        "*the fake lacks thread/readState/changed",
        "The fake keeps no list of what a person has read.",
    ),
    (
        "codex: app-server: a compaction",
        "*the fake lacks thread/tokenUsage/updated",
        "The fake compacts without a model, and no tokens are used.",
    ),
    (
        "codex: app-server: *",
        "object*: *result.*",
        "The fake's thread has the default permissions, whatever the client asks for.",
    ),
    (
        "codex: app-server: a denied command",
        "after *",
        "A script starts a tool before it asks. The real CLI reports its status between the two.",
    ),
    (
        "gemini: *",
        "first line of stderr: 'Ripgrep is not available. Falling back to GrepTool.', the fake has *",
        "The line depends on the machine.",
    ),
    (
        "gemini: a tool",
        "first line of stderr: 'YOLO mode is enabled.*', the fake has ''",
        "The line is for a person, and the fake prints no such notices.",
    ),
    (
        "opencode: *over ACP",
        "response 0: *",
        "The fake of ACP stands for every agent. It has no login, and none of the abilities that are optional.",
    ),
    (
        "opencode: *over ACP",
        "response ?: *configOptions*",
        "The category of an option and the description of a value are optional.",
    ),
    (
        "opencode: *over ACP",
        "*available_commands_update",
        "The list of commands is optional. A script writes it as an event.",
    ),
    (
        "opencode: *over ACP",
        "*params.update.messageId (str)",
        "The id of a message is optional.",
    ),
    (
        "opencode: *over ACP",
        "response 2: *",
        "Usage is optional in the response to a prompt. The fake prints a script's usage below `_meta`.",
    ),
    (
        "opencode: a tool, over ACP",
        "*tool_call*",
        "opencode announces a tool as pending, and repeats its updates. The fake begins with a tool in progress.",
    ),
    (
        "opencode: *as text",
        "first line of stderr: '?x1b[[]0m', the fake has *",
        "The line is for a person, and the fake prints no such notices.",
    ),
    (
        "opencode: a denied tool",
        "first line of stderr: *permission requested: external_directory (/etc/[*]); auto-rejecting', the fake has ''",
        "The line is for a person, and the fake prints no such notices.",
    ),
    (
        "opencode: a tool after a text, as text",
        "text: *",
        "As text, the fakes print the last text alone.",
    ),
    (
        "opencode: *",
        "*: the fake lacks *error.data.*",
        "A script has the words of an error, and not the response of a server.",
    ),
    (
        "opencode: modes*",
        "error ?: the fake lacks error.data (dict)",
        "The data of an error is optional.",
    ),
    (
        "opencode: modes*",
        "first line of stderr: 'Error handling request {', the fake has ''",
        "The line is for a person, and the fake prints no such notices.",
    ),
    (
        "claude: *",
        "control_response.success: the fake lacks response.response.*",
        "The real CLI lists all its commands, agents and abilities. The fake lists one of a kind, or no optional keys.",
    ),
    (
        "claude: session file: *",
        "after *: the fake lacks attachment.*",
        "These lines tell the model of the machine, the tools and the day. The fake has no model.",
    ),
    (
        "claude: session file: *",
        "after *: the fake lacks api-request*",
        "These lines repeat what the model is asked. The fake asks no model.",
    ),
    (
        "claude: session file: *",
        "*: the fake lacks requestRef (str)",
        "It names the line with the request to the model.",
    ),
    (
        "claude: session file: *",
        "after *: the fake lacks atis-latch",
        "The fake does not know what this line is for: it is empty.",
    ),
    (
        "claude: session file: *",
        "after *: the fake lacks system.informational",
        "The real CLI cannot get the model of the scripted server again. The fake has no model.",
    ),
    (
        "claude: session file: a tool",
        "assistant.message.text: message.stop_reason is str, in the fake null",
        "A script says a text before it is known whether a tool follows.",
    ),
    (
        "claude: session file: a tool",
        "after user: the fake lacks tools-used",
        "The list of all tools that were used is for the real CLI alone.",
    ),
    (
        "claude: session file: a tool",
        "user.tool_result: the fake lacks *",
        "The fake has no sandbox, and no file of rules.",
    ),
    (
        "claude: session file: two prompts",
        "after *: the fake lacks cost-state",
        "A session of the fake has no end at which it would say what it cost.",
    ),
    (
        "claude: session file: a forked session",
        "assistant.message.text: the fake lacks requestSessionId (str)",
        "It names the session of the line with the request to the model.",
    ),
    (
        "pi: session file: commands of a session",
        "after thinking_level_change: the fake lacks *",
        "The fake keeps messages alone, and no change of the model or the name.",
    ),
    (
        "codex: session file: *",
        "after event_msg.task_started: the fake lacks *",
        "These lines tell the model of the machine, the tools and the day. The fake has no model.",
    ),
    (
        "codex: session file: *a tool",
        "*permission_profile*",
        "The fake's thread has the default permissions, whatever the arguments ask for.",
    ),
    (
        "codex: session file: *a tool",
        "after response_item.function_call*token*",
        "The fake counts its tokens later.",
    ),
]
"""Patterns for a conversation and a difference, as `fnmatch` reads them, with the reason."""
