"""The fakes' questions: the lines of the real CLIs, every kind of answer, and the script's reaction."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.bookkeeping import StagedPlay, number_steps
from tests.unit.conversations import Conversation, list_key_paths, read_recorded_events, read_recorded_input

READS: dict[str, Any] = {"environ": {b"CLAUDE_CODE_SDK_READS_SESSION_STATE": b"1"}}
COMMAND = {"command": "echo hooked", "description": "d echo hooked"}
INTERRUPT = b'{"type":"control_request","request_id":"i","request":{"subtype":"interrupt"}}'
PROMPT = b'{"type":"user","message":{"role":"user","content":"hi"},"parent_tool_use_id":null}'


def build_control_response(key: Any, response: Any, subtype: str = "success") -> bytes:
    """Make claude's client answer."""
    fields = {"subtype": subtype, "request_id": key, "response": response}
    return json.dumps({"type": "control_response", "response": fields}).encode()


def list_kinds(events: list[dict[str, Any]]) -> list[str]:
    """Say of each line what it is."""
    return [
        str(message.get("state") or message.get("request", message).get("subtype") or message["type"])
        for message in events
    ]


def begin_turn_with_tool(**program: Any) -> Conversation:
    """Talk to a claude that has a prompt in hand and a tool that runs."""
    talk = Conversation("claude", "session", **program)
    talk.send_requests(PROMPT)
    talk.tell("begin_prompt", 1)
    talk.tell("tool", {"id": "t", "name": "Bash", "input": COMMAND})
    talk.take_printed()
    return talk


def test_a_permission_is_asked_as_claude_asks_it() -> None:
    """The state before, the tool's own id and input, the state after the answer; the tool's end says who allowed."""
    talk, real = Conversation("claude", "session", **READS), read_recorded_events("perm")
    talk.send_requests(*read_recorded_input("perm")[:2])
    talk.tell("begin_prompt", 1)
    call = next(message for message in real if message["type"] == "assistant")["message"]["content"][0]
    talk.tell("tool", {key: call[key] for key in ("id", "name", "input")})
    question = talk.ask("permission", "Bash")
    talk.send_requests(build_control_response(question.key, {"behavior": "allow", "updatedInput": call["input"]}))
    talk.tell("tool_done", {"id": call["id"], "output": "", "error": None})
    talk.tell("answer", "Hello from fake")
    events = talk.take_printed()
    assert list_kinds(events) == list_kinds(real)
    (asked,), (really,) = (
        [message for message in lines if message["type"] == "control_request"] for lines in (events, real)
    )
    assert list_key_paths(really) - list_key_paths(asked) <= {"request.blocked_path", "request.description"} | {
        key for key in list_key_paths(really) if key.startswith("request.permission_suggestions.")
    }
    same = ("tool_name", "display_name", "input", "tool_use_id", "subtype")
    assert [asked["request"][key] for key in same] == [really["request"][key] for key in same]
    ends = [
        next(message for message in lines if "tool_result_meta" in message)["tool_result_meta"]
        for lines in (events, real)
    ]
    assert ends[0] == ends[1]


@pytest.mark.parametrize(
    ("response", "subtype", "answer"),
    [
        ({"behavior": "allow"}, "success", "allow"),
        ({"behavior": "deny", "message": "no"}, "success", "deny"),
        ({"behavior": "perhaps"}, "success", "deny"),
        ({"behavior": "allow"}, "error", "deny"),
        (None, "success", "deny"),
    ],
)
def test_what_does_not_allow_a_tool_of_claudes_denies_it(response: Any, subtype: str, answer: str) -> None:
    """No tool runs without a permission."""
    talk = begin_turn_with_tool()
    question = talk.ask("permission", "Bash")
    talk.send_requests(build_control_response(question.key, response, subtype))
    assert question.answer == answer


