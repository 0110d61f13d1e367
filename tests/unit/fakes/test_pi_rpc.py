"""The fake of `pi --mode rpc`: it answers and prints as the real CLI does."""

from __future__ import annotations

import json
from typing import Any

from tests.unit.conversations import Conversation, list_key_paths, read_recorded_events, read_recorded_input

ABORTED: dict[str, Any] = {"stopReason": "aborted"}
TOOL = {"id": "call_1", "name": "bash", "input": {"command": "sleep 64.52; echo hi"}}


def summarize_events(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Say of each event what it tells."""
    found: list[tuple[Any, ...]] = []
    for event in events:
        message = event.get("message") or {}
        part = event.get("assistantMessageEvent", {}).get("type")
        end = event["type"] == "message_end" and (message.get("stopReason"), message.get("errorMessage"))
        about = (part, message.get("role") if part is None else None, end, event.get("toolName"), event.get("isError"))
        answer = tuple(event.get(key) for key in ("id", "command", "success", "error", "steering", "followUp"))
        found.append((event["type"], *about, *map(str, answer)))
    return found


def assert_alike(talk: Conversation, name: str) -> None:
    """The same events with the same words, none with a key that the real one has not."""
    events, real = talk.take_printed(), read_recorded_events(name)
    assert summarize_events(events) == summarize_events(real)
    assert set().union(*map(list_key_paths, events)) - set().union(*map(list_key_paths, real)) == set()


def stream_answer(talk: Conversation, piece: str, rest: str) -> None:
    """Answer in two pieces, as the recorder's server does."""
    talk.tell("delta", piece)
    talk.tell("answer", rest)


def test_a_client_may_ask_for_all_that_was_said() -> None:
    """Each run of the agent ends with its own messages; the session has those of all."""
    talk = Conversation("pi", "rpc", version="0.73")
    for prompt, answer in (("one", "first"), ("two", "second")):
        talk.send_requests(json.dumps({"type": "prompt", "message": prompt}).encode())
        talk.tell("answer", answer)
    ended = [event["messages"] for event in talk.take_printed() if event["type"] == "agent_end"]
    talk.send_requests(b'{"type":"get_messages"}', b'{"type":"get_state"}')
    asked, state = talk.take_printed()
    assert asked["data"]["messages"] == [*ended[0], *ended[1]]
    assert [message["content"][0]["text"] for message in asked["data"]["messages"]] == ["one", "first", "two", "second"]
    assert state["data"]["messageCount"] == 4


def test_two_prompts_in_a_row_and_one_that_is_refused() -> None:
    """A prompt while another is answered is refused; the same run of the agent answers a prompt that follows up."""
    talk, lines = Conversation("pi", "rpc", version="0.73"), read_recorded_input("pi-rpc-two-prompts")
    talk.send_requests(lines[0])
    talk.send_requests(*lines[1:])
    for pieces in (("fir", "st"), ("thi", "rd")):
        stream_answer(talk, *pieces)
    assert summarize_events(talk.take_printed()) == summarize_events(read_recorded_events("pi-rpc-two-prompts"))
    assert talk.host.has_received_prompt(2)
    assert not talk.host.has_received_prompt(3)


def test_an_abort_while_a_tool_runs_ends_tool_and_run_and_is_answered_last() -> None:
    """The next prompt is a run of its own."""
    talk, (first, abort, second) = Conversation("pi", "rpc", version="0.73"), read_recorded_input("pi-rpc-abort-tool")
    talk.send_requests(first)
    talk.tell("tool", TOOL)
    talk.send_requests(abort)
    assert talk.events == ["cancel"]
    talk.tell("acknowledge")
    talk.send_requests(second)
    stream_answer(talk, "sec", "ond")
    assert_alike(talk, "pi-rpc-abort-tool")


def test_requests_after_an_abort_are_answered_after_it() -> None:
    """A prompt that is written together with the abort is not refused."""
    talk, (first, *behind) = (
        Conversation("pi", "rpc", version="0.73"),
        read_recorded_input("pi-rpc-abort-stream-prompt"),
    )
    talk.send_requests(first)
    for piece in ("a long", " strea", "med an"):
        talk.tell("delta", piece)
    talk.send_requests(*behind)
    talk.tell("acknowledge")
    stream_answer(talk, "sec", "ond")
    assert_alike(talk, "pi-rpc-abort-stream-prompt")


def test_an_abort_that_the_answer_crosses_is_answered_after_it() -> None:
    """The run is over by itself, which is what whoever aborted waits for; the prompt behind begins the next."""
    talk, (first, *behind) = (
        Conversation("pi", "rpc", version="0.73"),
        read_recorded_input("pi-rpc-abort-stream-prompt"),
    )
    talk.send_requests(first)
    talk.send_requests(*behind)
    stream_answer(talk, "all ", "there")
    ends = [event for event in talk.take_printed() if event["type"] in ("agent_end", "response", "agent_start")]
    kinds = [event.get("command", event["type"]) for event in ends]
    assert kinds == ["prompt", "agent_start", "agent_end", "abort", "prompt", "agent_start"]
    talk.tell("acknowledge")
    assert talk.take_printed() == [], "nothing is left to be acknowledged"


def test_a_prompt_that_steers_is_taken_after_the_tool() -> None:
    """It belongs to the run that it steers."""
    talk, (first, steer) = Conversation("pi", "rpc", version="0.73"), read_recorded_input("pi-rpc-steer-during-tool")
    talk.send_requests(first)
    talk.tell("tool", TOOL)
    talk.send_requests(steer)
    talk.tell("tool_done", {"id": "call_1", "output": "hi\n", "error": None})
    stream_answer(talk, "sec", "ond")
    assert_alike(talk, "pi-rpc-steer-during-tool")


def test_the_dialect_answers_what_no_step_is_about() -> None:
    """Unknown commands, lines that are none, and an abort with nothing to abort, at once; a dialog's answer is none."""
    talk = Conversation("pi", "rpc", version="0.73")
    talk.send_requests(
        b"{", b'{"type":"abort","id":"a"}', b'{"type":"dance"}', b'{"type":"extension_ui_response","id":"x"}'
    )
    talk.send_requests(b'\xef\xbb\xbf{"id":7,"type":"get_state"}')
    bad, abort, unknown, state = talk.take_printed()
    assert bad == {"type": "response", "command": "parse", "success": False, "error": "Failed to parse command"}
    assert abort == {"id": "a", "type": "response", "command": "abort", "success": True}
    assert unknown == {"type": "response", "command": "dance", "success": False, "error": "Unknown command: dance"}
    assert (state["id"], state["success"], state["data"]["isStreaming"]) == (7, True, False)
    assert talk.events == []
    talk.tell("acknowledge")
    assert talk.take_printed() == []


def test_the_dialect_answers_what_clients_ask_at_the_start() -> None:
    """A client may shake hands with any of these; each is answered at once, and begins nothing."""
    talk = Conversation("pi", "rpc", version="0.73")
    asked = {"get_messages": "messages", "get_commands": "commands"}
    talk.send_requests(*(json.dumps({"type": kind}).encode() for kind in (*asked, "set_thinking_level")))
    *lists, reported = talk.take_printed()
    assert [(message["command"], message["success"], message["data"]) for message in lists] == [
        (kind, True, {key: []}) for kind, key in asked.items()
    ]
    assert reported == {"type": "response", "command": "set_thinking_level", "success": True}


def test_pi_lists_the_model_that_it_speaks_with() -> None:
    """A client takes a pi without a model for one that is not logged in, and opens no session."""
    talk = Conversation("pi", "rpc", version="0.73")
    talk.send_requests(json.dumps({"type": "get_available_models"}).encode())
    [reported] = talk.take_printed()
    [model] = reported["data"]["models"]
    talk.send_requests(json.dumps({"type": "prompt", "message": "hi"}).encode())
    talk.tell("answer", "done")
    spoken = next(event["message"] for event in reversed(talk.take_printed()) if event["type"] == "message_end")
    assert [model[key] for key in ("id", "provider", "api")] == [spoken[key] for key in ("model", "provider", "api")]
    assert {"name", "baseUrl", "reasoning", "input", "cost", "contextWindow", "maxTokens"} < model.keys()


def test_a_report_outside_a_run_begins_none() -> None:
    """A text that comes too late is a message without a run around it."""
    talk = Conversation("pi", "rpc", version="0.73")
    talk.send_requests(json.dumps({"type": "prompt", "message": "hi"}).encode())
    talk.tell("answer", "done")
    talk.take_printed()
    talk.tell("say", "late", None)
    assert {event["type"] for event in talk.take_printed()} == {"message_start", "message_update", "message_end"}
