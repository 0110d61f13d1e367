"""The wire format of `pi --mode json`, as PROTOCOLS has it from the real CLI. Knows no other dialect.

The header and `agent_start` come with the first event, so that a silent agent is silent.
"""

from __future__ import annotations

import _json

from fake_agents.lines import Lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fake_agents.program import Program

_NO_USAGE = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0}
_BASE_MS = 1_795_303_873_000


def _text(value: object) -> object:
    raise TypeError(f"{value!r} has no JSON form")


_encode = _json.make_encoder(None, _text, _json.encode_basestring, None, ":", ",", False, False, True)


def line(value: object) -> bytes:
    """Give one JSON line without its end."""
    return "".join(_encode(value, 0)).encode()


class Encoder:
    """Encode text as the events of `pi --mode json`."""

    result_is_exit = False

    def __init__(self, program: Program) -> None:
        self._lines = Lines(program)
        self._prompt = program.get("prompt", "")
        self._model = program.get("model", "m1")
        self._begun = False
        self._messages: list[dict[str, Any]] = []

    def say(self, text: str, stop: str | None, now: int) -> bytes:
        """Give the events of one assistant message; without a stop reason it asks for a tool."""
        return self._lines.join([*self._begin(now), *self._message(text, stop or "toolUse", now, {})])

    def answer(self, text: str, now: int) -> bytes:
        """Give the events of the last message and of the agent's end."""
        return self._lines.join([*self._begin(now), *self._message(text, "stop", now, {}), *self._end()])

    def result(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the agent's end, after a message if there is a text or an error to tell."""
        events = self._begin(now)
        more = {"usage": fields["usage"]} if fields.get("usage") else {}
        if fields["is_error"]:
            events += self._message("", "error", now, {**more, "errorMessage": fields["text"] or "error"})
        elif fields["text"] is not None or more:
            events += self._message(fields["text"] or "", "stop", now, more)
        return self._lines.join([*events, *self._end()])

    def _begin(self, now: int) -> list[bytes]:
        if self._begun:
            return []
        self._begun = True
        user = {"role": "user", "content": [{"type": "text", "text": self._prompt}], "timestamp": self._stamp(now)}
        header = {"type": "session", "version": 3, "id": "01a20073-0000-7000-8000-000000000000"}
        stamped = {**header, "timestamp": "2026-11-21T23:31:13.000Z", "cwd": "/"}
        self._messages.append(user)
        return [
            line(stamped),
            line({"type": "agent_start"}),
            line({"type": "turn_start"}),
            line({"type": "message_start", "message": user}),
            line({"type": "message_end", "message": user}),
        ]

    def _message(self, text: str, stop: str, now: int, more: dict[str, Any]) -> list[bytes]:
        content = [{"type": "text", "text": text}] if text else []
        about = {"api": "openai-completions", "provider": "fake", "model": self._model, "usage": _NO_USAGE}
        started = {"role": "assistant", "content": [], **about, "stopReason": stop, "timestamp": self._stamp(now)}
        message = {**started, "content": content, **more}
        self._messages.append(message)
        events = [line({"type": "message_start", "message": started})]
        if text:
            for kind, field in (("text_start", {}), ("text_delta", {"delta": text}), ("text_end", {"content": text})):
                event = {"type": kind, "contentIndex": 0, **field}
                events.append(line({"type": "message_update", "assistantMessageEvent": event}))
        return [*events, line({"type": "message_end", "message": message})]

    def _end(self) -> list[bytes]:
        last = self._messages[-1]
        return [
            line({"type": "turn_end", "message": last, "toolResults": []}),
            line({"type": "agent_end", "messages": self._messages}),
        ]

    def _stamp(self, now: int) -> int:
        return _BASE_MS + now // 1_000_000
