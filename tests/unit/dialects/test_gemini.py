"""Gemini: real transcripts are understood however they are cut, and the fake prints the shapes that they have."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_agentproc.errors import UsageError
from pytest_agentproc.supervisor import Completion, LineSplitter
from pytest_agentproc.supervisor.dialects import make_decoder
from tests.unit.encoders import make_encoder

TRANSCRIPTS = Path(__file__).parents[2] / "data" / "transcripts" / "gemini"


@dataclass(frozen=True)
class DecodedRun:
    """The meanings of one run's stdout."""

    text: str | None
    ok: bool | None
    error: str
    model: str | None
    total: Any
    noise: int


def complete_from_chunks(mode: str, *chunks: bytes, stderr: bytes = b"") -> DecodedRun:
    """Decode the chunks of one run to its end."""
    framing, completion, decoding = LineSplitter(), Completion(), make_decoder("gemini", mode)
    lines = [line for chunk in chunks for line in framing.feed(chunk)]
    for line in [*lines, *framing.flush()]:
        for meaning in decoding.decode(line):
            completion.feed(meaning, 0)
    for meaning in decoding.end(stderr):
        completion.feed(meaning, 0)
    total = (completion.usage or {}).get("total_tokens")
    return DecodedRun(completion.text, completion.ok, completion.error, completion.model, total, completion.noise)


REFUSED = (
    '[API Error: {"type":"error","error":{"type":"invalid_request_error","message":"fake 400","code":400,'
    '"status":"INVALID_ARGUMENT"}}]'
)
WHOLE = {
    "hello.json": ("json", DecodedRun("Hello from fake", None, "", "gemini-fake", None, 0)),
    "stream.jsonl": ("stream", DecodedRun("Hello from fake", True, "", "gemini-fake", 15, 0)),
    "tool.jsonl": ("stream", DecodedRun("Hello from fake", True, "", "gemini-fake", 30, 0)),
    "fail.jsonl": ("stream", DecodedRun(None, False, REFUSED, "auto", 0, 0)),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_transcript_of_the_real_cli_is_understood(name: str) -> None:
    """The fake and the decoder could share a mistake, the real CLI does not have it."""
    mode, expected = WHOLE[name]
    assert complete_from_chunks(mode, (TRANSCRIPTS / name).read_bytes()) == expected


@pytest.mark.parametrize("name", WHOLE)
def test_a_transcript_means_the_same_wherever_it_is_cut(name: str) -> None:
    """A pipe cuts where it likes: inside a key, a character, or the braces of an object over many lines."""
    mode, expected = WHOLE[name]
    data = (TRANSCRIPTS / name).read_bytes()
    assert {complete_from_chunks(mode, data[:cut], data[cut:]) for cut in range(len(data))} == {expected}
    assert complete_from_chunks(mode, *(data[at : at + 1] for at in range(len(data)))) == expected


def test_an_object_with_other_line_ends_and_without_the_last_one_is_the_same() -> None:
    """CRLF and a missing final newline belong to the transport."""
    mode, expected = WHOLE["hello.json"]
    data = (TRANSCRIPTS / "hello.json").read_bytes().rstrip(b"\n")
    assert complete_from_chunks(mode, data.replace(b"\n", b"\r\n")) == expected


def test_deltas_are_one_message_until_a_tool_ends_it() -> None:
    """The final text is what was said after the last tool, not its last piece."""
    lines = [
        {"type": "message", "role": "assistant", "content": "let me ", "delta": True},
        {"type": "message", "role": "assistant", "content": "see", "delta": True},
        {"type": "tool_use", "tool_name": "ls", "tool_id": "1", "parameters": {}},
        {"type": "tool_result", "tool_id": "1", "status": "success", "output": ""},
        {"type": "message", "role": "assistant", "content": "two ", "delta": True},
        {"type": "message", "role": "assistant", "content": "files", "delta": True},
        {"type": "message", "role": "assistant", "content": "whole"},
    ]
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    assert complete_from_chunks("stream", data.rsplit(b"{", 1)[0]).text == "two files"
    assert complete_from_chunks("stream", data).text == "whole"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"level": "info"}\n', DecodedRun(None, None, "", None, None, 1)),
        (b'{\n  "response": "a"\n', DecodedRun(None, None, "", None, None, 2)),
        (b'{broken\n{"response": "a"}\n', DecodedRun("a", None, "", None, None, 1)),
        (b'{\n "response": 7\n}\n', DecodedRun(None, None, "", None, None, 0)),
        (b'{"response": "a"}{"response": "b"}\n', DecodedRun("b", None, "", None, None, 0)),
        (b'{"error": {"type": "Error", "message": "no"}}\n', DecodedRun(None, None, "no", None, None, 0)),
        (b'{"error": "no"}\n', DecodedRun(None, None, "no", None, None, 0)),
        (b"}\n\n \n", DecodedRun(None, None, "", None, None, 1)),
    ],
)
def test_what_is_no_answer_in_json_is_noise(data: bytes, expected: DecodedRun) -> None:
    """A line that begins with a brace and never ends must not swallow the answer after it."""
    assert complete_from_chunks("json", data) == expected


