"""Fakes that ask their client, as processes: the record and its text show when they asked and which answer they got."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc.record import render_text
from pytest_agentproc.scenario import loads
from pytest_agentproc.supervisor import open_session
from pytest_agentproc.verdict import judge_all_expectations
from pytest_agentproc.vocabulary import Policy, RunReport
from tests.event_lines import list_lines
from tests.process.sessions.test_conversations import Client
from tests.process.stand import SECOND, build_scenario
from tests.unit.handmade import BoundScenario, Expected, play_by_hand

if TYPE_CHECKING:
    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.record import Record
    from pytest_agentproc.supervisor import Question
    from tests.process.stand import Stand

CLAUDE = """
- wait_for: prompt 1
- tool: {id: t, name: Bash}
- ask:
    permission: Bash
    denied: [{answer: denied}]
    allowed:
    - tool_done: t
    - answer: done
    - ask: {hook: late, event: PostToolUse}
"""


async def talk_to_claude(argv: list[str], think: float) -> tuple[list[Any], int]:
    """Prompt, think about the tool and allow it, leave the hook without an answer, close."""
    async with await anyio.open_process(argv, stderr=None) as process:
        client = Client(process)
        await client.send(type="user", message={"role": "user", "content": "hi"}, parent_tool_use_id=None)
        asked = await client.read(lambda event: event["type"] == "control_request")
        await anyio.sleep(think)
        fields = {"subtype": "success", "request_id": asked["request_id"], "response": {"behavior": "allow"}}
        await client.send(type="control_response", response=fields)
        await client.read(lambda event: event.get("request", {}).get("subtype") == "hook_callback")
        code = await client.close()
    return [event["result"] for event in client.events if event["type"] == "result"], code


def list_questions(record: Record) -> list[tuple[Any, ...]]:
    """List the agent's words about its questions and their answers, without the instants."""
    marks = [event.data for event in list_lines(record) if event.code == "m"]
    return [tuple(data.values())[1:] for data in marks if "asked" in data or "answered" in data]


def judge_questions(record: Record, wanted: str) -> tuple[str, str]:
    """Judge a record by a scenario's expectations of its questions."""
    lines = f"scenario: a\nagent: {{dialect: claude, mode: session}}\nscript: []\nexpect:\n  asked: [{wanted}]\n"
    bound = loads(lines).bind(Policy())
    expected = tuple(
        Expected(expectation.key, expectation.wanted) for expectation in bound.expect if expectation.key == "asked"
    )
    (row,) = judge_all_expectations(play_by_hand(BoundScenario(expected), record, RunReport()))
    return row.verdict.value, row.hint


TALKED = (["done"], 0)
ASKED = [("Bash", "permission", 1), ("Bash", "allow", 1), ("late", "hook", 2)]


def test_what_was_asked_and_answered_is_in_the_record_at_its_instants(stand: Stand, backend: str) -> None:
    """Three seconds of thought about a permission, and a hook without an answer, in virtual time."""
    argv = stand.fake(CLAUDE, "{dialect: claude, mode: session}")

    async def host() -> Any:
        return await talk_to_claude(argv, 3)

    assert stand.run(host, backend=backend) == TALKED
    record = stand.fakes[0].record
    assert list_questions(record) == ASKED
    marks = [event for event in list_lines(record) if "asked" in event.data or "answered" in event.data]
    assert [event.at for event in marks] == [0, 3 * SECOND, 3 * SECOND]
    assert judge_questions(record, "{permission: Bash, answer: allow, after: 3s}, {hook: late, answer: none}") == (
        "passed",
        "",
    )
    reported = ("failed", "question 1: the answer came 1 s later")
    assert judge_questions(record, "{permission: Bash, after: 2s}, {hook: late}") == reported
    shown = render_text(record)
    for words in ("ASKS to use Bash", "GETS ITS ANSWER for Bash: allow", "ASKS the hook late"):
        assert words in shown


def test_what_was_asked_and_answered_is_in_the_record_in_real_time(runner: ScenarioRunner) -> None:
    """The fake keeps it in its log."""
    fake = runner.make_fake(build_scenario(CLAUDE, "{dialect: claude, mode: session}"))
    try:
        assert anyio.run(talk_to_claude, fake.argv, 0.05) == TALKED
    finally:
        record = fake.finish()
    assert list_questions(record) == ASKED


