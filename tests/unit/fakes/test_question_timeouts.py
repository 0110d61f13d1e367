"""A question that claude takes back when it gets no answer in time: the steps, the lines, and the notes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.bookkeeping import StagedPlay, number_steps
from tests.unit.conversations import Conversation, read_recorded_events

HOOK: dict[str, Any] = {"kind": "hook", "name": "h", "id": "q", "event": "PreToolUse", "for": 5}
PROMPT = b'{"type":"user","message":{"role":"user","content":"hi"},"parent_tool_use_id":null}'
INTERRUPT = b'{"type":"control_request","request_id":"i","request":{"subtype":"interrupt"}}'
ANSWER = b'{"type":"control_response","response":{"subtype":"success","request_id":"q","response":{}}}'
TOOL = {"id": "t", "name": "Bash", "input": {"command": "ls", "description": "d"}}


def play_asking_claude() -> StagedPlay:
    """Play a claude that asks a hook for five nanoseconds, says which branch it took, and continues."""
    branches = [number_steps(("bytes", "stderr", word)) for word in (b"yes", b"no", b"late")]
    steps = number_steps(("ask", HOOK, *branches), ("bytes", "stderr", b"on"), ("sleep", None))
    play = StagedPlay(program={"dialect": "claude", "mode": "session", "code": 0, "serves": True, "steps": steps})
    assert play.grant(0)[-1] == ("q", {"asked": "h", "kind": "hook", "number": 1})
    return play


def build_answer_note(answer: str) -> tuple[str, Any]:
    """Give the note of an answer."""
    return ("q", {"answered": "h", "answer": answer, "number": 1})


def test_a_question_is_withdrawn_at_its_instant_and_a_later_answer_is_ignored() -> None:
    """Its own branch is played, then the script continues."""
    play = play_asking_claude()
    assert (play.player.earliest_wake_instant, play.grant(4)) == (5, [])
    note, (stream, line), *words = play.grant(5)
    assert (note, stream, words) == (build_answer_note("cancelled"), "stdout", [("stderr", b"late"), ("stderr", b"on")])
    assert json.loads(line) == {"type": "control_cancel_request", "request_id": "q"}
    assert play.grant(6, stdin=ANSWER + b"\n")[1:] == []


@pytest.mark.parametrize("now", [3, 5])
def test_an_answer_in_time_ends_the_wait(now: int) -> None:
    """At the very instant, too: input that is heard comes first; no process waits for that instant any more."""
    play = play_asking_claude()
    assert play.grant(now, stdin=ANSWER + b"\n")[1:] == [
        build_answer_note("allow"),
        ("stderr", b"yes"),
        ("stderr", b"on"),
    ]
    assert (play.player.earliest_wake_instant, play.grant(9)) == (None, [])


def test_the_end_of_stdin_ends_the_wait_too() -> None:
    """No answer can come, and the session is over."""
    play = play_asking_claude()
    assert play.grant(1, stdin=b"")[1:] == [("exit", 0)]


def begin_turn_with_question() -> Conversation:
    """Talk to a claude whose tool is asked about."""
    talk = Conversation("claude", "session")
    talk.send_requests(PROMPT)
    talk.tell("begin_prompt", 1)
    talk.tell("tool", TOOL)
    return talk


def end_of(talk: Conversation, error: str = "no") -> dict[str, Any]:
    """End the tool with an error; give the line that says so."""
    talk.take_printed()
    talk.tell("tool_done", {"id": "t", "output": "", "error": error})
    end: dict[str, Any] = talk.take_printed()[0]
    return end


def test_the_end_of_a_tool_says_what_became_of_the_question_about_it() -> None:
    """Given up: an error without a word of who decided; still open: cancelled; denied: by whom."""
    talk = begin_turn_with_question()
    talk.host.withdraw_question(talk.ask("hook", "h"))
    end = end_of(talk)
    assert (end["tool_use_result"], "tool_result_meta" in end) == ("Error: no", False)
    talk = begin_turn_with_question()
    talk.ask("hook", "h")
    end = end_of(talk)
    assert (end["tool_use_result"], end["tool_result_meta"]) == ("no", [{"id": "t", "non_execution_kind": "cancelled"}])
    assert list(end["message"]["content"][0]) == ["type", "content", "is_error", "tool_use_id"]


@pytest.mark.parametrize(("is_asked", "begins"), [(True, ""), (False, " Correction to the text above: ")])
def test_an_interrupted_tool_says_whether_it_had_begun(*, is_asked: bool, begins: str) -> None:
    """One that was still asked about was refused, any other one stopped while it ran."""
    talk = begin_turn_with_question()
    if is_asked:
        talk.ask("hook", "h")
    talk.send_requests(INTERRUPT)
    talk.tell("acknowledge")
    (end,) = (message for message in talk.take_printed() if "tool_use_result" in message)
    meta = [{"id": "t", "non_execution_kind": "user-rejected"}]
    assert (end["tool_use_result"], end["tool_result_meta"]) == ("User rejected tool use", meta)
    real = next(
        message for message in read_recorded_events("hooks-interrupt-while-waiting") if "tool_use_result" in message
    )
    more = end["message"]["content"][0]["content"].removeprefix(real["message"]["content"][0]["content"])
    assert (more.startswith(begins), bool(more)) == (True, not is_asked)


def test_a_hook_gets_the_end_of_the_turn_and_the_tasks_that_run_on() -> None:
    """As in the real one: the last words, and the tasks; after the tool its output, and the task that it left."""
    talk, real = (
        begin_turn_with_question(),
        [message for message in read_recorded_events("stdin-eof-bg-hooks") if message["type"] == "control_request"],
    )
    talk.tell("task", {"id": "b", "kind": "local_bash", "tool": "t"})
    talk.take_printed()
    _, data = talk.host.ask_client({"kind": "hook", "name": "h", "id": None, "event": "PostToolUse", "output": "hi"}, 0)
    response = json.loads(data)["request"]["input"]["tool_response"]
    assert (response["stdout"], response["backgroundTaskId"]) == ("hi", "b")
    assert list(response) == list(real[1]["request"]["input"]["tool_response"])
    talk.tell("say", "done", "end_turn")
    talk.take_printed()
    talk.ask("hook", "h", event="Stop")
    (asked,) = talk.take_printed()
    reported, really = asked["request"]["input"], real[2]["request"]["input"]
    assert (list(asked["request"]), list(reported)) == (list(real[2]["request"]), list(really))
    assert (reported["last_assistant_message"], reported["stop_hook_active"], reported["session_crons"]) == (
        "done",
        False,
        [],
    )
    task = {"id": "b", "type": "shell", "status": "running", "description": "d", "command": "ls"}
    assert reported["background_tasks"] == [task]
    assert list(task) == list(really["background_tasks"][0])
