"""The tasks of a claude that is talked to: the lines about them, their words, and when the session is idle."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.conversations import Conversation, read_recorded_events

READS: dict[str, Any] = {"environ": {b"CLAUDE_CODE_SDK_READS_SESSION_STATE": b"1"}}
TOOL = {"id": "t", "name": "Bash", "input": {"command": "ls", "description": "d ls"}}


def build_prompt(uuid: str = "") -> bytes:
    """Make a prompt, with a uuid or without."""
    own = f',"uuid":"{uuid}"' if uuid else ""
    return b'{"type":"user","message":{"role":"user","content":"hi"},"parent_tool_use_id":null' + own.encode() + b"}"


def begin_turn_with_tasks(*numbers: str) -> Conversation:
    """Talk to a claude that has tasks, in a turn that continues."""
    talk = Conversation("claude", "session", **READS)
    talk.send_requests(build_prompt())
    talk.tell("begin_prompt", 1)
    for number in numbers:
        talk.tell("task", {"id": number, "kind": "local_bash"})
    talk.take_printed()
    return talk


def build_task_end(number: str, **more: Any) -> dict[str, Any]:
    """Give what the step says of a task's end."""
    return {"id": number, "status": "completed", "in_same_turn": False, **more}


def list_kinds(events: list[dict[str, Any]]) -> list[str]:
    """Say of each line what it is."""
    return [str(message.get("state") or message.get("subtype") or message["type"]) for message in events]


@pytest.mark.parametrize(
    ("name", "more", "words"),
    [
        ("bg-late", {}, "completed (exit code 0)"),
        ("bg-failed-exit7", {"status": "failed", "exit_code": 7}, "failed with exit code 7"),
        ("bg-killed-sigkill", {"status": "failed"}, "failed with exit code 1"),
        ("bg-stop-task", {"status": "stopped"}, ""),
    ],
)
def test_the_end_of_a_task_is_reported_in_the_real_words(name: str, more: dict[str, Any], words: str) -> None:
    """The output of the command; for a stopped one its description alone."""
    talk, real = (
        begin_turn_with_tasks("b"),
        next(message for message in read_recorded_events(name) if message.get("subtype") == "task_notification"),
    )
    talk.tell("task_done", build_task_end("b", **more))
    told = next(message for message in talk.take_printed() if message["subtype"] == "task_notification")
    assert told["summary"] == (f'Background command "b" {words}' if words else "b")
    assert (real["status"], real["summary"].endswith(words)) == (told["status"], True)
    assert list(told) == list(real)


def test_an_end_by_a_signal_to_the_agent_is_printed_the_other_way_round() -> None:
    """And no line says where its output is."""
    talk = begin_turn_with_tasks("b")
    talk.tell("task_done", build_task_end("b", status="stopped", signalled=True))
    told = talk.take_printed()
    assert list_kinds(told) == ["task_notification", "task_updated", "background_tasks_changed"]
    assert told[0]["output_file"] == ""


def test_a_long_command_in_the_foreground_is_a_task_without_a_turn() -> None:
    """It starts and ends between the tool's own lines, and no list of tasks has it."""
    talk, real = begin_turn_with_tasks(), read_recorded_events("fg-bash-3s-task-lines")
    talk.tell("tool", TOOL)
    talk.tell("task", {"id": "f", "kind": "local_bash", "tool": "t", "foreground": True})
    talk.tell("task_done", build_task_end("f"))
    talk.tell("tool_done", {"id": "t", "output": "one", "error": None})
    events = talk.take_printed()
    wanted = [
        message
        for message in real
        if message.get("subtype", message["type"]) in ("task_started", "task_notification", "user")
    ]
    assert [list(message) for message in events[1:]] == [list(message) for message in wanted]
    assert (events[1]["is_backgrounded"], events[2]["summary"], events[2]["output_file"]) == (False, "d ls", "")


def test_the_empty_result_is_about_the_task_that_ended_with_it() -> None:
    """Its keys have an order of their own."""
    talk, real = (
        begin_turn_with_tasks("b", "c"),
        next(message for message in read_recorded_events("bg-two") if message.get("result") == ""),
    )
    talk.tell("answer", "one")
    for number in "bc":
        talk.tell("task_done", build_task_end(number))
    talk.tell("background_turn", {"task": "c", "empty_result_first": True})
    talk.tell("answer", "two")
    empty, full = [message for message in talk.take_printed() if message["type"] == "result"][1:]
    assert [message["origin"]["runId"] for message in (empty, full)] == ["run-b", "run-c"]
    assert list(empty) == list(real)


def test_the_session_is_not_idle_while_a_background_turn_is_owed() -> None:
    """A task that ended in the turn has its own right after it; one in the same turn has none."""
    talk = begin_turn_with_tasks("b", "c", "d")
    talk.tell("task_done", build_task_end("b"))
    talk.tell("answer", "one")
    assert list_kinds(talk.take_printed())[-1] == "success"
    talk.tell("background_turn", {"task": "b", "empty_result_first": False})
    talk.tell("tool", TOOL)
    talk.tell("task_done", build_task_end("c", in_same_turn=True))
    talk.tell("task_done", build_task_end("d", status="stopped"))
    talk.tell("tool_done", {"id": "t", "output": "", "error": None})
    talk.tell("answer", "two")
    assert list_kinds(talk.take_printed())[-2:] == ["success", "idle"]


def test_after_the_end_of_stdin_it_is_idle_only_without_tasks() -> None:
    """It stays for them."""
    talk = begin_turn_with_tasks("b")
    talk.host.note_stdin_end()
    talk.tell("answer", "one")
    assert list_kinds(talk.take_printed())[-1] == "success"
    talk = begin_turn_with_tasks()
    talk.host.note_stdin_end()
    talk.tell("answer", "one")
    assert list_kinds(talk.take_printed())[-1] == "idle"


def test_only_the_first_prompt_comes_after_the_state_that_it_causes() -> None:
    """As recorded in bg-overlap-uuid."""
    talk = Conversation("claude", "session", **READS)
    talk.send_requests(build_prompt("u"))
    assert list_kinds(talk.take_printed()) == ["running", "queued"]
    talk.tell("begin_prompt", 1)
    talk.tell("answer", "one")
    talk.take_printed()
    talk.send_requests(build_prompt("v"))
    assert list_kinds(talk.take_printed()) == ["queued", "running"]


def test_what_was_denied_stands_in_the_result_of_its_turn() -> None:
    """And in no other's; a hook's word after the tool denies nothing."""
    talk = begin_turn_with_tasks()
    talk.tell("tool", TOOL)
    question = talk.ask("permission", "Bash")
    answer = '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{}}}'
    talk.send_requests((answer % question.key).encode())
    behind = talk.ask("hook", "h", event="PostToolUse")
    talk.send_requests((answer % behind.key).replace("{}", '{"decision":"block"}').encode())
    talk.tell("tool_done", {"id": "t", "output": "", "error": "no"})
    talk.tell("answer", "one")
    talk.send_requests(build_prompt())
    talk.tell("begin_prompt", 2)
    talk.tell("answer", "two")
    first, second = [message["permission_denials"] for message in talk.take_printed() if message["type"] == "result"]
    assert first == [{"tool_name": "Bash", "tool_use_id": "t", "tool_input": TOOL["input"]}]
    assert second == []
