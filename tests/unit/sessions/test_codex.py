"""Sessions with `codex app-server`: the thread, turns by their ids, interrupts, approvals (P1, P3, P5-P7)."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_agentproc.supervisor import Policy
from pytest_agentproc.supervisor import _events as machine_events
from pytest_agentproc.vocabulary import DIALECTS, ContinuedSession
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


def test_an_interrupt_names_its_turn_and_the_end_of_the_turn_acknowledges_it() -> None:
    """The response to the interrupt says nothing: codex gives it at the end of the next turn if it comes too late."""
    stage = begin_first_prompt()
    stage.send_intents(machine_events.CancelTurn())
    [interrupt] = stage.take_sent()
    assert (interrupt["method"], interrupt["params"]) == ("turn/interrupt", {"threadId": "t", "turnId": "a"})
    stage.print_lines(build_reply(interrupt["id"]))
    assert stage.unacknowledged
    stage.print_lines(build_turn_end("interrupted"))
    assert (stage.unacknowledged, get_last_result(stage).outcome.value) == (False, "cancelled")


def test_a_cancel_before_the_turn_has_a_name_goes_out_with_the_name() -> None:
    """There is nothing to interrupt before."""
    stage = greet_session()
    stage.prompt("one")
    stage.take_sent()
    stage.send_intents(machine_events.CancelTurn())
    assert stage.take_sent() == []
    stage.print_lines(build_reply(3, turn={"id": "a"}))
    assert [line["method"] for line in stage.take_sent()] == ["turn/interrupt"]


def test_lines_of_other_threads_and_unknown_turns_belong_to_no_turn() -> None:
    """A sub-agent's end, a late end, a turn whose beginning was not seen."""
    stage = begin_first_prompt()
    stage.print_lines(
        build_message_end("not yours", thread="other"),
        build_notification("turn/completed", thread="other", status="completed"),
    )
    stage.print_lines(
        build_message_end("old", turn="z"), build_turn_end(turn="z"), build_message_end("mine"), build_turn_end()
    )
    assert (get_last_result(stage).text, get_last_result(stage).transcript) == ("mine", "mine")


def test_a_turn_that_no_prompt_began_is_a_background_turn() -> None:
    """Its words are not the next prompt's (B1)."""
    stage = greet_session()
    stage.print_lines(
        build_notification("turn/started", turn="own"),
        build_message_end("by myself", turn="own"),
        build_turn_end(turn="own"),
    )
    [background] = [event.result for event in stage.events if event.kind == "background"]
    assert background is not None
    assert background.text == "by myself"


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


@pytest.mark.parametrize("thread", ["t", "other"])
def test_a_question_that_is_resolved_elsewhere_is_withdrawn(thread: str) -> None:
    """The user answered it in another client; a sub-agent's question names the sub-agent's thread."""
    stage = begin_first_prompt(handler=True)
    stage.print_lines(
        build_notification("item/commandExecution/requestApproval", command="ls", thread=thread) | {"id": 0}
    )
    stage.print_lines(build_notification("serverRequest/resolved", requestId=0, thread=thread))
    assert [event.kind for event in stage.events][-1] == "withdrawn"


@pytest.mark.parametrize("is_resumed", [True, False])
def test_the_next_agent_resumes_the_thread_or_starts_a_new_one(*, is_resumed: bool) -> None:
    """A thread that ran no turn is not kept by codex: it cannot be resumed."""
    stage = begin_first_prompt()
    stage.exit_agent(1)
    stage.advance_to(1)
    stage.print_lines(build_reply(0, userAgent="x"))
    assert [line["method"] for line in stage.take_sent()] == ["initialize", "initialized", "thread/resume"]
    if is_resumed:
        stage.print_lines(build_reply(1, thread={"id": "t"}))
    else:
        stage.print_lines({"id": 1, "error": {"code": -32600, "message": "no rollout found for thread id t"}})
        assert [line["method"] for line in stage.take_sent()] == ["thread/start"]
        stage.print_lines(build_reply(2, thread={"id": "u"}))
    assert (stage.status, stage.machine.session_id) == ("ready", "t" if is_resumed else "u")


@pytest.mark.parametrize("is_missing", [True, False])
def test_a_thread_that_the_caller_continues_is_resumed_or_the_handshake_fails(*, is_missing: bool) -> None:
    """A new thread in its place would lose the conversation."""
    stage = Stage(CODEX, continues=ContinuedSession("resume", "t"))  # type: ignore[arg-type]
    stage.print_lines(build_reply(0, userAgent="x"))
    assert [line["method"] for line in stage.take_sent()] == ["initialize", "initialized", "thread/resume"]
    error = {"id": 1, "error": {"code": -32600, "message": "no rollout found for thread id t"}}
    stage.print_lines(error if is_missing else build_reply(1, thread={"id": "t"}))
    assert (stage.status, stage.take_sent()) == ("failed" if is_missing else "ready", [])


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
