"""The fake of an agent that speaks ACP: the messages of a real one, and what the protocol says of the others."""

from __future__ import annotations

import json
from typing import Any

from tests.unit.bookkeeping import StagedPlay, number_steps
from tests.unit.conversations import TRANSCRIPTS, Conversation

TOOL = {"id": "run_shell_command", "name": "echo hi", "input": {}}


def build_request(number: Any, method: str, **params: Any) -> bytes:
    """Make a request; one without a number is a notification."""
    head = {"jsonrpc": "2.0", **({} if number is None else {"id": number})}
    return json.dumps({**head, "method": method, "params": params}).encode()


def talk_to_a_new_session() -> Conversation:
    """Shake hands and make a session."""
    talk = Conversation("acp", "session")
    talk.send_requests(
        build_request(0, "initialize", protocolVersion=1), build_request(1, "session/new", cwd="/", mcpServers=[])
    )
    return talk


def build_prompt(number: Any, session: str = "sess_1") -> bytes:
    """Make a prompt."""
    return build_request(number, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": "hi"}])


def list_results(talk: Conversation) -> list[Any]:
    """Give what was answered since the last call: each result, or the code of each error."""
    return [message.get("result") or message["error"]["code"] for message in talk.take_printed() if "id" in message]


def describe_shape(message: dict[str, Any]) -> Any:
    """Say what a message is, without what is the agent's own."""
    update = message.get("params", {}).get("update", {})
    about = {key: update.get(key) for key in ("sessionUpdate", "status", "title")}
    result = message.get("result", {})
    return message.get("id"), message.get("method"), about, result.get("stopReason")


def test_a_turn_with_a_tool_is_printed_as_a_real_agent_prints_it() -> None:
    """A tool call in progress, its end, the text, and the response that ends the turn."""
    lines = (TRANSCRIPTS / "acp.txt").read_text("utf-8").splitlines()
    real = [json.loads(line[3:]) for line in lines if line.startswith("<<") and not line.endswith("...")]
    talk = talk_to_a_new_session()
    talk.send_requests(build_prompt(2))
    talk.take_printed()
    talk.tell("tool", TOOL)
    talk.tell("tool_done", {"id": "run_shell_command", "output": "", "error": None})
    talk.tell("answer", "Hello from fake")
    events = talk.take_printed()
    assert [describe_shape(message) for message in events] == [describe_shape(message) for message in real]
    assert events[-2]["params"]["update"] == real[-2]["params"]["update"]


def test_the_handshake_is_the_dialects_own() -> None:
    """A version, sessions new and loaded, modes; anything else is no method, and a line that is no JSON no request."""
    talk = Conversation("acp", "session")
    talk.send_requests(build_request(0, "initialize", protocolVersion=1))
    assert list_results(talk)[0]["protocolVersion"] == 1
    talk.send_requests(build_request("a", "session/new"), build_request("b", "session/new"))
    assert list_results(talk) == [{"sessionId": "sess_1"}, {"sessionId": "sess_2"}]
    talk.send_requests(build_request(1, "session/load", sessionId="old"))
    assert [(message["id"], message["result"]) for message in talk.take_printed()] == [(1, {})]
    talk.send_requests(
        build_request("r", "session/resume", sessionId="older"),
        build_request("c", "session/close"),
        build_prompt(9, "older"),
    )
    assert [(message["id"], message["result"]) for message in talk.take_printed()] == [("r", {}), ("c", {})]
    talk.send_requests(
        build_request(3, "session/dance"),
        build_request(4, "session/load"),
        build_prompt(5, "nobody"),
        b"{",
        b'{"id":6}',
    )
    assert list_results(talk) == [-32601, -32602, -32602, -32700, -32600]
    talk.send_requests(build_request(None, "$/unknown"), b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700}}')
    assert talk.take_printed() == []


def test_the_version_of_the_protocol_is_the_scripts() -> None:
    """A client must refuse an unknown one."""
    program = {"dialect": "acp", "code": 0, "serves": True, "steps": number_steps(("handshake", "version", 2))}
    play = StagedPlay(program=program)
    play.grant(0)
    asked = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n'
    ((_, reported),) = play.grant(1, stdin=asked)[1:]
    assert json.loads(reported)["result"]["protocolVersion"] == 2


def test_who_does_not_wait_for_a_handshake_that_never_comes_gets_no_answer_either() -> None:
    """A client may send all of its opening at once."""
    play = StagedPlay(
        program={"dialect": "acp", "code": 0, "serves": True, "steps": number_steps(("handshake", "never", None))}
    )
    play.grant(0)
    asks = build_request(0, "initialize", protocolVersion=1), build_request(1, "session/new")
    assert play.grant(1, stdin=b"\n".join(asks) + b"\n")[1:] == []


