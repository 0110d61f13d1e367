"""Codex: real transcripts are understood however they are cut, and the fake prints the shapes that they have."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_agentproc.supervisor import Completion, LineSplitter, ToolTracker
from pytest_agentproc.supervisor.dialects import Message, Other, ToolEnded, ToolStarted, make_decoder
from pytest_agentproc.vocabulary import Policy
from tests.unit.encoders import make_encoder

TRANSCRIPTS = Path(__file__).parents[2] / "data" / "transcripts" / "codex"
NAMES = sorted(file.name for file in TRANSCRIPTS.iterdir())


@dataclass(frozen=True)
class DecodedRun:
    """The meanings of one run's stdout."""

    ok: bool | None
    text: str | None
    error: str = ""
    total: Any = None
    running: frozenset[str] = frozenset()
    noise: int = 0


def split_lines(*chunks: bytes) -> tuple[bytes, ...]:
    """Give the lines of one run's chunks."""
    framing = LineSplitter()
    return (*(line for chunk in chunks for line in framing.feed(chunk)), *framing.flush())


def complete_from_lines(lines: tuple[bytes, ...]) -> DecodedRun:
    """Follow what the lines of one run mean."""
    completion, tools, decoding = Completion(), ToolTracker(Policy()), make_decoder("codex")
    for line in lines:
        for meaning in decoding.decode(line):
            completion.feed(meaning, 0)
            tools.feed(meaning)
    assert decoding.end(b"") == []
    total = (completion.usage or {}).get("input_tokens")
    return DecodedRun(
        completion.ok, completion.text, completion.error, total, frozenset(tools.running), completion.noise
    )


def complete_from_chunks(*chunks: bytes) -> DecodedRun:
    """Decode the chunks of one run to its end."""
    return complete_from_lines(split_lines(*chunks))


def encode_events(*events: Any) -> bytes:
    """Give the bytes of events."""
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def encode_calls(*calls: tuple[Any, ...], argv: tuple[str, ...] = ()) -> bytes:
    """Have the fake encode these calls, one after another."""
    encoder = make_encoder({"dialect": "codex", "mode": "exec", "argv": argv})
    fields: dict[str, Any] = {
        "say": encoder.encode_text,
        "answer": encoder.encode_answer,
        "result": encoder.encode_result,
        **encoder.events,
    }
    return b"".join(fields[name](*args, 0) for name, *args in calls)


REFUSED = (
    '{"type": "error", "error": {"type": "invalid_request_error", "message": "fake 400", "code": 400, '
    '"status": "INVALID_ARGUMENT"}}'
)
WHOLE = {
    "hello.jsonl": DecodedRun(True, "Hello from fake", total=10),
    "tool.jsonl": DecodedRun(True, "Hello from fake", total=20),
    "fail.jsonl": DecodedRun(False, None, REFUSED),
    "term.jsonl": DecodedRun(None, None),
}


def test_every_transcript_has_an_expectation() -> None:
    """A file that no test reads proves nothing."""
    assert sorted(WHOLE) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_transcript_of_the_real_cli_is_understood(name: str) -> None:
    """The fake and the decoder could share a mistake, the real CLI does not have it."""
    assert complete_from_chunks((TRANSCRIPTS / name).read_bytes()) == WHOLE[name]


@pytest.mark.parametrize("name", NAMES)
def test_a_transcript_means_the_same_wherever_it_is_cut(name: str) -> None:
    """A pipe cuts where it likes: inside a key, a character, or between the lines."""
    data = (TRANSCRIPTS / name).read_bytes()
    seen = {split_lines(data[:cut], data[cut:]) for cut in range(len(data))}
    assert {complete_from_lines(lines) for lines in seen} == {WHOLE[name]}
    assert complete_from_chunks(*(data[at : at + 1] for at in range(len(data)))) == WHOLE[name]


