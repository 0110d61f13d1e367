"""Sessions in ACP: the handshake in two steps, turns by id, cancels without an answer, questions (P1-P3, P5-P7)."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_agentproc.supervisor import ContinuedSession, Policy
from pytest_agentproc.supervisor import _events as to
from tests.unit.session_stage import SECOND, Stage

POLICY = Policy(prompt_timeout=60.0, permission_timeout=40.0)
OPTIONS = [{"optionId": "y", "kind": "allow_once"}, {"optionId": "n", "kind": "reject_once"}]


def reply(number: int, result: dict[str, Any]) -> dict[str, Any]:
    """Make a response."""
    return {"jsonrpc": "2.0", "id": number, "result": result}


def update(kind: str, **words: Any) -> dict[str, Any]:
    """Make a notification of a session's update."""
    params = {"sessionId": "s", "update": {"sessionUpdate": kind, **words}}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}


def chunk(text: str) -> dict[str, Any]:
    """Make a piece of a message."""
    return update("agent_message_chunk", content={"type": "text", "text": text})


def question(number: int = 7, options: list[dict[str, str]] = OPTIONS) -> dict[str, Any]:
    """Make a permission request."""
    params = {"sessionId": "s", "toolCall": {"toolCallId": "c", "title": "rm -rf"}, "options": options}
    return {"jsonrpc": "2.0", "id": number, "method": "session/request_permission", "params": params}


def asked(*, handler: bool = False) -> Stage:
    """Make a session whose first prompt is in flight since zero: its request has the id 2."""
    stage = Stage("acp", policy=POLICY, handler=handler)
    [hello] = stage.sent()
    assert (hello["id"], hello["method"], hello["params"]["protocolVersion"]) == (0, "initialize", 1)
    stage.says(reply(0, {"protocolVersion": 1}))
    [new] = stage.sent()
    assert (new["id"], new["method"], new["params"]) == (1, "session/new", {"cwd": "/work", "mcpServers": []})
    assert stage.status == "starting"
    stage.says(reply(1, {"sessionId": "s"}))
    assert (stage.status, stage.machine.session_id) == ("ready", "s")
    stage.prompt("one")
    [prompt] = stage.sent()
    assert prompt["params"] == {"sessionId": "s", "prompt": [{"type": "text", "text": "one"}]}
    assert (prompt["id"], prompt["method"]) == (2, "session/prompt")
    return stage


def test_the_text_of_a_turn_is_its_last_message_in_pieces() -> None:
    """A tool ends a message; the pieces after it are the answer."""
    stage = asked()
    stage.says(chunk("let me "), chunk("look"), update("tool_call", toolCallId="c", title="ls"))
    stage.says(chunk("it is "), chunk("empty"), reply(2, {"stopReason": "end_turn"}))
    assert stage.ended(1) == ("completed", 0.0, "it is empty")


def shown(stage: Stage) -> list[tuple[int | None, str]]:
    """Give the whole messages and the errors that viewers read, with their turns."""
    return [(event.turn, event.text) for event in stage.events if event.kind in ("message", "error")]


def test_viewers_read_every_message_whole_when_it_ends() -> None:
    """A viewer of whole messages reads what the agent said in pieces, before the tool and before the outcome (P4)."""
    stage = asked()
    stage.says(chunk("let me "), chunk("look"), update("tool_call", toolCallId="c", title="ls"))
    assert shown(stage) == [(1, "let me look")]
    assert [event.kind for event in stage.events[-2:]] == ["message", "tool"]
    stage.says(chunk("it is "), chunk("empty"), reply(2, {"stopReason": "end_turn"}))
    assert shown(stage) == [(1, "let me look"), (1, "it is empty")]
    assert [event.kind for event in stage.events[-3:]] == ["message", "outcome", "status"]


def test_viewers_read_the_words_of_a_turn_before_the_error_that_ended_it() -> None:
    """The words that a timeout or the agent's death cut off were said before (P4)."""
    stage = asked()
    stage.says(chunk("half"))
    stage.until(60)
    stage.says(reply(2, {"stopReason": "cancelled"}))
    stage.prompt("two")
    stage.says(chunk("cut"))
    stage.exits(1)
    words = [text if turn else "?" for turn, text in shown(stage)]
    assert words == ["half", "no progress for 60 s: the turn was cancelled, the agent lives on", "cut", "?"]


def test_what_is_told_of_another_session_is_none_of_the_turns() -> None:
    """One agent may hold several, as one that was loaded before; an update without a name is the only session's."""
    stage = asked()
    other, nobodys = chunk("not mine"), chunk("mine")
    other["params"]["sessionId"] = "t"
    del nobodys["params"]["sessionId"]
    stage.says(other, nobodys, chunk(", too"), reply(2, {"stopReason": "end_turn"}))
    assert stage.ended(1) == ("completed", 0.0, "mine, too")


