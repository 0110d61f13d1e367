"""The wire format of `pi --mode json` 0.73; docs/explanation/protocol-pi.md describes it. Knows no other dialect.

`pi_1` has what pi 1.x writes in another way.

The header and `agent_start` come with the first event, or with a step of their own. Every update of a message has the
message so far, twice: as it was then, and as it is when the update is printed. The two differ where the model asks for
a tool, which comes in one piece.
"""

from __future__ import annotations

from pytest_agentproc.fake_agents.lines import Lines
from pytest_agentproc.fake_agents.objects import encode_json_line, encode_spaced_json, encode_timestamp
from pytest_agentproc.fake_agents.program import find_option_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pytest_agentproc.fake_agents.contracts import EventEncoders
    from pytest_agentproc.fake_agents.program import Program

    PartialEvent = tuple[str, dict[str, Any]]
    PartialEvents = tuple[PartialEvent, ...]

SESSION_ID = "01a20073-0000-7000-8000-000000000000"
_ZERO_COSTS = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}
ZERO_TOKEN_USAGE = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0, "cost": _ZERO_COSTS}
START_UNIX_MS = 1_795_303_873_000
_RESPONSE_ID, _SERVED_MODEL_NAME = "c1", "m"
"""What the model's server calls its response, and the model; the latter it tells last."""
TOOLS_WITH_PROGRESS = ("bash",)
"""The tools that tell what they have so far."""