def test_a_loaded_session_reports_its_history_before_the_response() -> None:
    """Under its own id, and a resumed one tells nothing."""
    plan = {"sessionUpdate": "plan", "entries": []}
    steps = number_steps(
        ("handshake", "history", [("prompt", "hi"), ("think", "hm"), ("answer", "hello"), ("event", plan)])
    )
    play = StagedPlay(program={"dialect": "acp", "code": 0, "serves": True, "steps": steps})
    play.grant(0)
    asks = build_request(0, "session/load", sessionId="old"), build_request(1, "session/resume", sessionId="old")
    lines = b"".join(data for _, data in play.grant(1, stdin=b"\n".join(asks) + b"\n")[1:]).splitlines()
    *message, loaded, resumed = [json.loads(line) for line in lines]
    kinds = ("user_message_chunk", "agent_thought_chunk", "agent_message_chunk")
    updates = [
        {"sessionUpdate": kind, "content": {"type": "text", "text": text}}
        for kind, text in zip(kinds, ("hi", "hm", "hello"), strict=True)
    ]
    assert [message["params"] for message in message] == [
        {"sessionId": "old", "update": update} for update in (*updates, plan)
    ]
    assert [(message["id"], message["result"]) for message in (loaded, resumed)] == [(0, {}), (1, {})]


def test_modes_and_options_are_obeyed_and_an_unknown_one_is_an_error() -> None:
    """Each session has its own; the client reads in the next response what it has set."""
    talk = Conversation("acp", "session")
    talk.host.modes, talk.host.options = ["ask", "code"], {"model": ["fast", "deep"]}
    talk.send_requests(build_request(1, "session/new"), build_request(2, "session/new"))
    first, second = talk.take_printed()
    assert first["result"]["modes"]["currentModeId"] == "ask"
    assert first["result"]["configOptions"][0]["currentValue"] == "fast"
    assert {**first["result"], "sessionId": "sess_2"} == second["result"]
    talk.send_requests(
        build_request(3, "session/set_mode", sessionId="sess_1", modeId="code"),
        build_request(4, "session/set_config_option", sessionId="sess_1", configId="model", value="deep"),
        build_request(5, "session/load", sessionId="sess_1"),
        build_request(6, "session/load", sessionId="sess_2"),
    )
    mode, option, own, other = [message["result"] for message in talk.take_printed()]
    assert (mode, option) == ({}, {"configOptions": own["configOptions"]})
    assert (own["modes"]["currentModeId"], own["configOptions"][0]["currentValue"]) == ("code", "deep")
    assert {"sessionId": "sess_2", **other} == second["result"]
    talk.send_requests(
        build_request(7, "session/set_mode", sessionId="sess_1", modeId="fly"),
        build_request(8, "session/set_mode", sessionId="nobody", modeId="ask"),
        build_request(9, "session/set_config_option", sessionId="sess_1", configId="colour", value="deep"),
        build_request(10, "session/set_config_option", sessionId="sess_1", configId="model", value="wide"),
    )
    assert list_results(talk) == [-32602] * 4


def test_an_event_that_is_an_update_gets_its_session() -> None:
    """The session's events beside the turn; every other event stands as it is."""
    talk = talk_to_a_new_session()
    talk.take_printed()
    talk.tell("event", {"sessionUpdate": "current_mode_update", "currentModeId": "code"})
    talk.tell("event", {"jsonrpc": "2.0", "method": "_vendor/ping"})
    reported, ping = talk.take_printed()
    update = {"sessionUpdate": "current_mode_update", "currentModeId": "code"}
    assert reported == {
        "jsonrpc": "2.0",
        "method": "session/update",
        "params": {"sessionId": "sess_1", "update": update},
    }
    assert ping == {"jsonrpc": "2.0", "method": "_vendor/ping"}


def test_an_event_may_have_the_id_of_a_prompt() -> None:
    """Which each client draws for itself; of a prompt that was never asked there is none."""
    talk = talk_to_a_new_session()
    talk.send_requests(build_prompt("drawn"))
    talk.take_printed()
    talk.tell("answer", "hello")
    talk.tell("event", {"jsonrpc": "2.0", "id": "prompt 1", "result": {"stopReason": "end_turn"}})
    talk.tell("event", {"jsonrpc": "2.0", "id": "prompt 2", "result": {}})
    *_, first, again, other = talk.take_printed()
    assert (first["id"], again["id"], other["id"]) == ("drawn", "drawn", "prompt 2")
    assert first == again


