"""Recorded conversations with real CLIs, and the same ones with a fake. Knows no dialect and no expected value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.unit.encoders import make_encoder

if TYPE_CHECKING:
    from pytest_agentproc.fake_agents.questions import ClientQuestion

__all__ = ["ENCODER_METHODS_BY_STEP", "Conversation", "list_key_paths", "read_recorded_events", "read_recorded_input"]

TRANSCRIPTS = Path(__file__).parents[1] / "data" / "transcripts" / "sessions"
ENCODER_METHODS_BY_STEP = {
    "say": "encode_text",
    "answer": "encode_answer",
    "result": "encode_result",
    "acknowledge": "end_cancelled_turn",
    "begin_prompt": "begin_prompt_turn",
}
"""The methods of an encoder by the steps that call them."""

_TIMED = TRANSCRIPTS.with_name("timed")


def read_recorded_input(name: str) -> list[bytes]:
    """Give the lines that the real CLI was sent, in order."""
    return [json.dumps(line).encode() for line in _read_lines(name, ">>")]


def read_recorded_events(name: str) -> list[dict[str, Any]]:
    """Give the events that the real CLI printed, in order."""
    return _read_lines(name, "<<")


def _read_lines(name: str, direction: str) -> list[Any]:
    file = TRANSCRIPTS / f"{name}.jsonl"
    lines = (file if file.exists() else _TIMED / file.name).read_text("utf-8").splitlines()
    return [entry["line"] for entry in map(json.loads, lines) if entry["dir"] == direction]


class Conversation:
    """A fake's side of a conversation, without a player: requests go in, events come out."""

    def __init__(self, dialect: str, mode: str, **program: Any) -> None:
        self.host: Any = make_encoder({"dialect": dialect, "mode": mode, "serves": True, **program})
        self.events: list[str] = []
        self._data = b""

    def send_requests(self, *requests: bytes) -> None:
        """Send requests."""
        for request in requests:
            reply, event = self.host.handle_request(request, 0)
            self._data += reply
            self.events += [event] * (event not in ("", "handshake"))
        self._data += self.host.take_late_answers()

    def tell(self, name: str, *args: Any) -> None:
        """Have the fake do a step."""
        does = self.host.events.get(name) or getattr(self.host, ENCODER_METHODS_BY_STEP.get(name, name))
        self._data += does(*args, 0)

    def ask(self, kind: str, name: str, number: str | None = None, event: str = "PreToolUse") -> ClientQuestion:
        """Have the fake ask."""
        question: ClientQuestion
        question, data = self.host.ask_client({"kind": kind, "name": name, "id": number, "event": event}, 0)
        self._data += data
        return question

    def call(self, method: str, number: str | None = None, **params: Any) -> ClientQuestion:
        """Have the fake call a method of its client."""
        question: ClientQuestion
        fields = {"kind": "request", "name": method, "id": number, "params": params}
        question, data = self.host.ask_client(fields, 0)
        self._data += data
        return question

    def take_printed(self) -> list[dict[str, Any]]:
        """Give what was printed since the last call."""
        data, self._data = self._data, b""
        return [json.loads(line) for line in data.splitlines()]


def list_key_paths(value: Any) -> set[str]:
    """Name every key of an event with its way there."""
    if isinstance(value, dict):
        return {
            name + below
            for name, inner in value.items()
            for below in ("", *("." + key for key in list_key_paths(inner)))
        }
    if isinstance(value, list):
        return {"[]." + key for inner in value for key in list_key_paths(inner)}
    return set()
