"""Claude: real transcripts are understood however they are cut, and whatever is not the prompt's is left aside."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_agentproc.supervisor import Completion, LineSplitter, ToolTracker
from pytest_agentproc.supervisor.dialects import (
    Asked,
    Finished,
    Message,
    Nested,
    Other,
    Piece,
    TaskBegun,
    ToolEnded,
    ToolStarted,
    make_decoder,
)
from pytest_agentproc.vocabulary import Policy

TRANSCRIPTS = Path(__file__).parents[2] / "data" / "transcripts" / "claude"
NAMES = sorted(file.name for file in TRANSCRIPTS.iterdir())


@dataclass(frozen=True)
class DecodedRun:
    """The meanings of one run's stdout."""

    ok: bool | None
    text: str | None
    transcript: str
    stop_reason: str | None
    model: str | None = "claude-sonnet-4-5"
    error: str = ""
    output: Any = 5
    tools: tuple[str, ...] = ()
    asked: tuple[tuple[str, ...], ...] = ()
    running: frozenset[str] = frozenset()
    noise: int = 0


def split_lines(*chunks: bytes) -> tuple[bytes, ...]:
    """Give the lines of one run's chunks."""
    framing = LineSplitter()
    return (*(line for chunk in chunks for line in framing.feed(chunk)), *framing.flush())


def decode_lines(lines: tuple[bytes, ...]) -> list[Any]:
    """Decode the lines of one run to its end."""
    decoding = make_decoder("claude")
    found = [meaning for line in lines for meaning in decoding.decode(line)]
    return [*found, *decoding.end(b"")]


def complete_from_lines(lines: tuple[bytes, ...]) -> DecodedRun:
    """Follow what the lines mean."""
    completion, tools, found = Completion(), ToolTracker(Policy()), decode_lines(lines)
    for meaning in found:
        completion.feed(meaning, 0)
        tools.feed(meaning)
    return DecodedRun(
        ok=completion.ok,
        text=completion.text,
        transcript=completion.transcript,
        stop_reason=completion.stop_reason,
        model=completion.model,
        error=completion.error,
        output=(completion.usage or {}).get("output_tokens"),
        tools=tuple(dict.fromkeys(meaning.name for meaning in found if isinstance(meaning, ToolStarted))),
        asked=tuple(meaning.names for meaning in found if isinstance(meaning, Asked)),
        running=frozenset(tools.running | tools.agents),
        noise=completion.noise,
    )


def complete_from_chunks(*chunks: bytes) -> DecodedRun:
    """Decode the chunks of one run to its end."""
    return complete_from_lines(split_lines(*chunks))


def encode_events(*events: Any) -> bytes:
    """Give the bytes of events."""
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def build_assistant_event(number: str, *blocks: dict[str, Any], parent: str | None = None) -> dict[str, Any]:
    """Give a whole line of the assistant."""
    return {"type": "assistant", "message": {"id": number, "content": list(blocks)}, "parent_tool_use_id": parent}


def build_stream_event(event: dict[str, Any], parent: str | None = None) -> dict[str, Any]:
    """Give a part of a streamed message."""
    return {"type": "stream_event", "event": event, "parent_tool_use_id": parent}


def build_tool_use_block(number: str, name: str) -> dict[str, Any]:
    """Give a block that asks for a tool."""
    return {"type": "tool_use", "id": number, "name": name, "input": {}}


def build_text_block(words: str) -> dict[str, Any]:
    """Give a block of text."""
    return {"type": "text", "text": words}


def build_success_result(result: str | None = None, **more: Any) -> dict[str, Any]:
    """Give a good result."""
    return {"is_error": False, "subtype": "success", "result": result, "type": "result", **more}


