"""Ready-made trouble: what each CLI prints, and how long it waits, when its model or its network fails. Values alone.

Measured with claude 2.1.332, codex 0.171.0, gemini 0.61.0, opencode 1.18.33 and pi 1.6.0 against a server that fails.
A delay has some chance in it: the numbers are those of one run. `tests/fidelity` plays the short ones with both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    ScriptSteps = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """One kind of trouble.

    Args:
        text: what happens.
        steps: by dialect, or dialect and mode, the steps of a script that say the same.
    """

    text: str
    steps: Mapping[str, ScriptSteps]


def _repeat(delays: Iterable[float], *lines: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Give the lines of each retry, in which {n} is its number and {ms} its delay, and the delay after them."""
    steps: list[Mapping[str, Any]] = []
    for number, delay in enumerate(delays, 1):
        milliseconds = round(delay * 1000)
        steps += [_fill(line, number, milliseconds) for line in lines]
        steps.append({"silence": f"{milliseconds}ms"})
    return steps


def _fill(value: Any, number: int, milliseconds: int) -> Any:
    if isinstance(value, dict):
        return {name: _fill(part, number, milliseconds) for name, part in value.items()}
    if isinstance(value, list):
        return [_fill(part, number, milliseconds) for part in value]
    if not isinstance(value, str):
        return value
    return {"{n}": number, "{ms}": milliseconds}.get(value, value.replace("{n}", str(number)))


def _api_retry(status: int | None, error: str) -> dict[str, Any]:
    return {
        "event": {
            "api_retry": {"attempt": "{n}", "retry_delay_ms": "{ms}", "error_status": status, "error": error},
        }
    }


def _fail(text: str, status: int = 0) -> dict[str, Any]:
    return {"result": {"text": text, "is_error": True, **({"http_status": status} if status else {})}}


def _reconnecting(reason: str) -> dict[str, Any]:
    return {"event": {"type": "error", "message": f"Reconnecting... {{n}}/5 ({reason})"}}


def _attempt(reason: str) -> dict[str, Any]:
    return {"raw": {"text": f"Attempt {{n}} failed{reason}\n", "to": "stderr"}}


def _pi_retries(error: str, delays: Sequence[int], *, gives_up: bool) -> list[Mapping[str, Any]]:
    usage = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0}
    own = {"api": "openai-completions", "provider": "fake", "model": "m1", "timestamp": 1_795_303_873_000}
    costs = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}
    message = {"role": "assistant", "content": [], **own, "usage": {**usage, "cost": costs}, "stopReason": "error"}
    message |= {"errorMessage": error, "durationMs": 7, "thinkingLevel": "off"}
    turn: list[Mapping[str, Any]] = [
        *({"event": {"type": f"message_{part}", "message": message}} for part in ("start", "end")),
        {"event": {"type": "turn_end", "message": message, "toolResults": []}},
    ]
    entry: dict[str, Any] = {"type": "context_edit", "id": "00000001", "parentId": "00000000", "targetId": "00000000"}
    entry |= {"timestamp": "2026-11-29T00:00:00.000Z", "replacement": None}
    again = {"type": "auto_retry_start", "attempt": "{n}", "maxAttempts": 3, "delayMs": "{ms}", "errorMessage": error}
    steps: list[Mapping[str, Any]] = [{"begin": "turn"}]
    for number, delay in enumerate(delays, 1):
        retry = [
            *turn,
            {"event": {"type": "agent_end", "messages": [message], "willRetry": True}},
            {"event": again},
            {"event": {"type": "entry_appended", "entry": entry}},
        ]
        steps += [_fill(line, number, delay * 1000) for line in retry]
        steps += [{"silence": f"{delay}s"}, {"event": {"type": "agent_start"}}, {"event": {"type": "turn_start"}}]
    if gives_up:
        end = {"type": "auto_retry_end", "success": False, "attempt": len(delays), "finalError": error}
        steps += [
            *turn,
            {"event": {"type": "agent_end", "messages": [message], "willRetry": False}},
            {"event": end},
            {"event": {"type": "agent_settled", "aborted": False}},
        ]
    return steps