BRANCHES = """
- wait_for: prompt 1
- tool: {id: t, name: Bash}
- ask:
    permission: Bash
    allowed: [{tool_done: t}, {answer: done}]
    denied: [{tool_done: {id: t, error: no}}, {answer: refused}]
- silence: 1s
- ask: {permission: Bash}
"""


async def allow_after_two_seconds(_question: Question) -> bool:
    """Allow it after two seconds."""
    await anyio.sleep(2)
    return True


async def leave_unanswered(_question: Question) -> bool:
    """Leave it without an answer."""
    await anyio.sleep_forever()
    return True


@pytest.mark.parametrize("agent", ["claude", "acp"])
@pytest.mark.parametrize(
    ("handler", "answer", "after", "text"),
    [
        (allow_after_two_seconds, "allow", "2s", "done"),
        (leave_unanswered, "deny", "300s", "refused"),
        (None, "deny", "0s", "refused"),
    ],
)
def test_the_reference_answers_within_a_turn_and_after_it(
    stand: Stand, backend: str, agent: str, handler: Any, answer: str, after: str, text: str
) -> None:
    """The answer comes from its handler, from its limit if the handler is silent, or at once if there is none (P7)."""
    argv = stand.fake(BRANCHES, f"{{dialect: {agent}, mode: session}}")

    async def host() -> Any:
        async with open_session(argv, dialect=agent, permission=handler) as session:
            said = (await session.prompt("hi")).text
            await anyio.sleep(302)
            return said

    assert stand.run(host, backend=backend) == text
    item = f"{{permission: Bash, answer: {answer}, after: {after}}}"
    assert judge_questions(stand.fakes[0].record, f"{item}, {item}") == ("passed", "")


def test_the_reference_has_nobody_to_ask_what_an_extension_of_pis_asks(stand: Stand, backend: str) -> None:
    """It says at once that nothing answers, and an extension reads that as a no."""
    branches = "allowed: [{answer: done}], denied: [{answer: refused}]"
    argv = stand.fake(
        f"- wait_for: prompt 1\n- ask: {{permission: bash, {branches}}}\n- answer: on", "{dialect: pi, mode: rpc}"
    )

    async def host() -> Any:
        async with open_session(argv, dialect="pi") as session:
            return (await session.prompt("hi")).text

    assert stand.run(host, backend=backend) == "refused"
    item = "{permission: bash, answer: deny, after: 0s}"
    assert judge_questions(stand.fakes[0].record, item) == ("passed", "")


@pytest.mark.parametrize(("agent", "answer"), [("claude", "deny"), ("acp", "cancelled")])
def test_a_cancel_of_the_cores_answers_what_is_open(stand: Stand, backend: str, agent: str, answer: str) -> None:
    """No agent is left waiting; a later answer of the handler is dropped."""
    script = "- wait_for: prompt 1\n- tool: {id: t, name: Bash}\n- ask: {permission: Bash, allowed: [{exit: 9}]}\n"
    argv = stand.fake(f"{script}- wait_for: cancel\n- acknowledge: cancel", f"{{dialect: {agent}, mode: session}}")

    async def host() -> Any:
        async with open_session(argv, dialect=agent, permission=leave_unanswered) as session:
            turn = session.prompt("hi")
            await anyio.sleep(5)
            session.cancel()
            return (await turn).outcome.value

    assert stand.run(host, backend=backend) == "cancelled"
    item = f"{{permission: Bash, answer: {answer}, after: 5s}}"
    assert judge_questions(stand.fakes[0].record, item) == ("passed", "")


def test_an_interrupt_takes_a_question_back(stand: Stand) -> None:
    """A client that only interrupts reads that claude withdraws it, before anything else."""
    argv = stand.fake(
        "- wait_for: prompt 1\n- ask: {permission: Bash}\n- acknowledge: cancel", "{dialect: claude, mode: session}"
    )

    async def host() -> list[Any]:
        async with await anyio.open_process(argv, stderr=None) as process:
            client = Client(process)
            await client.send(type="user", message={"role": "user", "content": "hi"}, parent_tool_use_id=None)
            await client.read(lambda event: event["type"] == "control_request")
            await client.send(type="control_request", request_id="i", request={"subtype": "interrupt"})
            await client.read(lambda event: event["type"] == "result")
            await client.close()
        return [event["type"] for event in client.events]

    kinds = ["system", "system", "control_request", "control_cancel_request", "control_response", "user", "result"]
    assert stand.run(host) == kinds
    assert judge_questions(stand.fakes[0].record, "{permission: Bash, answer: cancelled, after: 0s}") == ("passed", "")