@pytest.mark.parametrize("name", ["hooks-late3", "hooks-deny-late3"])
def test_hooks_are_called_as_claude_calls_them(name: str) -> None:
    """Before the tool and after it, with its input and its output; a hook's denial is reported at the tool's end."""
    talk, real, sent = begin_turn_with_tool(**READS), read_recorded_events(name), read_recorded_input(name)
    calls = [message for message in real if message.get("request", {}).get("subtype") == "hook_callback"]
    real_end = next(message for message in real if "tool_result_meta" in message)["tool_result_meta"][0]
    answers = [message for message in map(json.loads, sent) if message["type"] == "control_response"]
    for really, answer in zip(calls, answers, strict=False):
        event = really["request"]["input"]["hook_event_name"]
        if event == "Stop":
            break
        question = talk.ask("hook", really["request"]["callback_id"], event=event)
        talk.send_requests(build_control_response(question.key, answer["response"]["response"]))
        (events,) = talk.take_printed()
        assert events["request"]["input"]["tool_input"] == really["request"]["input"]["tool_input"]
        assert list(events["request"]) == list(really["request"])
        assert list(events["request"]["input"]) == list(really["request"]["input"])
    talk.tell("tool_done", {"id": "t", "output": "hooked", "error": None})
    (end,) = talk.take_printed()
    assert end["tool_result_meta"] == [{**real_end, "id": "t"}]


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ({}, "allow"),
        ({"hookSpecificOutput": {"permissionDecision": "allow"}}, "allow"),
        ({"hookSpecificOutput": {"permissionDecision": "deny"}}, "deny"),
        ({"decision": "block"}, "deny"),
        ({"continue": False}, "deny"),
    ],
)
def test_a_hook_denies_what_it_says_no_to(response: Any, answer: str) -> None:
    """An empty answer is none."""
    talk = begin_turn_with_tool()
    question = talk.ask("hook", "h")
    talk.send_requests(build_control_response(question.key, response))
    assert question.answer == answer


def test_an_interrupt_takes_back_what_was_asked_in_its_turn() -> None:
    """The real CLI says so before it answers the interrupt, and a late answer is nothing to it."""
    talk, real = begin_turn_with_tool(**READS), read_recorded_events("hooks-interrupt-while-waiting")
    question = talk.ask("hook", "hook_pre")
    talk.send_requests(INTERRUPT)
    assert (question.answer, talk.events) == ("cancelled", ["cancel"])
    talk.tell("acknowledge")
    talk.send_requests(build_control_response(question.key, {}))
    begin = next(index for index, message in enumerate(real) if message["type"] == "control_request")
    end = next(index for index, message in enumerate(real) if message["type"] == "result") + 2
    assert list_kinds(talk.take_printed()) == list_kinds(real[begin:end])


def test_a_question_outside_a_turn_outlives_an_interrupt_and_is_about_a_tool_that_nobody_saw() -> None:
    """An interrupt of a turn takes back only what that turn asked."""
    talk = Conversation("claude", "session")
    first, second = talk.ask("permission", "Bash"), talk.ask("hook", "h")
    talk.send_requests(PROMPT)
    talk.tell("begin_prompt", 1)
    talk.send_requests(INTERRUPT)
    assert (first.answer, second.answer) == ("", "")
    requests = [message["request"] for message in talk.take_printed() if message["type"] == "control_request"]
    assert [message["tool_use_id"] for message in requests] == ["toolu_asked_1", "toolu_asked_2"]


def test_two_questions_are_about_two_tools_of_one_name() -> None:
    """Tools of one message are asked about in their order; a third question is about the last of them."""
    talk = begin_turn_with_tool()
    talk.tell("tool", {"id": "u", "name": "Bash", "input": {}})
    asked = [talk.ask("permission", "Bash").tool for _ in range(3)]
    assert (asked, talk.ask("hook", "h").tool) == (["t", "u", "u"], "t")


def test_an_answer_that_fits_no_open_question_is_nothing() -> None:
    """A wrong id, a second answer; of two questions with one id the first is answered first."""
    talk = begin_turn_with_tool()
    first, second = talk.ask("permission", "Bash", "same"), talk.ask("permission", "Bash", "same")
    talk.send_requests(
        build_control_response("other", {"behavior": "allow"}),
        build_control_response(None, {}),
        build_control_response(["same"], {}),
    )
    assert (first.answer, second.answer) == ("", "")
    talk.send_requests(build_control_response("same", {"behavior": "allow"}))
    talk.send_requests(
        build_control_response("same", {"behavior": "deny"}), build_control_response("same", {"behavior": "allow"})
    )
    assert (first.answer, second.answer) == ("allow", "deny")


def encode_acp_message(**message: Any) -> bytes:
    """Make a message of ACP."""
    return json.dumps({"jsonrpc": "2.0", **message}).encode()


