"""A one-shot agent that waits for its background commands may linger for longer (C1)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_agentproc.supervisor import Deciders, Machine, Outcome, Policy, Task, Tasks
from pytest_agentproc.supervisor import _events as on

SECOND = 1_000_000_000
STARTED = {"type": "system", "subtype": "task_started", "task_id": "b", "task_type": "local_bash"}
ENDED = {"type": "system", "subtype": "task_notification", "task_id": "b", "status": "completed"}
RESULT = {"type": "result", "subtype": "success", "result": "done"}


def finished(*lines: dict[str, Any], grace: float = 60.0, deciders: Deciders | None = None) -> Machine:
    """Have an agent print these lines, and its result after a second."""
    machine = Machine(Task("claude", b"", Policy(background_grace=grace)), deciders)
    machine.feed(on.Start(), 0)
    machine.feed(on.Spawned(7), 0)
    for line in (*lines, RESULT):
        machine.feed(on.Output("stdout", json.dumps(line).encode() + b"\n", drained=True), SECOND)
    return machine


@pytest.mark.parametrize(
    ("lines", "grace", "seconds"),
    [
        ([STARTED], 60.0, 61.25),
        ([STARTED], 0.0, 1.25),
        ([STARTED, ENDED], 60.0, 1.25),
        ([{**STARTED, "task_type": "local_agent"}], 60.0, 1.25),
        ([], 60.0, 1.25),
    ],
    ids=["announced", "no grace", "told to have ended", "an agent", "none"],
)
def test_the_linger_begins_after_the_grace(lines: list[dict[str, Any]], grace: float, seconds: float) -> None:
    """But only for an agent that has something to wait for."""
    machine = finished(*lines, grace=grace)
    assert machine.deadlines == {"linger_grace": seconds * SECOND}


def test_the_outcome_is_that_of_the_result() -> None:
    """Its instant too: the grace is the agent's, and the caller has what it asked for."""
    machine = finished(STARTED)
    machine.feed(on.Exited(0), 50 * SECOND)
    machine.feed(on.Swept(alone=True), 50 * SECOND)
    assert (machine.outcome, machine.outcome_at) == (Outcome.COMPLETED, SECOND)


def test_the_judgement_about_tasks_is_replaceable() -> None:
    """As in a session."""

    class Forgetful(Tasks):
        def feed(self, meaning: object) -> None:
            """Take note of nothing."""

    assert finished(STARTED, deciders=Deciders(tasks=Forgetful)).deadlines == {"linger_grace": 1.25 * SECOND}
