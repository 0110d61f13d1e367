"""Fakes that ask their client, as processes: when they asked and what they heard is in the record, and in its text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio

from pytest_agentproc.record import text
from pytest_agentproc.scenario import loads
from pytest_agentproc.verdict import compare
from pytest_agentproc.vocabulary import Answer, Policy
from tests.process.stand import SECOND, scenario_of
from tests.process.test_sessions import Client
from tests.unit.handmade import Bound, Expected, Played

if TYPE_CHECKING:
    from pytest_agentproc.harness import Lab
    from pytest_agentproc.record import Record
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
        told = {"subtype": "success", "request_id": asked["request_id"], "response": {"behavior": "allow"}}
        await client.send(type="control_response", response=told)
        await client.read(lambda event: event.get("request", {}).get("subtype") == "hook_callback")
        code = await client.close()
    return [event["result"] for event in client.events if event["type"] == "result"], code


def questions(record: Record) -> list[tuple[Any, ...]]:
    """List what the agent says that it asked and heard, without the instants."""
    marks = [event.data for event in record.events if event.code == "m"]
    return [tuple(data.values())[1:] for data in marks if "asked" in data or "answered" in data]


def row_of(record: Record, wanted: str) -> tuple[str, str]:
    """Judge a record by what a scenario expects of its questions."""
    lines = f"scenario: a\nagent: {{dialect: claude, mode: session}}\nscript: []\nexpect:\n  asked: [{wanted}]\n"
    bound = loads(lines).bind(Policy())
    expected = tuple(Expected(one.key, one.wanted) for one in bound.expect if one.key == "asked")
    (row,) = compare(Played(Bound(expected), record, Answer()))
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
    assert questions(record) == ASKED
    marks = [event for event in record.events if "asked" in event.data or "answered" in event.data]
    assert [event.at for event in marks] == [0, 3 * SECOND, 3 * SECOND]
    assert row_of(record, "{permission: Bash, answer: allow, after: 3s}, {hook: late, answer: none}") == ("passed", "")
    told = ("failed", "question 1: the answer came 1 s later")
    assert row_of(record, "{permission: Bash, after: 2s}, {hook: late}") == told
    shown = text(record)
    for words in ("ASKS to use Bash", "GETS ITS ANSWER for Bash: allow", "ASKS the hook late"):
        assert words in shown


def test_what_was_asked_and_answered_is_in_the_record_in_real_time(lab: Lab) -> None:
    """The fake keeps it in its diary."""
    fake = lab.fake(scenario_of(CLAUDE, "{dialect: claude, mode: session}"))
    try:
        assert anyio.run(talk_to_claude, fake.argv, 0.05) == TALKED
    finally:
        record = fake.finish()
    assert questions(record) == ASKED