def test_a_permission_is_asked_as_the_protocol_has_it() -> None:
    """The session, the tool call and both options; the numbers of its requests are its own."""
    talk = Conversation("acp", "session")
    talk.send_requests(encode_acp_message(id=0, method="session/new", params={}))
    talk.tell("tool", {"id": "c1", "name": "ls", "input": {}})
    talk.take_printed()
    talk.ask("permission", "ls")
    talk.ask("permission", "rm", "own")
    first, second = talk.take_printed()
    assert first == {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "session/request_permission",
        "params": {
            "sessionId": "sess_1",
            "toolCall": {"toolCallId": "c1", "title": "ls", "kind": "other", "status": "pending", "rawInput": {}},
            "options": [
                {"optionId": "allow-once", "name": "Allow", "kind": "allow_once"},
                {"optionId": "reject-once", "name": "Reject", "kind": "reject_once"},
            ],
        },
    }
    assert (second["id"], second["params"]["toolCall"]["toolCallId"]) == ("own", "call_1")


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        ({"id": 0, "result": {"outcome": {"outcome": "selected", "optionId": "allow-once"}}}, "allow"),
        ({"id": 0, "result": {"outcome": {"outcome": "selected", "optionId": "reject-once"}}}, "deny"),
        ({"id": 0, "result": {"outcome": {"outcome": "selected", "optionId": "allow-always"}}}, "deny"),
        ({"id": 0, "result": {"outcome": {"outcome": "cancelled"}}}, "cancelled"),
        ({"id": 0, "result": {}}, "deny"),
        ({"id": 0, "error": {"code": -32601, "message": "Method not found"}}, "deny"),
        ({"id": False, "result": {"outcome": {"outcome": "cancelled"}}}, ""),
        ({"id": "0", "result": {"outcome": {"outcome": "cancelled"}}}, ""),
        ({"id": None, "error": {"code": -32700, "message": "Parse error"}}, ""),
    ],
)
def test_an_agent_in_acp_reads_every_answer(message: dict[str, Any], answer: str) -> None:
    """A client without a handler answers with an error, and an id is the same only if its type is."""
    talk = Conversation("acp", "session")
    question = talk.ask("permission", "ls")
    talk.take_printed()
    talk.send_requests(encode_acp_message(**message))
    assert (question.answer, talk.take_printed()) == (answer, [])


def test_an_agent_calls_its_client_in_its_session() -> None:
    """A session's id is added, unless the script has one of its own; permissions count among its requests."""
    talk = Conversation("acp", "session")
    talk.send_requests(encode_acp_message(id=0, method="session/new", params={}))
    talk.take_printed()
    talk.call("fs/read_text_file", path="/a")
    talk.ask("permission", "ls")
    talk.call("terminal/output", "own", sessionId="other", terminalId="t")
    read, _, output = talk.take_printed()
    params = {"sessionId": "sess_1", "path": "/a"}
    assert read == {"jsonrpc": "2.0", "id": 0, "method": "fs/read_text_file", "params": params}
    assert (output["id"], output["params"]) == ("own", {"sessionId": "other", "terminalId": "t"})


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        ({"id": 0, "result": {"content": "x"}}, "answered"),
        ({"id": 0, "result": None}, "answered"),
        ({"id": 0, "error": {"code": -32601, "message": "Method not found"}}, "refused"),
        ({"id": "0", "result": {}}, ""),
    ],
)
def test_what_an_agent_called_is_answered_or_refused(message: dict[str, Any], answer: str) -> None:
    """A result of any shape answers; only an error refuses."""
    talk = Conversation("acp", "session")
    question = talk.call("fs/read_text_file")
    talk.take_printed()
    talk.send_requests(encode_acp_message(**message))
    assert (question.answer, talk.take_printed()) == (answer, [])


@pytest.mark.parametrize(
    ("more", "answer"),
    [({"confirmed": True}, "allow"), ({"confirmed": False}, "deny"), ({"cancelled": True}, "deny"), ({}, "deny")],
)
def test_an_extension_of_pis_asks_for_a_yes_or_a_no(more: dict[str, Any], answer: str) -> None:
    """Behind an abort, too, where commands have to wait."""
    talk = Conversation("pi", "rpc")
    talk.send_requests(b'{"type":"prompt","message":"hi"}', b'{"type":"abort"}')
    talk.take_printed()
    question = talk.ask("permission", "bash")
    (asked,) = talk.take_printed()
    head = {"type": "extension_ui_request", "id": question.key, "method": "confirm"}
    assert asked == {**head, "title": "bash", "message": "Allow bash?"}
    talk.send_requests(json.dumps({"type": "extension_ui_response", "id": "other", "confirmed": True}).encode())
    assert question.answer == ""
    talk.send_requests(json.dumps({"type": "extension_ui_response", "id": question.key, **more}).encode())
    assert (question.answer, talk.take_printed()) == (answer, [])


