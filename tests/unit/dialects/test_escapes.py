"""Escape sequences on the line of a JSON frame: the frame is read, and nothing is noise (F1, F2)."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_agentproc.supervisor.dialects import Noise, make_decoder, make_session_protocol
from pytest_agentproc.supervisor.dialects._json import parse_objects

TITLE = b"\x1b]0;dotfiles: ready\x07"
SEQUENCES = {
    "a title": TITLE,
    "a title that ends with ST": b"\x1b]2;a {title}\x1b\\",
    "a notification": "\x1b]777;notify;\u03c0;Ready for input\x07".encode(),
    "a title in Latin-1": b"\x1b]0;caf\xe9\x07",
    "a colour": b"\x1b[1;32m",
    "a private mode": b"\x1b[?2004h",
    "a cursor shape": b"\x1b[2 q",
    "a character set": b"\x1b(B",
    "the cursor is kept": b"\x1b7",
    "a device string": b"\x1bP+q544e\x1b\\",
    "several": b"\x1b[0m" + TITLE + b" \x1b]9;4;0;\x07\x1b[?25h",
}
LINE_BY_DIALECT = {
    "claude print": b'{"type": "result", "subtype": "success", "result": "x"}',
    "pi json": b'{"type": "agent_end", "messages": []}',
    "codex exec": b'{"type": "turn.completed", "usage": {}}',
    "gemini stream": b'{"type": "result", "status": "success"}',
    "gemini json": b'{"response": "x"}',
    "claude session": b'{"type": "control_response", "response": {"request_id": "greet-0", "subtype": "success"}}',
    "pi rpc": b'{"type": "agent_start"}',
    "acp session": b'{"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": 1}}',
}


def decode_line(variant: str, line: bytes) -> list[Any]:
    """Say what a line means in a dialect and mode."""
    dialect, mode = variant.split()
    is_session = mode in ("session", "rpc")
    return [*(make_session_protocol(dialect, mode) if is_session else make_decoder(dialect, mode)).decode(line)]


@pytest.mark.parametrize("variant", LINE_BY_DIALECT)
@pytest.mark.parametrize("sequence", SEQUENCES.values(), ids=SEQUENCES)
def test_an_escape_sequence_in_front_of_a_frame_costs_nothing(variant: str, sequence: bytes) -> None:
    """Programs write their title to stdout without a line break, and the next frame follows on the same line."""
    assert decode_line(variant, sequence + LINE_BY_DIALECT[variant]) == decode_line(variant, LINE_BY_DIALECT[variant])


@pytest.mark.parametrize("line", [b'{"a": 1}%s', b'{"a": 1}%s{"b": 2}', b'{"a": 1} %s {"b": 2}'])
def test_nor_does_one_after_a_frame_or_between_two(line: bytes) -> None:
    """It stands where the program happened to print it."""
    assert parse_objects(line % TITLE) == parse_objects(line % b"")


@pytest.mark.parametrize(
    "line",
    [TITLE, b" \x1b[0m ", TITLE + b"ready", b"ready" + TITLE + b"{}", b"\x1b]0;no end{}", b"\x1b{}", b"\x07{}"],
)
def test_all_else_that_is_no_frame_stays_noise(line: bytes) -> None:
    """Only whole escape sequences are passed over; a line of nothing else says nothing."""
    assert parse_objects(line) is None
    assert decode_line("pi json", line) == [Noise(line)]


def test_a_line_of_escape_sequences_is_noise_in_gemini_too() -> None:
    """Its object may begin on the next line."""
    reader = make_decoder("gemini", "json")
    assert reader.decode(TITLE) == [Noise(TITLE)]
    assert not reader.decode(TITLE + b"{")
    assert len(reader.decode(b'"response": "x"}\x1b[0m')) == 1
