"""The memory of a session has a bound, whatever its agent prints and however long it lasts (F6)."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING, Any

import anyio

from pytest_agentproc.clock import SystemClock
from pytest_agentproc.supervisor import (
    Conversation,
    Outcome,
    Policy,
    Session,
    SessionEvent,
    SessionSettings,
    TurnResult,
)
from pytest_agentproc.supervisor import _events as machine_events
from pytest_agentproc.supervisor._streams import Outbox
from pytest_agentproc.supervisor._turns import TurnAnswer
from pytest_agentproc.supervisor.dialects import Piece
from tests.unit.session_stage import Stage

if TYPE_CHECKING:
    from pytest_agentproc.supervisor._events import MachineCommand

MANY = 200_000
LONG = "x" * 1024**2


def build_session() -> Session:
    """Make a session as its caller has it, without a driver."""
    return Session(Conversation(SessionSettings(["agent"], "pi")), SystemClock(), None)


def test_events_without_words_fill_the_transcript_too() -> None:
    """The oldest go first, also where none of them has a text."""
    session = build_session()
    for number in range(MANY):
        session.receive_event(SessionEvent(number, "delta", 1))
    assert session.log.total == MANY
    assert len(session.transcript) < MANY


def test_the_results_in_a_transcript_count() -> None:
    """A result holds what the turn said."""
    session = build_session()
    for number in range(200):
        result = TurnResult(Outcome.COMPLETED, 0, str(number) + LONG)
        session.receive_event(SessionEvent(0, "outcome", number, "completed", result))
        session.receive_event(SessionEvent(0, "background", 0, "", result))
    assert len(session.transcript) < 40
    assert len(session.background) < 40
    assert session.background[-1].text == "199" + LONG


def test_one_event_that_is_longer_than_the_transcript_may_be_is_seen() -> None:
    """Such as the prompt itself: a viewer gets it, and continues."""
    session = build_session()
    session.receive_event(SessionEvent(0, "prompt", 1, LONG * 20))
    session.receive_event(SessionEvent(1, "prompt", 2, LONG * 20))

    async def first() -> int:
        return (await anext(session.attach())).at

    assert anyio.run(first) == 1


def test_deltas_without_words_are_not_kept() -> None:
    """A thought, or a delta of a tool's input, is progress and no text."""
    answered = TurnAnswer()
    answered.add_progress(Piece("a"))
    progress = Piece()
    tracemalloc.start()
    for _ in range(MANY):
        answered.add_progress(progress)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < MANY
    answered.end_message()
    assert answered.text == "a"


def test_data_after_a_long_prompt_is_not_copied_with_it() -> None:
    """The prompt stays where it is until it is taken; then comes the rest, in order."""
    outbox = Outbox()
    outbox.put(LONG.encode())
    prompt = outbox.unwritten_bytes.obj
    for _ in range(1000):
        outbox.put(b"answer\n")
    assert outbox.unwritten_bytes.obj is prompt
    outbox.note_written(1024**2)
    assert bytes(outbox.unwritten_bytes) == b"answer\n" * 1000
    outbox.note_written(7000)
    commands: list[MachineCommand] = outbox.watch_while_pending()
    assert (outbox.is_delivered, outbox.taken, len(commands)) == (True, outbox.put_in, 1)


def flood_with_requests(stage: Stage, line: dict[str, Any]) -> None:
    """Have an agent that reads nothing ask and ask, until it is stopped."""
    for _ in range(2000):
        stage.print_lines(*[line] * 100)
        if stage.agent.signals:
            return
    raise AssertionError("it asks for ever")


def test_an_agent_that_asks_and_reads_no_answers_breaks_the_protocol() -> None:
    """Nothing else would bound what is written to it."""
    stage = Stage("acp")
    stage.prompt()
    stage.agent.is_full = True
    flood_with_requests(stage, {"jsonrpc": "2.0", "id": "x" * 2000, "method": "fs/read_text_file"})
    assert stage.machine.failure is not None
    assert "reads no answers" in stage.machine.failure[1]


def test_open_questions_have_a_bound() -> None:
    """A question beyond it is denied at once, and no handler hears of it."""
    stage = Stage("claude", handler=True)
    stage.print_lines({"type": "control_response", "response": {"request_id": "greet-0", "subtype": "success"}})
    stage.prompt()
    for number in range(1100):
        ask = {"subtype": "can_use_tool", "tool_name": "t", "input": {}}
        stage.print_lines({"type": "control_request", "request_id": str(number), "request": ask})
    assert len(stage.machine.turns.questions) == 1000
    assert len([line for line in stage.take_sent() if line["type"] == "control_response"]) == 100
    assert len([event for event in stage.events if event.question is not None]) == 1000
    stage.send_intents(machine_events.AnswerQuestion("0", True))
    assert len(stage.machine.turns.questions) == 999


def test_one_look_takes_no_more_than_a_pipe_can_hold() -> None:
    """An agent that prints faster than it is read blocks neither the loop nor its own deadlines."""
    stage = Stage()
    stage.agent.output["stdout"] += (b"noise " * 170 + b"no\n\n") * 6 * 1024
    stage.driver.look()
    assert len(stage.agent.output["stdout"]) == 5 * 1024**2
    stage.look()
    assert not stage.agent.output["stdout"]


def test_a_line_that_is_too_long_is_reported_with_its_limit() -> None:
    """The reader knows which limit to raise."""
    stage = Stage(policy=Policy(max_line_bytes=1024))
    stage.greet_as_pi()
    stage.prompt()
    stage.agent.output["stdout"] += b"x" * 3000
    stage.look()
    [event] = [event for event in stage.events if event.kind == "outcome"]
    assert event.result is not None
    assert (event.text, event.result.error) == ("protocol_error", "a line of more than 1024 bytes")
