"""Sessions with `codex app-server`: the thread, turns by their ids, interrupts, approvals (P1, P3, P5-P7)."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_agentproc.supervisor import Policy
from pytest_agentproc.supervisor import _events as machine_events
from pytest_agentproc.vocabulary import DIALECTS
from tests.unit.session_stage import Stage

POLICY = Policy(prompt_timeout=60.0, permission_timeout=40.0)
CODEX = DIALECTS["codex"]


def build_reply(number: int, **result: Any) -> dict[str, Any]:
    """Make a response."""
    return {"id": number, "result": result}


def build_notification(method: str, *, thread: str = "t", turn: str = "a", **params: Any) -> dict[str, Any]:
    """Make a notification about a turn."""
    about = {"turn": {"id": turn, **params}} if method in ("turn/started", "turn/completed") else {"turnId": turn}
    return {"method": method, "params": {"threadId": thread, **params, **about}}


def build_message_end(text: str, **about: str) -> dict[str, Any]:
    """Make the end of a message."""
    return build_notification("item/completed", item={"type": "agentMessage", "id": "m", "text": text}, **about)


def build_turn_end(status: str = "completed", turn: str = "a", **more: Any) -> dict[str, Any]:
    """Make the end of a turn."""
    return build_notification("turn/completed", turn=turn, status=status, **more)


def greet_session(*, handler: bool = False) -> Stage:
    """Make a session in thread `t`, ready for its first prompt."""
    stage = Stage(CODEX, policy=POLICY, handler=handler)  # type: ignore[arg-type]  # a record is a dialect, too
    [hello] = stage.take_sent()
    assert (hello["id"], hello["method"], "jsonrpc" in hello) == (0, "initialize", False)
    stage.print_lines(build_reply(0, userAgent="x"))
    assert [line["method"] for line in stage.take_sent()] == ["initialized", "thread/start"]
    stage.print_lines(build_reply(2, thread={"id": "t"}, model="m9"))
    assert (stage.status, stage.machine.session_id) == ("ready", "t")
    return stage


def begin_first_prompt(*, handler: bool = False) -> Stage:
    """Put the first prompt in flight, as turn `a`."""
    stage = greet_session(handler=handler)
    stage.prompt("one")
    [prompt] = stage.take_sent()
    assert (prompt["id"], prompt["method"]) == (3, "turn/start")
    assert prompt["params"] == {"threadId": "t", "input": [{"type": "text", "text": "one"}]}
    stage.print_lines(build_reply(3, turn={"id": "a"}), build_notification("turn/started"))
    return stage


def get_last_result(stage: Stage) -> Any:
    """Give the result of the last turn that ended."""
    return [event.result for event in stage.events if event.kind == "outcome"][-1]


def test_the_text_of_a_turn_is_its_last_message() -> None:
    """The whole message replaces its pieces; model and usage come from the thread."""
    stage = begin_first_prompt()
    stage.print_lines(build_notification("item/agentMessage/delta", delta="he"), build_message_end("hello"))
    stage.print_lines(
        build_notification("thread/tokenUsage/updated", tokenUsage={"total": {"totalTokens": 15}}), build_turn_end()
    )
    told = get_last_result(stage)
    assert (told.text, told.transcript, told.model, told.stop_reason) == ("hello", "hello", "m9", "completed")
    assert told.usage == {"totalTokens": 15}


@pytest.mark.parametrize(
    ("end", "outcome", "error"),
    [
        (build_turn_end("failed", error={"message": "boom"}), "failed", "boom"),
        (build_turn_end("failed"), "failed", "failed"),
        (build_turn_end("interrupted"), "failed", "interrupted"),
        ({"method": "turn/completed", "params": {"threadId": "t", "turnId": "a"}}, "failed", "no turn"),
    ],
)
def test_every_end_of_a_turn_has_its_outcome(end: dict[str, Any], outcome: str, error: str) -> None:
    """A turn that codex interrupted by itself has failed."""
    stage = begin_first_prompt()
    stage.print_lines(end)
    assert (get_last_result(stage).outcome.value, get_last_result(stage).error) == (outcome, error)


@pytest.mark.parametrize("is_named", [True, False])
def test_an_error_that_is_not_tried_again_ends_the_turn(*, is_named: bool) -> None:
    """Codex does not always complete such a turn; a `turn/completed` that comes all the same changes nothing."""
    stage = begin_first_prompt()
    error = build_notification("error", error={"message": "stream disconnected"}, willRetry=False)
    stage.print_lines(error if is_named else {"method": "error", "params": {**error["params"], "turnId": None}})
    ended = get_last_result(stage)
    assert (ended.outcome, ended.error) == ("failed", "stream disconnected")
    assert stage.status == "ready"
    stage.print_lines(build_turn_end("failed"))
    assert get_last_result(stage) is ended


@pytest.mark.parametrize(
    ("lines", "quoted"),
    [
        ([], "; its last error: Reconnecting... 1/5"),
        ([build_message_end("here I am")], ""),
    ],
)
def test_an_error_that_is_tried_again_explains_a_turn_that_then_times_out(lines: list[Any], quoted: str) -> None:
    """Codex reconnects in silence; after progress the error is no reason any more."""
    stage = begin_first_prompt()
    stage.print_lines(build_notification("error", error={"message": "Reconnecting... 1/5"}, willRetry=True), *lines)
    assert stage.status == "prompting"
    stage.advance_to(60)
    why = "no progress for 60 s: the turn was cancelled, the agent lives on"
    assert get_last_result(stage).error == why + quoted


def test_a_refused_prompt_has_failed_in_the_words_of_the_refusal() -> None:
    """The next prompt is delivered at once."""
    stage = greet_session()
    stage.prompt("one")
    stage.prompt("two")
    stage.print_lines({"id": 3, "error": {"code": -32001, "message": "Server overloaded; retry later."}})
    assert (get_last_result(stage).outcome.value, get_last_result(stage).error) == (
        "failed",
        "Server overloaded; retry later.",
    )
    assert [line["id"] for line in stage.take_sent()] == [3, 5]


@pytest.mark.parametrize("kind", ["commandExecution", "fileChange"])
def test_an_approval_gets_its_decision(kind: str) -> None:
    """Without a handler it is declined; with one it is the caller's; a cancelled turn cancels it."""
    question = build_notification(f"item/{kind}/requestApproval", command="rm x", itemId="i") | {"id": 0}
    stage = begin_first_prompt()
    stage.print_lines(question)
    assert stage.take_sent() == [{"id": 0, "result": {"decision": "decline"}}]
    stage = begin_first_prompt(handler=True)
    stage.print_lines(question)
    [seen] = [event for event in stage.events if event.kind == "question"]
    assert (seen.text, seen.turn) == ("rm x", 1)
    stage.send_intents(machine_events.AnswerQuestion("0", allowed=True))
    assert stage.take_sent() == [{"id": 0, "result": {"decision": "accept"}}]
    stage.print_lines(question)
    stage.send_intents(machine_events.CancelTurn())
    assert [line.get("result", line.get("method")) for line in stage.take_sent()] == [
        {"decision": "cancel"},
        "turn/interrupt",
    ]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"id": 2, "error": {"code": -32600, "message": "no login"}}, "no login"),
        (build_reply(2, thread={}), "the response has no thread id"),
    ],
)
def test_a_refused_thread_fails_the_handshake(line: dict[str, Any], words: str) -> None:
    """There is nothing to talk in (P6)."""
    stage = Stage(CODEX)  # type: ignore[arg-type]
    stage.print_lines(build_reply(0), line)
    assert stage.status == "failed"
    assert [event.text for event in stage.events if event.kind == "error"] == [f"agent: it refused: {words}"]