def test_an_item_is_in_flight_until_it_is_completed() -> None:
    """A plan is no work: it is begun early and ends with the turn."""
    lines = split_lines((TRANSCRIPTS / "tool.jsonl").read_bytes())
    assert [at for at in range(len(lines)) if complete_from_lines(lines[: at + 1]).running] == [3]
    events = [
        {"type": f"item.{state}", "item": {"id": what, "type": what, "text": "x"}}
        for what in ("todo_list", "agent_message", "reasoning", "web_search")
        for state in ("started", "updated", "completed")
    ]
    decoding = make_decoder("codex")
    assert [decoding.decode(line) for line in split_lines(encode_events(*events))] == [
        *([Other("item.started")], [Other("item.updated")], [Other("item.completed")]),
        *([Other("item.started")], [Other("item.updated")], [Message("x")]),
        *([Other("item.started")], [Other("item.updated")], [Other("item.completed")]),
        *([ToolStarted("web_search", "web_search")], [Other("item.updated")], [ToolEnded("web_search")]),
    ]


def test_an_error_is_forgotten_when_the_turn_goes_on() -> None:
    """Codex says with it that it connects again; only the turn's end, or the exit, says that it gave up."""
    error = {"type": "error", "message": "Reconnecting... 2/5"}
    message = {"type": "item.completed", "item": {"id": "1", "type": "agent_message", "text": "ok"}}
    assert complete_from_chunks(encode_events(error)) == DecodedRun(None, None, "Reconnecting... 2/5")
    assert complete_from_chunks(encode_events(error, message)) == DecodedRun(None, "ok")
    assert complete_from_chunks(encode_events(error, message, {"type": "turn.completed", "usage": {}})) == DecodedRun(
        True, "ok"
    )


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"type": "turn.completed", "usage": 7}, DecodedRun(True, None)),
        ({"type": "turn.failed"}, DecodedRun(False, None, "error")),
        ({"type": "turn.failed", "error": {"message": "no"}}, DecodedRun(False, None, "no")),
        ({"type": "item.started", "item": None}, DecodedRun(None, None)),
        ({"type": "later"}, DecodedRun(None, None)),
        ({"type": 7}, DecodedRun(None, None, noise=1)),
        ([], DecodedRun(None, None, noise=1)),
    ],
)
def test_what_is_shaped_otherwise_or_unknown_is_never_fatal(event: Any, expected: DecodedRun) -> None:
    """A later version may say more, or less."""
    assert complete_from_chunks(b"\n" + encode_events(event)) == expected


COMMAND: dict[str, Any] = {
    "id": "a",
    "name": "command_execution",
    "input": {"command": "/bin/bash -lc 'echo hi'"},
}
ANSWER = ("answer", "Hello from fake")


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("hello.jsonl", (ANSWER,)),
        ("tool.jsonl", (("tool", COMMAND), ("tool_done", {"id": "a", "output": "hi\n", "error": None}), ANSWER)),
        ("fail.jsonl", (("result", {"text": REFUSED, "is_error": True, "usage": None}),)),
    ],
)
def test_the_fake_prints_the_events_of_the_real_cli(name: str, calls: Any) -> None:
    """The same events, keys and words in the same order, but for ids, counts, and the warning about the model."""
    real = [json.loads(line) for line in (TRANSCRIPTS / name).read_bytes().splitlines()]
    made = [json.loads(line) for line in encode_calls(*calls).splitlines()]
    warned = [event for event in real if event.get("item", {}).get("type") != "error"]
    assert [_describe_shape(event) for event in made] == [_describe_shape(event) for event in warned]


def _describe_shape(event: dict[str, Any]) -> list[Any]:
    item = [(key, value) for key, value in event.get("item", {}).items() if key != "id"]
    return [event["type"], list(event), item, list(event.get("usage", {})), event.get("message"), event.get("error")]