_CLAUDE_DELAYS = (0.594, 1.02, 2.203, 4.705, 8.344, 19.135, 38.288, 39.273, 36.438, 37.776)
_GEMINI_STATUS = " with status {}. Retrying with backoff... _ApiError: {{}}"
_CODEX_URL = "url: https://api.openai.com/v1/responses"
_CODEX_503 = f"unexpected status 503 Service Unavailable: Overloaded, {_CODEX_URL}"
_CODEX_401 = f"unexpected status 401 Unauthorized: Invalid authentication credentials, {_CODEX_URL}"
_CLAUDE_OVERLOADED = (
    "API Error: Repeated 529 Overloaded errors. The API is at capacity — this is usually temporary. Try again in a "
    "moment."
)
_GEMINI_QUOTA = (
    "[API Error: Rate limit exceeded]\nPlease wait and try again later. To increase your limits, request a quota "
    "increase through AI Studio, or switch to another /auth method"
)
_TOO_LONG = "prompt is too long: 210000 tokens > 200000 maximum"
_DENIAL = "touch in '/x' needs approval. The path is outside the working directories for this session."
_REFUSES = "I cannot help with that."
_INFORMED = {"type": "system", "subtype": "informational"}
_STOPPED = "Your response above was stopped by a safety classifier — this is not a tool or API error."
_TOLD_OF_REFUSAL = {
    "type": "user",
    "message": {"role": "user", "content": [{"type": "text", "text": _STOPPED}]},
    "parent_tool_use_id": None,
}
_OPENCODE_TOOL = {"filePath": "/etc/hostname"}

