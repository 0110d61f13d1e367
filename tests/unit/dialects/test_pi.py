"""Pi: real transcripts are understood however they are cut, and the fake prints the shapes that they have."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_agentproc.supervisor import Completion, LineSplitter
from pytest_agentproc.supervisor.dialects import make_decoder
from tests.unit.conversations import ENCODER_METHODS_BY_STEP
from tests.unit.encoders import make_encoder

TRANSCRIPTS = Path(__file__).parents[2] / "data" / "transcripts" / "pi"


@dataclass(frozen=True)
class DecodedRun:
    """The meanings of one run's stdout."""

    ok: bool | None
    final: bool
    text: str | None
    model: str | None
    stop_reason: str | None
    error: str = ""
    total: Any = None
    noise: int = 0


def split_lines(*chunks: bytes) -> tuple[bytes, ...]:
    """Give the lines of one run's chunks."""
    framing = LineSplitter()
    return (*(line for chunk in chunks for line in framing.feed(chunk)), *framing.flush())


def complete_from_lines(lines: tuple[bytes, ...]) -> DecodedRun:
    """Decode the lines of one run to its end."""
    completion, decoding = Completion(), make_decoder("pi")
    for line in lines:
        for meaning in decoding.decode(line):
            completion.feed(meaning, 0)
    for meaning in decoding.end(b""):
        completion.feed(meaning, 0)
    return DecodedRun(
        ok=completion.ok,
        final=completion.final,
        text=completion.text,
        model=completion.model,
        stop_reason=completion.stop_reason,
        error=completion.error,
        total=(completion.usage or {}).get("totalTokens"),
        noise=completion.noise,
    )


def complete_from_chunks(*chunks: bytes) -> DecodedRun:
    """Decode the chunks of one run to its end."""
    return complete_from_lines(split_lines(*chunks))


def encode_events(*events: Any) -> bytes:
    """Give the bytes of events."""
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def build_message_end(stop: str | None, text: str = "", **more: Any) -> dict[str, Any]:
    """Give the end of an assistant's message."""
    content = [{"type": "text", "text": text}]
    return {"type": "message_end", "message": {"role": "assistant", "content": content, "stopReason": stop, **more}}


def encode_calls(program: dict[str, Any], *calls: tuple[Any, ...]) -> bytes:
    """Have the fake's side encode what is said, one call after another."""
    encoder = make_encoder({"dialect": "pi", **program})
    methods = {
        step: getattr(encoder, method) for step, method in ENCODER_METHODS_BY_STEP.items() if hasattr(encoder, method)
    }
    return b"".join({**methods, **encoder.events}[name](*args, 0) for name, *args in calls)


WHOLE = {
    "hello.jsonl": DecodedRun(True, True, "Hello from fake", "m1", "stop", total=15),
    "fail.jsonl": DecodedRun(False, True, "", "m1", "error", error="400 fake 400", total=0),
    "term.jsonl": DecodedRun(None, False, None, None, None),
    "tool.jsonl": DecodedRun(True, True, "pi answer", "m1", "stop", total=15),
}
NAMES = sorted(file.name for file in TRANSCRIPTS.iterdir())