HELLO = "Hello from fake"
FAILED = "API Error: 400 fake 400"
MAX = "Reached maximum number of turns (1)"
WHOLE = {
    "hello.jsonl": DecodedRun(True, HELLO, HELLO, "end_turn"),
    "tool.jsonl": DecodedRun(True, HELLO, HELLO, "end_turn", output=10, tools=("Bash",), asked=(("Bash",),)),
    "fail.jsonl": DecodedRun(False, FAILED, FAILED, "stop_sequence", error=FAILED, output=0),
    "max.jsonl": DecodedRun(False, None, "", "tool_use", error=MAX, tools=("Bash",), asked=(("Bash",),)),
    # the API behind these two gives every message the same id, so that without partial messages they are one
    "bg.jsonl": DecodedRun(True, HELLO, HELLO, "end_turn", output=10, tools=("Bash",), asked=(("Bash",),)),
    "subagent.jsonl": DecodedRun(True, HELLO, HELLO, "end_turn", output=10, tools=("Task",), asked=(("Task",),)),
    "partial.jsonl": DecodedRun(
        True,
        "final answer text",
        "let me look\nfinal answer text",
        "end_turn",
        output=10,
        tools=("Bash",),
        asked=(("Bash",),),
    ),
    "whole.jsonl": DecodedRun(
        True,
        "final answer text",
        "let me look\nfinal answer text",
        "end_turn",
        output=10,
        tools=("Bash",),
        asked=(("Bash",),),
    ),
    "fast-tools.jsonl": DecodedRun(
        True, "final", "let me look\nfinal", "end_turn", output=10, tools=("Bash",), asked=(("Bash", "Bash"),)
    ),
}


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


def test_a_killed_run_keeps_what_was_streamed_of_its_last_message() -> None:
    """The pieces of a text that never ended are all that there is (C3)."""
    lines = split_lines((TRANSCRIPTS / "partial.jsonl").read_bytes())
    deltas = [at for at, line in enumerate(lines) if b'"text_delta"' in line]
    broken = complete_from_lines(lines[: deltas[-2] + 1])
    assert (broken.ok, broken.text, broken.running) == (None, "final answer te", frozenset())


def test_a_tool_is_in_flight_from_its_block_to_its_result() -> None:
    """In the stream the block begins before its whole line comes, and both are one tool."""
    for name, first in (("partial.jsonl", b"content_block_start"), ("whole.jsonl", b'"assistant"')):
        lines = split_lines((TRANSCRIPTS / name).read_bytes())
        asks = next(at for at, line in enumerate(lines) if b'"tool_use"' in line and first in line)
        ends = next(at for at, line in enumerate(lines) if b'"tool_result"' in line)
        busy = [at for at in range(len(lines)) if complete_from_lines(lines[: at + 1]).running]
        assert busy == [*range(asks, ends)]


def test_the_whole_time_of_a_background_agent_counts() -> None:
    """Its tool has its result at once; the agent waits for the task."""
    lines = split_lines((TRANSCRIPTS / "subagent.jsonl").read_bytes())
    asks, starts, reported, ends = (
        next(at for at, line in enumerate(lines) if sign in line)
        for sign in (b'"tool_use"', b'"task_started"', b'"tool_result"', b'"task_notification"')
    )
    assert asks < starts < reported < ends
    assert [at for at in range(len(lines)) if complete_from_lines(lines[: at + 1]).running] == [*range(asks, ends)]
    assert [type(meaning.meaning) for meaning in decode_lines(lines) if isinstance(meaning, Nested)] == [Other, Message]


def test_a_background_turn_is_never_the_prompts() -> None:
    """It may come after the result of the prompt's own turn, or before it (B1)."""
    origin = {"origin": {"kind": "task-notification"}}
    late = encode_events(
        build_assistant_event("a", build_text_block("own")),
        build_success_result("own"),
        build_assistant_event("b", build_text_block("late")),
        build_success_result("late", **origin),
    )
    early = encode_events(
        build_assistant_event("b", build_text_block("early")),
        build_success_result("early", **origin),
        build_assistant_event("a", build_text_block("own")),
        build_success_result("own"),
    )
    unmarked = encode_events(
        build_success_result("own"), build_assistant_event("b", build_text_block("late")), build_success_result("late")
    )
    for data in (late, early, unmarked):
        assert complete_from_chunks(data).text == "own"
    assert complete_from_chunks(late).transcript == complete_from_chunks(early).transcript == "own"
    assert [meaning for meaning in decode_lines(split_lines(late)) if isinstance(meaning, Finished)][1:] == []


def test_a_sub_agents_lines_are_its_own() -> None:
    """Its messages and tools are known by the tool that it runs in, however its lines are mixed with others'."""
    inner = build_assistant_event("c", build_tool_use_block("r", "Read"), parent="t")
    result = {
        "type": "user",
        "message": {"content": [{"type": "tool_result", "tool_use_id": "r"}]},
        "parent_tool_use_id": "t",
    }
    lines = split_lines(
        encode_events(
            build_assistant_event("a", build_text_block("I ask")),
            inner,
            build_assistant_event("a", build_tool_use_block("t", "Agent")),
            result,
            build_assistant_event("d", build_text_block("x"), parent="t"),
        )
    )
    assert decode_lines(lines) == [
        Other("assistant"),
        Nested(ToolStarted("r", "Read")),
        ToolStarted("t", "Agent"),
        Nested(ToolEnded("r")),
        Nested(Message(None)),
        Nested(Asked(("Read",))),
        Nested(Message("x")),
        Message("I ask"),
        Asked(("Agent",)),
    ]


