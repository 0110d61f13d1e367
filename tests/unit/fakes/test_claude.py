"""The claude fake: it prints what the real CLI prints, and the decoder understands it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_agentproc.supervisor import Completion
from pytest_agentproc.supervisor.dialects import Asked, Nested, ToolEnded, ToolStarted, make_decoder
from tests.unit.encoders import make_encoder

TRANSCRIPTS = Path(__file__).parents[2] / "data" / "transcripts" / "claude"
STREAMS = {"argv": ["--include-partial-messages"]}
HELLO = "Hello from fake"
FAILED = "API Error: 400 fake 400"
MAX = "Reached maximum number of turns (1)"
TOOL: dict[str, Any] = {"id": "toolu_01", "name": "Bash", "input": {"command": "echo hi", "description": "say hi"}}
ENDED: dict[str, Any] = {"id": "toolu_01", "output": "hi", "error": None}
FAILS: dict[str, Any] = {"text": FAILED, "is_error": True, "usage": None}
TOOK: dict[str, Any] = {"text": MAX, "is_error": True, "usage": None, "subtype": "error_max_turns"}
VARIES = ("id", "_ids", "_ms", "timestamp", "usage", "Usage", "since_last_result", "cost_usd", "cwd")
"""How the keys end whose values are ids, times, counts or costs."""
LONG = ("plugins", "capabilities", "partial_json")
NEWER = ("sandbox_enabled",)
"""The keys that claude has got since the recordings."""


def encode_calls(program: dict[str, Any], *calls: tuple[Any, ...]) -> bytes:
    """Have the fake encode these calls, one after another."""
    encoder = make_encoder({"dialect": "claude", "mode": "print", **program})
    fields: dict[str, Any] = {
        "say": encoder.encode_text,
        "answer": encoder.encode_answer,
        "result": encoder.encode_result,
        **encoder.events,
    }
    return b"".join(fields[name](*args, 0) for name, *args in calls)


def decode_run(data: bytes) -> list[Any]:
    """Decode a run to its end."""
    decoding = make_decoder("claude")
    found = [meaning for line in data.removeprefix(b"\xef\xbb\xbf").splitlines() for meaning in decoding.decode(line)]
    return [*found, *decoding.end(b"")]


def describe_events(data: bytes) -> list[Any]:
    """Give every event with its keys in order and its plain values; of what varies the keys alone."""
    return [_describe_shape("", json.loads(line)) for line in data.splitlines()]


def _describe_shape(key: str, value: Any) -> Any:
    if isinstance(value, dict):
        return [
            (name if "claude" not in name else "MODEL", _describe_shape(name, inner))
            for name, inner in value.items()
            if name not in NEWER
        ]
    if isinstance(value, list) and key not in LONG and not key.endswith(VARIES):
        return [_describe_shape(key, inner) for inner in value]
    is_count = isinstance(value, (int, float)) and not isinstance(value, bool)
    varies = is_count or key in LONG or key.endswith((*VARIES, "claude_code_version"))
    return "..." if varies else value


@pytest.mark.parametrize(
    ("name", "program", "calls"),
    [
        ("hello.jsonl", STREAMS, (("answer", HELLO),)),
        ("tool.jsonl", STREAMS, (("tool", TOOL), ("tool_done", ENDED), ("answer", HELLO))),
        ("fail.jsonl", {}, (("result", FAILS),)),
        ("max.jsonl", {}, (("tool", TOOL), ("tool_done", ENDED), ("result", TOOK))),
    ],
)
def test_the_fake_prints_the_events_of_the_real_cli(name: str, program: Any, calls: Any) -> None:
    """The same events, keys and words in the same order, but for ids, times, costs and long lists."""
    assert describe_events(encode_calls(program, *calls)) == describe_events((TRANSCRIPTS / name).read_bytes())


def test_the_fake_prints_whole_messages_as_the_real_cli_does() -> None:
    """Without partial messages text and tool are two lines of one message, and the next message has another id."""
    reported = (("say", "let me look", None), ("tool", TOOL), ("tool_done", ENDED), ("answer", "final answer text"))
    made, real = encode_calls({}, *reported), (TRANSCRIPTS / "whole.jsonl").read_bytes()
    keys = [
        [[key for key in json.loads(line) if key not in NEWER] for line in data.splitlines()] for data in (made, real)
    ]
    assert keys[0] == keys[1]
    ids = [json.loads(line)["message"]["id"] for line in made.splitlines() if b'"assistant"' in line]
    assert ids == ["msg_01", "msg_01", "msg_02"]


PIECES = (("delta", "Hel"), ("delta", "lo "))


@pytest.mark.parametrize(
    ("calls", "deltas"),
    [
        ((*PIECES, ("say", "you", None)), ["Hel", "lo ", "you"]),
        ((*PIECES, ("say", "", None)), ["Hel", "lo "]),
        ((*PIECES, ("answer", "you")), ["Hel", "lo ", "you"]),
        ((*PIECES, ("think", "hm")), ["Hel", "lo "]),
        ((*PIECES, ("tool", TOOL)), ["Hel", "lo "]),
        ((*PIECES, ("result", {"text": None, "is_error": False, "usage": None})), ["Hel", "lo "]),
    ],
)
def test_a_text_is_printed_in_pieces_and_once_as_a_whole(calls: Any, deltas: list[str]) -> None:
    """The whole line comes after the last piece, however the text ends; without a request for parts, it comes alone."""
    streamed = [json.loads(line) for line in encode_calls(STREAMS, *calls).splitlines()]
    alone = [json.loads(line) for line in encode_calls({}, *calls).splitlines()]
    kinds = [event.get("event", event)["type"] for event in streamed]
    start, end = kinds.index("content_block_start"), kinds.index("assistant")
    assert kinds[start + 1 : end + 2] == ["content_block_delta"] * len(deltas) + ["assistant", "content_block_stop"]
    assert [event["event"]["delta"]["text"] for event in streamed[start + 1 : end]] == deltas
    texts = [
        next(event["message"]["content"] for event in reported if event["type"] == "assistant")
        for reported in (streamed, alone)
    ]
    assert texts == [[{"type": "text", "text": "".join(deltas)}]] * 2
    assert not [event for event in alone if event["type"] == "stream_event"]


@pytest.mark.parametrize("program", [{}, STREAMS])
def test_a_sub_agent_speaks_for_itself(program: dict[str, Any]) -> None:
    """Its words and thoughts are marked as its own, with the task that it was given, and are not the agent's text."""
    task = {"id": "t", "name": "Task", "input": {"description": "look", "subagent_type": "Explore"}}
    calls = (
        ("tool", task),
        ("think", {"text": "hm", "parent": "t"}),
        ("nested", {"text": "found", "parent": "t", "stop": "end_turn"}),
        ("tool_done", {**ENDED, "id": "t"}),
        ("answer", "done"),
    )
    data = encode_calls(program, *calls)
    own = [event for event in map(json.loads, data.splitlines()) if event.get("parent_tool_use_id") == "t"]
    whole = [event for event in own if event["type"] == "assistant"]
    assert [event["message"]["content"][0]["type"] for event in whole] == ["thinking", "text"]
    assert {(event["subagent_type"], event["task_description"]) for event in whole} == {("Explore", "look")}
    completion = Completion()
    for meaning in decode_run(data):
        completion.feed(meaning, 0)
    assert (completion.transcript, completion.text) == ("done", "done")


