"""Tools in flight and tools handed over: the decider, the watchdog's longer limit, and the machine between them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.supervisor import (
    Completion,
    OutcomeRules,
    RunMachine,
    RunSettings,
    ToolTracker,
    Watchdog,
)
from pytest_agentproc.supervisor import _events as machine_events
from pytest_agentproc.supervisor._machine import RunState
from pytest_agentproc.supervisor.dialects import Asked, Failure, Message, Nested, ToolEnded, ToolStarted
from pytest_agentproc.vocabulary import Outcome, Policy

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects import Meaning

SECOND = 1_000_000_000
HOST = Policy(host_tools=["Read", "mcp__custom-tools__*"])  # type: ignore[arg-type]  # a list becomes a tuple


def track_tools(*meanings: Meaning) -> ToolTracker:
    """Follow meanings."""
    made = ToolTracker(HOST)
    for meaning in meanings:
        made.feed(meaning)
    return made


def build_watchdog(short: float | None, long: float | None) -> Watchdog:
    """Start a watchdog at zero."""
    made = Watchdog(Policy(inactivity_timeout=short, internal_tool_timeout=long, max_runtime=90.0))
    made.start(0)
    return made


def build_running_machine(**limits: Any) -> RunMachine:
    """Make a machine whose claude was started at zero."""
    machine = RunMachine(
        RunSettings("claude", b"", Policy(inactivity_timeout=10.0, internal_tool_timeout=60.0, **limits))
    )
    machine.feed(machine_events.RunStarted(), 0)
    machine.feed(machine_events.AgentSpawned(7), 0)
    return machine


def build_output_event(*events: dict[str, Any], end: bytes = b"\n") -> machine_events.OutputRead:
    """Make the event of JSON lines."""
    return machine_events.OutputRead(
        "stdout", b"\n".join(json.dumps(event).encode() for event in events) + end, drained=True
    )


def build_tool_line(number: str, name: str, parent: str | None = None) -> dict[str, Any]:
    """Give a line that asks for a tool, of a message of its own."""
    block = {"type": "tool_use", "id": number, "name": name, "input": {}}
    return {"type": "assistant", "message": {"id": f"m{number}", "content": [block]}, "parent_tool_use_id": parent}


DONE = {"type": "result", "subtype": "success", "result": "on"}


def test_tools_are_counted_by_their_ids() -> None:
    """The stream reports a start twice, and a result may come for an unknown tool."""
    both = (ToolStarted("a", "Agent"), ToolStarted("a", "Agent"), ToolStarted("b", "Skill"))
    assert track_tools(*both).is_busy
    assert track_tools(*both, ToolEnded("a")).is_busy
    assert not track_tools(*both, ToolEnded("a"), ToolEnded("c"), ToolEnded("b")).is_busy


def test_the_hosts_tools_are_not_the_agents_work() -> None:
    """The host does not execute them as long as it does not know of them."""
    assert not track_tools(ToolStarted("a", "Read"), ToolStarted("b", "mcp__custom-tools__x")).is_busy
    assert track_tools(ToolStarted("a", "read"), ToolStarted("b", "mcp__other__x")).running == {"a", "b"}


@pytest.mark.parametrize(
    ("meaning", "expected"),
    [
        (Asked(("Agent", "Read")), True),
        (Asked(("mcp__custom-tools__x",)), True),
        (Asked(("Agent",)), False),
        (Nested(Asked(("Read",))), False),
        (ToolStarted("a", "Read"), False),
        (Message("Read"), False),
    ],
)
def test_a_complete_message_of_the_agents_own_hands_over(meaning: Meaning, expected: bool) -> None:
    """Neither a sub-agent's message nor an unfinished one."""
    assert track_tools().is_handed_over(meaning) is expected


def test_a_watchdog_at_rest_is_not_armed_by_a_tool() -> None:
    """The agent's words in its grace must not start a limit."""
    watchdog = build_watchdog(10, 60)
    watchdog.disarm()
    watchdog.note_work(busy=True)
    assert watchdog.deadlines == {}


def test_a_silent_tool_is_explained() -> None:
    """The reader must see which of the two limits it was."""
    watchdog = build_watchdog(10, 60)
    watchdog.note_work(busy=True)
    assert watchdog.find_expired_limit(60 * SECOND) == ("internal_tool_timeout", Outcome.INACTIVE)
    assert (
        watchdog.explain_expiry("internal_tool_timeout", 60 * SECOND)
        == "no output for 60 s while a tool ran, after 0 bytes"
    )


def test_a_last_message_that_asks_the_host_is_read_when_the_agent_is_gone() -> None:
    """Without partial messages only the end of the run shows that it is complete; no process is signalled then."""
    machine = build_running_machine(host_tools=("Read",))
    machine.feed(build_output_event(build_tool_line("a", "Read"), end=b""), SECOND)
    assert machine.feed(machine_events.AgentExited(0), 2 * SECOND) == [machine_events.FindSurvivors()]
    assert (machine.outcome, machine.outcome_at, machine.state) == (Outcome.TOOL_USE, 2 * SECOND, RunState.SWEEPING)
    assert not machine.forced


@pytest.mark.parametrize(
    ("error", "status", "outcome"),
    [
        ("no quota", 1, Outcome.FAILED),
        ("no quota", 0, Outcome.INCOMPLETE),
        ("no quota", -15, Outcome.INCOMPLETE),
        ("", 1, Outcome.INCOMPLETE),
    ],
)
def test_an_exit_decides_about_an_error_that_was_reported(error: str, status: int, outcome: Outcome) -> None:
    """An error and an exit code that says so are a failure, in a dialect with completions too."""
    completion, watchdog = Completion(), build_watchdog(10, 60)
    completion.feed(Failure("once"), 0)
    completion.feed(Failure(error), 0)
    assert OutcomeRules().judge_exit(completion, status, watchdog, 0, has_completion=True) is outcome
