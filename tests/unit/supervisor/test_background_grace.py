"""A one-shot agent that waits for its background commands may linger for longer (C1)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_agentproc.supervisor import (
    BackgroundTaskTracker,
    Deciders,
    Outcome,
    Policy,
    Result,
    RunMachine,
    RunSettings,
    SendSignal,
)
from pytest_agentproc.supervisor import _events as machine_events

SECOND = 1_000_000_000
STARTED = {"type": "system", "subtype": "task_started", "task_id": "b", "task_type": "local_bash"}
ENDED = {"type": "system", "subtype": "task_notification", "task_id": "b", "status": "completed"}
RESULT = {"type": "result", "subtype": "success", "result": "done"}


def build_finished_run(
    *lines: dict[str, Any], grace: float | None = 60.0, deciders: Deciders | None = None
) -> RunMachine:
    """Have an agent print these lines, and its result after a second."""
    machine = RunMachine(RunSettings("claude", b"", Policy(background_grace=grace)), deciders)
    machine.feed(machine_events.RunStarted(), 0)
    machine.feed(machine_events.AgentSpawned(7), 0)
    for line in (*lines, RESULT):
        machine.feed(machine_events.OutputRead("stdout", json.dumps(line).encode() + b"\n", drained=True), SECOND)
    return machine


def exit_agent(machine: RunMachine, status: int = 0) -> Result:
    """Have the agent exit, alone, and sum its run up."""
    machine.feed(machine_events.AgentExited(status), 70 * SECOND)
    machine.feed(machine_events.TreeSwept(alone=True), 70 * SECOND)
    return machine.build_result(0)


def print_after_result(machine: RunMachine, *lines: dict[str, Any]) -> RunMachine:
    """Have the agent print these lines after its result."""
    for line in lines:
        machine.feed(machine_events.OutputRead("stdout", json.dumps(line).encode() + b"\n", drained=True), 2 * SECOND)
    return machine


@pytest.mark.parametrize("kind", ["local_bash", "local_agent", "local_workflow"])
def test_a_task_whose_end_is_never_reported_is_named(kind: str) -> None:
    """The run is good, and the work of the task is lost."""
    result = exit_agent(build_finished_run({**STARTED, "task_type": kind, "description": "serve"}))
    assert (result.outcome, result.warnings) == (Outcome.COMPLETED, ("background tasks never ended: b (serve)",))


def test_a_task_that_is_stopped_after_the_result_is_named() -> None:
    """Claude ends what it started, and reports success all the same."""
    stopped = {**ENDED, "status": "stopped"}
    assert exit_agent(print_after_result(build_finished_run(STARTED), stopped)).warnings == (
        "background tasks were stopped: b",
    )


def test_a_task_that_begins_after_the_result_is_followed_too() -> None:
    """A background turn may start one."""
    assert exit_agent(print_after_result(build_finished_run(), STARTED)).warnings == (
        "background tasks never ended: b",
    )


def test_a_task_that_dies_with_the_agent_is_named() -> None:
    """A report that an agent makes while it is being ended counts: it is the last word about the task."""
    machine = build_finished_run(STARTED, grace=0.0)
    assert machine.feed(machine_events.DeadlineReached(), 5 * SECOND // 4) == [SendSignal("TERM")]
    stopped = {**ENDED, "status": "stopped"}
    assert exit_agent(print_after_result(machine, stopped), 143).warnings == ("background tasks were stopped: b",)


def test_nothing_else_counts_after_the_result() -> None:
    """Neither a compaction nor a background agent brings the limits back."""
    status = {"type": "system", "subtype": "status", "status": "compacting"}
    machine = print_after_result(
        build_finished_run(grace=0.0), status, {**STARTED, "task_type": "local_agent"}, {**RESULT, "result": "late"}
    )
    assert machine.deadlines == {"linger_grace": 5 * SECOND // 4}
    assert exit_agent(machine).text == "done"


def test_the_judgement_about_tasks_is_replaceable() -> None:
    """As in a session."""

    class Forgetful(BackgroundTaskTracker):
        def feed(self, meaning: object) -> None:
            """Take note of nothing."""

    assert build_finished_run(STARTED, deciders=Deciders(tasks=Forgetful)).deadlines == {"linger_grace": 1.25 * SECOND}