ASK = {"kind": "permission", "name": "bash", "id": "q", "event": "PreToolUse"}
ASKED = ("q", {"asked": "bash", "kind": "permission", "number": 1})


def play_asking_pi(*behind: tuple[Any, ...]) -> StagedPlay:
    """Play an agent of pi's that asks, says what was answered, and continues."""
    branches = (
        number_steps(("bytes", "stderr", b"yes")),
        number_steps(("bytes", "stderr", b"no"), ("await_prompt", 1)),
    )
    steps = number_steps(("ask", ASK, *branches, []), ("bytes", "stderr", b"on"), *behind)
    return StagedPlay(program={"dialect": "pi", "mode": "rpc", "code": 0, "serves": True, "steps": steps})


def build_reply(**more: Any) -> bytes:
    """Answer the question."""
    return json.dumps({"type": "extension_ui_response", "id": "q", **more}).encode() + b"\n"


def build_answer_note(answer: str) -> tuple[str, Any]:
    """Give the note of an answer."""
    return ("q", {"answered": "bash", "answer": answer, "number": 1})


@pytest.mark.parametrize(
    ("more", "answer", "words"),
    [
        ({"confirmed": True}, "allow", [b"yes", b"on"]),
        ({"confirmed": False}, "deny", [b"no"]),
        ({"cancelled": True}, "deny", [b"no"]),
    ],
)
def test_each_answer_has_its_branch_and_is_noted_when_it_comes(
    more: dict[str, Any], answer: str, words: list[bytes]
) -> None:
    """The track waits until then; a wait in a branch holds it up as anywhere."""
    play = play_asking_pi()
    assert play.grant(0)[-1] == ASKED
    assert play.grant(1, stdin=b'{"type":"extension_ui_response","id":"p","confirmed":true}\n')[1:] == []
    assert play.grant(2, stdin=build_reply(**more))[1:] == [
        build_answer_note(answer),
        *[("stderr", word) for word in words],
    ]


@pytest.mark.parametrize(("more", "answer"), [({"result": {}}, "answered"), ({"error": {}}, "refused")])
def test_the_answer_to_a_call_has_its_branch(more: dict[str, Any], answer: str) -> None:
    """As that to a question has."""
    call: dict[str, Any] = {"kind": "request", "name": "fs/read_text_file", "id": None, "params": {}}
    branches = [number_steps(("bytes", "stderr", word)) for word in (b"answered", b"refused")]
    steps = number_steps(("ask", call, *branches, []))
    play = StagedPlay(program={"dialect": "acp", "mode": "session", "code": 0, "serves": True, "steps": steps})
    assert play.grant(0)[-1] == ("q", {"asked": "fs/read_text_file", "kind": "request", "number": 1})
    reported = ("q", {"answered": "fs/read_text_file", "answer": answer, "number": 1})
    assert play.grant(1, stdin=encode_acp_message(id=0, **more) + b"\n")[1:] == [reported, ("stderr", answer.encode())]


def test_the_end_of_stdin_ends_a_track_that_waits_for_an_answer() -> None:
    """No answer can come, and the session is over; one that came with it counts."""
    play = play_asking_pi()
    play.grant(0)
    assert play.grant(1, stdin=b"")[1:] == [("exit", 0)]
    play = play_asking_pi()
    play.grant(0)
    play.book.stdin += [build_reply(confirmed=True), b""]
    assert play.grant(1)[1:] == [build_answer_note("allow"), ("stderr", b"yes"), ("stderr", b"on")]
    assert play.grant(2)[1:] == [("exit", 0)]


def test_a_wait_in_a_branch_that_can_never_end_ends_its_track() -> None:
    """As it would outside of one: the steps after the question are not played."""
    play = play_asking_pi()
    play.grant(0)
    assert play.grant(1, stdin=build_reply(confirmed=False))[1:] == [build_answer_note("deny"), ("stderr", b"no")]
    assert play.grant(2, stdin=b"")[1:] == [("exit", 0)]


def test_an_answer_is_noted_though_its_track_was_cut() -> None:
    """The record tells what was said, whoever still listens."""
    steps = number_steps(("meanwhile", number_steps(("ask", ASK, [], [], []))), ("sleep", 1))
    play = StagedPlay(program={"dialect": "pi", "mode": "rpc", "code": 0, "serves": True, "steps": steps})
    assert play.grant(0)[-1] == ASKED
    play.grant(1)
    assert play.grant(2, stdin=build_reply(confirmed=True))[1:] == [build_answer_note("allow")]
