"""The wire format of `opencode run --format json`, as the real CLI prints it. Knows no other dialect.

A step starts with its first event. A text is printed when it is whole, and a tool
when it has ended. A thought is printed unless the arguments do not ask for it. A step ends with its last tool, or with
the answer. An error makes the exit code 1.
"""

from __future__ import annotations

from pytest_agentproc.fake_agents.lines import Lines
from pytest_agentproc.fake_agents.objects import encode_json_line
from pytest_agentproc.fake_agents.program import find_option_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pytest_agentproc.fake_agents.contracts import EventEncoders
    from pytest_agentproc.fake_agents.program import Program

_START_UNIX_MS = 1_795_728_843_000
SESSION_ID = "ses_de6386448ffel9JXM9rQqTweNG"
STEP_TOKEN_COUNTS = {"total": 15, "input": 10, "output": 5, "reasoning": 0, "cache": {"write": 0, "read": 0}}


class Encoder:
    """Encode text as the events of steps."""

    error_is_exit = True
    error_stream = "stdout"

    def __init__(self, program: Program) -> None:
        self._lines = Lines(program)
        self._session = find_option_value(program, "-s", "--session") or SESSION_ID
        self._parts = self._messages = 0
        self._is_open = False
        self._thinks = not program.get("obeys") or "--thinking" in program.get("argv", ())
        self._tools: dict[str, tuple[dict[str, Any], int]] = {}
        self.events: EventEncoders = {
            "begin": self.encode_run_opening,
            "think": self.encode_thought,
            "tool": self.encode_tool_start,
            "tool_done": self.encode_tool_end,
            "event": self.encode_raw_event,
        }

    def encode_text(self, text: str, stop: str | None, now: int) -> bytes:
        """Give a text."""
        return self._lines.join([*self._encode_step_start(now), self._encode_text_part(text, now)])

    def encode_answer(self, text: str, now: int) -> bytes:
        """Give the last text and the step's end."""
        return self.encode_result({"text": text, "is_error": False, "usage": None}, now)

    def encode_result(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the step's end, after a text if there is one; or an error, which comes alone."""
        text = fields["text"]
        if fields["is_error"]:
            error = {"name": "UnknownError", "data": {"message": text or "error"}}
            return self._lines.join([self._encode_event_line("error", now, error=error)])
        lines = [] if text is None else [self._encode_text_part(text, now)]
        return self._lines.join(
            [*self._encode_step_start(now), *lines, self._encode_step_end("stop", now, fields["usage"])]
        )

    def encode_run_opening(self, what: str, now: int) -> bytes:
        """Give the start of the step, if it is still to come."""
        return self._lines.join(self._encode_step_start(now))

    def encode_thought(self, text: str, now: int) -> bytes:
        """Give a thought, or the start of the step alone."""
        part = {"type": "reasoning", "text": text, "time": build_time_span(now, now)}
        lines = [self._encode_message_part("reasoning", now, **part)] if self._thinks else []
        return self._lines.join([*self._encode_step_start(now), *lines])

    def encode_tool_start(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the start of the step, if it is still to come: a tool that runs is silent."""
        self._tools[fields["id"]] = (fields, now)
        return self.encode_run_opening("turn", now)

    def encode_tool_end(self, fields: dict[str, Any], now: int) -> bytes:
        """Give a tool that has ended; the last of the step ends that, too."""
        call, start = self._tools.pop(fields["id"])
        name, state = call["name"], build_tool_state(call, start, fields, now)
        event = self._encode_message_part("tool_use", now, type="tool", tool=name, callID=fields["id"], state=state)
        return self._lines.join([event, *([] if self._tools else [self._encode_step_end("tool-calls", now, None)])])

    def encode_raw_event(self, value: dict[str, Any], now: int) -> bytes:
        """Give an event as it stands."""
        return self._lines.join([encode_json_line(value)])

    def _encode_step_start(self, now: int) -> list[bytes]:
        if self._is_open:
            return []
        self._is_open = True
        self._messages += 1
        return [self._encode_message_part("step_start", now, type="step-start")]

    def _encode_text_part(self, text: str, now: int) -> bytes:
        return self._encode_message_part("text", now, type="text", text=text, time=build_time_span(now, now))

    def _encode_step_end(self, reason: str, now: int, usage: dict[str, Any] | None) -> bytes:
        self._is_open = False
        tokens = {**STEP_TOKEN_COUNTS, **(usage or {})}
        return self._encode_message_part("step_finish", now, reason=reason, type="step-finish", tokens=tokens, cost=0)

    def _encode_message_part(self, kind: str, now: int, **fields: Any) -> bytes:
        self._parts += 1
        ids = {"id": f"prt_{self._parts:026}", "messageID": f"msg_{self._messages:026}", "sessionID": self._session}
        return self._encode_event_line(kind, now, part={**ids, **fields})

    def _encode_event_line(self, kind: str, now: int, **fields: Any) -> bytes:
        return encode_json_line(
            {"type": kind, "timestamp": convert_to_unix_ms(now), "sessionID": self._session, **fields}
        )


def build_tool_state(call: dict[str, Any], start: int, fields: dict[str, Any], now: int) -> dict[str, Any]:
    """Give the state of a tool that has ended."""
    given, error, output = call["input"], fields["error"], fields["output"]
    if error is not None:
        end = {"status": "error", "input": given, "error": error}
    else:
        is_shell = call["name"] == "bash"
        about = {"output": output, "exit": 0, "truncated": False} if is_shell else {"truncated": False}
        end = {"status": "completed", "input": given, "output": output, "metadata": about}
        end["title"] = str(given.get("command", "")) if is_shell else ""
    return {**end, "time": build_time_span(start, now)}


def build_time_span(start: int, end: int) -> dict[str, int]:
    """Give the first and the last instant of a part."""
    return {"start": convert_to_unix_ms(start), "end": convert_to_unix_ms(end)}


def convert_to_unix_ms(now: int) -> int:
    """Give an instant as opencode writes it."""
    return _START_UNIX_MS + now // 1_000_000
