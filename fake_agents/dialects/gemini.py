"""The wire formats of `gemini -o text`, `json` and `stream-json`, as the real CLI prints them. Knows no other dialect.

Text is plain lines. Json is silent until its one object, which is printed over many lines; an error's goes to stderr,
as in text. The stream begins with init and the user's message, which come with the first event, or with
a step of their own.
"""

from __future__ import annotations

from pytest_agentproc.fake_agents.lines import Lines
from pytest_agentproc.fake_agents.objects import encode_indented_json, encode_json_line, encode_timestamp
from pytest_agentproc.fake_agents.program import find_option_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pytest_agentproc.fake_agents.contracts import Encoder as AnyEncoder
    from pytest_agentproc.fake_agents.contracts import EventEncoders
    from pytest_agentproc.fake_agents.program import Program

_START_UNIX_MS = 1_795_304_218_000
SESSION_ID = "60a8170f-4808-45da-8069-f11b9c1cba29"
_DEFAULT_MODEL_NAME = "gemini-2.5-flash"
_ZERO_TOKEN_COUNTS = {"total_tokens": 0, "input_tokens": 0, "output_tokens": 0, "cached": 0, "input": 0}
_ZERO_TOKENS_BY_PART = {"input": 0, "prompt": 0, "candidates": 0, "total": 0, "cached": 0, "thoughts": 0, "tool": 0}
_ZERO_CALL_COUNTS = {"totalCalls": 0, "totalSuccess": 0, "totalFail": 0, "totalDurationMs": 0}
_ZERO_DECISION_COUNTS = {"accept": 0, "reject": 0, "modify": 0, "auto_accept": 0}
_SINGLE_REQUEST_COUNTS = {"totalRequests": 1, "totalErrors": 0, "totalLatencyMs": 0}


def Encoder(program: Program) -> AnyEncoder:  # noqa: N802  # what every dialect's module calls its encoder
    """Give the encoder of the program's mode."""
    return _ENCODERS_BY_MODE[program["mode"]](program)


