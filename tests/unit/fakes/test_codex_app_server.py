"""The fake of `codex app-server`: every line fits the schema of the pinned release, in the order of the real CLI."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.unit.conversations import Conversation

SCHEMA = json.loads((Path(__file__).parents[2] / "data" / "codex-app-server.schema.json").read_text("utf-8"))
THREAD = "01a20072-e39f-7280-8216-1a538c0445ff"
COMMAND = {"id": "t", "name": "command_execution", "input": {"command": "ls"}}
MCP = {"id": "m", "name": "look", "input": {"a": 1}}
DONE = {"error": None, "output": "x"}


def build_request(number: int, method: str, **params: Any) -> bytes:
    """Make a request."""
    return json.dumps({"id": number, "method": method, "params": params}).encode()


def build_prompt(number: int, text: str = "hi") -> bytes:
    """Make a prompt."""
    return build_request(number, "turn/start", threadId=THREAD, input=[{"type": "text", "text": text}])


def talk_in_a_thread(**abilities: bool) -> Conversation:
    """Shake hands, and start a thread."""
    talk = Conversation("codex", "app-server")
    client = {"clientInfo": {"name": "x", "version": "1"}, "capabilities": abilities}
    talk.send_requests(build_request(0, "initialize", **client), b'{"method":"initialized"}')
    talk.send_requests(build_request(1, "thread/start", cwd="/"))
    return talk


def talk_in_a_turn() -> Conversation:
    """Ask, and have the script take the prompt."""
    talk = talk_in_a_thread()
    talk.send_requests(build_prompt(2))
    talk.tell("begin_prompt", 1)
    talk.take_printed()
    return talk


def build_interrupt(number: int = 9, turn: int = 1) -> bytes:
    """Make an interrupt of a turn."""
    return build_request(number, "turn/interrupt", threadId=THREAD, turnId=f"01a20072-0000-7000-8000-{turn:012}")


def assert_fits(message: dict[str, Any], methods: dict[Any, str]) -> None:
    """Validate a message; `methods` says what the requests of the client asked for."""
    part = "requests" if "id" in message and "method" in message else "notifications"
    if "method" in message:
        schema, value = SCHEMA[part][message["method"]], message
    elif "error" in message:
        schema, value = SCHEMA["responses"]["error"], message
    else:
        schema, value = SCHEMA["responses"][methods[message["id"]]], message["result"]
    whole = {**schema, "definitions": SCHEMA["definitions"]}
    jsonschema.Draft7Validator(whole).validate(value)


def list_kinds(messages: list[dict[str, Any]]) -> list[str]:
    """Say of each message what it is."""
    return [message.get("method") or f"answer to {message['id']}" for message in messages]


def test_every_line_fits_the_schema_of_the_release() -> None:
    """A client with types generated from that schema reads every message."""
    methods = dict(enumerate(("initialize", "thread/start", "turn/start")))
    talk = talk_in_a_thread(experimentalApi=True)
    others = ("thread/resume", "model/list", "thread/list", "skills/list", "account/read", "frobnicate", "initialize")
    for number, method in enumerate(others, 20):
        methods[number] = method
        talk.send_requests(build_request(number, method, **({"threadId": THREAD} if method == "thread/resume" else {})))
    talk.send_requests(build_request(2, "turn/start", threadId=THREAD, input=[], model="m2"))
    talk.tell("begin_prompt", 1)
    for step, value in (("think", "hm"), ("plan", ["a"]), ("delta", "o"), ("tool", COMMAND), ("tool", MCP)):
        talk.tell(step, value)
    talk.tell("say", "ne", None)
    talk.ask("permission", "ls")
    talk.send_requests(b'{"id":0,"result":{"decision":"accept"}}')
    talk.tell("tool_done", {"id": "t", **DONE})
    talk.tell("tool_done", {"id": "m", **DONE, "error": "bad"})
    talk.tell("tool", {**MCP, "id": "n"})
    talk.tell("tool_done", {"id": "n", **DONE})
    talk.tell("event", {"method": "item/started", "params": {"item": {"type": "contextCompaction", "id": "c"}}})
    talk.tell("answer", "done")
    for number, step in ((3, "fail"), (4, "interrupt")):
        methods |= {number: "turn/start", 9: "turn/interrupt"}
        talk.send_requests(build_prompt(number))
        talk.tell("begin_prompt", number - 1)
        if step == "fail":
            talk.tell("result", {"text": "boom", "is_error": True, "usage": None})
        else:
            talk.send_requests(build_interrupt(9, number - 1))
            talk.tell("acknowledge")
    printed = talk.take_printed()
    for message in printed:
        assert_fits(message, methods)
    seen = Counter(message["method"] for message in printed if "method" in message)
    assert {*SCHEMA["notifications"], *SCHEMA["requests"]} == {*seen}


def test_a_turn_is_printed_as_the_real_cli_prints_it() -> None:
    """The answer to the prompt comes first, the usage after each of the model's answers, the state before the end."""
    talk = talk_in_a_thread()
    talk.take_printed()
    talk.send_requests(build_prompt(2))
    assert talk.take_printed() == []
    talk.tell("begin_prompt", 1)
    talk.tell("say", "see", None)
    talk.tell("tool", COMMAND)
    talk.tell("tool_done", {"id": "t", **DONE})
    talk.tell("answer", "done")
    printed = talk.take_printed()
    item, usage, status = ["item/started", "item/completed"], "thread/tokenUsage/updated", "thread/status/changed"
    begun = ["answer to 2", status, "turn/started", *item]
    assert list_kinds(printed) == [*begun, *item, *item, usage, *item, usage, status, "turn/completed"]
    turn = printed[-1]["params"]["turn"]
    assert (turn["status"], [message["text"] for message in turn["items"]]) == ("completed", ["done"])
    assert printed[-3]["params"]["tokenUsage"]["total"]["totalTokens"] == 30