def test_every_transcript_has_an_expectation() -> None:
    """A file that no test reads proves nothing."""
    assert sorted(WHOLE) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_transcript_of_the_real_cli_is_understood(name: str) -> None:
    """The fake and the decoder could share a mistake, the real CLI does not have it."""
    assert complete_from_chunks((TRANSCRIPTS / name).read_bytes()) == WHOLE[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_transcript_means_the_same_wherever_it_is_cut(name: str) -> None:
    """A pipe cuts where it likes: inside a key, a character, or between the lines."""
    data = (TRANSCRIPTS / name).read_bytes()
    seen = {split_lines(data[:cut], data[cut:]) for cut in range(len(data))}
    assert {complete_from_lines(lines) for lines in seen} == {WHOLE[name]}
    assert complete_from_chunks(*(data[at : at + 1] for at in range(len(data)))) == WHOLE[name]


@pytest.mark.parametrize("name", NAMES)
def test_a_transcript_with_other_line_ends_is_the_same(name: str) -> None:
    """CRLF, a byte order mark and a missing final newline belong to the transport."""
    data = (TRANSCRIPTS / name).read_bytes().rstrip(b"\n")
    assert complete_from_chunks(b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n")) == WHOLE[name]


@pytest.mark.parametrize("stop", ["toolUse", None, "a reason of tomorrow"])
def test_only_a_reason_that_ends_completes(stop: str | None) -> None:
    """A message that asks for a tool is the middle of the work (C2)."""
    assert complete_from_chunks(encode_events(build_message_end(stop, "let me see"))) == DecodedRun(
        None, False, "let me see", None, stop
    )


@pytest.mark.parametrize(
    ("stop", "ok", "error"),
    [("stop", True, ""), ("length", True, ""), ("error", False, "error"), ("aborted", False, "aborted")],
)
def test_a_last_message_completes_until_the_agent_goes_on(stop: str, ok: bool, error: str) -> None:
    """Pi may retry or take another turn after a message that looked like the last one."""
    last = build_message_end(stop, "done")
    assert complete_from_chunks(encode_events(last)) == DecodedRun(ok, False, "done", None, stop, error=error)
    for kind in ("turn_start", "message_start", "auto_retry_start"):
        assert complete_from_chunks(encode_events(last, {"type": kind})) == DecodedRun(None, False, "done", None, stop)


def test_nothing_takes_the_end_of_the_agent_back() -> None:
    """After agent_end there is no more work, whatever is still printed."""
    data = encode_events(build_message_end("stop", "done"), {"type": "agent_end"}, {"type": "turn_start"})
    assert complete_from_chunks(data) == DecodedRun(True, True, "done", None, "stop")


def test_a_retry_that_succeeds_is_a_success() -> None:
    """The failure before it was not the result."""
    retried = encode_events(
        build_message_end("error", errorMessage="overloaded"),
        {"type": "auto_retry_start"},
        build_message_end("stop", "ok"),
    )
    assert complete_from_chunks(retried) == DecodedRun(True, False, "ok", None, "stop")


@pytest.mark.parametrize("line", [b"warning: slow", b"[1]", b"{}", b'{"type": 7}', b"\xff\xfe", b'{"type": "x"'])
def test_a_line_that_is_no_event_is_noise(line: bytes) -> None:
    """It is counted, and the lines after it count as well (F2)."""
    assert complete_from_chunks(line + b"\n" + encode_events(build_message_end("stop", "ok"))) == DecodedRun(
        True, False, "ok", None, "stop", noise=1
    )


@pytest.mark.parametrize("content", [None, 7, ["text"], [{"type": "thinking", "thinking": "hm"}]])
def test_content_without_text_is_no_text(content: object) -> None:
    """A field of another type than today's must not be fatal."""
    event = {"type": "message_end", "message": {"role": "assistant", "content": content, "stopReason": "stop"}}
    assert complete_from_chunks(encode_events(event)).text == ""


def test_what_the_fake_answers_is_understood() -> None:
    """The two sides share no code: they agree because both follow the real CLI."""
    calls = (("say", "let me see", None), ("answer", "zwei Dateien: ä, ö"))
    for named in ({"model": "m7"}, {"argv": ["--model", "m7"]}):
        assert complete_from_chunks(encode_calls({"prompt": "hi", **named}, *calls)) == DecodedRun(
            True, True, "zwei Dateien: ä, ö", "m7", "stop", total=0
        )


@pytest.mark.parametrize(
    ("stop", "expected"),
    [
        (None, DecodedRun(None, False, "part", "m1", "toolUse", total=0)),
        ("stop", DecodedRun(True, False, "part", "m1", "stop", total=0)),
        ("aborted", DecodedRun(False, False, "part", "m1", "aborted", error="aborted", total=0)),
    ],
)
def test_what_the_fake_says_is_understood(stop: str | None, expected: DecodedRun) -> None:
    """Text alone ends nothing; only a stop reason of its own completes."""
    assert complete_from_chunks(encode_calls({}, ("say", "part", stop))) == expected


@pytest.mark.parametrize(
    ("text", "is_error", "expected"),
    [
        ("done", False, DecodedRun(True, True, "done", "m1", "stop", total=9)),
        (None, True, DecodedRun(False, True, "", "m1", "error", error="error", total=9)),
        ("no quota", True, DecodedRun(False, True, "", "m1", "error", error="no quota", total=9)),
    ],
)
def test_what_the_fake_gives_as_a_result_is_understood(text: str | None, is_error: bool, expected: DecodedRun) -> None:
    """A failure is reported on stdout with exit code 0, as the real CLI does."""
    fields = {"text": text, "is_error": is_error, "usage": {"totalTokens": 9}}
    assert complete_from_chunks(encode_calls({}, ("result", fields))) == expected


@pytest.mark.parametrize("newline", ["lf", "crlf", "none"])
def test_the_fakes_line_ends_do_not_change_the_meaning(newline: str) -> None:
    """They are the scenario's to choose."""
    calls = (("say", "a", None), ("answer", "b"))
    program = {"newline": newline, "bom": True}
    assert complete_from_chunks(encode_calls(program, *calls)) == DecodedRun(True, True, "b", "m1", "stop", total=0)


def test_every_update_has_the_message_so_far() -> None:
    """A viewer that joins late knows everything from any line; at the end of the text the message is whole."""
    calls = (("think", "hm"), ("delta", "zwei "), ("delta", "Da"), ("answer", "teien"))
    made = [json.loads(line) for line in encode_calls({"version": "0.73"}, *calls).splitlines()]
    updates = [event for event in made if event["type"] == "message_update"]
    assert all(event["assistantMessageEvent"]["partial"] == event["message"] for event in updates)
    seen = [
        (
            event["assistantMessageEvent"]["type"],
            event["assistantMessageEvent"].get("delta"),
            _list_texts(event["message"]),
        )
        for event in updates
    ]
    assert seen == [
        *[(f"thinking_{kind}", delta, ["hm"]) for kind, delta in (("start", None), ("delta", "hm"), ("end", None))],
        ("text_start", None, ["hm", "zwei "]),
        ("text_delta", "zwei ", ["hm", "zwei "]),
        ("text_delta", "Da", ["hm", "zwei Da"]),
        ("text_delta", "teien", ["hm", "zwei Dateien"]),
        ("text_end", None, ["hm", "zwei Dateien"]),
    ]
    whole = next(event["message"] for event in made if event["type"] == "message_end" and "model" in event["message"])
    assert (updates[-1]["message"], updates[-2]["message"].keys()) == (whole, whole.keys() - {"responseModel"})


def _list_texts(message: dict[str, Any]) -> list[str]:
    return [block.get("text", block.get("thinking")) for block in message["content"]]


def test_a_text_that_streams_ends_with_whatever_closes_its_message() -> None:
    """A tool is asked for by the same message; an error ends it where it stands, and keeps what was said."""
    tool = ("tool", {"id": "c", "name": "ls", "input": {}})
    asked = [json.loads(line) for line in encode_calls({}, ("delta", "let me see"), tool).splitlines()]
    ends = [event["message"]["content"] for event in asked if event["type"] == "message_end"][-1:]
    assert [[block["type"] for block in content] for content in ends] == [["text", "toolCall"]]
    failed = ("result", {"text": "overloaded", "is_error": True, "usage": None})
    assert complete_from_chunks(encode_calls({}, ("delta", "half"), failed)) == DecodedRun(
        False, True, "half", "m1", "error", error="overloaded", total=0
    )


def test_the_fake_prints_the_events_of_the_real_cli() -> None:
    """The same types in the same order with the same keys at every depth."""
    calls = (("delta", "Hello "), ("answer", "from fake"))
    made = [json.loads(line) for line in encode_calls({"version": "0.73", "prompt": "hello"}, *calls).splitlines()]
    real = [json.loads(line) for line in (TRANSCRIPTS / "hello.jsonl").read_bytes().splitlines()]
    assert [(event["type"], _list_key_paths(event)) for event in made] == [
        (event["type"], _list_key_paths(event)) for event in real
    ]


def _list_key_paths(value: Any) -> set[str]:
    """Name every key of an event with its way there."""
    if isinstance(value, dict):
        return {
            name + below
            for name, inner in value.items()
            for below in ("", *("." + key for key in _list_key_paths(inner)))
        }
    if isinstance(value, list):
        return {"[]." + key for inner in value for key in _list_key_paths(inner)}
    return set()


def test_an_end_that_announces_a_retry_is_none() -> None:
    """Newer versions print `agent_end` before each retry; a supervisor that takes it for the end kills the retry."""
    failed = {"type": "message_end", "message": {"role": "assistant", "content": [], "stopReason": "error"}}
    ends = [{"type": "agent_end", "willRetry": is_retried} for is_retried in (True, False)]
    lines = [complete_from_chunks(*(json.dumps(event).encode() + b"\n" for event in (failed, end))) for end in ends]
    assert [(meaning.ok, meaning.final) for meaning in lines] == [(None, False), (False, True)]