class _TextEncoder:
    """Encode text as plain lines; an error is printed on stderr, and its HTTP status makes the exit code."""

    error_is_exit = True
    error_status = 400
    error_stream = "stderr"

    def __init__(self, program: Program) -> None:
        self._lines = Lines(program)
        self.events: EventEncoders = {}

    def encode_text(self, text: str, stop: str | None, now: int) -> bytes:
        """Give the bytes of a piece of text."""
        return self._lines.join([text.encode()])

    def encode_answer(self, text: str, now: int) -> bytes:
        """Give the bytes of the final text; the exit completes it."""
        return self.encode_text(text, None, now)

    def encode_result(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the bytes of a completion: its text or its error, since the exit says the rest."""
        if fields["is_error"]:
            return (fields["text"] or "error").encode() + b"\n"
        return b"" if fields["text"] is None else self.encode_text(fields["text"], None, now)


class _JsonEncoder:
    """Encode everything as one object at the end; until then the text is kept."""

    error_is_exit = True
    error_status = 400
    error_stream = "stderr"

    def __init__(self, program: Program) -> None:
        self._lines = Lines(program)
        self._model = program.get("model") or find_option_value(program, "-m", "--model") or _DEFAULT_MODEL_NAME
        self._said = ""
        self.events: EventEncoders = {}

    def encode_text(self, text: str, stop: str | None, now: int) -> bytes:
        """Keep the text for the object."""
        self._said += text
        return b""

    def encode_answer(self, text: str, now: int) -> bytes:
        """Give the object; its response is all that was said."""
        return self.encode_result({"text": text, "is_error": False, "usage": None}, now)

    def encode_result(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the object: with a response, or with an error."""
        if fields["is_error"]:
            error = {"type": "Error", "message": fields["text"] or "error", "code": 1}
            return encode_indented_json({"session_id": SESSION_ID, "error": error}).encode() + b"\n"
        response = self._said + (fields["text"] or "")
        stats = {**self._build_stats(now // 1_000_000), **(fields["usage"] or {})}
        encoded = encode_indented_json({"session_id": SESSION_ID, "response": response, "stats": stats})
        return self._lines.join(encoded.encode().split(b"\n"))

    def _build_stats(self, duration: int) -> dict[str, Any]:
        api = {**_SINGLE_REQUEST_COUNTS, "totalLatencyMs": duration}
        roles = {"main": {**api, "tokens": _ZERO_TOKENS_BY_PART}}
        model = {"api": {**api, "errorsByType": {}}, "tokens": _ZERO_TOKENS_BY_PART, "roles": roles}
        tools = {**_ZERO_CALL_COUNTS, "totalDecisions": _ZERO_DECISION_COUNTS, "byName": {}}
        return {
            "models": {self._model: model},
            "tools": tools,
            "files": {"totalLinesAdded": 0, "totalLinesRemoved": 0},
        }


class _StreamJsonEncoder:
    """Encode text as the events of `-o stream-json`."""

    error_is_exit = True
    error_status = 400
    error_stream = "stdout"

    def __init__(self, program: Program) -> None:
        self._lines = Lines(program)
        self._prompt = program.get("prompt", "")
        self._model = program.get("model") or find_option_value(program, "-m", "--model") or _DEFAULT_MODEL_NAME
        self._begun = False
        self._tools = 0
        self.events: EventEncoders = {
            "begin": self.encode_run_opening,
            "delta": self.encode_text_delta,
            "tool": self.encode_tool_start,
            "tool_done": self.encode_tool_end,
            "event": self.encode_raw_event,
        }

    def encode_run_opening(self, what: str, now: int) -> bytes:
        """Give init and the user's message, if they are still to come."""
        opening = self._encode_opening_events(now)
        return self._lines.join(opening) if opening else b""

    def encode_text_delta(self, text: str, now: int) -> bytes:
        """Give a delta of the assistant's message, whose end nothing marks."""
        return self.encode_text(text, None, now)

    def encode_text(self, text: str, stop: str | None, now: int) -> bytes:
        """Give a delta of the assistant's message."""
        return self._lines.join([*self._encode_opening_events(now), self._encode_text_message(text, now)])

    def encode_answer(self, text: str, now: int) -> bytes:
        """Give a delta and the result."""
        return self.encode_result({"text": text, "is_error": False, "usage": None}, now)

    def encode_result(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the result, after a delta if there is a text; an error's text is in the result itself."""
        events = self._encode_opening_events(now)
        end: dict[str, Any] = {"status": "error" if fields["is_error"] else "success"}
        if fields["is_error"]:
            end["error"] = {"type": "unknown", "message": fields["text"] or "error"}
        elif fields["text"] is not None:
            events.append(self._encode_text_message(fields["text"], now))
        stats: dict[str, Any] = {**_ZERO_TOKEN_COUNTS, "duration_ms": now // 1_000_000, "tool_calls": self._tools}
        stats["models"] = {self._model: _ZERO_TOKEN_COUNTS}
        end["stats"] = {**stats, **(fields["usage"] or {})}
        return self._lines.join([*events, self._encode_timed_event("result", now, end)])

    def encode_tool_start(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the start of a tool of the agent's own."""
        self._tools += 1
        details = {"tool_name": fields["name"], "tool_id": fields["id"], "parameters": fields["input"]}
        return self._lines.join([*self._encode_opening_events(now), self._encode_timed_event("tool_use", now, details)])

    def encode_tool_end(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the end of a tool."""
        details = {"tool_id": fields["id"], "status": "success", "output": fields["output"]}
        if fields["error"] is not None:
            details |= {"status": "error", "error": {"type": "unknown", "message": fields["error"]}}
        return self._lines.join(
            [*self._encode_opening_events(now), self._encode_timed_event("tool_result", now, details)]
        )

    def encode_raw_event(self, value: dict[str, Any], now: int) -> bytes:
        """Give an event as it stands."""
        self._begun = self._begun or value.get("type") == "init"
        return self._lines.join([encode_json_line(value)])

    def _encode_opening_events(self, now: int) -> list[bytes]:
        if self._begun:
            return []
        self._begun = True
        return [
            self._encode_timed_event("init", now, {"session_id": SESSION_ID, "model": self._model}),
            self._encode_timed_event("message", now, {"role": "user", "content": self._prompt}),
        ]

    def _encode_text_message(self, text: str, now: int) -> bytes:
        return self._encode_timed_event("message", now, {"role": "assistant", "content": text, "delta": True})

    def _encode_timed_event(self, kind: str, now: int, fields: dict[str, Any]) -> bytes:
        return encode_json_line(
            {"type": kind, "timestamp": encode_timestamp(_START_UNIX_MS + now // 1_000_000), **fields}
        )


_ENCODERS_BY_MODE: dict[str, type[_TextEncoder | _JsonEncoder | _StreamJsonEncoder]] = {
    "text": _TextEncoder,
    "json": _JsonEncoder,
    "stream": _StreamJsonEncoder,
}