def test_a_text_in_pieces_is_one_message() -> None:
    """The item begins empty, and its end has the whole text."""
    talk = talk_in_a_turn()
    talk.tell("delta", "do")
    talk.tell("answer", "ne")
    texts = [
        message["params"].get("delta", message["params"].get("item", {}).get("text"))
        for message in talk.take_printed()[:4]
    ]
    assert texts == ["", "do", "ne", "done"]


def test_an_interrupt_is_answered_as_the_turn_ends() -> None:
    """A tool that runs gets no end. An interrupt that comes too late is refused."""
    talk = talk_in_a_turn()
    talk.tell("tool", COMMAND)
    talk.take_printed()
    talk.send_requests(build_interrupt())
    assert (talk.events, talk.take_printed()) == (["cancel"], [])
    talk.tell("acknowledge")
    usage, status, end = "thread/tokenUsage/updated", "thread/status/changed", "turn/completed"
    printed = talk.take_printed()
    assert list_kinds(printed) == [usage, "answer to 9", status, end]
    assert printed[-1]["params"]["turn"]["status"] == "interrupted"
    talk.send_requests(build_interrupt(10), build_prompt(3))
    assert talk.events == ["cancel"]
    assert talk.take_printed() == [{"id": 10, "error": {"code": -32600, "message": "no active turn to interrupt"}}]
    talk.send_requests(build_interrupt(11, 9))
    found = (
        "expected active turn id 01a20072-0000-7000-8000-000000000009 but found 01a20072-0000-7000-8000-000000000002"
    )
    assert talk.take_printed()[0]["error"]["message"] == found


def test_a_turn_is_steered_if_the_client_names_it() -> None:
    """The answer has the turn's id only. The refusals are in the words of the real CLI."""
    talk = talk_in_a_turn()
    turn, other = (f"01a20072-0000-7000-8000-{number:012}" for number in (1, 9))
    content = [{"type": "text", "text": "more"}]
    for number, expected in ((3, turn), (4, other)):
        talk.send_requests(build_request(number, "turn/steer", threadId=THREAD, expectedTurnId=expected, input=content))
    answer, started, completed, refusal = talk.take_printed()
    assert_fits(answer, {3: "turn/steer"})
    assert (answer["result"], list_kinds([started, completed])) == (
        {"turnId": turn},
        ["item/started", "item/completed"],
    )
    assert started["params"]["item"]["content"][0]["text"] == "more"
    assert refusal["error"]["message"] == f"expected active turn id `{other}` but found `{turn}`"
    talk.tell("answer", "done")
    talk.take_printed()
    talk.send_requests(build_request(5, "turn/steer", threadId=THREAD, expectedTurnId=turn, input=content))
    assert talk.take_printed()[0]["error"]["message"] == "no active turn to steer"


