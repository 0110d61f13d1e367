"""A compaction that the agent announces is work, not silence: the longer limit holds until its end (A6)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_agentproc.supervisor import Outcome, Policy, RunMachine, RunSettings
from pytest_agentproc.supervisor import _events as machine_events
from pytest_agentproc.supervisor.dialects import Compaction, Other, make_decoder, make_session_protocol
from tests.unit.session_stage import Stage

SECOND = 1_000_000_000
LIMITS = Policy(inactivity_timeout=10.0, internal_tool_timeout=60.0, progress_timeout=None)
BEGINS = {"type": "system", "subtype": "status", "status": "compacting"}
ENDS = {"type": "system", "subtype": "status", "status": None, "compact_result": "success"}
BOUNDARY = {"type": "system", "subtype": "compact_boundary", "compact_metadata": {"trigger": "auto"}}
BEGUN, OVER = Compaction(), Compaction(is_over=True)
LIFE, WORD = Other("system status", is_progress=False), Other("system compact_boundary")


def encode_line(event: dict[str, Any]) -> bytes:
    """Write an event."""
    return json.dumps(event).encode()


def build_running_machine(dialect: str, *events: dict[str, Any], policy: Policy = LIMITS) -> RunMachine:
    """Have an agent print these events, one each second from its start on."""
    machine = RunMachine(RunSettings(dialect, b"", policy))
    machine.feed(machine_events.RunStarted(), 0)
    machine.feed(machine_events.AgentSpawned(7), 0)
    for number, event in enumerate(events):
        machine.feed(machine_events.OutputRead("stdout", encode_line(event) + b"\n", drained=True), number * SECOND)
    return machine


@pytest.mark.parametrize(
    ("events", "meanings"),
    [
        ([BEGINS, ENDS, BOUNDARY], [BEGUN, OVER, WORD]),
        ([BEGINS, BOUNDARY, ENDS], [BEGUN, OVER, LIFE]),
        ([BEGINS, {**BEGINS, "compact_output_chars": 400}, ENDS], [BEGUN, LIFE, OVER]),
        ([BEGINS, {**BEGINS, "status": "requesting"}], [BEGUN, OVER]),
        ([BOUNDARY], [WORD]),
        ([ENDS], [LIFE]),
        ([{**BEGINS, "parent_tool_use_id": "t"}], [LIFE]),
    ],
    ids=["as recorded", "boundary first", "with a count", "goes on", "unannounced", "no beginning", "a sub-agent's"],
)
def test_claude_announces_a_compaction_and_its_end(events: list[dict[str, Any]], meanings: list[Any]) -> None:
    """Each is said once; a status that is repeated is a sign of life and no progress."""
    reader = make_decoder("claude")
    assert [meaning for event in events for meaning in reader.decode(encode_line(event))] == meanings


@pytest.mark.parametrize("prefix", ["", "auto_"])
def test_pi_announces_a_compaction_and_its_end(prefix: str) -> None:
    """Older versions have another name for it."""
    begins, ends = {"type": f"{prefix}compaction_start"}, {"type": f"{prefix}compaction_end"}
    for reader in (make_decoder("pi"), make_session_protocol("pi")):
        assert [*reader.decode(encode_line(begins)), *reader.decode(encode_line(ends))] == [BEGUN, OVER]


def test_a_compaction_without_an_end_ends_the_run_at_the_longer_limit() -> None:
    """The error says what the agent was at."""
    machine = build_running_machine("claude", BEGINS)
    machine.feed(machine_events.DeadlineReached(), 60 * SECOND)
    assert machine.outcome is Outcome.INACTIVE
    assert machine.error.startswith("no output for 60 s while it compacted its context, after ")


def test_a_tool_that_runs_too_is_named_instead() -> None:
    """It is what a reader looks for first."""
    block = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
    asks = {"type": "assistant", "message": {"id": "m", "content": [block]}, "parent_tool_use_id": None}
    machine = build_running_machine("claude", BEGINS, asks)
    machine.feed(machine_events.DeadlineReached(), 61 * SECOND)
    assert "while a tool ran" in machine.error


class Claude(Stage):
    """A claude that has greeted, in a session with limits on silence."""

    def __init__(self) -> None:
        super().__init__("claude", policy=LIMITS)
        response = {"subtype": "success", "request_id": "greet-0", "response": {}}
        self.print_lines({"type": "control_response", "response": response})
        self.take_sent()

    def begin_prompt(self) -> str:
        """Ask a prompt, and have its turn begin; give the turn's mark."""
        self.prompt()
        mark: str = self.take_sent()[-1]["uuid"]
        self.print_lines({"type": "system", "subtype": "init", "user_message_uuid": mark})
        return mark


def test_viewers_see_that_it_compacts() -> None:
    """As they see what its tools do."""
    stage = Claude()
    stage.begin_prompt()
    stage.print_lines(BEGINS)
    [event] = [event for event in stage.events if event.kind == "tool"]
    assert (event.turn, event.text) == (1, "compaction")


def test_a_turn_that_hangs_in_a_compaction_says_so() -> None:
    """The caller can raise the limit, or ask for less."""
    stage = Claude()
    stage.begin_prompt()
    stage.print_lines(BEGINS)
    stage.advance_to(100)
    [error] = [event.text for event in stage.events if event.kind == "error"]
    assert error.startswith("no output for 60 s while it compacted its context: the turn was cancelled")
