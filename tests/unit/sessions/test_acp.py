"""Sessions in ACP: the handshake in two steps, turns by id, cancels without an answer, questions (P1-P3, P5-P7)."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_agentproc.supervisor import ContinuedSession, Policy
from tests.unit.session_stage import Stage

POLICY = Policy(prompt_timeout=60.0)


def build_reply(number: int, result: dict[str, Any]) -> dict[str, Any]:
    """Make a response."""
    return {"jsonrpc": "2.0", "id": number, "result": result}


def build_update(kind: str, **words: Any) -> dict[str, Any]:
    """Make a notification of a session's update."""
    params = {"sessionId": "s", "update": {"sessionUpdate": kind, **words}}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}


def build_chunk(text: str) -> dict[str, Any]:
    """Make a piece of a message."""
    return build_update("agent_message_chunk", content={"type": "text", "text": text})


def begin_first_prompt() -> Stage:
    """Make a session whose first prompt is in flight since zero: its request has the id 2."""
    stage = Stage("acp", policy=POLICY)
    [hello] = stage.take_sent()
    assert (hello["id"], hello["method"], hello["params"]["protocolVersion"]) == (0, "initialize", 1)
    stage.print_lines(build_reply(0, {"protocolVersion": 1}))
    [new] = stage.take_sent()
    assert (new["id"], new["method"], new["params"]) == (1, "session/new", {"cwd": "/work", "mcpServers": []})
    assert stage.status == "starting"
    stage.print_lines(build_reply(1, {"sessionId": "s"}))
    assert (stage.status, stage.machine.session_id) == ("ready", "s")
    stage.prompt("one")
    [prompt] = stage.take_sent()
    assert prompt["params"] == {"sessionId": "s", "prompt": [{"type": "text", "text": "one"}]}
    assert (prompt["id"], prompt["method"]) == (2, "session/prompt")
    return stage


def list_shown(stage: Stage) -> list[tuple[int | None, str]]:
    """Give the whole messages and the errors that viewers read, with their turns."""
    return [(event.turn, event.text) for event in stage.events if event.kind in ("message", "error")]


def test_viewers_read_every_message_whole_when_it_ends() -> None:
    """A viewer of whole messages reads what the agent said in pieces, before the tool and before the outcome (P4)."""
    stage = begin_first_prompt()
    stage.print_lines(
        build_chunk("let me "), build_chunk("look"), build_update("tool_call", toolCallId="c", title="ls")
    )
    assert list_shown(stage) == [(1, "let me look")]
    assert [event.kind for event in stage.events[-2:]] == ["message", "tool"]
    stage.print_lines(build_chunk("it is "), build_chunk("empty"), build_reply(2, {"stopReason": "end_turn"}))
    assert list_shown(stage) == [(1, "let me look"), (1, "it is empty")]
    assert [event.kind for event in stage.events[-3:]] == ["message", "outcome", "status"]


def test_viewers_read_the_words_of_a_turn_before_the_error_that_ended_it() -> None:
    """The words that a timeout or the agent's death cut off were said before (P4)."""
    stage = begin_first_prompt()
    stage.print_lines(build_chunk("half"))
    stage.advance_to(60)
    stage.print_lines(build_reply(2, {"stopReason": "cancelled"}))
    stage.prompt("two")
    stage.print_lines(build_chunk("cut"))
    stage.exit_agent(1)
    words = [text if turn else "?" for turn, text in list_shown(stage)]
    assert words == ["half", "no progress for 60 s: the turn was cancelled, the agent lives on", "cut", "?"]


@pytest.mark.parametrize(
    ("response", "outcome", "error"),
    [
        (build_reply(2, {"stopReason": "max_tokens"}), "completed", ""),
        (build_reply(2, {"stopReason": "refusal"}), "failed", "refusal"),
        (build_reply(2, {"stopReason": "cancelled"}), "failed", "cancelled"),
        (build_reply(2, {}), "failed", "the response has no stopReason"),
        ({"id": 2, "error": {"code": -32000, "message": "auth required"}}, "failed", "auth required"),
    ],
)
def test_every_end_of_a_turn_has_its_outcome(response: dict[str, Any], outcome: str, error: str) -> None:
    """The agent cancelled a turn that its client never cancelled: that turn has failed."""
    stage = begin_first_prompt()
    stage.print_lines(response)
    [event] = [event for event in stage.events if event.kind == "outcome"]
    assert event.result is not None
    assert (event.text, event.result.error) == (outcome, error)


@pytest.mark.parametrize("number", [2, 99, "3", None, True])
def test_a_response_that_answers_nothing_ends_nothing(number: Any) -> None:
    """A duplicate, a wrong id, a wrong type: the turn in flight continues."""
    stage = begin_first_prompt()
    stage.print_lines(build_reply(2, {"stopReason": "end_turn"}))
    stage.prompt("two")
    stage.print_lines({"jsonrpc": "2.0", "id": number, "result": {"stopReason": "end_turn"}})
    assert stage.describe_end(2) is None
    stage.print_lines(build_reply(3, {"stopReason": "end_turn"}))
    assert stage.describe_end(2) == ("completed", 0.0, None)


