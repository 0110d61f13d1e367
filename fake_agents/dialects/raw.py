"""The raw dialect: text is a line, and the exit is the completion. Knows no other dialect."""

from __future__ import annotations

from pytest_agentproc.fake_agents.lines import Lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pytest_agentproc.fake_agents.contracts import EventEncoders
    from pytest_agentproc.fake_agents.program import Program


class Encoder:
    """Encode text as plain lines. A result prints its text, if any, and an error result makes the exit code 1."""

    error_is_exit = True
    error_stream = "stdout"

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
        """Give the bytes of a completion: its text alone, since the exit says the rest."""
        return b"" if fields["text"] is None else self.encode_text(fields["text"], None, now)
