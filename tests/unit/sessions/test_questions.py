"""Open questions: their turns, and the end of the caller's handler when its answer is no longer wanted (P7)."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from pytest_agentproc.clock import SystemClock
from pytest_agentproc.errors import UsageError
from pytest_agentproc.supervisor import (
    Conversation,
    Policy,
    Question,
    Session,
    SessionEvent,
    SessionSettings,
    open_session,
    run_once,
)
from pytest_agentproc.supervisor import _events as machine_events
from tests.unit.session_stage import Stage


class Claude(Stage):
    """A claude that has greeted and asks."""

    def __init__(self, **limits: float) -> None:
        super().__init__("claude", policy=Policy(**limits), handler=True)  # type: ignore[arg-type]  # they are times
        response = {"subtype": "success", "request_id": "greet-0", "response": {}}
        self.print_lines({"type": "control_response", "response": response})
        self.take_sent()

    def begin_last_prompt(self) -> None:
        """Begin the turn of the prompt that was written last."""
        self.mark = self.take_sent()[-1]["uuid"]
        self.print_lines({"type": "system", "subtype": "init", "user_message_uuids": [self.mark]})

    def ask_permission(self, name: str) -> None:
        """Ask for a permission."""
        request = {"subtype": "can_use_tool", "tool_name": name, "input": {}}
        self.print_lines({"type": "control_request", "request_id": name, "request": request})

    def list_withdrawn(self) -> list[tuple[int | None, str]]:
        """Give the questions that need no answer any more, each with its turn."""
        return [(event.turn, event.text) for event in self.events if event.kind == "withdrawn"]


def test_a_cancel_withdraws_its_own_turns_questions() -> None:
    """They are answered, and the handler has nothing to say any more."""
    stage = Claude()
    stage.prompt()
    stage.begin_last_prompt()
    stage.ask_permission("a")
    stage.send_intents(machine_events.CancelTurn(1), machine_events.AnswerQuestion("a", allowed=True))
    [denied, interrupt] = stage.take_sent()
    assert denied["response"]["response"]["behavior"] == "deny"
    assert interrupt["type"] == "control_request"
    assert stage.list_withdrawn() == [(1, "a")]


@pytest.mark.parametrize("how", ["late", "withdrawn", "gone"])
def test_a_question_that_needs_no_answer_is_withdrawn(how: str) -> None:
    """No answer came in time, the agent wants no answer, or there is no agent."""
    stage = Claude(permission_timeout=5)
    stage.prompt()
    stage.begin_last_prompt()
    stage.ask_permission("a")
    if how == "late":
        stage.advance_to(5)
    elif how == "withdrawn":
        stage.print_lines({"type": "control_cancel_request", "request_id": "a"})
    else:
        stage.exit_agent(1)
    assert stage.list_withdrawn() == [(1, "a")]
    assert len(stage.machine.turns.questions) == 0


@pytest.mark.parametrize("begun", [True, False])
def test_the_handler_of_a_withdrawn_question_is_cancelled(*, begun: bool) -> None:
    """A dialog on a screen goes away by itself; what it would have said goes nowhere."""
    seen: list[str] = []
    lines: list[machine_events.CallerIntent] = []

    class Told:
        tell = lines.append

    async def handler(_: Question) -> bool:
        seen.append("asked")
        try:
            await anyio.sleep_forever()
        finally:
            seen.append("cancelled")
        return True

    session = Session(Conversation(SessionSettings(["agent"], "acp", has_handler=True)), SystemClock(), handler)
    session.set_driver(Told())  # type: ignore[arg-type]
    question = Question("q", "rm")

    async def host() -> None:
        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                session.receive_event(SessionEvent(0, "question", 1, question=question))
                if begun:
                    group.start_soon(session.answer_agent, group)
                    await anyio.wait_all_tasks_blocked()
                session.receive_event(SessionEvent(0, "withdrawn", 1, question=question))
                await anyio.wait_all_tasks_blocked()
                group.cancel_scope.cancel()

    anyio.run(host)
    assert (seen, lines) == (["asked", "cancelled"] if begun else [], [])


# An agent's words about a handshake that is done, and arguments that no process can be given.


def test_an_error_about_a_handshake_that_is_done_stops_nobody() -> None:
    """An ACP agent may use the same id again for something else."""
    stage = Stage("acp")
    stage.print_lines(
        {"jsonrpc": "2.0", "id": 0, "result": {}}, {"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s"}}
    )
    stage.take_sent()
    for number in (0, 1):
        stage.print_lines({"jsonrpc": "2.0", "id": number, "error": {"code": 1, "message": "no"}})
    stage.print_lines(
        {"jsonrpc": "2.0", "id": 0, "result": {}}, {"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "t"}}
    )
    assert (stage.status, stage.machine.session_id, stage.agent.signals, stage.take_sent()) == ("ready", "s", [], [])


def test_a_second_refusal_of_claude_stops_nobody() -> None:
    """The handshake is done."""
    stage = Claude()
    refused = {"subtype": "error", "request_id": "greet-0", "error": "no"}
    stage.print_lines({"type": "control_response", "response": refused})
    assert (stage.status, stage.agent.signals) == ("ready", [])


def test_a_pi_that_cannot_report_its_state_has_refused() -> None:
    """It is there, and it is not what a session can be held with (P6)."""
    stage = Stage("pi")
    stage.prompt()
    stage.print_lines(
        {"id": "greet-0", "type": "response", "command": "get_state", "success": False, "error": "no model"}
    )
    assert (stage.status, stage.agent.signals) == ("failed", ["TERM"])
    assert stage.describe_end(1) == ("handshake_failed", 0.0, None)
    assert stage.machine.failure is not None
    assert "it refused: no model" in stage.machine.failure[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"argv": ["x", "a\0b"]}, r"argv\[1\] holds a NUL character"),
        ({"argv": ["x\ud800"]}, r"argv\[0\] holds what is no text"),
        ({"argv": ["x"], "cwd": "a\0"}, "cwd holds a NUL character"),
        ({"argv": ["x"], "env": {"A": "\0"}}, "env 'A' holds a NUL character"),
        ({"argv": ["x"], "env": {"A\0": ""}}, r"env name 'A\\x00' holds a NUL character"),
        ({"argv": ["x"], "env": {"A=B": ""}}, "env name 'A=B' is empty or holds '='"),
        ({"argv": []}, "argv is empty"),
    ],
)
@pytest.mark.parametrize("door", ["run", "session"])
def test_what_no_process_can_be_given_is_the_callers_mistake(
    door: str, arguments: dict[str, Any], message: str
) -> None:
    """Told before anything is started, and never as the system call's own ValueError."""

    async def host() -> None:
        if door == "run":
            await run_once(dialect="pi", **arguments)
        else:
            async with open_session(dialect="pi", **arguments):
                raise AssertionError("it opened")

    with pytest.raises(UsageError, match=message):
        anyio.run(host)