@pytest.mark.parametrize(
    ("response", "outcome", "error"),
    [
        (reply(2, {"stopReason": "max_tokens"}), "completed", ""),
        (reply(2, {"stopReason": "refusal"}), "failed", "refusal"),
        (reply(2, {"stopReason": "cancelled"}), "failed", "cancelled"),
        (reply(2, {}), "failed", "the response has no stopReason"),
        ({"id": 2, "error": {"code": -32000, "message": "auth required"}}, "failed", "auth required"),
    ],
)
def test_every_end_of_a_turn_has_its_outcome(response: dict[str, Any], outcome: str, error: str) -> None:
    """The agent cancelled a turn that its client never cancelled: that turn has failed."""
    stage = asked()
    stage.says(response)
    [event] = [event for event in stage.events if event.kind == "outcome"]
    assert event.result is not None
    assert (event.text, event.result.error) == (outcome, error)


@pytest.mark.parametrize("stop", ["cancelled", "end_turn"])
def test_what_comes_before_the_acknowledgement_belongs_to_the_cancelled_turn(stop: str) -> None:
    """Updates name no turn; the response does, whatever it says (P5)."""
    stage = asked()
    stage.until(60)
    assert [line["method"] for line in stage.sent()] == ["session/cancel"]
    stage.prompt("two")
    stage.says(chunk("late"))
    assert (stage.unacknowledged, stage.sent()) == (True, [])
    stage.says(chunk("later"), reply(2, {"stopReason": stop}))
    assert [line["id"] for line in stage.sent()] == [3]
    stage.says(chunk("two's"), reply(3, {"stopReason": "end_turn"}))
    assert (stage.ended(1), stage.ended(2)) == (("timed_out", 60.0, None), ("completed", 60.0, "two's"))


@pytest.mark.parametrize("number", [2, 99, "3", None, True])
def test_a_response_that_answers_nothing_ends_nothing(number: Any) -> None:
    """A duplicate, a wrong id, a wrong type: the turn in flight continues."""
    stage = asked()
    stage.says(reply(2, {"stopReason": "end_turn"}))
    stage.prompt("two")
    stage.says({"jsonrpc": "2.0", "id": number, "result": {"stopReason": "end_turn"}})
    assert stage.ended(2) is None
    stage.says(reply(3, {"stopReason": "end_turn"}))
    assert stage.ended(2) == ("completed", 0.0, None)


def test_a_question_without_a_handler_is_denied_at_once() -> None:
    """Also when no turn runs: an agent that waits for an answer would wait for ever (P7)."""
    stage = asked()
    stage.says(question())
    chosen = {"outcome": {"outcome": "selected", "optionId": "n"}}
    assert stage.sent() == [reply(7, chosen)]
    stage.says(reply(2, {"stopReason": "end_turn"}), question(8, []))
    assert stage.sent() == [reply(8, {"outcome": {"outcome": "cancelled"}})]


def test_the_deadline_rests_while_the_caller_owes_an_answer() -> None:
    """The agent can do nothing meanwhile; after the answer it has its whole time again (P2)."""
    stage = asked(handler=True)
    stage.until(30)
    stage.says(question())
    assert list(stage.machine.deadlines) == ["permission_timeout"]
    stage.until(65)
    stage.tells(to.AnswerQuestion("7", allowed=True), to.AnswerQuestion("7", allowed=False))
    assert stage.sent() == [reply(7, {"outcome": {"outcome": "selected", "optionId": "y"}})]
    stage.until(124)
    assert stage.ended(1) is None
    stage.until(125)
    assert stage.ended(1) == ("timed_out", 125.0, None)


def test_a_question_that_nobody_answers_in_time_is_denied() -> None:
    """permission_timeout, from the question (P7)."""
    stage = asked(handler=True)
    stage.until(10)
    stage.says(question())
    stage.until(49)
    assert stage.sent() == []
    stage.until(50)
    assert stage.sent() == [reply(7, {"outcome": {"outcome": "selected", "optionId": "n"}})]
    assert stage.machine.deadlines == {"prompt_timeout": 110 * SECOND}


def test_a_cancel_answers_every_open_question_first() -> None:
    """The protocol wants it: an agent that waits for an answer does not hear the cancel."""
    stage = asked(handler=True)
    stage.says(question())
    stage.tells(to.CancelTurn())
    answer, cancel = stage.sent()
    assert answer == reply(7, {"outcome": {"outcome": "cancelled"}})
    assert cancel["method"] == "session/cancel"
    stage.says(question(8))
    assert stage.sent() == [reply(8, {"outcome": {"outcome": "cancelled"}})]


def test_what_the_client_cannot_do_is_refused_at_once() -> None:
    """A request without an answer would hang the agent."""
    stage = asked()
    stage.says({"jsonrpc": "2.0", "id": "f1", "method": "fs/read_text_file", "params": {}})
    [refusal] = stage.sent()
    assert (refusal["id"], refusal["error"]["code"]) == ("f1", -32601)