def test_a_text_in_pieces_is_a_chunk_for_each() -> None:
    """The last one comes with the response."""
    talk = talk_to_a_new_session()
    talk.send_requests(build_prompt(2))
    talk.take_printed()
    talk.tell("delta", "Hel")
    talk.tell("answer", "lo")
    *chunks, ended = talk.take_printed()
    assert [message["params"]["update"]["content"]["text"] for message in chunks] == ["Hel", "lo"]
    assert ended["id"] == 2


def test_a_tool_has_its_kind_from_its_start_to_its_end() -> None:
    """Its files are named as it starts, and a permission that is asked for it is of the same kind."""
    talk = talk_to_a_new_session()
    talk.take_printed()
    talk.tell(
        "tool", {"id": "t", "name": "cat a", "input": {}, "kind": "read", "locations": [{"path": "/a", "line": 3}]}
    )
    talk.ask("permission", "cat a")
    talk.tell("tool_done", {"id": "t", "output": "", "error": None})
    started, asked, ended = talk.take_printed()
    assert started["params"]["update"]["locations"] == [{"path": "/a", "line": 3}]
    reported = (started["params"]["update"], asked["params"]["toolCall"], ended["params"]["update"])
    assert [update["kind"] for update in reported] == ["read"] * 3


def test_a_plan_is_an_update_with_all_its_entries() -> None:
    """As the schema of the protocol has it: a priority and a status for each."""
    talk = talk_to_a_new_session()
    talk.take_printed()
    talk.tell("plan", ["look", {"content": "mend", "status": "in_progress"}])
    (reported,) = talk.take_printed()
    entries = [
        {"content": name, "priority": "medium", "status": status}
        for name, status in (("look", "pending"), ("mend", "in_progress"))
    ]
    assert reported["params"] == {"sessionId": "sess_1", "update": {"sessionUpdate": "plan", "entries": entries}}


def test_a_cancelled_prompt_is_answered_as_cancelled() -> None:
    """Its tools fail; a cancel of nothing has no effect, and the prompt after it waits for its own answer."""
    talk = talk_to_a_new_session()
    talk.send_requests(build_request(None, "session/cancel", sessionId="sess_1"))
    assert talk.events == []
    talk.send_requests(build_prompt(7), build_prompt(8))
    talk.tell("begin_prompt", 1)
    talk.tell("tool", TOOL)
    talk.take_printed()
    talk.send_requests(build_request(None, "session/cancel", sessionId="sess_1"))
    assert talk.events == ["cancel"]
    talk.tell("acknowledge")
    failed, ended = talk.take_printed()
    assert failed["params"]["update"]["status"] == "failed"
    assert (ended["id"], ended["result"]) == (7, {"stopReason": "cancelled"})
    talk.tell("acknowledge")
    talk.tell("say", "late", None)
    assert [message["method"] for message in talk.take_printed()] == ["session/update"]
    talk.tell("begin_prompt", 2)
    talk.tell("answer", "done")
    assert talk.take_printed()[-1] == {"jsonrpc": "2.0", "id": 8, "result": {"stopReason": "end_turn"}}
    talk.tell("answer", "to nobody")
    assert [message["method"] for message in talk.take_printed()] == ["session/update"]


def test_a_turn_ends_with_the_reason_that_it_is_given() -> None:
    """A refusal, a failure, token counts; prompts may be answered in another order than they came."""
    talk = talk_to_a_new_session()
    talk.send_requests(build_prompt("x"), build_prompt("y"), build_prompt("z"))
    talk.take_printed()
    talk.tell("begin_prompt", 2)
    talk.tell("say", "no", "refusal")
    talk.tell("begin_prompt", 3)
    talk.tell("result", {"text": "broken", "is_error": True, "usage": None})
    talk.tell("begin_prompt", 1)
    talk.tell("think", "hm")
    talk.tell("event", {"jsonrpc": "2.0", "method": "x"})
    talk.tell("result", {"text": None, "is_error": False, "usage": {"quota": 1}})
    answers = [message for message in talk.take_printed() if "id" in message]
    assert answers == [
        {"jsonrpc": "2.0", "id": "y", "result": {"stopReason": "refusal"}},
        {"jsonrpc": "2.0", "id": "z", "error": {"code": -32603, "message": "broken"}},
        {"jsonrpc": "2.0", "id": "x", "result": {"stopReason": "end_turn", "_meta": {"quota": 1}}},
    ]
    talk.tell("result", {"text": None, "is_error": False, "usage": None})
    assert talk.take_printed() == []
