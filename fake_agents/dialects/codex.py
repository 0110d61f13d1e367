"""The wire format of `codex exec --json`, as the real CLI prints it. Knows no other dialect.

The thread and the turn start with the first event, or with a step of their own; a notice before it starts the
thread alone. A thread that is resumed keeps its id. A tool named `command_execution` runs a command, every other one is
a tool of an MCP server. A plan is an item that lives as long as the turn. A failure is printed twice, and makes the
exit code 1.
"""

from __future__ import annotations

from pytest_agentproc.fake_agents.lines import Lines
from pytest_agentproc.fake_agents.objects import encode_json_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from pytest_agentproc.fake_agents.contracts import EventEncoders
    from pytest_agentproc.fake_agents.program import Program

SESSION_ID = "01a20072-e39f-7280-8216-1a538c0445ff"
_TURN_TOKEN_USAGE = {
    "input_tokens": 10,
    "cached_input_tokens": 0,
    "cache_write_input_tokens": 0,
    "output_tokens": 5,
    "reasoning_output_tokens": 0,
}
_COMMAND_TOOL_NAME = "command_execution"


class Encoder:
    """Encode text as the events of one turn."""

    error_is_exit = True
    error_stream = "stdout"

    def __init__(self, program: Program) -> None:
        self._lines = Lines(program)
        kept = program.get("session") or {}
        self._thread = kept.get("id") or _find_resumed_thread(program.get("argv", ())) or SESSION_ID
        self._has_thread = self._has_turn = False
        self._count = 0
        self._tools: dict[str, dict[str, Any]] = {}
        self._plan: dict[str, Any] | None = None
        self.last_message = ""
        self.has_ended_turn = False
        self.events: EventEncoders = {
            "begin": self.encode_run_opening,
            "notice": self.encode_notice,
            "think": self.encode_thought,
            "plan": self.encode_plan,
            "tool": self.encode_tool_start,
            "tool_done": self.encode_tool_end,
            "event": self.encode_raw_event,
        }

    def encode_text(self, text: str, stop: str | None, now: int) -> bytes:
        """Give a message."""
        return self._encode_turn_events(self._build_item_event("completed", {"type": "agent_message", "text": text}))

    def encode_answer(self, text: str, now: int) -> bytes:
        """Give the last message and the turn's end."""
        return self.encode_result({"text": text, "is_error": False, "usage": None}, now)

    def encode_result(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the turn's end, after a message if there is a text; an error's text is in the end itself."""
        text = fields["text"]
        if fields["is_error"]:
            message = text or "error"
            error = {"type": "error", "message": message}
            return self._encode_turn_events(
                error, *self._end_open_plan(), {"type": "turn.failed", "error": {"message": message}}
            )
        item_events = (
            [] if text is None else [self._build_item_event("completed", {"type": "agent_message", "text": text})]
        )
        end = {"type": "turn.completed", "usage": {**_TURN_TOKEN_USAGE, **(fields["usage"] or {})}}
        return self._encode_turn_events(*item_events, *self._end_open_plan(), end)

    def encode_run_opening(self, what: str, now: int) -> bytes:
        """Give the start of the thread and of the turn, if they are still to come."""
        started = self._encode_opening_events()
        return self._lines.join(started) if started else b""

    def encode_notice(self, text: str, now: int) -> bytes:
        """Give an item about a problem that ends nothing; it starts the thread, and not the turn."""
        event = self._build_item_event("completed", {"type": "error", "message": text})
        return self._lines.join([*self._encode_thread_start(), encode_json_line(event)])

    def encode_thought(self, text: str, now: int) -> bytes:
        """Give a thought."""
        return self._encode_turn_events(self._build_item_event("completed", {"type": "reasoning", "text": text}))

    def encode_plan(self, entries: list[str], now: int) -> bytes:
        """Give the whole list of what is to be done; the first begins an item, which ends with the turn."""
        items = [{"text": entry, "completed": False} for entry in entries]
        if self._plan is None:
            start_event = self._build_item_event("started", {"type": "todo_list", "items": items})
            self._plan = start_event["item"]
            return self._encode_turn_events(start_event)
        self._plan = {**self._plan, "items": items}
        return self._encode_turn_events({"type": "item.updated", "item": self._plan})

    def _end_open_plan(self) -> list[dict[str, Any]]:
        plan, self._plan = self._plan, None
        return [] if plan is None else [{"type": "item.completed", "item": plan}]

    def encode_tool_start(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the start of a tool of the agent's own."""
        if fields["name"] == _COMMAND_TOOL_NAME:
            command = fields["input"].get("command", "")
            details = {"type": _COMMAND_TOOL_NAME, "command": command, "aggregated_output": "", "exit_code": None}
        else:
            about = {"server": "fake", "tool": fields["name"], "arguments": fields["input"]}
            details = {"type": "mcp_tool_call", **about, "result": None, "error": None}
        started = self._build_item_event("started", {**details, "status": "in_progress"})
        self._tools[fields["id"]] = started["item"]
        return self._encode_turn_events(started)

    def encode_tool_end(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the end of a tool."""
        item, error = self._tools.pop(fields["id"]), fields["error"]
        end: dict[str, Any]
        if item["type"] == _COMMAND_TOOL_NAME:
            end = {
                "aggregated_output": fields["output"] if error is None else error,
                "exit_code": int(error is not None),
            }
        elif error is None:
            end = {"result": {"content": [{"type": "text", "text": fields["output"]}], "structured_content": None}}
        else:
            end = {"error": {"message": error}}
        status = "completed" if error is None else "failed"
        return self._encode_turn_events({"type": "item.completed", "item": {**item, **end, "status": status}})

    def encode_raw_event(self, value: dict[str, Any], now: int) -> bytes:
        """Give an event as it stands."""
        self._has_turn = self._has_turn or value.get("type") == "turn.started"
        self._has_thread = self._has_turn or self._has_thread or value.get("type") == "thread.started"
        self._note_last_message(value)
        return self._lines.join([encode_json_line(value)])

    def _note_last_message(self, event: dict[str, Any]) -> None:
        item = event.get("item")
        self.has_ended_turn = event.get("type") == "turn.completed"
        if isinstance(item, dict) and item.get("type") == "agent_message":
            self.last_message = str(item.get("text", ""))

    def _encode_turn_events(self, *events: dict[str, Any]) -> bytes:
        for event in events:
            self._note_last_message(event)
        return self._lines.join([*self._encode_opening_events(), *(encode_json_line(event) for event in events)])

    def _encode_thread_start(self) -> list[bytes]:
        is_new, self._has_thread = not self._has_thread, True
        return [encode_json_line({"type": "thread.started", "thread_id": self._thread})] if is_new else []

    def _encode_opening_events(self) -> list[bytes]:
        opened, is_new, self._has_turn = self._encode_thread_start(), not self._has_turn, True
        return [*opened, encode_json_line({"type": "turn.started"})] if is_new else opened

    def _build_item_event(self, kind: str, item: dict[str, Any]) -> dict[str, Any]:
        number = f"item_{self._count}"
        self._count += 1
        return {"type": f"item.{kind}", "item": {"id": number, **item}}


def _find_resumed_thread(argv: Sequence[str]) -> str:
    """Give the id of the thread that the arguments resume: the first word after `resume` that is no option."""
    words = iter(argv)
    if "resume" not in words or "--last" in argv:
        return ""
    return next((word for word in words if not word.startswith("-")), "")