@pytest.mark.parametrize("program", [{}, STREAMS])
def test_the_output_of_the_fake_is_understood(program: dict[str, Any]) -> None:
    """The two sides share no code: they agree because both follow the real CLI."""
    calls = (
        ("think", "hm"),
        ("say", "zwei: ä", None),
        ("tool", {"id": "t", "name": "Agent", "input": {}, "more": True}),
        ("tool", {**TOOL, "id": "b"}),
        ("tool", {"id": "c", "name": "Read", "input": {}, "parent": "t"}),
        ("tool_done", {"id": "c", "output": "", "error": "no"}),
        ("tool_done", {**ENDED, "id": "b"}),
        ("event", {"type": "keep_alive"}),
        ("tool_done", {**ENDED, "id": "t"}),
        ("say", "half", "max_tokens"),
        ("result", {"text": None, "is_error": False, "usage": {"output_tokens": 9}}),
    )
    found = decode_run(encode_calls({"model": "m7", "newline": "crlf", "bom": True, **program}, *calls))
    completion = Completion()
    for meaning in found:
        completion.feed(meaning, 0)
    assert (completion.ok, completion.noise, completion.transcript) == (True, 0, "zwei: ä\nhalf")
    assert (completion.text, completion.stop_reason, completion.model) == ("half", "max_tokens", "m7")
    assert (completion.usage or {})["output_tokens"] == 9
    own = [found_meaning for found_meaning in found if isinstance(found_meaning, (ToolStarted, ToolEnded, Asked))]
    started = [ToolStarted("t", "Agent"), ToolStarted("b", "Bash")]
    asked = Asked(("Agent", "Bash"))
    ended = [ToolEnded("b"), ToolEnded("t")]
    assert own == [*started, asked, *ended] if program else [*started, ended[0], asked, ended[1]]
    nested = [found_meaning.meaning for found_meaning in found if isinstance(found_meaning, Nested)]
    assert all(
        wanted_meaning in nested for wanted_meaning in (ToolStarted("c", "Read"), ToolEnded("c"), Asked(("Read",)))
    )


def test_a_failed_run_exits_1_and_has_its_words_in_the_result() -> None:
    """So does the real CLI."""
    assert make_encoder({"dialect": "claude", "mode": "print"}).error_is_exit
    last = json.loads(encode_calls({}, ("result", {**FAILS, "text": None})).splitlines()[-1])
    assert (last["result"], last["subtype"], last["is_error"]) == ("API Error", "success", True)
    taken = json.loads(
        encode_calls({}, ("result", {**TOOK, "text": None, "subtype": "error_max_budget_usd"})).splitlines()[-1]
    )
    assert (taken["errors"], taken["terminal_reason"]) == (["error_max_budget_usd"], "max_budget_usd")


@pytest.mark.parametrize(
    "argv", [["--resume", "s7", "--model=m7"], ["--session-id=s7", "--model", "m7"], ["-r", "s7", "--model", "m7"]]
)
def test_session_and_model_are_those_that_the_arguments_name(argv: list[str]) -> None:
    """A client that resumes a session looks for its id."""
    lines = [json.loads(line) for line in encode_calls({"argv": argv}, ("answer", "hi")).splitlines()]
    assert {line["session_id"] for line in lines} == {"s7"}
    assert (lines[0]["model"], lines[1]["message"]["model"]) == ("m7", "m7")
