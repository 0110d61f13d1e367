"""The fake of a claude that is talked to: the lines of recorded conversations with the real CLI, in their order."""

from __future__ import annotations

import json
from typing import Any

from pytest_agentproc.fake_agents.dialects.claude.control import encode_initialize_response
from tests.unit.conversations import Conversation, list_key_paths, read_recorded_events, read_recorded_input

READS = {b"CLAUDE_CODE_SDK_READS_SESSION_STATE": b"1"}
WHOLE: dict[str, Any] = {"environ": READS}
PARTIAL: dict[str, Any] = {"environ": READS, "argv": ["--include-partial-messages"]}
REPLAYS: dict[str, Any] = {"environ": READS, "argv": ["--replay-user-messages"]}
OWN = ("user_message_uuid", "user_message_uuids", "isReplay", "command_uuid", "state", "sdk_host_only", "num_turns")
RESULT = ("subtype", "is_error", "terminal_reason", "stop_reason", "errors", "result_index", "result")
TASK = {"id": "b", "kind": "local_bash"}


def summarize_events(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Say of each line what it is and whose; pieces of a text count once."""
    found: list[tuple[Any, ...]] = []
    for event in events:
        part = event.get("event", {})
        own = [event.get(key) for key in OWN]
        more = [event.get(key) for key in RESULT] if event["type"] == "result" else [event.get("subtype")]
        more += [event.get("origin", {}).get("kind"), event.get("status"), event.get("patch", {}).get("status")]
        texts = [block.get("text", block["type"]) for block in _list_blocks(event)] if event["type"] == "user" else []
        message = (event["type"], part.get("type"), part.get("delta", {}).get("stop_reason"), *own, *more, *texts)
        if part.get("type") != "content_block_delta" or message != found[-1]:
            found.append((*message[:3], *(str(value) for value in message[3:])))
    return _drop_repeats(found)


def _drop_repeats(found: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [
        message
        for before, message in zip([None, *found], found, strict=False)
        if message != before or message[1] is None
    ]


def _list_blocks(event: dict[str, Any]) -> list[dict[str, Any]]:
    content = event["message"]["content"]
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def assert_alike(made: list[dict[str, Any]], real: list[dict[str, Any]]) -> None:
    """The same lines in the same order, and no key that the real one has not in some line."""
    assert summarize_events(made) == summarize_events(real)
    assert set().union(*map(list_key_paths, made)) - set().union(*map(list_key_paths, real)) <= EXTRA


ANSWER = json.loads(encode_initialize_response({"request_id": "r"}, {}, "default"))
"""What the fake says of itself."""
EXTRA = {"sandbox_enabled", "response.response.sandbox_enabled"} | {
    path
    for key in ("commands", "agents", "models", "account", "available_output_styles")
    for path in list_key_paths({"response": {"response": {key: ANSWER["response"]["response"][key]}}})
}
"""The part of the handshake that the real CLI prints, too, and that the recorder left out."""


def test_a_background_turn_after_the_next_prompt_is_known_by_its_marks() -> None:
    """Lines with a uuid are answered with it; the background turn has none, and its result an origin."""
    talk, (initialize, first, second) = (
        Conversation("claude", "session", **PARTIAL),
        read_recorded_input("bg-overlap-uuid"),
    )
    talk.send_requests(initialize, first)
    talk.tell("begin_prompt", 1)
    talk.tell("task", TASK)
    talk.tell("answer", "answer one")
    events = talk.take_printed()
    talk.send_requests(second)
    talk.tell("begin_prompt", 2)
    talk.tell("task_done", {"id": "b", "status": "completed", "in_same_turn": False})
    talk.tell("answer", "answer two")
    talk.tell("background_turn", {"task": "b", "empty_result_first": False})
    talk.tell("answer", "bg noted")
    events += talk.take_printed()
    assert summarize_events(events) == summarize_events(read_recorded_events("bg-overlap-uuid"))
    runs = [event["run_id"] for event in events if event.get("subtype") == "task_started"]
    assert [event["origin"]["runId"] for event in events if "origin" in event] == runs


def test_two_tasks_that_end_together_give_an_empty_result_first() -> None:
    """It has no text, no reason and no message; state lines come where the environment asks for them."""
    talk, real = Conversation("claude", "session", **WHOLE), read_recorded_events("bg-two")
    talk.send_requests(*read_recorded_input("bg-two")[:2])
    talk.tell("begin_prompt", 1)
    talk.tell("task", TASK)
    talk.tell("task", {**TASK, "id": "c"})
    talk.tell("answer", "answer one")
    talk.take_printed()
    for number in "bc":
        talk.tell("task_done", {"id": number, "status": "completed", "in_same_turn": False})
    talk.tell("background_turn", {"task": "c", "empty_result_first": True})
    talk.tell("answer", "bg noted")
    talk.send_requests(read_recorded_input("bg-two")[2])
    talk.tell("begin_prompt", 2)
    talk.tell("answer", "answer two")
    begin = next(index for index, event in enumerate(real) if event.get("subtype") == "task_updated")
    assert summarize_events(talk.take_printed()) == summarize_events(real[begin:])


def test_a_task_that_ends_while_a_tool_runs_is_reported_with_that_tools_result() -> None:
    """Its lines come at once, its notification is replayed after the result, and no turn follows."""
    name = "bg-overlap-tool-partial-replay"
    talk, (initialize, first, second) = Conversation("claude", "session", **REPLAYS), read_recorded_input(name)
    talk.send_requests(initialize, first)
    talk.tell("begin_prompt", 1)
    talk.tell("task", TASK)
    talk.tell("answer", "answer one")
    talk.send_requests(second)
    talk.tell("begin_prompt", 2)
    talk.tell("tool", {"id": "t", "name": "Bash", "input": {}})
    talk.tell("task_done", {"id": "b", "status": "completed", "in_same_turn": True})
    talk.tell("task", {"id": "f", "kind": "local_bash", "tool": "t", "foreground": True})
    talk.tell("task_done", {"id": "f", "status": "completed", "in_same_turn": False})
    talk.tell("tool_done", {"id": "t", "output": "fg", "error": None})
    talk.tell("answer", "answer two")
    events, real = talk.take_printed(), read_recorded_events(name)
    assert [_describe_event(message) for message in events if _describe_event(message)] == [
        _describe_event(message) for message in real if _describe_event(message)
    ]
    (replayed,), (really,) = ([message for message in lines if "origin" in message] for lines in (events, real))
    assert (sorted(replayed), replayed["origin"].keys()) == (sorted(really), really["origin"].keys())
    begin = "<task-notification>\n<task-id>{0}</task-id>\n<tool-use-id>toolu_{0}</tool-use-id>\n<output-file>"
    assert replayed["message"]["content"].startswith(begin.format("b"))


def _describe_event(event: dict[str, Any]) -> str:
    """Say what a line is, but for streams and states."""
    if event.get("subtype") in ("status", "session_state_changed") or event["type"] == "stream_event":
        return ""
    return f"{event.get('subtype', event['type'])} {event.get('isReplay')} {event.get('origin', {}).get('kind')}"


def test_an_interrupt_while_a_tool_runs_ends_the_tool_and_the_turn() -> None:
    """A control response, the tool's end, the interrupted user line, an error result; the next prompt is answered."""
    talk, (initialize, first, interrupt, second) = (
        Conversation("claude", "session", **WHOLE),
        read_recorded_input("interrupt-tool"),
    )
    talk.send_requests(initialize, first)
    talk.tell("begin_prompt", 1)
    talk.tell("tool", {"id": "t", "name": "Bash", "input": {"command": "sleep 1", "description": "d"}})
    talk.send_requests(interrupt, second)
    assert talk.events == ["cancel"]
    talk.tell("acknowledge")
    assert talk.host.code == 1
    talk.tell("begin_prompt", 2)
    talk.tell("answer", "answer two")
    assert talk.host.code == 0
    assert summarize_events(talk.take_printed()) == summarize_events(read_recorded_events("interrupt-tool"))


def test_a_receipt_is_the_control_response_alone_and_is_given_once() -> None:
    """The turn is ended later by all the rest; an interrupt in between has its response then."""
    talk, (initialize, first, interrupt, _) = (
        Conversation("claude", "session", **WHOLE),
        read_recorded_input("interrupt-tool"),
    )
    talk.send_requests(initialize, first)
    talk.tell("begin_prompt", 1)
    talk.send_requests(interrupt)
    receipts = [talk.host.encode_cancel_receipt(), talk.host.encode_cancel_receipt()]
    assert [data.count(b'"type":"control_response"') for data in receipts] == [receipts[0].count(b"\n"), 0] == [1, 0]
    talk.take_printed()
    talk.send_requests(interrupt)
    talk.tell("acknowledge")
    kinds = [event["type"] for event in talk.take_printed()]
    assert (kinds[0], kinds.count("control_response"), kinds.count("result")) == ("control_response", 1, 1)


def test_an_interrupt_while_text_streams_closes_its_message() -> None:
    """As in the real one: the text so far is printed as a whole, marked as aborted."""
    talk, (initialize, first, *rest) = (
        Conversation("claude", "session", **PARTIAL),
        read_recorded_input("interrupt-overlap"),
    )
    talk.send_requests(initialize, first)
    talk.tell("begin_prompt", 1)
    for piece in ("a lo", "ng s", "trea", "med "):
        talk.tell("delta", piece)
    talk.send_requests(*rest)
    talk.tell("acknowledge")
    talk.tell("begin_prompt", 2)
    talk.tell("answer", "answer two")
    assert_alike(talk.take_printed(), read_recorded_events("interrupt-overlap"))


def test_user_lines_are_replayed_where_they_are_asked_for() -> None:
    """Before the first output of the turn, whatever the turn comes to."""
    name = "interrupt-overlap-nopartial-replay"
    talk, (initialize, first, *rest) = Conversation("claude", "session", **REPLAYS), read_recorded_input(name)
    talk.send_requests(initialize, first)
    talk.tell("begin_prompt", 1)
    talk.tell("delta", "a long streamed answer with many")
    talk.send_requests(*rest)
    talk.tell("acknowledge")
    talk.tell("begin_prompt", 2)
    talk.tell("answer", "answer two")
    assert_alike(talk.take_printed(), read_recorded_events(name))


def test_a_prompt_that_comes_while_a_tool_runs_is_swallowed() -> None:
    """There is one result for both; a script that waits for the second one's turn waits for ever."""
    talk, (initialize, first, second) = (
        Conversation("claude", "session", **WHOLE),
        read_recorded_input("two-prompts-midtool-uuid"),
    )
    talk.send_requests(initialize, first)
    talk.tell("begin_prompt", 1)
    talk.tell("tool", {"id": "t", "name": "Bash", "input": {"command": "sleep 2; echo a", "description": "d"}})
    talk.send_requests(second)
    talk.tell("tool_done", {"id": "t", "output": "a", "error": None})
    talk.tell("answer", "answer one")
    assert_alike(talk.take_printed(), read_recorded_events("two-prompts-midtool-uuid"))
    assert not talk.host.has_received_prompt(2)


def test_an_interrupt_of_nothing_is_answered_at_once() -> None:
    """And nothing else is printed."""
    talk, (initialize, first, interrupt, second) = (
        Conversation("claude", "session", **WHOLE),
        read_recorded_input("interrupt-idle"),
    )
    talk.send_requests(initialize, first)
    talk.tell("begin_prompt", 1)
    talk.tell("answer", "answer one")
    talk.send_requests(interrupt, second)
    assert talk.events == []
    talk.tell("begin_prompt", 2)
    talk.tell("answer", "answer two")
    assert_alike(talk.take_printed(), read_recorded_events("interrupt-idle"))


def test_an_interrupt_that_the_result_crosses_is_answered_after_the_result() -> None:
    """The real CLI answers every control request; a client that waits for the response is not kept waiting."""
    talk, (initialize, first, interrupt, _) = (
        Conversation("claude", "session", **WHOLE),
        read_recorded_input("interrupt-idle"),
    )
    talk.send_requests(initialize, first)
    talk.tell("begin_prompt", 1)
    talk.send_requests(interrupt)
    talk.tell("answer", "answer one")
    kinds = [event["type"] for event in talk.take_printed()]
    assert kinds.index("result") < len(kinds) - 1 - kinds[::-1].index("control_response")
    assert talk.host.end_cancelled_turn(0) == b"", "it was answered already"


def test_an_interrupt_of_a_turn_that_ended_by_itself_spares_the_next_one() -> None:
    """An agent that acknowledges late answers the interrupt, and aborts no later turn."""
    talk, (initialize, first, interrupt, second) = (
        Conversation("claude", "session", **WHOLE),
        read_recorded_input("interrupt-idle"),
    )
    talk.send_requests(initialize, first)
    talk.tell("begin_prompt", 1)
    talk.send_requests(interrupt)
    talk.tell("answer", "answer one")
    talk.send_requests(second)
    talk.tell("begin_prompt", 2)
    talk.tell("acknowledge")
    talk.tell("answer", "answer two")
    results = [event["result"] for event in talk.take_printed() if event["type"] == "result"]
    assert results == ["answer one", "answer two"]


def test_stop_task_ends_a_task_and_no_turn_follows() -> None:
    """The response comes after the task's lines; of a task that there is not, at once."""
    talk = Conversation("claude", "session", **WHOLE)
    talk.send_requests(*read_recorded_input("bg-stop-task")[:2])
    talk.tell("begin_prompt", 1)
    talk.tell("task", TASK)
    talk.tell("answer", "a")
    talk.take_printed()
    talk.send_requests(
        build_control_request("st_bad", "stop_task", task_id="x"),
        build_control_request("st_1", "stop_task", task_id="b"),
    )
    real = read_recorded_events("bg-stop-task")
    begin = next(index for index, event in enumerate(real) if _find_answered_request(event) == "st_bad")
    assert summarize_events(talk.take_printed()) == summarize_events(real[begin : begin + 6])


def build_control_request(number: str, subtype: str, **more: Any) -> bytes:
    """Make a control request."""
    request = {"subtype": subtype, **more}
    return json.dumps({"type": "control_request", "request_id": number, "request": request}).encode()


def _find_answered_request(event: dict[str, Any]) -> str | None:
    number: str | None = event.get("response", {}).get("request_id")
    return number


def test_the_permission_mode_is_the_one_that_the_client_set() -> None:
    """A client reads the mode in the response, and again in the init of the next turn; another one is refused."""
    talk = Conversation("claude", "session")
    talk.host.modes = ["plan", "acceptEdits"]
    talk.send_requests(
        build_control_request("i", "initialize"),
        build_control_request("a", "set_permission_mode", mode="acceptEdits"),
        build_control_request("b", "set_permission_mode", mode="bypassPermissions"),
    )
    greeting, good, status, bad = (event.get("response", event) for event in talk.take_printed())
    assert greeting["response"]["current_permission_mode"] == "plan"
    assert good == {"subtype": "success", "request_id": "a", "response": {"mode": "acceptEdits"}}
    assert (status["subtype"], status["status"], status["permissionMode"]) == ("status", None, "acceptEdits")
    error = "Cannot set permission mode to bypassPermissions because it is disabled by settings or configuration"
    assert bad == {"subtype": "error", "request_id": "b", "error": error, "error_code": "bypass_disabled"}
    assert talk.host.permission_mode == "acceptEdits"


def test_control_requests_are_answered_by_the_dialect() -> None:
    """A request without anything to report succeeds, an unknown request fails; answers and signs of life are none."""
    talk = Conversation("claude", "session")
    talk.send_requests(
        build_control_request("a", "set_model", model="m"),
        build_control_request("b", "bogus"),
        b'{"type":"keep_alive"}',
    )
    good, bad = (event["response"] for event in talk.take_printed())
    assert good == {"subtype": "success", "request_id": "a", "response": {"model": "m"}}
    error = "Unsupported control request subtype: bogus"
    assert bad == {"subtype": "error", "request_id": "b", "error": error, "error_code": "unsupported_request"}
    reply, event = talk.host.handle_request(b"not json", 0)
    assert (reply[:35], event) == (b"Error parsing streaming input line ", "fault")


def test_without_uuid_and_environment_there_are_no_marks_and_no_states() -> None:
    """As the real CLI, which prints them for those who ask."""
    talk = Conversation("claude", "session")
    talk.send_requests(b'{"type":"user","message":{"role":"user","content":"hi"},"parent_tool_use_id":null}')
    talk.tell("begin_prompt", 1)
    talk.tell("answer", "done")
    events = talk.take_printed()
    assert [event.get("subtype", event["type"]) for event in events] == ["init", "assistant", "success"]
    assert not any("user_message_uuids" in event for event in events)
    talk.tell("say", "late", None)
    assert [event["type"] for event in talk.take_printed()] == ["assistant"]