def test_the_output_of_the_fake_is_understood() -> None:
    """The two sides share no code: they agree because both follow the real CLI."""
    search = {"id": "s", "name": "search", "input": {"q": 1}}
    calls = (
        ("think", "hm"),
        ("say", "zwei: ä", None),
        *(("tool", COMMAND), ("tool", search), ("tool", {**search, "id": "t"})),
        ("tool_done", {"id": "a", "output": "", "error": "no such command"}),
        ("tool_done", {"id": "s", "output": "found", "error": None}),
        ("event", {"type": "item.updated"}),
    )
    assert complete_from_chunks(encode_calls(*calls)) == DecodedRun(None, "zwei: ä", running=frozenset({"item_4"}))
    ended = ("tool_done", {"id": "t", "output": "", "error": "refused"})
    done = ("result", {"text": None, "is_error": False, "usage": {"input_tokens": 3}})
    assert complete_from_chunks(encode_calls(*calls, ended, done)) == DecodedRun(True, "zwei: ä", total=3)
    states = [json.loads(line).get("item", {}).get("status") for line in encode_calls(*calls, ended).splitlines()]
    assert [state for state in states if state] == [*["in_progress"] * 3, "failed", "completed", "failed"]
    assert make_encoder({"dialect": "codex", "mode": "exec"}).error_is_exit


def test_a_notice_before_the_turn_starts_the_thread_alone() -> None:
    """The real CLI warns of its configuration before it begins to work; its items count on from there."""
    message = [
        json.loads(line)
        for line in encode_calls(("notice", "slow"), ("begin", "turn"), ("notice", "old"), ANSWER).splitlines()
    ]
    kinds = [event.get("item", {}).get("id", event["type"]) for event in message]
    assert kinds == ["thread.started", "item_0", "turn.started", "item_1", "item_2", "turn.completed"]
    assert message[1]["item"] == {"id": "item_0", "type": "error", "message": "slow"}
    assert complete_from_chunks(encode_events(*message)) == DecodedRun(True, "Hello from fake", total=10)


def test_a_turn_begins_once() -> None:
    """A script may have begun it before its first word, or may not."""
    assert encode_calls(("begin", "turn"), ("begin", "turn"), ANSWER) == encode_calls(ANSWER)


@pytest.mark.parametrize(
    ("argv", "is_resumed"),
    [
        (("exec", "--json", "resume", "t-1", "go on"), True),
        (("exec", "resume", "--json", "t-1", "go on"), True),
        (("exec", "resume", "--last", "t-1"), False),
        (("exec", "--json", "resume"), False),
        (("exec", "t-1"), False),
    ],
)
def test_a_thread_that_is_resumed_keeps_its_id(argv: tuple[str, ...], is_resumed: bool) -> None:
    """A client continues with the id that it got last."""
    started = json.loads(encode_calls(("begin", "turn"), argv=argv).splitlines()[0])
    assert (started["thread_id"] == "t-1") is is_resumed


@pytest.mark.parametrize("is_error", [False, True])
def test_a_plan_is_one_item_that_lives_as_long_as_its_turn(is_error: bool) -> None:
    """A later plan updates it, the turn's end ends it, and it is no tool that runs."""
    done = ("result", {"text": "x", "is_error": is_error, "usage": None})
    calls = (("plan", ["look"]), ("say", "on it", None), ("plan", ["look", "mend"]), done)
    message = [json.loads(line) for line in encode_calls(*calls).splitlines()]
    plans = [event for event in message if event.get("item", {}).get("type") == "todo_list"]
    assert [event["type"] for event in plans] == ["item.started", "item.updated", "item.completed"]
    assert {event["item"]["id"] for event in plans} == {"item_0"}
    entries = [{"text": text, "completed": False} for text in ("look", "mend")]
    assert [event["item"]["items"] for event in plans] == [entries[:1], entries, entries]
    assert [event["type"] for event in message[-2:]] == [
        "item.completed",
        f"turn.{'failed' if is_error else 'completed'}",
    ]
    assert complete_from_chunks(encode_calls(*calls[:3])).running == frozenset()
