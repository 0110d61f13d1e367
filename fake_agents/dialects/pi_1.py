"""The wire format of `pi --mode json` 1.x, where it differs from that of 0.73. Knows no other dialect.

A session begins with the message of the system. An update of a message has only what is new, and the tokens so far. A
message and a tool have a duration, and the run is settled after its end.
"""

from __future__ import annotations

from pytest_agentproc.fake_agents.dialects import pi
from pytest_agentproc.fake_agents.objects import encode_json_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pytest_agentproc.fake_agents.program import Program

_OPTIONS_OF_OLD_SESSIONS = ("--session", "--continue", "-c", "--resume", "-r", "--fork")
"""The file of such a session has the message of the system already."""
_TOOLS = {"read": "Read a file", "bash": "Run a command"}
"""Two of the four. The message is short, so that a short run is one write, as it is in the other dialects."""
_SECTION_TEXTS = {"preamble": "You are pi.", "tools": "", "rules": "", "docs": "", "cwd": "/"}
_RAW_STOP_REASONS = {"toolUse": "tool_calls"}
"""The words of the model's server that are others than those of pi."""
_ENDS = ("text_end", "thinking_end", "toolcall_end")
_ABORTED_COMMAND = "Command aborted"
_NANOSECONDS_OF_MS = 1_000_000


class Forms(pi.Encoder):
    """What both modes of pi 1.x write in another way."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        words = program.get("argv", ())
        is_named_old = any(word.partition("=")[0] in _OPTIONS_OF_OLD_SESSIONS for word in words)
        self._has_system_message = program["session"]["is_old"] if program.get("session") else is_named_old
        self._now = self._message_began = 0
        self._tools_began: dict[str, int] = {}
        self._call: dict[str, Any] = {}

    def encode_tool_start(self, fields: dict[str, Any], now: int) -> bytes:
        """Note when the tool begins, too."""
        self._tools_began[fields["id"]] = now
        return super().encode_tool_start(fields, now)

    def _encode_opening_events(self, now: int) -> list[bytes]:
        self._now = now
        return super()._encode_opening_events(now)

    def _encode_system_message(self, now: int) -> list[bytes]:
        if self._has_system_message:
            return []
        self._has_system_message = True
        sampling = {"type": "json_schema", "strict": "prefer"}
        tools = [
            {
                "name": name,
                "description": text,
                "parameters": {"type": "object"},
                "constrainedSampling": sampling,
            }
            for name, text in _TOOLS.items()
        ]
        about = {"role": "system", "content": "", "sections": _SECTION_TEXTS}
        message = {**about, "timestamp": self._make_timestamp(now), "toolsAdded": tools}
        self._messages.append(message)
        return [encode_json_line({"type": kind, "message": message}) for kind in ("message_start", "message_end")]

    def _build_message_head(self, now: int) -> dict[str, Any]:
        self._message_began = now
        return {**super()._build_message_head(now), "stopReason": "pending"}

    def _build_broken_message(self, stop: str, now: int, more: dict[str, Any]) -> dict[str, Any]:
        return {**super()._build_broken_message(stop, now, more), **self._describe_work()}

    def _build_whole_message(self, stop: str, more: dict[str, Any]) -> dict[str, Any]:
        message = super()._build_whole_message(stop, more)
        if "errorMessage" not in message:
            message["usage"] = _count_reasoning(message["usage"])
            message["rawStopReason"] = _RAW_STOP_REASONS.get(stop, stop)
        return {**message, **self._describe_work()}

    def _describe_work(self) -> dict[str, Any]:
        return {"durationMs": (self._now - self._message_began) // _NANOSECONDS_OF_MS, "thinkingLevel": "off"}

    def _encode_tool_call(self, fields: dict[str, Any]) -> list[bytes]:
        self._call = {"id": fields["id"], "toolName": fields["name"]}
        return super()._encode_tool_call(fields)

    def _encode_update(self, index: int, part: pi.PartialEvent, partial: bytes, message: bytes) -> bytes:
        kind, fields = part
        more = self._call if kind == "toolcall_start" else {}
        event = {"type": kind, "contentIndex": index, **fields, **more}
        usage = _count_reasoning(pi.ZERO_TOKEN_USAGE) if kind in _ENDS else pi.ZERO_TOKEN_USAGE
        return encode_json_line({"type": "message_update", "usage": usage, "assistantMessageEvent": event})

    def _build_tool_end(
        self, about: dict[str, Any], content: list[dict[str, Any]], fields: dict[str, Any], now: int
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        end, result = super()._build_tool_end(about, content, fields, now)
        took = (now - self._tools_began.pop(fields["id"], now)) // _NANOSECONDS_OF_MS
        if about["toolName"] in pi.TOOLS_WITH_PROGRESS and fields["error"] != _ABORTED_COMMAND:
            failed = fields["error"] is not None
            told = {"output": content[0]["text"], "truncated": False, "exit_code": int(failed)}
            told["wall_time_seconds"] = took // 1000
            end["result"] = {"content": content, "structuredContent": told, **({"isError": True} if failed else {})}
            result.pop("details", None)
        return {**end, "durationMs": took}, {**result, "durationMs": took}

    def _encode_agent_end(self) -> list[bytes]:
        end = {"type": "agent_end", "messages": self._messages, "willRetry": False}
        is_aborted = bool(self._messages) and self._messages[-1].get("stopReason") == "aborted"
        return [encode_json_line(event) for event in (end, {"type": "agent_settled", "aborted": is_aborted})]


class Encoder(Forms):
    """Encode text as the events of `pi --mode json`."""


def _count_reasoning(usage: dict[str, Any]) -> dict[str, Any]:
    """Give tokens as they are counted at a message's end."""
    return {"reasoning": 0, **usage, "cost": {**usage["cost"], "totalFromProvider": False}}