def test_the_error_object_on_stderr_is_found_among_the_chatter() -> None:
    """The real CLI leaves stdout empty then and says why on stderr."""
    error = b'Ripgrep is not available.\n{\n  "session_id": "1",\n  "error": {\n    "message": "400"\n  }\n}\n'
    assert complete_from_chunks("json", stderr=error) == DecodedRun(None, None, "400", None, None, 0)


def test_the_fakes_deltas_are_pieces_of_one_message() -> None:
    """Each is a line of its own, and nothing marks the last."""
    fake = make_encoder({"dialect": "gemini", "mode": "stream", "prompt": "hi", "model": "m7"})
    begun = fake.events["begin"]("turn", 0)
    data = fake.events["delta"]("two ", 0) + fake.events["delta"]("fi", 0) + fake.encode_answer("les", 0)
    assert [json.loads(line)["type"] for line in begun.splitlines()] == ["init", "message"]
    assert [json.loads(line).get("content") for line in data.splitlines()] == ["two ", "fi", "les", None]
    assert complete_from_chunks("stream", begun, data) == DecodedRun("two files", True, "", "m7", 0, 0)
    assert fake.events["begin"]("turn", 0) == b""


@pytest.mark.parametrize("status", ["cancelled", None, 7])
def test_a_status_that_is_not_success_is_an_error(status: object) -> None:
    """A result that a later version invents must not pass for a good one."""
    done = complete_from_chunks("stream", json.dumps({"type": "result", "status": status}).encode())
    assert (done.ok, done.error) == (False, str(status or "error"))


def test_the_fake_prints_the_events_of_the_real_cli() -> None:
    """The same types with the same keys in the same order, but for what only an API can know."""
    encoder = make_encoder({"dialect": "gemini", "mode": "stream", "prompt": "hello"}).encode_answer(
        "Hello from fake", 396_000_000
    )
    real = (TRANSCRIPTS / "stream.jsonl").read_bytes()
    shapes = [
        [(list(event), event["type"]) for event in map(json.loads, data.splitlines())] for data in (encoder, real)
    ]
    assert shapes[0] == shapes[1]
    assert json.loads(encoder.splitlines()[-1])["timestamp"] == "2026-11-21T23:36:58.396Z"


def test_the_fake_prints_the_object_of_the_real_cli() -> None:
    """Over many lines, indented by two, with the same keys at the top."""
    encoder = make_encoder({"dialect": "gemini", "mode": "json"}).encode_answer("Hello from fake", 196_000_000).decode()
    real = json.loads((TRANSCRIPTS / "hello.json").read_bytes())
    assert list(json.loads(encoder)) == list(real)
    assert encoder == json.dumps(json.loads(encoder), indent=2) + "\n"


def test_an_unknown_mode_is_refused() -> None:
    """A caller who misspells it must not get another decoder."""
    with pytest.raises(UsageError, match="mode is 'stream-json', but gemini has text, json, stream"):
        make_decoder("gemini", "stream-json")
