"""The dialect of `opencode run --format json`: the lines of the real CLI, and those of the fake."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_agentproc.supervisor._ending import Completion
from pytest_agentproc.supervisor.dialects import Finished, ToolEnded, ToolStarted, make_decoder
from tests.unit.encoders import make_encoder

_IDS = {"id": "prt_1", "messageID": "msg_1", "sessionID": "ses_1"}


def _encode_event(kind: str, **reported: Any) -> bytes:
    return json.dumps({"type": kind, "timestamp": 1, "sessionID": "ses_1", **reported}).encode()


def _encode_step_finish(reason: str) -> bytes:
    return _encode_event("step_finish", part={**_IDS, "type": "step-finish", "reason": reason, "tokens": {"total": 15}})


START = _encode_event("step_start", part={**_IDS, "type": "step-start"})
TEXT = _encode_event("text", part={**_IDS, "type": "text", "text": "hello"})
ERROR = _encode_event("error", error={"name": "APIError", "data": {"message": "refused", "statusCode": 400}})


def _complete_from_lines(*lines: bytes) -> Completion:
    completion, decoding = Completion(), make_decoder("opencode")
    for now, line in enumerate(lines):
        for meaning in decoding.decode(line):
            completion.feed(meaning, now)
    return completion


@pytest.mark.parametrize(
    ("lines", "at", "ok", "error"),
    [
        ((START, TEXT, _encode_step_finish("stop")), 2, True, ""),
        ((START, TEXT, _encode_step_finish("length")), 2, True, ""),
        ((START, _encode_step_finish("tool-calls")), None, None, ""),
        ((START, TEXT, _encode_step_finish("content-filter")), None, None, ""),
        ((START, TEXT, _encode_step_finish("stop"), START), None, None, ""),
        ((START, TEXT, _encode_step_finish("stop"), START, TEXT, _encode_step_finish("stop")), 5, True, ""),
        ((ERROR,), None, None, "refused"),
        ((ERROR, START), None, None, ""),
        ((ERROR, TEXT), None, None, ""),
        ((ERROR, START, TEXT, _encode_step_finish("stop")), 3, True, ""),
        ((_encode_event("error", error={"name": "UnknownError"}),), None, None, "UnknownError"),
        ((_encode_event("error"),), None, None, "error"),
    ],
)
def test_the_end_of_a_step_completes_until_another_step_begins(
    lines: tuple[bytes, ...], at: int | None, ok: bool | None, error: str
) -> None:
    """After tool calls, and after a compaction, opencode asks its model again."""
    completion = _complete_from_lines(*lines)
    assert (completion.at, completion.ok, completion.error) == (at, ok, error)


@pytest.mark.parametrize(
    ("lines", "meanings"), [((ERROR,), [Finished(False, final=False, error="refused")]), ((ERROR, START), []), ((), [])]
)
def test_an_error_is_the_last_word_at_the_exit_alone(lines: tuple[bytes, ...], meanings: list[Finished]) -> None:
    """Opencode 2.0 prints an error and tries the step again: who is ended at the error loses the answer."""
    decoder = make_decoder("opencode")
    for line in lines:
        decoder.decode(line)
    assert decoder.end(b"") == meanings


def test_text_and_tokens_are_those_of_the_last_step() -> None:
    """Each step has its own."""
    completion = _complete_from_lines(START, TEXT, _encode_step_finish("stop"))
    assert (completion.text, completion.usage, completion.noise) == ("hello", {"total": 15}, 0)


def test_a_line_that_is_no_event_is_noise() -> None:
    """A program that shares stdout may print anything."""
    assert _complete_from_lines(b"{}", b"hello", b'{"type": 1}').noise == 3


def test_a_tool_is_known_only_when_it_has_ended() -> None:
    """Nothing is printed while it runs."""
    fields = {**_IDS, "type": "tool", "tool": "bash", "callID": "c1", "state": {"status": "completed"}}
    assert make_decoder("opencode").decode(_encode_event("tool_use", part=fields)) == [
        ToolStarted("c1", "bash"),
        ToolEnded("c1"),
    ]


def _encode_steps(*steps: tuple[str, Any], argv: tuple[str, ...] = (), obeys: bool = False) -> list[dict[str, Any]]:
    fake = make_encoder({"dialect": "opencode", "mode": "run", "argv": argv, "obeys": obeys})
    made = b""
    for name, value in steps:
        made += fake.encode_answer(value, 0) if name == "answer" else fake.events[name](value, 0)
    return [json.loads(line) for line in made.splitlines()]


_TOOLS = [("tool", {"id": key, "name": "bash", "input": {"command": "x"}}) for key in "ab"]
_ENDS = [("tool_done", {"id": key, "output": "", "error": None}) for key in "ab"]


def test_a_step_ends_with_the_last_of_its_tools() -> None:
    """The answer is a step of its own, and a message of its own."""
    events = _encode_steps(*_TOOLS, *_ENDS, ("answer", "done"))
    kinds = ["step_start", "tool_use", "tool_use", "step_finish", "step_start", "text", "step_finish"]
    assert [event["type"] for event in events] == kinds
    assert [events[3]["part"]["reason"], events[6]["part"]["reason"]] == ["tool-calls", "stop"]
    assert len({event["part"]["messageID"] for event in events}) == 2


@pytest.mark.parametrize(
    ("argv", "obeys", "count"), [((), True, 0), (("--thinking",), True, 1), ((), False, 1)], ids=str
)
def test_a_thought_is_printed_if_the_arguments_ask_for_it(argv: tuple[str, ...], obeys: bool, count: int) -> None:
    """A fake that takes any arguments prints each thought."""
    events = _encode_steps(("think", "hm"), ("answer", "x"), argv=argv, obeys=obeys)
    assert [event["type"] for event in events] == ["step_start", *["reasoning"] * count, "text", "step_finish"]
    assert [event["part"]["text"] for event in events if event["type"] == "reasoning"] == ["hm"] * count


def test_the_fake_keeps_the_session_that_its_arguments_name() -> None:
    """A supervisor compares the ids."""
    assert {event["sessionID"] for event in _encode_steps(("answer", "x"), argv=("--session", "ses_7"))} == {"ses_7"}