TROUBLES: Mapping[str, Trouble] = {
    "retries": Trouble(
        text="the server fails twice with 500; the CLI tries again, and the script goes on",
        steps={
            "claude": _repeat((0.58, 1.176), _api_retry(500, "server_error")),
            "codex exec": [{"silence": "600ms"}],
            "gemini": _repeat((5.3, 10.1), _attempt(_GEMINI_STATUS.format(500))),
            "opencode": [{"silence": "7200ms"}],
            "pi": _pi_retries("500: Internal server error", (2, 4), gives_up=False),
        },
    ),
    "network": Trouble(
        text="the network is away for two requests and comes back; the script goes on",
        steps={
            "claude": _repeat((0.548, 1.241), _api_retry(None, "unknown")),
            "codex exec": [{"silence": "600ms"}],
            "gemini": _repeat(
                (4, 7.7),
                _attempt(". Retrying with backoff... Error: exception TypeError: fetch failed sending request"),
            ),
            "pi": _pi_retries("Connection error.", (2, 4), gives_up=False),
        },
    ),
    "overload": Trouble(
        text="the model is overloaded until the CLI gives up; opencode never does",
        steps={
            "claude": [
                *_repeat((0.52, 1.029), _api_retry(529, "overloaded")),
                _fail(_CLAUDE_OVERLOADED, 529),
            ],
            "codex exec": [
                {"silence": "3200ms"},
                *_repeat((3.1, 3.3, 3.9, 4.7, 6.3), _reconnecting(_CODEX_503)),
                _fail(_CODEX_503),
            ],
            "gemini": [
                *_repeat(
                    (6.5, 12.7, 20.8, 26.1, 30.9, 36.6, 25.5, 21.3, 29.8),
                    _attempt(_GEMINI_STATUS.format(503)),
                ),
                {"raw": {"text": "Attempt 10 failed: Overloaded. Max attempts reached\n", "to": "stderr"}},
                _fail("[API Error: Overloaded]", 503),
            ],
            "opencode": [{"silence": "for ever"}],
            "pi": _pi_retries("503: Overloaded", (2, 4, 8), gives_up=True),
        },
    ),
    "rate_limit": Trouble(
        text="each request is refused with 429 until the CLI gives up; opencode never does",
        steps={
            "claude": [
                *_repeat(_CLAUDE_DELAYS, _api_retry(429, "rate_limit")),
                _fail("API Error: Request rejected (429) · Rate limit exceeded", 429),
            ],
            "codex exec": [_fail("exceeded retry limit, last status: 429 Too Many Requests")],
            "gemini": [
                *_repeat(
                    (5, 10.5, 14.5, 32.2, 33, 32.1, 34.5, 23.1, 37.4),
                    _attempt(_GEMINI_STATUS.format(429)),
                ),
                {"raw": {"text": "Attempt 10 failed: Rate limit exceeded. Max attempts reached\n", "to": "stderr"}},
                _fail(_GEMINI_QUOTA, 429),
            ],
            "opencode": [{"silence": "for ever"}],
            "pi": _pi_retries("429: Rate limit exceeded", (2, 4, 8), gives_up=True),
        },
    ),
    "login_expired": Trouble(
        text="the login has expired: each request is refused with 401 until the CLI gives up",
        steps={
            "claude": [
                *_repeat(_CLAUDE_DELAYS, _api_retry(401, "authentication_failed")),
                _fail("Failed to authenticate. API Error: 401 Invalid authentication credentials", 401),
            ],
            "codex exec": [
                {"begin": "turn"},
                *_repeat((0.3, 0.4, 0.8, 1.6, 3), _reconnecting(_CODEX_401)),
                _fail(_CODEX_401),
            ],
            "gemini": [_fail("[API Error: Invalid authentication credentials]", 401)],
            "opencode": [_fail("Invalid authentication credentials")],
            "pi": [_fail("401: Invalid authentication credentials")],
        },
    ),
    "compaction": Trouble(
        text="the context is full; claude makes a summary of it, and the script goes on",
        steps={"claude": [{"event": name} for name in ("compacting", "compacted", "compact_boundary")]},
    ),
    "context_full": Trouble(
        text="the context is full, and the CLI cannot make it smaller",
        steps={
            "claude": [
                {"event": "compacting"},
                {"event": {"compacted": {"compact_result": "failed", "compact_error": "exhausted"}}},
                _fail("Prompt is too long"),
            ],
            "gemini": [_fail(f"[API Error: {_TOO_LONG}]")],
            "pi": [_fail(f"400: {_TOO_LONG}")],
        },
    ),
    "refusal": Trouble(
        text="the model refuses; claude asks it once more and fails, the others print what it says",
        steps={
            "claude": [
                {"say": {"text": _REFUSES, "stop": "refusal"}},
                {"event": {**_INFORMED, "content": "The safeguards stopped the response above", "level": "notice"}},
                {"event": {**_TOLD_OF_REFUSAL, "isSynthetic": True, "refusal_retry": True}},
                {"say": {"text": _REFUSES, "stop": "refusal"}},
                {"event": {"type": "system", "subtype": "model_refusal_no_fallback", "content": ""}},
                _fail("API Error: The safeguards flagged this message (https://www.anthropic.com/legal/aup)."),
            ],
            **{agent: [{"answer": _REFUSES}] for agent in ("codex exec", "gemini", "opencode", "pi")},
        },
    ),
    "denied_tool": Trouble(
        text="a tool needs a permission, and there is no host that could be asked; the script goes on",
        steps={
            "claude": [
                {
                    "tool": {
                        "id": "denied",
                        "name": "Bash",
                        "input": {"command": "touch ../x", "description": "Touch a file"},
                    }
                },
                {"event": {"permission_denied": {"tool_use_id": "denied", "message": _DENIAL}}},
                {"tool_done": {"id": "denied", "error": _DENIAL}},
            ],
            "opencode": [
                {"tool": {"id": "denied", "name": "read", "input": _OPENCODE_TOOL}},
                {
                    "tool_done": {
                        "id": "denied",
                        "error": "The user rejected permission to use this specific tool call.",
                    }
                },
                {"exit": 0},
            ],
        },
    ),
}
"""Each by its word."""
