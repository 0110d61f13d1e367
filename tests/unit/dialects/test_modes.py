"""A line means the same in a run and in a session: one reader of each CLI reads it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_agentproc.supervisor._turns import TurnAnswer
from pytest_agentproc.supervisor.dialects import (
    Asked,
    Compaction,
    Finished,
    Message,
    Nested,
    Other,
    Setting,
    ToolEnded,
    ToolProgress,
    ToolStarted,
    TurnProgress,
    make_decoder,
    make_session_protocol,
)

INIT = {"type": "system", "subtype": "init", "session_id": "s", "model": "m1"}
API_ERROR = {"type": "assistant", "message": {"id": "e", "model": "<synthetic>", "content": []}}


def decode_in_both_modes(dialect: str, *events: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """Give the meanings of lines in a run, and in the first turn of a session."""
    run, session = make_decoder(dialect), make_session_protocol(dialect, "", Setting("/", "key"))
    session.encode_prompt(1, "hi")
    lines = [json.dumps(event).encode() for event in events]
    return [meaning for line in lines for meaning in run.decode(line)], [
        meaning for line in lines for meaning in session.decode(line)
    ]


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"subtype": "success", "result": "a"}, Finished(True, text="a")),
        ({"subtype": "success", "result": ""}, Finished(True, text="")),
        ({"subtype": "success", "is_error": 1, "result": "a"}, Finished(False, error="a", text="a")),
        ({"subtype": "error_x", "errors": [], "result": 7}, Finished(False, error="error_x")),
        ({"subtype": "error_x", "errors": ["a", 7]}, Finished(False, error="a; 7")),
        ({}, Finished(False, error="error")),
    ],
)
def test_a_result_of_claude_means_the_same(fields: dict[str, Any], wanted: Finished) -> None:
    """A version may print another type than today's, and both modes then judge it alike."""
    run, session = decode_in_both_modes("claude", {"type": "result", **fields})
    assert (run, session) == ([wanted], [wanted])


def test_the_model_of_claude_is_the_one_that_answered() -> None:
    """The message of an API error names no model; the init does."""
    run, session = decode_in_both_modes("claude", INIT, API_ERROR, {"type": "result", "subtype": "success"})
    assert {meaning.model for meaning in (*run, *session) if isinstance(meaning, Message)} == {None}
    assert [meaning.model for meaning in (*run, *session) if isinstance(meaning, Finished)] == ["m1", "m1"]


@pytest.mark.parametrize(
    ("event", "wanted"),
    [
        ({"type": "tool_progress", "heartbeat": True}, Other("tool_progress", is_progress=False)),
        ({"type": "tool_progress"}, ToolProgress()),
        ({"type": "system", "subtype": "hook_progress", "hook_id": 1, "hook_name": "n"}, ToolProgress("hook 1", "n")),
        ({"type": "system", "subtype": "status", "status": "compacting"}, Compaction()),
        ({"type": "assistant", "parent_tool_use_id": "t"}, Nested(Other("assistant"))),
    ],
)
def test_progress_of_claude_means_the_same(event: dict[str, Any], wanted: Any) -> None:
    """A heartbeat says that claude lives, and not that its work continues (A8, P2)."""
    assert decode_in_both_modes("claude", event) == ([wanted], [wanted])


def test_a_tool_of_claude_begins_once() -> None:
    """In pieces its call comes twice: as a block that begins, and in the whole line."""
    block = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
    events: list[dict[str, Any]] = [
        {"type": "stream_event", "event": {"type": "message_start", "message": {"id": "m"}}},
        {"type": "stream_event", "event": {"type": "content_block_start", "content_block": block}},
        {"type": "assistant", "message": {"id": "m", "content": [block]}},
        {"type": "stream_event", "event": {"type": "message_stop"}},
    ]
    for found in decode_in_both_modes("claude", *events):
        own = [meaning for meaning in found if isinstance(meaning, (ToolStarted, Asked))]
        assert own == [ToolStarted("t", "Bash"), Asked(("Bash",))]


def test_a_turn_of_claude_without_an_end_keeps_its_usage() -> None:
    """A message says what was used until then, in both modes."""
    message = {"id": "m", "content": [{"type": "text", "text": "a"}], "usage": {"output_tokens": 5}}
    answer = TurnAnswer()
    for meaning in decode_in_both_modes("claude", {"type": "assistant", "message": message})[1]:
        if isinstance(meaning, TurnProgress):
            answer.add_progress(meaning)
    assert (answer.has_words, answer.usage) == (True, {"output_tokens": 5})


@pytest.mark.parametrize("stop", ["stop", "length", "toolUse"])
def test_a_message_of_pi_asks_for_its_tools_whatever_it_stops_with(stop: str) -> None:
    """The agent loop of pi executes the calls of every message but a failed one."""
    message = {"role": "assistant", "stopReason": stop, "content": [{"type": "toolCall", "id": "t", "name": "read"}]}
    for found in decode_in_both_modes("pi", {"type": "message_end", "message": message}):
        assert [meaning for meaning in found if isinstance(meaning, Asked)] == [Asked(("read",))]


def test_a_tool_of_pi_means_the_same() -> None:
    """Its start and its end are progress, and news of who works."""
    about = {"toolCallId": "t", "toolName": "bash"}
    events = [{"type": f"tool_execution_{word}", **about} for word in ("start", "update", "end")]
    wanted = [ToolStarted("t", "bash"), ToolProgress("t", "bash"), ToolEnded("t", "bash")]
    assert decode_in_both_modes("pi", *events) == (wanted, wanted)