def test_an_envelope_of_the_wrong_shape_is_a_protocol_error() -> None:
    """An object that is no JSON-RPC message: whoever speaks so cannot be talked to (F3). Noise is only counted (F2)."""
    stage = asked()
    stage.agent.output["stdout"] += b"debug: hello\n{broken\n"
    stage.look()
    assert (stage.ended(1), stage.machine.noise) == (None, 2)
    stage.says({"type": "agent_end"})
    assert stage.ended(1) == ("protocol_error", 0.0, None)
    assert (stage.agents[0].signals, stage.status) == (["TERM"], "restarting")


@pytest.mark.parametrize(
    ("number", "error", "words"),
    [(0, {"code": -32602, "message": "version"}, "version"), (1, {"code": -32000, "message": "log in"}, "log in")],
)
def test_a_refused_handshake_fails_in_the_agents_words(number: int, error: dict[str, Any], words: str) -> None:
    """Both steps can be refused; the process is ended (P6)."""
    stage = Stage("acp")
    if number:
        stage.says(reply(0, {}))
    stage.says({"jsonrpc": "2.0", "id": number, "error": error})
    assert (stage.status, stage.agent.signals, stage.agent.is_reaped) == ("failed", ["TERM"], True)
    assert [event.text for event in stage.events if event.kind == "error"] == [f"agent: it refused: {words}"]


ABLE = {"agentCapabilities": {"loadSession": True, "sessionCapabilities": {"resume": {}}}}


@pytest.mark.parametrize("how", ["load", "resume"])
@pytest.mark.parametrize("result", [None, {}, {"modes": None}])
def test_a_known_session_is_opened_by_its_name(how: str, result: Any) -> None:
    """The agent need not repeat the name, and its result may be null."""
    stage = Stage("acp", continues=ContinuedSession(how, "s"))
    stage.says(reply(0, ABLE))
    wanted = {"sessionId": "s", "cwd": "/work", "mcpServers": []}
    assert [(message["method"], message["params"]) for message in stage.sent()[1:]] == [(f"session/{how}", wanted)]
    stage.says({"jsonrpc": "2.0", "id": 1, "result": result})
    assert (stage.status, stage.machine.session_id) == ("ready", "s")
    stage.prompt("one")
    stage.says(chunk("hello"), reply(2, {"stopReason": "end_turn"}))
    assert stage.ended(1) == ("completed", 0.0, "hello")


@pytest.mark.parametrize("able", [{}, {"loadSession": False, "sessionCapabilities": {"resume": None}}])
@pytest.mark.parametrize("how", ["load", "resume"])
def test_an_agent_that_cannot_open_it_is_asked_for_nothing(how: str, able: dict[str, Any]) -> None:
    """A new session in its place would lose the conversation without a word (P6)."""
    stage = Stage("acp", continues=ContinuedSession(how, "s"))
    stage.sent()
    stage.says(reply(0, {"agentCapabilities": able}))
    assert (stage.status, stage.sent()) == ("failed", [])
    assert [event.text for event in stage.events if event.kind == "error"] == [
        f"agent: it refused: it has no session/{how}"
    ]


def past(stage: Stage) -> list[tuple[str, int | None, str]]:
    """Give what viewers read of the session's past."""
    return [event[1:4] for event in stage.events if event.kind.startswith("past")]


def test_a_replayed_history_belongs_to_no_turn() -> None:
    """Viewers read it as the past; a tool that it leaves open keeps no turn at work (P5)."""
    stage = Stage("acp", policy=Policy(inactivity_timeout=10.0), continues=ContinuedSession("load", "s"))
    stage.prompt("go on")
    asked = update("user_message_chunk", content={"type": "text", "text": "the plan?"})
    tool = update("tool_call", toolCallId="c", title="make")
    stage.says(reply(0, ABLE), asked, chunk("tests "), tool, chunk("first"), reply(1, {}))
    stage.says(chunk("done"), reply(2, {"stopReason": "end_turn"}))
    assert stage.ended(1) == ("completed", 0.0, "done")
    assert past(stage) == [
        ("past_prompt", None, "the plan?"),
        *(("past_message", None, t) for t in ("tests ", "first")),
    ]
    stage.prompt("and now")
    stage.until(10)
    assert stage.ended(2) == ("inactive", 10.0, None)


def test_the_agent_of_a_restart_loads_the_session_again() -> None:
    """Its viewers have read the past already."""
    stage = Stage("acp", policy=Policy(restart_backoff=1.0), continues=ContinuedSession("load", "s"))
    stage.says(reply(0, ABLE), chunk("old"), reply(1, {}))
    stage.exits(3)
    stage.until(1)
    stage.says(reply(0, ABLE))
    assert stage.sent()[-1]["method"] == "session/load"
    stage.says(chunk("old"), reply(1, {}))
    assert (stage.status, past(stage)) == ("ready", [("past_message", None, "old")])
