"""What a CLI prints without its events: the last text, the last line of the events, or a list. Knows no dialect.

It stands after a dialect's own encoder, which makes the events: nothing of them is printed before the end.
"""

from __future__ import annotations

from pytest_agentproc.fake_agents.dialects import make_encoder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pytest_agentproc.fake_agents.contracts import EventEncoders, ToolCallingEncoder, TurnLimitEncoder
    from pytest_agentproc.fake_agents.program import Program


class Encoder:
    """Keep everything until the end; `final` of the program says in which form it is printed.

    An error makes the exit code 1.
    """

    error_is_exit = True

    def __init__(self, program: Program) -> None:
        self._form, self.error_stream, self._error = program["final"]
        self._events: ToolCallingEncoder = make_encoder({**program, "encoder": program["encoder"][:-1]})  # type: ignore[assignment]
        self._said = self._piece = ""
        self._all: list[bytes] = []
        self.events: EventEncoders = {
            name: self._make_silent_encoder(made) for name, made in self._events.events.items()
        }
        if "delta" in self.events:
            self.events = {**self.events, "delta": self._keep_text_delta}

    def encode_text(self, text: str, stop: str | None, now: int) -> bytes:
        """Keep the text: it may be the last one."""
        self._all.append(self._events.encode_text(text, stop, now))
        self._said, self._piece = self._piece + text, ""
        return b""

    def encode_answer(self, text: str, now: int) -> bytes:
        """Give the text, or the last line of the events."""
        return self._encode_final_output(self._events.encode_answer(text, now), text)

    def encode_result(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the text or the error, or the last line of the events."""
        encoded, text = self._events.encode_result(fields, now), fields["text"]
        if fields["is_error"]:
            return self._encode_final_output(encoded, self._error.replace("{text}", text or "error"))
        return self._encode_final_output(encoded, (self._said + self._piece) if text is None else text)

    @property
    def has_ended_turn(self) -> bool:
        """Whether the events have ended the turn."""
        return self._events.has_ended_turn  # type: ignore[attr-defined,no-any-return]

    @property
    def last_message(self) -> str:
        """The last message of the events."""
        return self._events.last_message  # type: ignore[attr-defined,no-any-return]

    @property
    def has_reached_turn_limit(self) -> bool:
        """Whether the events must end, as the model was asked often enough."""
        return getattr(self._events, "has_reached_turn_limit", False)

    def encode_turn_limit(self, now: int) -> bytes:
        """Give the error, or the last line of the events."""
        limited: TurnLimitEncoder = self._events  # type: ignore[assignment]
        encoded = limited.encode_turn_limit(now)
        return (
            f"Error: Reached max turns ({limited.most_turns})".encode()
            if self._form == "text"
            else self._encode_final_output(encoded, "")
        )

    def begin_tool_call(self, number: str) -> Any:
        """Call a tool as the events' encoder does."""
        return self._events.begin_tool_call(number)

    def keep_tool_answer(self, number: str, call: Any) -> bool:
        """Keep the answer of a call as the events' encoder does."""
        return self._events.keep_tool_answer(number, call)

    def encode_last_words(self, what: str, now: int) -> bytes:
        """Give nothing: a CLI that is ended prints no text."""
        return b""

    def _encode_final_output(self, events: bytes, text: str) -> bytes:
        if self._form == "text":
            return f"{getattr(self._events, 'final_text', '') or text}\n".encode()
        if self._form == "array":
            return b"[" + b",".join(b"".join([*self._all, events]).splitlines()) + b"]\n"
        return events.rstrip(b"\n").rpartition(b"\n")[2] + b"\n"

    def _keep_text_delta(self, text: str, now: int) -> bytes:
        self._all.append(self._events.events["delta"](text, now))
        self._piece += text
        return b""

    def _make_silent_encoder(self, encode: Any) -> Any:
        def encode_without_output(value: Any, now: int) -> bytes:
            self._all.append(encode(value, now))
            return b""

        return encode_without_output