def test_a_command_in_the_foreground_is_no_task_and_a_sign_of_life_no_progress() -> None:
    """A tracker that counts either of them waits for an end that claude never reports."""
    task = {"type": "system", "subtype": "task_started", "task_type": "local_bash", "task_id": "b", "description": "d"}
    lines = split_lines(
        encode_events(
            {**task, "is_backgrounded": False},
            {**task, "is_backgrounded": True},
            {"type": "system", "subtype": "status", "status": "requesting"},
            {"type": "keep_alive"},
        )
    )
    assert decode_lines(lines) == [
        Other("system task_started"),
        TaskBegun("b", "local_bash", "d"),
        Other("system status", is_progress=False),
        Other("keep_alive", is_progress=False),
    ]


def test_a_streamed_message_ends_at_its_stop_and_not_before() -> None:
    """All tools of a message are known only then, and the first may have its result before."""
    parts: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "a", "model": "m"}},
        {"type": "content_block_start", "index": 0, "content_block": build_tool_use_block("1", "Agent")},
        {"type": "content_block_start", "index": 1, "content_block": build_tool_use_block("2", "Read")},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    ]
    kinds = [
        [type(meaning) for meaning in decode_lines(split_lines(encode_events(*map(build_stream_event, parts[:count]))))]
        for count in (3, 4, 5)
    ]
    assert kinds[0] == [Piece, ToolStarted, ToolStarted, Message, Asked]  # the end of the run ends it
    found = decode_lines(split_lines(encode_events(*map(build_stream_event, parts))))
    assert found[-2:] == [Message(None, "tool_use", "m", {"output_tokens": 7}), Asked(("Agent", "Read"))]
    assert len(found) == len(parts) + 1


@pytest.mark.parametrize(
    ("event", "error"),
    [
        ({"subtype": "error_max_turns", "is_error": True, "errors": ["a", "b"]}, "a; b"),
        ({"subtype": "error_during_execution", "is_error": True}, "error_during_execution"),
        ({"subtype": "success", "is_error": True, "result": "API Error"}, "API Error"),
        ({"subtype": "error_later", "is_error": False, "result": 7}, "error_later"),
        ({}, "error"),
    ],
)
def test_a_result_that_is_not_good_is_a_failure(event: dict[str, Any], error: str) -> None:
    """A subtype that a later version invents must not pass for success, nor success with an error."""
    seen = complete_from_chunks(encode_events({**event, "type": "result"}))
    assert (seen.ok, seen.error) == (False, error)


@pytest.mark.parametrize(
    "event",
    [
        {"type": "assistant"},
        {"type": "assistant", "message": {"content": "words"}},
        {"type": "user", "message": {"content": "words"}},
        {"type": "stream_event", "event": None},
        {"type": "stream_event", "event": {"type": "content_block_delta", "delta": "x"}},
        {"type": "stream_event", "event": {"type": "message_start", "message": 1}},
        {"type": "system", "subtype": "task_started", "task_type": "local_bash", "task_id": "b"},
        {"type": "keep_alive"},
    ],
)
def test_what_is_shaped_otherwise_or_unknown_changes_nothing(event: dict[str, Any]) -> None:
    """A field of another type than today's must not be fatal."""
    seen = complete_from_chunks(encode_events(event, build_success_result("ok")))
    assert (seen.ok, seen.text, seen.tools, seen.noise) == (True, "ok", (), 0)


@pytest.mark.parametrize("line", [b"plain", b"[1]", b"7", b'{"a": 1}', b'{"type": 7}', b"\xff\xfe", b'{"type": "x"'])
def test_a_line_that_is_no_event_is_noise(line: bytes) -> None:
    """It is counted, and the lines after it count as well (F2)."""
    seen = complete_from_chunks(line + b"\n\n" + encode_events(build_success_result("ok")))
    assert (seen.ok, seen.text, seen.noise) == (True, "ok", 1)
