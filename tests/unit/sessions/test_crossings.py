"""Events that cross: a result and an exit, a cancel and a result, an exit and a caller that waits for it (P1, P6)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc.clock import SystemClock
from pytest_agentproc.supervisor import Conversation, Question, Session, SessionEvent, SessionSettings
from pytest_agentproc.supervisor import _events as machine_events
from tests.unit.session_stage import Stage

if TYPE_CHECKING:
    from collections.abc import Callable


def begin_first_prompt(*more: str) -> Stage:
    """Make a session whose first prompt pi has taken, and the others wait."""
    stage = Stage()
    stage.greet_as_pi()
    for text in ("one", *more):
        stage.prompt(text)
    stage.accept_prompt(1)
    stage.take_sent()
    return stage


def print_before_session_looks(stage: Stage, *values: dict[str, Any]) -> None:
    """Have the agent print, before the session looks."""
    stage.agent.output["stdout"] += b"".join(json.dumps(value).encode() + b"\n" for value in values)


def test_a_prompt_that_not_a_byte_of_went_out_is_not_lost_with_the_agent() -> None:
    """A result and the exit come together: the next prompt was never given, and goes to the next agent (P6)."""
    stage = begin_first_prompt("two")
    print_before_session_looks(stage, {"type": "agent_end"})
    stage.exit_agent(0)
    assert (stage.describe_end(1), stage.describe_end(2)) == (("completed", 0.0, None), None)
    stage.advance_to(1)
    stage.greet_as_pi()
    assert [line["message"] for line in stage.take_sent()] == ["two"]
    stage.accept_prompt(2)
    stage.advance_to(3)
    stage.answer_and_settle("TWO")
    [result] = [event.result for event in stage.events if event.kind == "outcome" and event.turn == 2]
    assert result is not None
    assert (result.text, result.elapsed) == ("TWO", 2_000_000_000)


def test_the_exit_code_of_a_turn_is_of_its_own_agent() -> None:
    """An error result of an agent that lives is 1, however the agent before it ended."""
    stage = begin_first_prompt()
    stage.exit_agent(3)
    stage.advance_to(1)
    stage.greet_as_pi()
    stage.prompt("two")
    stage.accept_prompt(2)
    stage.answer_and_settle("no", stop="error")
    results = [event.result for event in stage.events if event.kind == "outcome"]
    assert [(result.outcome.value, result.exit_code) for result in results if result] == [
        ("agent_lost", 3),
        ("failed", 1),
    ]


class _RememberingDriver:
    """A driver that remembers the events it was given."""

    def __init__(self) -> None:
        self.intents: list[machine_events.CallerIntent] = []

    def queue_intent(self, intent: machine_events.CallerIntent) -> None:
        self.intents.append(intent)


def build_session(machine: Conversation) -> tuple[Session, _RememberingDriver]:
    """Make a session as its caller has it, driven by the test."""
    session, driver = Session(machine, SystemClock(), None), _RememberingDriver()
    session.set_driver(driver)  # type: ignore[arg-type]
    return session, driver


def test_a_cancel_is_of_the_turn_that_was_in_flight_when_it_was_said() -> None:
    """Its result comes first, and the next prompt is in flight when the cancel is heard: that one continues."""
    stage = begin_first_prompt("two")
    session, driver = build_session(stage.machine)
    session.cancel()
    print_before_session_looks(stage, {"type": "agent_end"})
    stage.send_intents(*driver.intents)
    stage.accept_prompt(2)
    assert [line["type"] for line in stage.take_sent()] == ["prompt"]
    stage.answer_and_settle("TWO")
    assert stage.describe_end(2) == ("completed", 0.0, "TWO")


def test_a_session_that_is_over_is_closed() -> None:
    """Also where its end was a cancellation, which the machine never heard of: no process lives (P1)."""
    stage = begin_first_prompt()
    session, _ = build_session(stage.machine)
    assert session.status == "prompting"
    session.is_over = True
    assert session.status == "closed"


def test_stop_does_not_wait_for_the_next_agent() -> None:
    """The agent has ended and the next one is there before the caller that stopped it is woken."""
    machine = Conversation(SessionSettings(["agent"], "pi"))
    machine.has_agent = True
    session, _ = build_session(machine)

    async def host() -> None:
        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(session.stop)
                await anyio.wait_all_tasks_blocked()
                session.receive_event(SessionEvent(0, "stop"))
                session.receive_event(SessionEvent(0, "exit"))

    anyio.run(host)


@pytest.mark.parametrize("broken", [anyio.get_cancelled_exc_class, lambda: ValueError])
def test_a_handler_that_breaks_in_any_way_refuses(broken: Callable[[], type[BaseException]]) -> None:
    """Also when it raises the loop's own cancellation, as one does that awaits a cancelled task of its own."""
    told = _RememberingDriver()

    async def handler(_: Question) -> bool:
        raise broken()

    async def host() -> None:
        session = Session(Conversation(SessionSettings(["agent"], "acp", has_handler=True)), SystemClock(), handler)
        session.set_driver(told)  # type: ignore[arg-type]
        async with anyio.create_task_group() as group:
            group.start_soon(session.answer_agent, group)
            session.receive_event(SessionEvent(0, "question", question=Question("q", "rm")))
            await anyio.wait_all_tasks_blocked()
            await anyio.wait_all_tasks_blocked()
            assert told.intents
            group.cancel_scope.cancel()

    anyio.run(host)
    assert told.intents == [machine_events.AnswerQuestion("q", allowed=False)]