@pytest.mark.parametrize("is_busy", [False, True])
def test_a_compaction_is_a_turn_of_its_own(is_busy: bool) -> None:
    """It begins after its answer, and interrupts a turn that runs."""
    talk = talk_in_a_turn() if is_busy else talk_in_a_thread()
    talk.take_printed()
    talk.send_requests(build_request(3, "thread/compact/start", threadId=THREAD))
    printed = talk.take_printed()
    for message in printed:
        assert_fits(message, {3: "thread/compact/start"})
    status, items, end = "thread/status/changed", ["item/started", "item/completed"], "turn/completed"
    ended = [status, end] if is_busy else []
    assert list_kinds(printed) == ["answer to 3", *ended, status, "turn/started", *items, status, end]
    assert [message["params"]["turn"]["status"] for message in printed if message.get("method") == end] == [
        *(["interrupted"] if is_busy else []),
        "completed",
    ]
    assert printed[-4]["params"]["item"]["type"] == "contextCompaction"
    assert len({message["params"]["turnId"] for message in printed if "turnId" in message.get("params", {})}) == 1


def test_two_threads_of_one_server_have_ids_and_turns_of_their_own() -> None:
    """A prompt in the second thread does not join the turn of the first one."""
    talk = talk_in_a_turn()
    talk.send_requests(build_request(3, "thread/start", cwd="/"))
    second = talk.take_printed()[0]["result"]["thread"]["id"]
    assert second != THREAD
    talk.send_requests(build_request(4, "turn/start", threadId=second, input=[{"type": "text", "text": "hi"}]))
    talk.tell("say", "first", None)
    assert {message["params"]["threadId"] for message in talk.take_printed()} == {THREAD}
    assert talk.host.has_received_prompt(2)
    talk.tell("answer", "done")
    talk.take_printed()
    talk.tell("begin_prompt", 2)
    talk.tell("answer", "done")
    assert {message["params"]["threadId"] for message in talk.take_printed()[1:]} == {second}


def test_a_prompt_during_a_turn_joins_it() -> None:
    """The real CLI answers with the turn that runs: two prompts have one end."""
    talk = talk_in_a_turn()
    talk.send_requests(build_prompt(3, "more"))
    answer, started, _ = talk.take_printed()
    assert answer["result"]["turn"]["id"] == started["params"]["turnId"] == "01a20072-0000-7000-8000-000000000001"
    assert not talk.host.has_received_prompt(2)


def test_a_prompt_before_the_turn_of_the_first_one_is_answered_after_that() -> None:
    """The turn begins after both answers, and has both prompts. So does the real CLI."""
    talk = talk_in_a_thread()
    talk.take_printed()
    talk.send_requests(build_prompt(2), build_prompt(3, "more"))
    assert talk.take_printed() == []
    talk.tell("begin_prompt", 1)
    printed, items = talk.take_printed(), ["item/started", "item/completed"]
    assert list_kinds(printed) == [
        "answer to 2",
        "answer to 3",
        "thread/status/changed",
        "turn/started",
        *items,
        *items,
    ]
    texts = [message["params"]["item"]["content"][0]["text"] for message in printed[4::2]]
    assert (texts, len({message["result"]["turn"]["id"] for message in printed[:2]})) == (["hi", "more"], 1)


def test_an_interrupt_without_the_id_of_a_turn_is_for_the_turn_of_its_thread() -> None:
    """Without a turn it has nothing to do, and is no error."""
    talk = talk_in_a_turn()
    empty = {"threadId": THREAD, "turnId": ""}
    talk.send_requests(build_request(9, "turn/interrupt", **empty))
    talk.tell("acknowledge")
    assert (talk.events, list_kinds(talk.take_printed())[0]) == (["cancel"], "answer to 9")
    talk.send_requests(build_request(10, "turn/interrupt", **empty))
    assert (talk.events, talk.take_printed()) == (["cancel"], [{"id": 10, "result": {}}])


