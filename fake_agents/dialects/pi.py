"""The wire format of `pi --mode json`, as PROTOCOLS has it from the real CLI. Knows no other dialect.

The header and `agent_start` come with the first event, so that a silent agent is silent.
"""

from __future__ import annotations

from fake_agents.lines import Lines
from fake_agents.objects import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fake_agents.contracts import Events
    from fake_agents.program import Program

    Part = tuple[str, dict[str, Any]]
    Parts = tuple[Part, ...]

SESSION = "01a20073-0000-7000-8000-000000000000"
_NO_USAGE = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0}
_BASE_MS = 1_795_303_873_000


class Encoder:
    """Encode text as the events of `pi --mode json`."""

    error_is_exit = False
    error_stream = "stdout"

    def __init__(self, program: Program) -> None:
        self._lines = Lines(program)
        self._prompt = program.get("prompt", "")
        self._model = program.get("model", "m1")
        self._begun = False
        self._messages: list[dict[str, Any]] = []
        self._thoughts: list[dict[str, Any]] = []
        self._tools: dict[str, str] = {}
        self._results: list[dict[str, Any]] = []
        self.events: Events = {
            "think": self.think,
            "tool": self.tool,
            "tool_done": self.tool_done,
            "event": self.event,
        }

    def say(self, text: str, stop: str | None, now: int) -> bytes:
        """Give the events of one assistant message; without a stop reason it asks for a tool."""
        return self._lines.join([*self._begin(now), *self._message(text, stop or "toolUse", now, {})])

    def answer(self, text: str, now: int) -> bytes:
        """Give the events of the last message and of the agent's end."""
        return self._lines.join([*self._begin(now), *self._message(text, "stop", now, {}), *self._end(now)])

    def result(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the agent's end, after a message if there is a text or an error to tell."""
        events = self._begin(now)
        more = {"usage": fields["usage"]} if fields.get("usage") else {}
        if fields["is_error"]:
            events += self._message("", "error", now, {**more, "errorMessage": fields["text"] or "error"})
        elif fields["text"] is not None or more or self._thoughts:
            events += self._message(fields["text"] or "", "stop", now, more)
        return self._lines.join([*events, *self._end(now)])

    def think(self, text: str, now: int) -> bytes:
        """Give a thought, which begins the message that the next text or tool ends."""
        events = [*self._begin(now), *self._open("stop", now)]
        parts: Parts = (
            ("thinking_start", {}),
            ("thinking_delta", {"delta": text}),
            ("thinking_end", {"content": text}),
        )
        events += [_update(len(self._thoughts), part) for part in parts]
        self._thoughts.append({"type": "thinking", "thinking": text})
        return self._lines.join(events)

    def tool(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the message that asks for a tool of the agent's own, and the tool's start."""
        name, number = fields["name"], fields["id"]
        self._tools[number] = name
        call = {"type": "toolCall", "id": number, "name": name, "arguments": fields["input"]}
        delta = line(fields["input"]).decode()
        parts: Parts = (
            ("toolcall_start", {}),
            ("toolcall_delta", {"delta": delta}),
            ("toolcall_end", {"toolCall": call}),
        )
        events = [*self._begin(now), *self._close(call, parts, "toolUse", now, {})]
        start = {"type": "tool_execution_start", "toolCallId": number, "toolName": name, "args": fields["input"]}
        return self._lines.join([*events, line(start)])

    def tool_done(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the tool's end and result; after the last one that runs a new turn begins."""
        return self._lines.join([*self._begin(now), *self._tool_done(fields, now)])

    def _tool_done(self, fields: dict[str, Any], now: int) -> list[bytes]:
        number, failed = fields["id"], fields["error"] is not None
        content = [{"type": "text", "text": fields["error"] if failed else fields["output"]}]
        about = {"toolCallId": number, "toolName": self._tools.pop(number, number)}
        end = {"type": "tool_execution_end", **about, "result": {"content": content}, "isError": failed}
        result = {"role": "toolResult", **about, "content": content, "isError": failed, "timestamp": self._stamp(now)}
        asked = [message for message in self._messages if message["role"] == "assistant"][-1:]
        self._messages.append(result)
        self._results.append(result)
        told = [{"type": kind, "message": result} for kind in ("message_start", "message_end")]
        events = [line(event) for event in (end, *told)]
        if not self._tools:
            turn = {"type": "turn_end", "message": asked[0] if asked else None, "toolResults": self._results}
            events += [line(turn), line({"type": "turn_start"})]
            self._results = []
        return events

    def event(self, value: dict[str, Any], now: int) -> bytes:
        """Give an event as it stands."""
        return self._lines.join([line(value)])

    def _begin(self, now: int) -> list[bytes]:
        if self._begun:
            return []
        self._begun = True
        return [*self._head(), line({"type": "agent_start"}), line({"type": "turn_start"}), *self._asked(now)]

    def _head(self) -> list[bytes]:
        header = {"type": "session", "version": 3, "id": SESSION}
        return [line({**header, "timestamp": "2026-11-21T23:31:13.000Z", "cwd": "/"})]

    def _asked(self, now: int) -> list[bytes]:
        """Give the prompt's own message."""
        user = {"role": "user", "content": [{"type": "text", "text": self._prompt}], "timestamp": self._stamp(now)}
        self._messages.append(user)
        return [line({"type": kind, "message": user}) for kind in ("message_start", "message_end")]

    def _message(self, text: str, stop: str, now: int, more: dict[str, Any]) -> list[bytes]:
        block = {"type": "text", "text": text} if text else None
        parts: Parts = (("text_start", {}), ("text_delta", {"delta": text}), ("text_end", {"content": text}))
        return self._close(block, parts, stop, now, more)

    def _close(
        self, block: dict[str, Any] | None, parts: Parts, stop: str, now: int, more: dict[str, Any]
    ) -> list[bytes]:
        """Give a message's start, unless it was begun by a thought, its last block, and its end."""
        events = self._open(stop, now)
        index, content = len(self._thoughts), self._thoughts + ([block] if block else [])
        self._thoughts = []
        message = {**self._about(stop, now), "content": content, **more}
        self._messages.append(message)
        updates = [_update(index, part) for part in parts] if block else []
        return [*events, *updates, line({"type": "message_end", "message": message})]

    def _open(self, stop: str, now: int) -> list[bytes]:
        return [] if self._thoughts else [line({"type": "message_start", "message": self._about(stop, now)})]

    def _about(self, stop: str, now: int) -> dict[str, Any]:
        about = {"api": "openai-completions", "provider": "fake", "model": self._model, "usage": _NO_USAGE}
        return {"role": "assistant", "content": [], **about, "stopReason": stop, "timestamp": self._stamp(now)}

    def _end(self, now: int) -> list[bytes]:
        return [self._turn_end(), line({"type": "agent_end", "messages": self._messages})]

    def _turn_end(self) -> bytes:
        last = self._messages[-1] if self._messages else None
        return line({"type": "turn_end", "message": last, "toolResults": []})

    def _stamp(self, now: int) -> int:
        return _BASE_MS + now // 1_000_000


def _update(index: int, part: Part) -> bytes:
    kind, fields = part
    event = {"type": kind, "contentIndex": index, **fields}
    return line({"type": "message_update", "assistantMessageEvent": event})
