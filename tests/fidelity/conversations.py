"""The conversations that the real CLIs and the fakes have: arguments, replies of the model, scripts of the fakes."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from itertools import pairwise
from typing import Any

from tests.calc_server import CALC_SERVER
from tests.fidelity.app_server_conversations import APP_SERVER
from tests.fidelity.conversation import FAILS, RUN_A, RUN_B, SHELL, Conversation
from tests.fidelity.conversation import write_tool as _tool
from tests.fidelity.model_server import Reply
from tests.fidelity.serve.conversations import OPENCODE_SERVE

__all__ = ["CONVERSATIONS"]

SESSION = "11111111-2222-4333-8444-555555555555"


_API_ERROR = '[{result: {text: "API Error: 400 refused", is_error: true}}]'


def _build_bash_call(command: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "Bash", {"command": command, "description": "d", **more}


_STREAM = ("-p", "--output-format", "stream-json", "--verbose")
_TALKING = ("--output-format", "stream-json", "--verbose", "--input-format", "stream-json")
_ASKED = json.dumps({"type": "user", "session_id": "", "message": {"role": "user", "content": "hi"}})
_INTERRUPT = json.dumps({"type": "control_request", "request_id": "r1", "request": {"subtype": "interrupt"}})
_INITIALIZE = json.dumps({"type": "control_request", "request_id": "r0", "request": {"subtype": "initialize"}})
_RESPONSE = '"type":"control_response"'
_RESULT = '"type":"result"'
_SERVERS = json.dumps({"mcpServers": {"calc": {"type": "sdk", "name": "calc"}}})
_QUESTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("mcp_status", {}),
    ("list_models", {}),
    ("get_settings", {}),
    ("get_usage", {}),
    ("get_session_cost", {}),
    ("get_binary_version", {}),
    ("set_max_thinking_tokens", {"max_thinking_tokens": None}),
    ("mcp_toggle", {"serverName": "nosuch", "enabled": True}),
    ("mcp_reconnect", {"serverName": "nosuch"}),
)
_STARTED_SERVERS = json.dumps({"mcpServers": {"calc": {"command": sys.executable, "args": [str(CALC_SERVER)]}}})
_WRONG_SERVER = json.dumps(
    {
        "mcpServers": {
            "wrong": {"command": sys.executable, "env": 5},
            "calc": {"command": f"${{UNSET:-{sys.executable}}}", "args": [str(CALC_SERVER)]},
        }
    }
)
_CALC = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "calc", "version": "1"}}


def _build_answer(result: dict[str, Any]) -> str:
    """Answer the last message of MCP, whose ids are in the place of their names."""
    message = {"jsonrpc": "2.0", "id": "<message>", "result": result}
    fields = {"subtype": "success", "request_id": "<request>", "response": {"mcp_response": message}}
    return json.dumps({"type": "control_response", "response": fields}).replace('"<message>"', "<message>")


def _build_request(subtype: str, **fields: Any) -> str:
    """Make a control request."""
    return json.dumps({"type": "control_request", "request_id": "r2", "request": {"subtype": subtype, **fields}})


def _build_hook_settings(**commands: str) -> str:
    """Give settings with a hook for each event."""
    hooks = {event: [{"hooks": [{"type": "command", "command": command}]}] for event, command in commands.items()}
    return json.dumps({"hooks": hooks})


def _build_settings_with_wrong_hook(event: str) -> str:
    """Give settings with two hooks for an event, of which one has a wrong value."""
    hooks = [{"type": "command", "command": command} for command in (5, "true")]
    return json.dumps(
        {"hooks": {**json.loads(_build_hook_settings(SessionStart="true"))["hooks"], event: [{"hooks": hooks}]}}
    )


_HOOKED = (*_STREAM, "--include-hook-events", "--allowedTools=Bash", "--settings")
_BLOCK = '{"decision": "block", "reason": "go on"}'
_HI = _tool("a", *_build_bash_call("echo hi"))
_TASK = {"description": "look", "prompt": "look for it", "subagent_type": "general-purpose"}

_SCHEMA = ("--json-schema", json.dumps({"type": "object", "properties": {"a": {"type": "number"}}}))
_FILLS_SCHEMA = (Reply(tools=(("StructuredOutput", {"a": 1}),)), Reply("done"))
_A_IS_1 = """[{answer: '{"a": 1}'}]"""
_CALLS_ONCE = (Reply(tools=(_build_bash_call("echo hi"),)),)
_HAS_CALLED = f"[{_HI}, {{tool_done: {{id: a, output: hi}}}}]"

_CLAUDE = [
    Conversation(cli="claude", name="a schema", argv=(*_STREAM, *_SCHEMA, "hi"), replies=_FILLS_SCHEMA, script=_A_IS_1),
    Conversation(
        cli="claude",
        name="a schema, as json",
        argv=("-p", "--output-format", "json", *_SCHEMA, "hi"),
        replies=_FILLS_SCHEMA,
        script=_A_IS_1,
    ),
    Conversation(
        cli="claude", name="a schema, as text", argv=("-p", *_SCHEMA, "hi"), replies=_FILLS_SCHEMA, script=_A_IS_1
    ),
    Conversation(cli="claude", name="a schema, answered with text", argv=(*_STREAM, *_SCHEMA, "hi")),
    Conversation(
        cli="claude",
        name="one turn is allowed",
        argv=(*_STREAM, "--max-turns", "1", "hi"),
        replies=_CALLS_ONCE,
        script=_HAS_CALLED,
    ),
    Conversation(
        cli="claude",
        name="one turn is allowed, as text",
        argv=("-p", "--max-turns", "1", "hi"),
        replies=_CALLS_ONCE,
        script=_HAS_CALLED,
    ),
    Conversation(cli="claude", name="hello", argv=(*_STREAM, "hi")),
    Conversation(cli="claude", name="hello, as text", argv=("-p", "hi")),
    Conversation(cli="claude", name="hello, as json", argv=("-p", "--output-format", "json", "hi")),
    Conversation(cli="claude", name="hello, in parts", argv=(*_STREAM, "--include-partial-messages", "hi")),
    Conversation(
        cli="claude",
        name="a tool",
        argv=(*_STREAM, "--allowedTools=Bash", "hi"),
        replies=(Reply("see", [_build_bash_call("echo hi")]), Reply("done")),
        script=f"[{{say: see}}, {_HI}, {{tool_done: {{id: a, output: hi}}}}, {{answer: done}}]",
    ),
    Conversation(
        cli="claude",
        name="two tools",
        argv=(*_STREAM, "--allowedTools=Bash", "hi"),
        replies=(Reply("", [_build_bash_call("echo a"), _build_bash_call("echo b")]), Reply("done")),
        script=f"[{_tool('a', *_build_bash_call('echo a'), more=True)}, {_tool('b', *_build_bash_call('echo b'))}, "
        "{tool_done: {id: a, output: a}}, {tool_done: {id: b, output: b}}, {answer: done}]",
    ),
    Conversation(cli="claude", name="an API error", argv=(*_STREAM, "hi"), replies=FAILS, script=_API_ERROR),
    Conversation(cli="claude", name="an API error, as text", argv=("-p", "hi"), replies=FAILS, script=_API_ERROR),
    Conversation(
        cli="claude",
        name="an API error and a retry",
        argv=(*_STREAM, "hi"),
        replies=(Reply(status=500), Reply("hello")),
        script="[{event: api_retry}, {answer: hello}]",
    ),
    Conversation(
        cli="claude",
        name="a background task",
        argv=(*_STREAM, "--allowedTools=Bash", "hi"),
        replies=(
            Reply("", [_build_bash_call("sleep 2; echo x", run_in_background=True)]),
            Reply("one"),
            Reply("noted"),
        ),
        script=f"[{_tool('a', *_build_bash_call('x', run_in_background=True))}, {{task: {{id: t, tool: a}}}}, "
        "{tool_done: a}, {answer: one}, {task_done: t}, {background_turn: {task: t, answer: noted}}]",
    ),
    Conversation(
        cli="claude",
        name="a sub-agent",
        argv=(*_STREAM, "hi"),
        replies=(
            Reply("", [("Task", _TASK)]),
            Reply("one"),
            Reply("noted"),
            Reply("sub", to="look for it", after=1.5),
        ),
        script=f"[{_tool('a', 'Task', _TASK)}, {{task: {{id: t, tool: a, kind: local_agent}}}}, {{tool_done: a}}, "
        "{say: {text: one, stop: end_turn}}, {say: {text: sub, parent: a, stop: end_turn}}, {task_done: t}, "
        "{result: {}}, {background_turn: {task: t, answer: noted}}]",
    ),
    Conversation(
        cli="claude",
        name="an interrupt",
        argv=_TALKING,
        agent="{dialect: claude, mode: session}",
        replies=(Reply("too late", after=20),),
        talk=(("", _ASKED), ('"init"', _INTERRUPT), ('"type":"result"', "")),
        script="[{wait_for: prompt 1}, {wait_for: cancel}, {acknowledge: cancel}]",
    ),
    Conversation(
        cli="claude",
        name="modes and models are set",
        argv=_TALKING,
        agent="{dialect: claude, mode: session}",
        talk=(
            ("", _INITIALIZE),
            *((_RESPONSE, _build_request("set_permission_mode", mode=mode)) for mode in ("default", "plan", "plan")),
            *((_RESPONSE, _build_request("set_permission_mode", mode=mode)) for mode in ("bypassPermissions", "fly")),
            *((_RESPONSE, _build_request("set_model", model=model)) for model in ("sonnet", 5, "")),
            (_RESPONSE, _ASKED),
            (_RESULT, _build_request("set_permission_mode", mode="acceptEdits")),
            *((_RESPONSE, _build_request("set_model", model=model)) for model in ("haiku", "haiku", "claude-opus-5-5")),
            *((_RESPONSE, _build_request("set_model", model=model)) for model in ("default", "Sonnet", None)),
            (_RESPONSE, _ASKED),
            (_RESULT, ""),
        ),
        script="[{wait_for: prompt 1}, {answer: hello}, {wait_for: prompt 2}, {answer: hello}]",
    ),
    Conversation(
        cli="claude",
        name="questions about itself",
        argv=(*_TALKING, "--mcp-config", _STARTED_SERVERS),
        agent="{dialect: claude, mode: session}",
        talk=(
            ("", _INITIALIZE),
            (_RESPONSE, _ASKED),
            *(
                (_RESPONSE if number else _RESULT, _build_request(name, **fields))
                for number, (name, fields) in enumerate(_QUESTIONS)
            ),
            (_RESPONSE, ""),
        ),
        script="[{wait_for: prompt 1}, {answer: hello}]",
    ),
    Conversation(
        cli="claude",
        name="a tool of its host",
        argv=(*_TALKING, "--allowedTools=mcp__calc__add", "--mcp-config", _SERVERS),
        agent="{dialect: claude, mode: session}",
        replies=(Reply("", [("mcp__calc__add", {"a": 1})]), Reply("done")),
        talk=(
            ("", _INITIALIZE),
            ('"method":"initialize"', _build_answer(_CALC)),
            ('"notifications/initialized"', _build_answer({})),
            ('"method":"tools/list"', _build_answer({"tools": [{"name": "add", "inputSchema": {"type": "object"}}]})),
            ("", _ASKED),
            ('"method":"tools/call"', _build_answer({"content": [{"type": "text", "text": "3"}]})),
            ('"type":"result"', _build_request("mcp_status")),
            ('"mcpServers"', ""),
        ),
        script=f"[{{wait_for: prompt 1}}, {_tool('a', 'mcp__calc__add', {'a': 1})}, {{request: {{tool: a}}}}, "
        "{tool_done: a}, {answer: done}]",
    ),
    Conversation(
        cli="claude",
        name="a tool of a server that it starts",
        argv=(*_STREAM, "--allowedTools=mcp__calc__add", "--mcp-config", _STARTED_SERVERS, "--", "hi"),
        replies=(Reply("", [("mcp__calc__add", {"a": 1})]), Reply("done")),
        script=f"[{_tool('a', 'mcp__calc__add', {'a': 1})}, {{request: {{tool: a}}}}, {{tool_done: a}}, "
        "{answer: done}]",
    ),
    Conversation(
        cli="claude",
        name="a server that does not exist",
        argv=(*_STREAM, "--mcp-config", json.dumps({"mcpServers": {"calc": {"command": "/nosuch"}}}), "--", "hi"),
    ),
    Conversation(
        cli="claude",
        name="a server with a wrong value beside one with a variable",
        argv=(*_STREAM, "--mcp-config", _WRONG_SERVER, "--", "hi"),
    ),
    Conversation(
        cli="claude",
        name="servers in a file that does not exist",
        argv=(*_STREAM, "--mcp-config", "/nosuch.json", "--", "hi"),
    ),
    Conversation(
        cli="claude",
        name="hooks that pass",
        argv=(
            *_HOOKED,
            _build_hook_settings(SessionStart="true", PreToolUse="true", PostToolUse="true", Stop="true"),
            "--",
            "hi",
        ),
        replies=(Reply("", [_build_bash_call("echo hi")]), Reply("done")),
        script=f"[{_HI}, {{tool_done: {{id: a, output: hi}}}}, {{answer: done}}]",
    ),
    Conversation(
        cli="claude",
        name="a hook that denies a tool",
        argv=(*_HOOKED, _build_hook_settings(PreToolUse="echo no >&2; exit 2", PostToolUse="true"), "--", "hi"),
        replies=(Reply("", [_build_bash_call("echo hi")]), Reply("done")),
        script=f"[{_HI}, {{tool_done: {{id: a, output: hi}}}}, {{answer: done}}]",
    ),
    Conversation(
        cli="claude",
        name="a hook that blocks the end of a turn",
        argv=(*_HOOKED, _build_hook_settings(Stop=f"mkdir once && echo '{_BLOCK}'; true"), "--", "hi"),
        replies=(Reply("done"),),
        script="[{answer: done}]",
    ),
    Conversation(
        cli="claude",
        name="a hook that blocks the end of each turn",
        argv=(*_HOOKED, _build_hook_settings(Stop="exit 2"), "--", "hi"),
        replies=(Reply("done"),),
        script="[{answer: done}]",
    ),
    Conversation(
        cli="claude",
        name="a hook with a wrong value beside one without",
        argv=(*_HOOKED, _build_settings_with_wrong_hook("Stop"), "--", "hi"),
    ),
    Conversation(
        cli="claude",
        name="a hook with a wrong value that may guard a tool",
        argv=(*_HOOKED, _build_settings_with_wrong_hook("PreToolUse"), "--", "hi"),
        replies=(Reply("", [_build_bash_call("echo hi")]), Reply("done")),
        script=f"[{_HI}, {{tool_done: {{id: a, output: hi}}}}, {{answer: done}}]",
    ),
    Conversation(
        cli="claude",
        name="hooks in a file that does not exist",
        argv=(*_STREAM, "--settings", "/nosuch.json", "--", "hi"),
    ),
    Conversation(
        cli="claude",
        name="a session with hooks",
        agent="{dialect: claude, mode: session}",
        argv=(*_TALKING, "--include-hook-events", "--settings", _build_hook_settings(SessionStart="true", Stop="true")),
        talk=(("", _ASKED), ('"type":"result"', _ASKED), ('"type":"result"', "")),
        script="[{wait_for: prompt 1}, {answer: hello}, {wait_for: prompt 2}, {answer: hello}]",
    ),
    Conversation(
        cli="claude",
        name="a resumed session",
        argv=(*_STREAM, "--resume", SESSION, "hi"),
        before=("-p", "--session-id", SESSION, "hi"),
    ),
    Conversation(
        cli="claude",
        name="the last session",
        argv=(*_STREAM, "--continue", "hi"),
        before=("-p", "--session-id", SESSION, "hi"),
    ),
    Conversation(
        cli="claude",
        name="a forked session",
        argv=(*_STREAM, "--resume", SESSION, "--fork-session", "hi"),
        before=("-p", "--session-id", SESSION, "hi"),
    ),
    Conversation(cli="claude", name="the last session of none", argv=(*_STREAM, "--continue", "hi")),
    Conversation(cli="claude", name="a session that is not kept", argv=(*_STREAM, "--no-session-persistence", "hi")),
    Conversation(
        cli="claude",
        name="two prompts",
        agent="{dialect: claude, mode: session}",
        argv=_TALKING,
        talk=(("", _ASKED), ('"result"', _ASKED), ('"result"', "")),
        script="[{wait_for: prompt 1}, {answer: hello}, {wait_for: prompt 2}, {answer: hello}]",
    ),
    Conversation(cli="claude", name="a session that does not exist", argv=(*_STREAM, "--resume", SESSION, "hi")),
    Conversation(
        cli="claude",
        name="a session that exists already",
        argv=("-p", "--session-id", SESSION, "hi"),
        before=("-p", "--session-id", SESSION, "hi"),
    ),
    Conversation(cli="claude", name="--version", argv=("--version",)),
    Conversation(cli="claude", name="a wrong flag", argv=("-p", "--frobnicate", "hi")),
    Conversation(cli="claude", name="a format without its flag", argv=("-p", "--output-format", "stream-json", "hi")),
    Conversation(cli="claude", name="no prompt", argv=("-p",)),
]

_EXEC = ("exec", "--skip-git-repo-check")
_HELLO = "[{notice: no metadata}, {answer: hello}]"
_CODEX = [
    Conversation(cli="codex", name="hello", argv=(*_EXEC, "--json", "hi"), script=_HELLO),
    Conversation(cli="codex", name="hello, as text", argv=(*_EXEC, "hi")),
    Conversation(cli="codex", name="hello, from stdin", argv=(*_EXEC, "--json", "-"), stdin="hi", script=_HELLO),
    Conversation(
        cli="codex",
        name="a tool",
        argv=(*_EXEC, "--json", "--yolo", "hi"),
        replies=(Reply("see", [SHELL]), Reply("done")),
        script=f"[{{notice: no metadata}}, {{say: see}}, {RUN_A}, "
        '{tool_done: {id: a, output: "hi\\n"}}, {answer: done}]',
    ),
    Conversation(
        cli="codex",
        name="two tools",
        argv=(*_EXEC, "--json", "--yolo", "hi"),
        replies=(Reply("", [SHELL]), Reply("", [SHELL]), Reply("done")),
        script=f"[{{notice: no metadata}}, {RUN_A}, {{tool_done: {{id: a, output: hi}}}}, {RUN_B}, "
        "{tool_done: {id: b, output: hi}}, {answer: done}]",
    ),
    Conversation(
        cli="codex",
        name="an API error",
        argv=(*_EXEC, "--json", "hi"),
        replies=FAILS,
        script="[{notice: no metadata}, {result: {text: refused, is_error: true}}]",
    ),
    Conversation(
        cli="codex",
        name="a resumed session",
        argv=(*_EXEC, "--json", "resume", "{session}", "hi"),
        before=(*_EXEC, "--json", "hi"),
        script=_HELLO,
    ),
    Conversation(
        cli="codex",
        name="the last session",
        argv=(*_EXEC, "--json", "resume", "--last", "hi"),
        before=(*_EXEC, "--json", "hi"),
        script=_HELLO,
    ),
    Conversation(
        cli="codex", name="the last session of none", argv=(*_EXEC, "--json", "resume", "--last", "hi"), script=_HELLO
    ),
    Conversation(
        cli="codex", name="a session that is not kept", argv=(*_EXEC, "--json", "--ephemeral", "hi"), script=_HELLO
    ),
    Conversation(cli="codex", name="a session that does not exist", argv=(*_EXEC, "--json", "resume", SESSION, "hi")),
    Conversation(cli="codex", name="--version", argv=("--version",)),
    Conversation(cli="codex", name="a wrong flag", argv=("exec", "--frobnicate", "hi")),
    Conversation(cli="codex", name="a wrong value", argv=("exec", "--sandbox", "frob", "hi")),
    Conversation(cli="codex", name="no prompt", argv=(*_EXEC, "--json")),
]


_FLASH = ("-m", "gemini-2.5-flash", "--skip-trust")
_SHELL_COMMAND = ("run_shell_command", {"command": "echo hi"})
_GEMINI_TOOL = _tool("a", *_SHELL_COMMAND)
_GEMINI = [
    Conversation(cli="gemini", name="hello", argv=(*_FLASH, "-o", "stream-json", "-p", "hi")),
    Conversation(cli="gemini", name="hello, as text", argv=(*_FLASH, "-p", "hi")),
    Conversation(cli="gemini", name="hello, as json", argv=(*_FLASH, "-o", "json", "-p", "hi")),
    Conversation(cli="gemini", name="hello, from stdin", argv=(*_FLASH, "-o", "stream-json"), stdin="hi"),
    Conversation(
        cli="gemini",
        name="a tool",
        agent="{dialect: gemini, mode: stream}",
        argv=(*_FLASH, "-y", "-o", "stream-json", "-p", "hi"),
        replies=(Reply("see", [_SHELL_COMMAND]), Reply("done")),
        script=f"[{{say: see}}, {_GEMINI_TOOL}, {{tool_done: {{id: a, output: hi}}}}, {{answer: done}}]",
    ),
    Conversation(
        cli="gemini",
        name="a denied tool",
        agent="{dialect: gemini, mode: stream}",
        argv=(*_FLASH, "-o", "stream-json", "-p", "hi"),
        replies=(Reply("", [_SHELL_COMMAND]), Reply("done")),
        script=f"[{_GEMINI_TOOL}, {{tool_done: {{id: a, error: no}}}}, {{answer: done}}]",
    ),
    Conversation(
        cli="gemini",
        name="an API error",
        argv=(*_FLASH, "-o", "stream-json", "-p", "hi"),
        replies=FAILS,
        script="[{result: {text: refused, is_error: true}}]",
    ),
    Conversation(
        cli="gemini",
        name="a resumed session",
        argv=(*_FLASH, "-o", "stream-json", "--resume", SESSION, "-p", "hi"),
        before=(*_FLASH, "--session-id", SESSION, "-p", "hi"),
    ),
    Conversation(
        cli="gemini",
        name="a session that does not exist",
        argv=(*_FLASH, "--resume", "nosuch", "-p", "hi"),
        before=(*_FLASH, "-p", "hi"),
    ),
    Conversation(cli="gemini", name="an untrusted folder", argv=("-m", "gemini-2.5-flash", "-p", "hi")),
    Conversation(cli="gemini", name="--version", argv=("--version",)),
    Conversation(cli="gemini", name="a wrong flag", argv=("-p", "hi", "--frobnicate")),
    Conversation(cli="gemini", name="a wrong value", argv=("-p", "hi", "-o", "yaml")),
]

_M1 = ("--provider", "fake", "--model", "m1")
_PI_SHELL = ("bash", {"command": "echo hi"})
_PI_REFUSAL = '400: {"type":"invalid_request_error","message":"refused","code":400}'
_PI_REFUSED = f"[{{result: {{text: {json.dumps(_PI_REFUSAL)}, is_error: true}}}}]"
_PI_TOOL = _tool("call_10", *_PI_SHELL)
_PI = [
    Conversation(cli="pi", name="hello", argv=(*_M1, "--mode", "json", "-p", "hi")),
    Conversation(cli="pi", name="hello, as text", argv=(*_M1, "-p", "hi")),
    Conversation(cli="pi", name="hello, from stdin", argv=(*_M1, "--mode", "json"), stdin="hi"),
    Conversation(
        cli="pi",
        name="a tool",
        argv=(*_M1, "--mode", "json", "-p", "hi"),
        replies=(Reply("see", [_PI_SHELL]), Reply("done")),
        script=f'[{{delta: see}}, {_PI_TOOL}, {{tool_done: {{id: call_10, output: "hi\\n"}}}}, {{answer: done}}]',
    ),
    Conversation(
        cli="pi",
        name="an API error",
        argv=(*_M1, "--mode", "json", "-p", "hi"),
        replies=FAILS,
        script=_PI_REFUSED,
    ),
    Conversation(
        cli="pi",
        name="an API error, as text",
        argv=(*_M1, "-p", "hi"),
        replies=FAILS,
        script=_PI_REFUSED,
    ),
    Conversation(
        cli="pi",
        name="a resumed session",
        argv=(*_M1, "--mode", "json", "--session", "{session}", "-p", "hi"),
        before=(*_M1, "--mode", "json", "-p", "hi"),
    ),
    *(
        Conversation(
            cli="pi",
            name=name,
            argv=(*_M1, "--mode", "json", *more, "-p", "hi"),
            before=(*_M1, "--mode", "json", "-p", "hi") if more[0] in ("--continue", "--fork") else (),
        )
        for name, more in (
            ("the last session", ("--continue",)),
            ("a forked session", ("--fork", "{session}")),
            ("a named session", ("--session-id", "mine")),
            ("a session that is not kept", ("--no-session",)),
            ("a folder of sessions", ("--session-dir", "there")),
        )
    ),
    Conversation(cli="pi", name="the last session of none", argv=(*_M1, "--mode", "json", "--continue", "-p", "hi")),
    Conversation(cli="pi", name="a session that does not exist", argv=(*_M1, "--session", "nosuch", "-p", "hi")),
    Conversation(cli="pi", name="--version", argv=("--version",)),
    Conversation(cli="pi", name="a wrong flag", argv=("-p", "hi", "--frobnicate")),
]


def _build_call(number: int, method: str, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


_HERE = {"cwd": "/usr", "mcpServers": []}
_MINE = {"sessionId": "<session>"}
_OPENING = (
    ("", _build_call(0, "initialize", protocolVersion=1, clientCapabilities={})),
    ('"id":0', _build_call(1, "session/new", **_HERE)),
    ('"id":1', _build_call(2, "session/prompt", **_MINE, prompt=[{"type": "text", "text": "hi"}])),
)
_SETTINGS = "{handshake: {options: [{id: model, values: [m1]}, {id: mode, values: [build, plan]}]}}"
_USED = "{event: {sessionUpdate: usage_update, used: 1, size: 9, cost: {amount: 0, currency: USD}}}"
_RUN = ("run", "--format", "json")
_ECHO_HI, _ECHO_BO = (("bash", {"command": f"echo {word}", "description": "d"}) for word in ("hi", "bo"))
_OUTSIDE = ("read", {"filePath": "/etc/hostname"})
_TOLD_HI = f'{_tool("a", *_ECHO_HI)}, {{tool_done: {{id: a, output: "hi\\n"}}}}'
_OPENCODE = [
    Conversation(cli="opencode", name="hello", argv=(*_RUN, "hi")),
    Conversation(cli="opencode", name="hello, as text", argv=("run", "hi")),
    Conversation(cli="opencode", name="hello, from stdin", argv=_RUN, stdin="hi"),
    Conversation(
        cli="opencode",
        name="a tool",
        argv=(*_RUN, "hi"),
        replies=(Reply("", [_ECHO_HI]), Reply("done")),
        script=f"[{_TOLD_HI}, {{answer: done}}]",
    ),
    Conversation(
        cli="opencode",
        name="a tool after a text, as text",
        argv=("run", "hi"),
        replies=(Reply("see", [_ECHO_HI]), Reply("done")),
        script=f"[{{say: see}}, {_TOLD_HI}, {{answer: done}}]",
    ),
    Conversation(
        cli="opencode",
        name="two tools",
        argv=(*_RUN, "hi"),
        replies=(Reply("", [_ECHO_HI, _ECHO_BO]), Reply("done")),
        script=f"[{_tool('a', *_ECHO_HI)}, {_tool('b', *_ECHO_BO)}, "
        "{tool_done: {id: a, output: hi}}, {tool_done: {id: b, output: bo}}, {answer: done}]",
    ),
    Conversation(
        cli="opencode",
        name="a denied tool",
        argv=(*_RUN, "hi"),
        replies=(Reply("", [_OUTSIDE]), Reply("done")),
        script=f"[{_tool('a', *_OUTSIDE)}, {{tool_done: {{id: a, error: no}}}}, {{exit: 0}}]",
    ),
    Conversation(
        cli="opencode",
        name="an API error",
        argv=(*_RUN, "hi"),
        replies=FAILS,
        script="[{result: {text: refused, is_error: true}}]",
    ),
    Conversation(
        cli="opencode",
        name="an API error, as text",
        argv=("run", "hi"),
        replies=FAILS,
        script="[{result: {text: refused, is_error: true}}]",
    ),
    Conversation(
        cli="opencode",
        name="an API error and a retry",
        argv=(*_RUN, "hi"),
        replies=(Reply(status=500), Reply("hello")),
    ),
    Conversation(
        cli="opencode",
        name="a resumed session",
        argv=(*_RUN, "--session", "{session}", "hi"),
        before=(*_RUN, "hi"),
    ),
    Conversation(
        cli="opencode",
        name="the last session",
        argv=(*_RUN, "--continue", "hi"),
        before=(*_RUN, "hi"),
    ),
    Conversation(cli="opencode", name="a session that does not exist", argv=(*_RUN, "--session", "nosuch", "hi")),
    Conversation(
        cli="opencode",
        name="a thought",
        argv=(*_RUN, "--thinking", "hi"),
        replies=(Reply("hello", thought="hm"),),
        script="[{think: hm}, {answer: hello}]",
    ),
    Conversation(
        cli="opencode",
        name="a thought that is not asked for",
        argv=(*_RUN, "hi"),
        replies=(Reply("hello", thought="hm"),),
        script="[{think: hm}, {answer: hello}]",
    ),
    Conversation(cli="opencode", name="the last session of none", argv=(*_RUN, "--continue", "hi")),
    Conversation(cli="opencode", name="--help", argv=("run", "--help")),
    Conversation(cli="opencode", name="a fork of nothing", argv=(*_RUN, "--fork", "hi")),
    Conversation(cli="opencode", name="no prompt", argv=_RUN),
    Conversation(cli="opencode", name="--version", argv=("--version",)),
    Conversation(cli="opencode", name="a wrong flag", argv=(*_RUN, "--frobnicate", "hi")),
    Conversation(cli="opencode", name="a wrong value", argv=("run", "--format", "yaml", "hi")),
    Conversation(
        cli="opencode",
        agent="acp",
        name="hello, over ACP",
        argv=("acp",),
        talk=(*_OPENING, ('"id":2', "")),
        script=f"[{_SETTINGS}, {{wait_for: prompt 1}}, {{say: hello}}, {_USED}, {{result: {{}}}}]",
    ),
    Conversation(
        cli="opencode",
        agent="acp",
        name="a tool, over ACP",
        argv=("acp",),
        replies=(Reply("see", [("bash", {"command": "echo hi", "description": "d"})]), Reply("done")),
        talk=(*_OPENING, ('"id":2', "")),
        script=f"[{_SETTINGS}, {{wait_for: prompt 1}}, {{say: see}}, {_tool('t', 'echo hi', {}, kind='execute')}, "
        f"{{tool_done: {{id: t, output: hi}}}}, {{say: done}}, {_USED}, {{result: {{}}}}]",
    ),
    Conversation(
        cli="opencode",
        agent="acp",
        name="modes, options and a loaded session, over ACP",
        argv=("acp",),
        talk=(
            *_OPENING,
            ('"id":2', _build_call(3, "session/set_mode", **_MINE, modeId="nosuch")),
            ('"id":3', _build_call(4, "session/set_config_option", **_MINE, configId="mode", value="plan")),
            ('"id":4', _build_call(5, "session/set_config_option", **_MINE, configId="nosuch", value="x")),
            ('"id":5', _build_call(6, "session/load", **_MINE, **_HERE)),
            ('"id":6', ""),
        ),
        script=f"[{_SETTINGS}, {{handshake: {{history: [{{prompt: hi}}, {{answer: hello}}]}}}}, "
        f"{{wait_for: prompt 1}}, {{say: hello}}, {_USED}, {{result: {{}}}}]",
    ),
]

_ASKED_OF_PI: tuple[tuple[str, dict[str, Any]], ...] = (
    ("get_state", {}),
    ("get_session_stats", {}),
    ("get_available_models", {}),
    ("get_available_thinking_levels", {}),
    ("get_last_assistant_text", {}),
    ("get_fork_messages", {}),
    ("set_model", {"provider": "fake", "modelId": "m1"}),
    ("cycle_model", {}),
    ("set_model", {}),
    ("cycle_thinking_level", {}),
    ("set_thinking_level", {"level": "off"}),
    ("set_steering_mode", {"mode": "all"}),
    ("set_follow_up_mode", {"mode": "all"}),
    ("set_auto_compaction", {"enabled": False}),
    ("set_auto_retry", {"enabled": True}),
    ("set_session_name", {"name": "mine"}),
    ("abort_retry", {}),
    ("set_session_name", {"name": ""}),
    ("frob", {}),
)
_ENDS_OF_COMMANDS = {"": "", "prompt": '"agent_settled"'}
_SESSION_COMMANDS = [
    *_ASKED_OF_PI,
    ("prompt", {"message": "hi"}),
    *_ASKED_OF_PI[:6],
]
_PI.append(
    Conversation(
        cli="pi",
        name="commands of a session",
        agent="{dialect: pi, mode: rpc}",
        argv=(*_M1, "--mode", "rpc"),
        talk=[
            (_ENDS_OF_COMMANDS.get(before, f'"command":"{before}"'), json.dumps({"id": "1", "type": name, **fields}))
            for (before, _), (name, fields) in pairwise([("", {}), *_SESSION_COMMANDS, ("", {})])
        ],
        script="[{wait_for: prompt 1}, {answer: hello}]",
    )
)

_SILENT = (Reply("too late", after=100),)
_STAYS_SILENT = "[{silence: for ever}]"
_BEGINNINGS = [
    Conversation(cli=cli, name="a silent model", argv=argv, replies=_SILENT, script=script, agent=agent, limit=12)
    for cli, argv, script, agent in (
        ("claude", (*_STREAM, "hi"), _STAYS_SILENT, ""),
        ("codex", (*_EXEC, "--json", "hi"), "[{notice: no metadata}, {silence: for ever}]", ""),
        (
            "gemini",
            (*_FLASH, "-o", "stream-json", "-p", "hi"),
            _STAYS_SILENT,
            "{dialect: gemini, mode: stream}",
        ),
        ("opencode", (*_RUN, "hi"), _STAYS_SILENT, ""),
        ("pi", (*_M1, "--mode", "json", "-p", "hi"), _STAYS_SILENT, ""),
    )
]

_REFUSED = "prompt is too long: 210000 tokens > 200000 maximum"
_SERVER_FAILS = (*[Reply(status=500, words="Internal server error")] * 2, Reply("hello"))
_NETWORK_FAILS = (*[Reply(status=-1)] * 2, Reply("hello"))
_NO_LOGIN = (Reply(status=401, words="Invalid authentication credentials"),)
_NO_RATE = (Reply(status=429, words="Rate limit exceeded"),)
_PATIENT = (
    *("-c", "model_providers.fake.stream_max_retries=5"),
    *("-c", "model_providers.fake.request_max_retries=4"),
)
_RECOVERS = "{answer: hello}"
_COMPACTS = (*_CALLS_ONCE, Reply(status=400, words=_REFUSED), Reply("A summary"), Reply("hello"))
_CALLED = f"{_HI}, {{tool_done: {{id: a, output: hi}}}}"
_PLAYS_OF_TROUBLE: tuple[tuple[str, str, tuple[Reply, ...], str, str], ...] = (
    ("claude", "retries", _SERVER_FAILS, "", _RECOVERS),
    ("claude", "network", _NETWORK_FAILS, "", _RECOVERS),
    ("claude", "overload", (Reply(status=529, words="Overloaded"),), "", ""),
    ("claude", "context_full", (*_CALLS_ONCE, Reply(status=400, words=_REFUSED)), _CALLED, ""),
    ("claude", "compaction", _COMPACTS, _CALLED, _RECOVERS),
    ("claude", "refusal", (Reply("I cannot help with that.", stop="refusal"),), "", ""),
    ("claude", "denied_tool", (Reply("", [_build_bash_call("touch ../x")]), Reply("hello")), "", _RECOVERS),
    ("codex", "retries", _SERVER_FAILS, "{notice: no metadata}", _RECOVERS),
    ("codex", "overload", (Reply(status=503, words="Overloaded"),), "{notice: no metadata}", ""),
    ("codex", "rate_limit", _NO_RATE, "{notice: no metadata}", ""),
    ("codex", "login_expired", _NO_LOGIN, "{notice: no metadata}", ""),
    ("gemini", "login_expired", _NO_LOGIN, "", ""),
    ("gemini", "context_full", (Reply(status=400, words=_REFUSED),), "", ""),
    ("gemini", "retries", _SERVER_FAILS, "", _RECOVERS),
    ("opencode", "retries", _SERVER_FAILS, "", _RECOVERS),
    ("opencode", "login_expired", _NO_LOGIN, "", ""),
    ("pi", "retries", _SERVER_FAILS, "", _RECOVERS),
    ("pi", "rate_limit", _NO_RATE, "", ""),
    ("pi", "login_expired", _NO_LOGIN, "", ""),
)
_ARGV_OF_RUNS = {
    "claude": (*_STREAM, "--allowedTools=Bash(echo *)", "hi"),
    "codex": (*_EXEC, "--json", *_PATIENT, "hi"),
    "gemini": (*_FLASH, "-o", "stream-json", "-p", "hi"),
    "opencode": (*_RUN, "hi"),
    "pi": (*_M1, "--mode", "json", "-p", "hi"),
}
_TROUBLES = [
    Conversation(
        cli=cli,
        name=f"trouble: {word}",
        argv=_ARGV_OF_RUNS[cli],
        replies=replies,
        script=f"[{', '.join(filter(None, (before, f'{{trouble: {word}}}', after)))}]",
        agent="{dialect: gemini, mode: stream}" if cli == "gemini" else "",
    )
    for cli, word, replies, before, after in _PLAYS_OF_TROUBLE
]

_KEPT_CONVERSATIONS = (
    "claude: a tool",
    "claude: an API error",
    "claude: a resumed session",
    "claude: the last session",
    "claude: a forked session",
    "claude: a session that is not kept",
    "claude: two prompts",
    "codex: a tool",
    "codex: an API error",
    "codex: a resumed session",
    "codex: the last session",
    "codex: a session that is not kept",
    "codex: app-server: a tool",
    "codex: app-server: an interrupt",
    "codex: app-server: two threads",
    "pi: a tool",
    "pi: an API error",
    "pi: a resumed session",
    "pi: the last session",
    "pi: a forked session",
    "pi: a named session",
    "pi: a session that is not kept",
    "pi: commands of a session",
)
_PRINTED = [*_CLAUDE, *_CODEX, *APP_SERVER, *_GEMINI, *_OPENCODE, *OPENCODE_SERVE, *_PI, *_BEGINNINGS, *_TROUBLES]
_SESSION_FILES = [
    replace(conversation, name=f"session file: {conversation.name}", keeps=True)
    for conversation in _PRINTED
    if conversation.id in _KEPT_CONVERSATIONS
]
CONVERSATIONS = [*_PRINTED, *_SESSION_FILES]
