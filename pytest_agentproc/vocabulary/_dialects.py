"""The kit's own dialects, one record each: the only place that states a fact of one. Values alone; loads no half."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.vocabulary._dialect import Dialect

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DIALECTS"]

_FAKES, _SUPERVISOR = "pytest_agentproc.fake_agents.dialects", "pytest_agentproc.supervisor.dialects"
_CLAUDE = (f"{_FAKES}.claude_forms", f"{_FAKES}.claude")
_CLAUDE_SESSION = (
    *_CLAUDE,
    *(f"{_FAKES}.claude_{part}" for part in ("control", "prompts", "refusals", "tasks", "turns", "session")),
)
_CLAUDE_STEPS = ("nested", "delta", "think", "tool", "tool_done", "event", "task", "task_done", "background_turn")
_CLAUDE_LOGIN = '{\n  "loggedIn": true,\n  "authMethod": "api_key",\n  "apiProvider": "firstParty"\n}'
_GEMINI_MODEL = "gemini-2.5-flash"
_GEMINI = ("-y", "-m", _GEMINI_MODEL, "-e", "", "-o")

_RECORDS = (
    Dialect(
        name="raw",
        encoder=f"{_FAKES}.raw",
        decoders={"text": f"{_SUPERVISOR}._raw:RawDecoder"},
        nameless=("text",),
    ),
    Dialect(
        name="claude",
        command="claude",
        encoder_parts=_CLAUDE[:-1],
        encoder=_CLAUDE[-1],
        encoders={"session": _CLAUDE_SESSION},
        task_encoders={"print": (*_CLAUDE_SESSION, f"{_FAKES}.claude_behind")},
        decoders={"print": f"{_SUPERVISOR}._claude:ClaudePrintDecoder"},
        talks={"session": f"{_SUPERVISOR}._claude_talk:ClaudeTalk"},
        options={
            "print": ("-p", "--output-format", "stream-json", "--verbose"),
            "session": ("--output-format", "stream-json", "--verbose", "--input-format", "stream-json"),
        },
        told_by={"session": "--input-format stream-json"},
        partials=("--include-partial-messages",),
        states={"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1"},
        probes={
            "--version": "2.1.330 (Claude Code)",
            "-v": "2.1.330 (Claude Code)",
            "auth status": _CLAUDE_LOGIN,
        },
        steps={"print": _CLAUDE_STEPS, "session": (*_CLAUDE_STEPS, "ask")},
        keys=("parent", "more", "allowed_by", "refused", "hook", "told", "for", "receipt", "signal"),
        stop_reasons=("end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal"),
        subtypes=(
            *("success", "error_during_execution", "error_max_turns", "error_max_budget_usd"),
            "error_max_structured_output_retries",
        ),
        silence=180.0,
    ),
    Dialect(
        name="pi",
        command="pi",
        encoder=f"{_FAKES}.pi",
        encoders={"rpc": (f"{_FAKES}.pi", f"{_FAKES}.pi_rpc")},
        decoders={"json": f"{_SUPERVISOR}._pi:PiDecoder"},
        talks={"rpc": f"{_SUPERVISOR}._pi_talk:PiTalk"},
        options={"json": ("--mode", "json", "-p"), "rpc": ("--mode", "rpc")},
        told_by={"rpc": "rpc"},
        handshakes=(),
        probes={"--version": "0.73.1", "-v": "0.73.1"},
        steps={
            "json": ("begin", "delta", "think", "tool", "tool_done", "event"),
            "rpc": ("delta", "think", "tool", "tool_done", "event", "ask"),
        },
        stop_reasons=("stop", "length", "toolUse", "error", "aborted"),
    ),
    Dialect(
        name="codex",
        command="codex",
        encoder=f"{_FAKES}.codex",
        decoders={"exec": f"{_SUPERVISOR}._codex:CodexDecoder"},
        nameless=("exec",),
        options={"exec": ("exec", "--json", "--skip-git-repo-check")},
        probes={"--version": "codex-cli 0.163.0", "-V": "codex-cli 0.163.0"},
        steps={"exec": ("begin", "notice", "think", "plan", "tool", "tool_done", "event")},
    ),
    Dialect(
        name="gemini",
        command="gemini",
        encoder=f"{_FAKES}.gemini",
        decoders={
            "text": f"{_SUPERVISOR}._raw:RawDecoder",
            "json": f"{_SUPERVISOR}._gemini:GeminiJsonDecoder",
            "stream": f"{_SUPERVISOR}._gemini:GeminiStreamDecoder",
        },
        nameless=("text",),
        model=_GEMINI_MODEL,
        options={"text": (*_GEMINI, "text"), "json": (*_GEMINI, "json"), "stream": (*_GEMINI, "stream-json")},
        told_by={"stream": "stream-json", "json": "json"},
        probes={"--version": "0.61.0", "-v": "0.61.0"},
        steps={"stream": ("begin", "delta", "tool", "tool_done", "event")},
    ),
    Dialect(
        name="acp",
        encoder=f"{_FAKES}.acp",
        talks={"session": f"{_SUPERVISOR}._acp:AcpTalk"},
        nameless=("session",),
        steps={"session": ("delta", "think", "plan", "tool", "tool_done", "event", "ask", "request")},
        keys=("kind", "locations", "status", "version", "history"),
        stop_reasons=("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"),
    ),
)

DIALECTS: Mapping[str, Dialect] = {dialect.name: dialect for dialect in _RECORDS}
"""Each by its name."""