@pytest.mark.parametrize(
    ("decision", "answer", "status"),
    [
        ("accept", "allow", "completed"),
        ("acceptForSession", "allow", "completed"),
        ({"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["ls"]}}, "allow", "completed"),
        ("decline", "deny", "declined"),
        ("cancel", "cancelled", "declined"),
        (None, "deny", "declined"),
    ],
)
def test_a_decision_is_taken_and_resolved(decision: Any, answer: str, status: str) -> None:
    """The client reads that its answer was taken, and that the command was declined."""
    talk = talk_in_a_turn()
    talk.tell("tool", COMMAND)
    question = talk.ask("permission", "ls")
    waiting, asked = talk.take_printed()[-2:]
    assert waiting["params"]["status"]["activeFlags"] == ["waitingOnApproval"]
    assert (asked["id"], asked["params"]["itemId"], asked["params"]["command"]) == (0, "t", "ls")
    talk.send_requests(
        json.dumps({"id": 0, **({"result": {"decision": decision}} if decision else {"error": {}})}).encode()
    )
    resolved, active = talk.take_printed()
    assert (question.answer, resolved["params"]["requestId"]) == (answer, 0)
    assert active["params"]["status"] == {"type": "active", "activeFlags": []}
    talk.tell("tool_done", {"id": "t", "output": "x", "error": None if status == "completed" else "denied"})
    assert talk.take_printed()[0]["params"]["item"]["status"] == status


def test_a_message_that_is_no_answer_resolves_nothing() -> None:
    """The agent still waits; only a result or an error is an answer."""
    talk = talk_in_a_turn()
    question = talk.ask("permission", "ls")
    talk.take_printed()
    talk.send_requests(b'{"id":0}')
    assert (question.answer, talk.take_printed()) == ("", [])


def test_what_is_refused_is_refused_in_the_words_of_the_real_one() -> None:
    """The handshake comes first and once; a line that is no message gets no answer."""
    talk = Conversation("codex", "app-server")
    talk.send_requests(
        build_prompt(1),
        b"nonsense",
        build_request(2, "initialize"),
        build_request(3, "initialize"),
        build_request(4, "frobnicate"),
    )
    other = "01a20072-e39f-7280-8216-000000000000"
    talk.send_requests(
        build_request(5, "thread/resume", threadId=other), build_request(6, "turn/start", threadId=other)
    )
    talk.send_requests(
        *(build_request(number, f"turn/{what}") for number, what in enumerate(("start", "interrupt"), 7))
    )
    assert [message.get("error", {}).get("message") for message in talk.take_printed()] == [
        "Not initialized",
        None,
        "Already initialized",
        "Invalid request: unknown variant `frobnicate`",
        f"no rollout found for thread id {other}",
        f"thread not found: {other}",
        *["Invalid request: missing field `threadId`"] * 2,
    ]


PLAN = {"mode": "plan", "settings": {"model": "m2"}}
SETTINGS = [
    ({"model": "m2"}, [("m2", "default")]),
    ({"collaborationMode": PLAN}, [("m2", "plan")]),
    ({"model": "m1"}, []),
    ({"model": None}, []),
]


@pytest.mark.parametrize(("changes", "expected"), SETTINGS)
@pytest.mark.parametrize("method", ["thread/settings/update", "turn/start"])
def test_a_client_with_the_experimental_part_reads_what_has_changed(
    method: str, changes: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    """The real CLI prints it after its response, and before the turn that has the new settings."""
    talk = talk_in_a_thread(experimentalApi=True)
    talk.take_printed()
    talk.send_requests(build_request(2, method, threadId=THREAD, input=[], **changes))
    printed = talk.take_printed()
    reported = [message["params"]["threadSettings"] for message in printed if "params" in message]
    assert [(found["model"], found["collaborationMode"]["mode"]) for found in reported] == expected
    assert [message["result"] for message in printed if "id" in message] == ([{}] if "update" in method else [])


_MODES = "`plan`, `code`, `custom`, `default`, `execute`, `pair_programming`"
REFUSED_SETTINGS = [
    ("thread/settings/update", {"model": "m2"}, "thread/settings/update requires experimentalApi capability"),
    ("turn/start", {"collaborationMode": PLAN}, "turn/start.collaborationMode requires experimentalApi capability"),
    ("turn/start", {"model": 5}, "Invalid request: invalid type: integer `5`, expected a string"),
    (
        "thread/settings/update",
        {"collaborationMode": {"mode": "fly"}},
        f"Invalid request: unknown variant `fly`, expected one of {_MODES}",
    ),
]


@pytest.mark.parametrize(("method", "changes", "error"), REFUSED_SETTINGS)
def test_a_setting_is_refused_in_the_words_of_the_real_cli(method: str, changes: dict[str, Any], error: str) -> None:
    """Without the ability a client may name the model of a turn, and nothing else."""
    talk = talk_in_a_thread()
    talk.take_printed()
    talk.send_requests(build_request(2, method, threadId=THREAD, input=[], **changes))
    assert [message["error"]["message"] for message in talk.take_printed()] == [error]