class Encoder:
    """Encode text as the events of `pi --mode json`."""

    error_is_exit = False
    error_stream = "stdout"

    def __init__(self, program: Program) -> None:
        self._lines = Lines(program)
        named = find_option_value(program, "--session-id")
        head = {"id": named} if named else {}
        kept = program.get("session") or {"head": head, "path": ""}
        self._kept: dict[str, Any] = kept["head"]
        self._session_file: str = kept["path"]
        self._prompt = program.get("prompt", "")
        self._provider = find_option_value(program, "--provider") or "fake"
        self._model = program.get("model") or find_option_value(program, "--model") or "m1"
        self._begun = False
        self._messages: list[dict[str, Any]] = []
        self._open: dict[str, Any] | None = None
        """The message that streams: as it began."""
        self._blocks: list[dict[str, Any]] = []
        """Its content so far, without the text that is in pieces still."""
        self._said: str | None = None
        """The pieces of that text."""
        self._tools: dict[str, str] = {}
        self._results: list[dict[str, Any]] = []
        self.events: EventEncoders = {
            "begin": self.encode_run_opening,
            "delta": self.encode_text_delta,
            "think": self.encode_thought,
            "tool": self.encode_tool_start,
            "tool_done": self.encode_tool_end,
            "event": self.encode_raw_event,
        }

    def encode_run_opening(self, what: str, now: int) -> bytes:
        """Give the header, the agent's start and the prompt's message, if they are still to come."""
        opening = self._encode_opening_events(now)
        return self._lines.join(opening) if opening else b""

    def encode_text(self, text: str, stop: str | None, now: int) -> bytes:
        """Give the events of one assistant message; without a stop reason it asks for a tool."""
        return self._lines.join(
            [*self._encode_opening_events(now), *self._encode_assistant_message(text, stop or "toolUse", now, {})]
        )

    def encode_answer(self, text: str, now: int) -> bytes:
        """Give the events of the last message and of the agent's end."""
        return self._lines.join(
            [
                *self._encode_opening_events(now),
                *self._encode_assistant_message(text, "stop", now, {}),
                *self._end_agent_run(now),
            ]
        )

    def encode_result(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the agent's end, after a message if there is a text or an error to tell."""
        events = self._encode_opening_events(now)
        more = {"usage": {**ZERO_TOKEN_USAGE, **fields["usage"]}} if fields.get("usage") else {}
        if fields["is_error"]:
            events += self._encode_assistant_message(
                "", "error", now, {**more, "errorMessage": fields["text"] or "error"}
            )
        elif fields["text"] is not None or more or self._open:
            events += self._encode_assistant_message(fields["text"] or "", "stop", now, more)
        return self._lines.join([*events, *self._end_agent_run(now)])

    def encode_text_delta(self, text: str, now: int) -> bytes:
        """Give a piece of the text that the next message ends."""
        return self._lines.join([*self._encode_opening_events(now), *self._encode_text_piece(text, now)])

    def encode_thought(self, text: str, now: int) -> bytes:
        """Give a thought, which begins the message that the next text or tool ends."""
        events = [*self._encode_opening_events(now), *self._encode_message_start(now), *self._end_open_text()]
        index = len(self._blocks)
        self._blocks.append({"type": "thinking", "thinking": text})
        partial = encode_json_line(self._build_partial_message())
        parts: PartialEvents = (
            ("thinking_start", {}),
            ("thinking_delta", {"delta": text}),
            ("thinking_end", {"content": text}),
        )
        return self._lines.join([*events, *(self._encode_update(index, part, partial, partial) for part in parts)])

    def encode_tool_start(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the message that asks for a tool of the agent's own, and the tool's start."""
        name, number = fields["name"], fields["id"]
        self._tools[number] = name
        events = [*self._encode_opening_events(now), *self._encode_message_start(now), *self._encode_tool_call(fields)]
        about = {"toolCallId": number, "toolName": name, "args": fields["input"]}
        events.append(encode_json_line({"type": "tool_execution_start", **about}))
        if name in TOOLS_WITH_PROGRESS:
            events.append(
                encode_json_line({"type": "tool_execution_update", **about, "partialResult": {"content": []}})
            )
        return self._lines.join(events)

    def _encode_tool_call(self, fields: dict[str, Any]) -> list[bytes]:
        """Give the call of a tool, which comes in one piece, and the message's end.

        As it is printed, `partial` is ahead of `message`: it is what the message has become by then. A text before it
        ends only as the message does.
        """
        text, self._said = self._said, None
        self._blocks += [] if text is None else [_build_text_part(text)]
        index, args = len(self._blocks), encode_spaced_json(fields["input"])
        call = {"type": "toolCall", "id": fields["id"], "name": fields["name"], "arguments": fields["input"]}
        blocks = [*self._blocks, {**call, "partialArgs": args, "streamIndex": 0}]
        self._blocks.append(call)
        whole = encode_json_line(self._build_whole_message("toolUse", {}))
        ahead, behind = (
            self._build_partial_message("toolUse", blocks),
            encode_json_line(self._build_partial_message("stop", blocks)),
        )
        events = [
            self._encode_update(index, ("toolcall_start", {}), encode_json_line(ahead), behind),
            self._encode_update(
                index,
                ("toolcall_delta", {"delta": args}),
                encode_json_line({**ahead, "responseModel": _SERVED_MODEL_NAME}),
                encode_json_line(ahead),
            ),
            self._encode_update(index, ("toolcall_end", {"toolCall": call}), whole, whole),
        ]
        if text is not None:
            events.insert(2, self._encode_update(index - 1, ("text_end", {"content": text}), whole, whole))
        return [*events, *self._encode_message_end("toolUse", {})]

    def encode_tool_end(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the tool's end and result; after the last one that runs a new turn begins."""
        return self._lines.join([*self._encode_opening_events(now), *self._end_running_tool(fields, now)])

    def _end_running_tool(self, fields: dict[str, Any], now: int) -> list[bytes]:
        number, failed = fields["id"], fields["error"] is not None
        content = [{"type": "text", "text": fields["error"] if failed else fields["output"]}]
        about = {"toolCallId": number, "toolName": self._tools.pop(number, number)}
        end, result = self._build_tool_end(about, content, fields, now)
        result["timestamp"] = self._make_timestamp(now)
        asked = [message for message in self._messages if message["role"] == "assistant"][-1:]
        self._messages.append(result)
        self._results.append(result)
        lines = [{"type": kind, "message": result} for kind in ("message_start", "message_end")]
        events = [encode_json_line(event) for event in (end, *lines)]
        if not failed and fields["output"] and about["toolName"] in TOOLS_WITH_PROGRESS:
            events.insert(0, self._encode_tool_progress(about, content, asked))
        if not self._tools:
            turn = {"type": "turn_end", "message": asked[0] if asked else None, "toolResults": self._results}
            events += [encode_json_line(turn), encode_json_line({"type": "turn_start"})]
            self._results = []
        return events

    def _build_tool_end(
        self, about: dict[str, Any], content: list[dict[str, Any]], fields: dict[str, Any], now: int
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Give the end of a tool, and the message with its result."""
        failed = fields["error"] is not None
        details: dict[str, Any] = {"details": {}} if failed else {}
        end = {"type": "tool_execution_end", **about, "result": {"content": content, **details}, "isError": failed}
        return end, {"role": "toolResult", **about, "content": content, **details, "isError": failed}

    def _encode_tool_progress(
        self, about: dict[str, Any], content: list[dict[str, Any]], asked: list[dict[str, Any]]
    ) -> bytes:
        calls = asked[0]["content"] if asked else []
        args: dict[str, Any] = next((call["arguments"] for call in calls if call.get("id") == about["toolCallId"]), {})
        partial = {"content": content, "details": {}}
        return encode_json_line({"type": "tool_execution_update", **about, "args": args, "partialResult": partial})

    def encode_raw_event(self, value: dict[str, Any], now: int) -> bytes:
        """Give an event as it stands."""
        self._begun = self._begun or value.get("type") == "turn_start"
        return self._lines.join([encode_json_line(value)])

    def _encode_opening_events(self, now: int) -> list[bytes]:
        if self._begun:
            return []
        self._begun = True
        return [
            *self._encode_session_header(),
            encode_json_line({"type": "agent_start"}),
            encode_json_line({"type": "turn_start"}),
            *self._encode_system_message(now),
            *self._encode_prompt_message(now),
        ]

    def _encode_system_message(self, now: int) -> list[bytes]:
        return []

    def _encode_session_header(self) -> list[bytes]:
        header = {"type": "session", "version": 3, "id": SESSION_ID}
        header |= {"timestamp": encode_timestamp(START_UNIX_MS), "cwd": "/", **self._kept}
        return [encode_json_line(header)]

    def _encode_prompt_message(self, now: int) -> list[bytes]:
        """Give the prompt's own message."""
        user = {
            "role": "user",
            "content": [{"type": "text", "text": self._prompt}],
            "timestamp": self._make_timestamp(now),
        }
        self._messages.append(user)
        return [encode_json_line({"type": kind, "message": user}) for kind in ("message_start", "message_end")]

    def _encode_assistant_message(self, text: str, stop: str, now: int, more: dict[str, Any]) -> list[bytes]:
        """Give a message, or what is still to come of the one that streams; an error begins as what it is."""
        if "errorMessage" in more and self._open is None:
            self._open = self._build_broken_message(stop, now, more)
            return [
                encode_json_line({"type": "message_start", "message": self._open}),
                *self._encode_message_end(stop, {}),
            ]
        events = self._encode_message_start(now)
        if text:
            events += self._encode_text_piece(text, now)
        return [*events, *self._end_open_text(stop, more), *self._encode_message_end(stop, more)]

    def _encode_message_start(self, now: int) -> list[bytes]:
        """Begin a message, unless one streams."""
        if self._open is not None:
            return []
        self._open = self._build_message_head(now)
        return [encode_json_line({"type": "message_start", "message": self._open})]

    def _encode_text_piece(self, text: str, now: int) -> list[bytes]:
        """Give a piece of text; what came so far goes with it."""
        events, is_first = self._encode_message_start(now), self._said is None
        self._said = (self._said or "") + text
        index, partial = (
            len(self._blocks),
            encode_json_line(self._build_partial_message("stop", [*self._blocks, _build_text_part(self._said)])),
        )
        parts: PartialEvents = (("text_start", {}), ("text_delta", {"delta": text}))
        return [*events, *(self._encode_update(index, part, partial, partial) for part in parts[not is_first :])]

    def _end_open_text(self, stop: str = "", more: dict[str, Any] | None = None) -> list[bytes]:
        """End the text that is in pieces, if one is; with a stop reason the message ends there, too."""
        if self._said is None:
            return []
        text, index, self._said = self._said, len(self._blocks), None
        self._blocks.append(_build_text_part(text))
        state = encode_json_line(self._build_whole_message(stop, more or {}) if stop else self._build_partial_message())
        return [self._encode_update(index, ("text_end", {"content": text}), state, state)]

    def _encode_message_end(self, stop: str, more: dict[str, Any]) -> list[bytes]:
        """Give the message's end."""
        message = self._build_whole_message(stop, more)
        self._open, self._blocks = None, []
        self._messages.append(message)
        return [encode_json_line({"type": "message_end", "message": message})]

    def _build_message_head(self, now: int) -> dict[str, Any]:
        about = {
            "api": "openai-completions",
            "provider": self._provider,
            "model": self._model,
            "usage": ZERO_TOKEN_USAGE,
        }
        return {
            "role": "assistant",
            "content": [],
            **about,
            "stopReason": "stop",
            "timestamp": self._make_timestamp(now),
        }

    def _build_broken_message(self, stop: str, now: int, more: dict[str, Any]) -> dict[str, Any]:
        """Give a message that begins as the error that it is."""
        return {**self._build_message_head(now), **more, "stopReason": stop}

    def _build_partial_message(self, stop: str = "stop", content: list[dict[str, Any]] | None = None) -> dict[str, Any]:
        """Give the message as far as it has come."""
        content = self._blocks if content is None else content
        return {**(self._open or {}), "content": content, "stopReason": stop, "responseId": _RESPONSE_ID}

    def _build_whole_message(self, stop: str, more: dict[str, Any]) -> dict[str, Any]:
        """Give the message as it ends; a server that gave no content told nothing of itself."""
        message = {**(self._open or {}), "content": self._blocks, "stopReason": stop}
        is_broken = "errorMessage" in message or "errorMessage" in more
        if self._blocks or not is_broken:
            message["responseId"] = _RESPONSE_ID
        if not is_broken:
            message["responseModel"] = _SERVED_MODEL_NAME
        return {**message, **more}

    def _end_agent_run(self, now: int) -> list[bytes]:
        return [self._encode_turn_end(), *self._encode_agent_end()]

    def _encode_agent_end(self) -> list[bytes]:
        return [encode_json_line({"type": "agent_end", "messages": self._messages})]

    def _encode_turn_end(self) -> bytes:
        last = self._messages[-1] if self._messages else None
        return encode_json_line({"type": "turn_end", "message": last, "toolResults": []})

    def _encode_update(self, index: int, part: PartialEvent, partial: bytes, message: bytes) -> bytes:
        """Give an update of a message; both of its states are lines already, since a text may be long."""
        kind, fields = part
        event = encode_json_line({"type": kind, "contentIndex": index, **fields})[:-1]
        head = b'{"type":"message_update","assistantMessageEvent":' + event
        return head + b',"partial":' + partial + b'},"message":' + message + b"}"

    def _make_timestamp(self, now: int) -> int:
        return START_UNIX_MS + now // 1_000_000


def _build_text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