def test_what_the_client_cannot_do_is_refused_at_once() -> None:
    """A request without an answer would hang the agent."""
    stage = begin_first_prompt()
    stage.print_lines({"jsonrpc": "2.0", "id": "f1", "method": "fs/read_text_file", "params": {}})
    [refusal] = stage.take_sent()
    assert (refusal["id"], refusal["error"]["code"]) == ("f1", -32601)


def test_an_envelope_of_the_wrong_shape_is_a_protocol_error() -> None:
    """An object that is no JSON-RPC message: whoever speaks so cannot be talked to (F3). Noise is only counted (F2)."""
    stage = begin_first_prompt()
    stage.agent.output["stdout"] += b"debug: hello\n{broken\n"
    stage.look()
    assert (stage.describe_end(1), stage.machine.noise) == (None, 2)
    stage.print_lines({"type": "agent_end"})
    assert stage.describe_end(1) == ("protocol_error", 0.0, None)
    assert (stage.agents[0].signals, stage.status) == (["TERM"], "restarting")


@pytest.mark.parametrize(
    ("number", "error", "words"),
    [(0, {"code": -32602, "message": "version"}, "version"), (1, {"code": -32000, "message": "log in"}, "log in")],
)
def test_a_refused_handshake_fails_in_the_agents_words(number: int, error: dict[str, Any], words: str) -> None:
    """Both steps can be refused; the process is ended (P6)."""
    stage = Stage("acp")
    if number:
        stage.print_lines(build_reply(0, {}))
    stage.print_lines({"jsonrpc": "2.0", "id": number, "error": error})
    assert (stage.status, stage.agent.signals, stage.agent.is_reaped) == ("failed", ["TERM"], True)
    assert [event.text for event in stage.events if event.kind == "error"] == [f"agent: it refused: {words}"]


ABLE = {"agentCapabilities": {"loadSession": True, "sessionCapabilities": {"resume": {}}}}


@pytest.mark.parametrize("able", [{}, {"loadSession": False, "sessionCapabilities": {"resume": None}}])
@pytest.mark.parametrize("how", ["load", "resume"])
def test_an_agent_that_cannot_open_it_is_asked_for_nothing(how: str, able: dict[str, Any]) -> None:
    """A new session in its place would lose the conversation without a word (P6)."""
    stage = Stage("acp", continues=ContinuedSession(how, "s"))
    stage.take_sent()
    stage.print_lines(build_reply(0, {"agentCapabilities": able}))
    assert (stage.status, stage.take_sent()) == ("failed", [])
    assert [event.text for event in stage.events if event.kind == "error"] == [
        f"agent: it refused: it has no session/{how}"
    ]


def list_past(stage: Stage) -> list[tuple[str, int | None, str]]:
    """Give what viewers read of the session's past."""
    return [event[1:4] for event in stage.events if event.kind.startswith("past")]


def test_a_replayed_history_belongs_to_no_turn() -> None:
    """Viewers read it as the past; a tool that it leaves open keeps no turn at work (P5)."""
    stage = Stage("acp", policy=Policy(inactivity_timeout=10.0), continues=ContinuedSession("load", "s"))
    stage.prompt("go on")
    asked = build_update("user_message_chunk", content={"type": "text", "text": "the plan?"})
    tool = build_update("tool_call", toolCallId="c", title="make")
    stage.print_lines(
        build_reply(0, ABLE), asked, build_chunk("tests "), tool, build_chunk("first"), build_reply(1, {})
    )
    stage.print_lines(build_chunk("done"), build_reply(2, {"stopReason": "end_turn"}))
    assert stage.describe_end(1) == ("completed", 0.0, "done")
    assert list_past(stage) == [
        ("past_prompt", None, "the plan?"),
        *(("past_message", None, t) for t in ("tests ", "first")),
    ]
    stage.prompt("and now")
    stage.advance_to(10)
    assert stage.describe_end(2) == ("inactive", 10.0, None)


def test_the_agent_of_a_restart_loads_the_session_again() -> None:
    """Its viewers have read the past already."""
    stage = Stage("acp", policy=Policy(restart_backoff=1.0), continues=ContinuedSession("load", "s"))
    stage.print_lines(build_reply(0, ABLE), build_chunk("old"), build_reply(1, {}))
    stage.exit_agent(3)
    stage.advance_to(1)
    stage.print_lines(build_reply(0, ABLE))
    assert stage.take_sent()[-1]["method"] == "session/load"
    stage.print_lines(build_chunk("old"), build_reply(1, {}))
    assert (stage.status, list_past(stage)) == ("ready", [("past_message", None, "old")])
