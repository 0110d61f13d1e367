"""The kit's own dialects, one record each: the only place that states a fact of one. Values alone; loads no half."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_agentproc.vocabulary._command_lines import (
    CLAUDE_COMMAND_LINE,
    CODEX_COMMAND_LINE,
    GEMINI_COMMAND_LINE,
    OPENCODE_COMMAND_LINE,
    PI_1_COMMAND_LINE,
    PI_COMMAND_LINE,
)
from pytest_agentproc.vocabulary._dialect import Dialect, SignalReaction, StdinReading

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


_PACKAGE_OF_ENCODERS, _PACKAGE_OF_DECODERS = (
    "pytest_agentproc.fake_agents.dialects",
    "pytest_agentproc.supervisor.dialects",
)
_PACKAGE_OF_CLAUDE = f"{_PACKAGE_OF_ENCODERS}.claude"
_CLAUDE_ENCODER_MODULES = (
    _PACKAGE_OF_CLAUDE,
    *(f"{_PACKAGE_OF_CLAUDE}.{part}" for part in ("forms", "hooks", "servers", "print_mode")),
)
_CLAUDE_SESSION_ENCODER_MODULES = (
    *_CLAUDE_ENCODER_MODULES,
    *(f"{_PACKAGE_OF_CLAUDE}.{part}" for part in ("control", "prompts", "refusals", "tasks", "turns", "session_mode")),
)
_PACKAGE_OF_SERVERS = "pytest_agentproc.fake_agents.serving"
_OPENCODE_SERVE_ENCODER_MODULES = (
    *(_PACKAGE_OF_SERVERS, f"{_PACKAGE_OF_SERVERS}.http_server", f"{_PACKAGE_OF_SERVERS}.server_session"),
    *(f"{_PACKAGE_OF_ENCODERS}.{name}" for name in ("opencode", "opencode_serve")),
)
_CLAUDE_STEP_NAMES = (
    "nested",
    "delta",
    "think",
    "tool",
    "tool_done",
    "event",
    "line",
    "task",
    "task_done",
    "background_turn",
)
_CLAUDE_AUTH_STATUS_OUTPUT = '{\n  "loggedIn": true,\n  "authMethod": "api_key",\n  "apiProvider": "firstParty"\n}'
_GEMINI_MODEL_NAME = "gemini-2.5-flash"
_GEMINI_COMMON_OPTIONS = ("-y", "--skip-trust", "-m", _GEMINI_MODEL_NAME, "-e", "", "-o")

_CLAUDE_HOOK_FIELDS = {
    "type": "system",
    "hook_id": "hook_1",
    "hook_name": "PreToolUse:Bash",
    "hook_event": "PreToolUse",
}
_CLAUDE_HOOK_OUTPUT_FIELDS = {"output": "", "stdout": "", "stderr": ""}
_CLAUDE_STATUS_FIELDS = {"type": "system", "subtype": "status"}
_CLAUDE_API_RETRY_FIELDS = {
    "attempt": 1,
    "max_retries": 10,
    "retry_delay_ms": 600,
    "error_status": 500,
    "error": "server_error",
}
_CLAUDE_READY_MADE_LINES: dict[str, dict[str, Any]] = {
    "keep_alive": {"type": "keep_alive"},
    "rate_limit": {"type": "rate_limit_event", "rate_limit_info": {"status": "allowed", "rateLimitType": "five_hour"}},
    "api_retry": {"type": "system", "subtype": "api_retry", **_CLAUDE_API_RETRY_FIELDS},
    "requesting": {**_CLAUDE_STATUS_FIELDS, "status": "requesting"},
    "compacting": {**_CLAUDE_STATUS_FIELDS, "status": "compacting", "compact_output_chars": 0},
    "compacted": {**_CLAUDE_STATUS_FIELDS, "status": None, "compact_result": "success"},
    "compact_boundary": {
        "type": "system",
        "subtype": "compact_boundary",
        "compact_metadata": {"trigger": "auto", "pre_tokens": 95294, "post_tokens": 3242},
    },
    "permission_denied": {"type": "system", "subtype": "permission_denied", "tool_name": "Bash", "message": "no"},
    "hook_started": {**_CLAUDE_HOOK_FIELDS, "subtype": "hook_started"},
    "hook_progress": {**_CLAUDE_HOOK_FIELDS, "subtype": "hook_progress", **_CLAUDE_HOOK_OUTPUT_FIELDS},
    "hook_response": {
        **_CLAUDE_HOOK_FIELDS,
        "subtype": "hook_response",
        **_CLAUDE_HOOK_OUTPUT_FIELDS,
        "exit_code": 0,
        "outcome": "success",
    },
}
"""The lines of claude beside its turns; docs/explanation/protocol-claude.md says what each of them means."""

_CLAUDE_SIGNALS = {
    "TERM": SignalReaction(143, kills_tools=True, last_words="tools"),
    "INT": SignalReaction(0, kills_tools=True, last_words="turn"),
    "HUP": SignalReaction(129, kills_tools=True, last_words="tools"),
}
"""Measured with 2.1.332. A second signal changes nothing."""
_PI_SIGNALS = {"TERM": SignalReaction(143, kills_tools=True), "HUP": SignalReaction(129, kills_tools=True)}
"""Measured with 1.6.0 and 0.73.1. It dies of INT, and its tool lives on."""
_CODEX_EXEC_SIGNALS = {"INT": SignalReaction(1, kills_tools=True)}
"""Measured with 0.171.0, the native program. It dies of TERM and HUP, and its tool lives on."""
_CODEX_APP_SERVER_SIGNALS = {"TERM": SignalReaction(0, kills_tools=True)}
"""Measured with 0.171.0, the native program. It dies of INT and HUP, and its tool lives on."""
_GEMINI_SIGNALS = dict.fromkeys(("TERM", "INT", "HUP"), SignalReaction(None))
"""Measured with 0.61.0. A signal to the launcher has no effect, and a second one neither."""
_CLAUDE_STDIN_WARNING = (
    "Warning: no stdin data received in 3s, proceeding without it. If piping from a slow command, redirect stdin "
    "explicitly: < /dev/null to skip, or wait longer."
)

_PI_0_73 = Dialect(
    name="pi",
    command="pi",
    command_line=PI_COMMAND_LINE,
    encoder=f"{_PACKAGE_OF_ENCODERS}.pi",
    encoders={"rpc": (f"{_PACKAGE_OF_ENCODERS}.pi", f"{_PACKAGE_OF_ENCODERS}.pi_rpc")},
    decoders={"json": f"{_PACKAGE_OF_DECODERS}._pi:PiDecoder"},
    session_protocols={"rpc": f"{_PACKAGE_OF_DECODERS}._pi:PiSessionProtocol"},
    options={"json": ("--mode", "json", "-p"), "rpc": ("--mode", "rpc")},
    identifying_words={"rpc": "rpc"},
    handshakes=(),
    identifying_output=r'"assistantMessageEvent":\{[^\n]*"partial":|"content":\[\],[^\n]*"stopReason":"stop"',
    probes={"--version": "0.73.1", "-v": "0.73.1"},
    tells_on_stderr=True,
    steps={
        "json": ("begin", "delta", "think", "tool", "tool_done", "event"),
        "rpc": ("delta", "think", "tool", "tool_done", "event", "ask"),
    },
    stop_reasons=("stop", "length", "toolUse", "error", "aborted"),
    signals={"json": _PI_SIGNALS, "rpc": _PI_SIGNALS},
    stdin=StdinReading(),
    begins=("json",),
)
"""The last version of the package `@mariozechner/pi-coding-agent`."""
_PI = replace(
    _PI_0_73,
    command_line=PI_1_COMMAND_LINE,
    encoder_parts=(f"{_PACKAGE_OF_ENCODERS}.pi",),
    encoder=f"{_PACKAGE_OF_ENCODERS}.pi_1",
    encoders={"rpc": tuple(f"{_PACKAGE_OF_ENCODERS}.{name}" for name in ("pi", "pi_rpc", "pi_1", "pi_1_rpc"))},
    probes={"--version": "1.6.0", "-v": "1.6.0"},
    tells_on_stderr=False,
    older=(_PI_0_73,),
    identifying_output="",
)
"""The package `@earendil-works/pi-coding-agent`."""

_ALL_DIALECTS = (
    Dialect(
        name="raw",
        encoder=f"{_PACKAGE_OF_ENCODERS}.raw",
        decoders={"text": f"{_PACKAGE_OF_DECODERS}._raw:RawDecoder"},
        nameless=("text",),
    ),
    Dialect(
        name="claude",
        command="claude",
        command_line=CLAUDE_COMMAND_LINE,
        encoder_parts=_CLAUDE_ENCODER_MODULES[:-1],
        encoder=_CLAUDE_ENCODER_MODULES[-1],
        encoders={"session": _CLAUDE_SESSION_ENCODER_MODULES},
        task_encoders={"print": (*_CLAUDE_SESSION_ENCODER_MODULES, f"{_PACKAGE_OF_CLAUDE}.background")},
        decoders={"print": f"{_PACKAGE_OF_DECODERS}._claude:ClaudePrintDecoder"},
        session_protocols={"session": f"{_PACKAGE_OF_DECODERS}._claude_session_protocol:ClaudeSessionProtocol"},
        options={
            "print": ("-p", "--output-format", "stream-json", "--verbose"),
            "session": ("--output-format", "stream-json", "--verbose", "--input-format", "stream-json"),
        },
        identifying_words={"session": "--input-format stream-json"},
        partials=("--include-partial-messages",),
        states={"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1"},
        probes={
            "--version": "2.1.332 (Claude Code)",
            "-v": "2.1.332 (Claude Code)",
            "auth status": _CLAUDE_AUTH_STATUS_OUTPUT,
            "auth status --json": _CLAUDE_AUTH_STATUS_OUTPUT,
        },
        steps={"print": ("begin", *_CLAUDE_STEP_NAMES, "request"), "session": (*_CLAUDE_STEP_NAMES, "ask", "request")},
        lines=_CLAUDE_READY_MADE_LINES,
        keys=(
            "parent",
            "more",
            "allowed_by",
            "refused",
            "hook",
            "request_fields",
            "for",
            "host_tools",
            "receipt",
            "signal",
            "continues",
            "modes",
            "http_status",
            "set_mode",
            "set_model",
        ),
        stop_reasons=("end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal"),
        subtypes=(
            *("success", "error_during_execution", "error_max_turns", "error_max_budget_usd"),
            "error_max_structured_output_retries",
        ),
        signals={"print": _CLAUDE_SIGNALS, "session": _CLAUDE_SIGNALS},
        stdin=StdinReading(patience=3.0, warning=_CLAUDE_STDIN_WARNING),
        begins=("print",),
        silence=180.0,
    ),
    _PI,
    Dialect(
        name="codex",
        command="codex",
        command_line=CODEX_COMMAND_LINE,
        encoder=f"{_PACKAGE_OF_ENCODERS}.codex",
        encoders={"app-server": (f"{_PACKAGE_OF_ENCODERS}.json_rpc", f"{_PACKAGE_OF_ENCODERS}.codex_app_server")},
        decoders={"exec": f"{_PACKAGE_OF_DECODERS}._codex:CodexDecoder"},
        session_protocols={"app-server": f"{_PACKAGE_OF_DECODERS}._codex_session_protocol:CodexSessionProtocol"},
        nameless=("exec",),
        options={"exec": ("exec", "--json", "--skip-git-repo-check"), "app-server": ("app-server",)},
        identifying_words={"app-server": "app-server"},
        probes={"--version": "codex-cli 0.171.0", "-V": "codex-cli 0.171.0"},
        steps={
            "exec": ("begin", "notice", "think", "plan", "tool", "tool_done", "event"),
            "app-server": ("delta", "think", "plan", "tool", "tool_done", "event", "ask", "request"),
        },
        keys=("offers", "continues", "set_mode", "set_model"),
        signals={"exec": _CODEX_EXEC_SIGNALS, "app-server": _CODEX_APP_SERVER_SIGNALS},
        stdin=StdinReading(
            notice="Reading additional input from stdin...",
            prompt_notice="Reading prompt from stdin...",
            resumed=False,
        ),
        begins=("exec",),
    ),
    Dialect(
        name="gemini",
        command="gemini",
        command_line=GEMINI_COMMAND_LINE,
        encoder=f"{_PACKAGE_OF_ENCODERS}.gemini",
        decoders={
            "text": f"{_PACKAGE_OF_DECODERS}._raw:RawDecoder",
            "json": f"{_PACKAGE_OF_DECODERS}._gemini:GeminiJsonDecoder",
            "stream": f"{_PACKAGE_OF_DECODERS}._gemini:GeminiStreamDecoder",
        },
        nameless=("text",),
        model=_GEMINI_MODEL_NAME,
        options={
            "text": (*_GEMINI_COMMON_OPTIONS, "text"),
            "json": (*_GEMINI_COMMON_OPTIONS, "json"),
            "stream": (*_GEMINI_COMMON_OPTIONS, "stream-json"),
        },
        identifying_words={"stream": "stream-json", "json": "json"},
        probes={"--version": "0.61.0", "-v": "0.61.0"},
        steps={"text": (), "json": (), "stream": ("begin", "delta", "tool", "tool_done", "event")},
        keys=("http_status",),
        signals=dict.fromkeys(("text", "json", "stream"), _GEMINI_SIGNALS),
        stdin=StdinReading(patience=0.5),
        begins=("stream",),
    ),
    Dialect(
        name="opencode",
        command="opencode",
        command_line=OPENCODE_COMMAND_LINE,
        encoder=f"{_PACKAGE_OF_ENCODERS}.opencode",
        encoders={"serve": _OPENCODE_SERVE_ENCODER_MODULES},
        decoders={"run": f"{_PACKAGE_OF_DECODERS}._opencode:OpencodeDecoder"},
        served=("serve",),
        nameless=("run", "serve"),
        options={"run": ("run", "--format", "json", "--thinking"), "serve": ("serve", "--port=0")},
        probes={"--version": "1.18.33", "-v": "1.18.33"},
        steps={
            "run": ("begin", "think", "tool", "tool_done", "event"),
            "serve": ("delta", "think", "tool", "tool_done", "event", "ask"),
        },
        stdin=StdinReading(),
        silence=180.0,
    ),
    Dialect(
        name="acp",
        encoder_parts=(f"{_PACKAGE_OF_ENCODERS}.json_rpc",),
        encoder=f"{_PACKAGE_OF_ENCODERS}.acp",
        session_protocols={"session": f"{_PACKAGE_OF_DECODERS}._acp:AcpSessionProtocol"},
        nameless=("session",),
        steps={"session": ("delta", "think", "plan", "tool", "tool_done", "event", "ask", "request")},
        keys=(
            "kind",
            "locations",
            "status",
            "version",
            "history",
            "modes",
            "set_mode",
            "options",
            "offers",
            "continues",
        ),
        stop_reasons=("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"),
    ),
)

DIALECTS: Mapping[str, Dialect] = {dialect.name: dialect for dialect in _ALL_DIALECTS}
"""Each by its name."""


def explain_unobeyed_options(dialect: str, options: Iterable[str]) -> list[str]:
    """Say of options that a fake was given and does not obey what its CLI would have done."""
    record = DIALECTS.get(dialect)
    table = record.command_line.unobeyed if record is not None and record.command_line is not None else ()
    return [f"{option}: the real CLI {each.real}" for option in options for each in table if each.option == option]
