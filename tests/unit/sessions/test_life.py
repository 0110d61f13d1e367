"""What no scenario says about the agents of a session: the words of each failure, and the statuses (P6)."""

from __future__ import annotations

import itertools
import re

import pytest

from pytest_agentproc.supervisor import Policy, SessionStatus
from pytest_agentproc.supervisor import _agent_lifecycle as _status
from pytest_agentproc.supervisor import _events as machine_events
from tests.unit.session_stage import SECOND, Stage

POLICY = Policy(handshake_timeout=30.0, restart_backoff=1.0, close_grace=2.0, kill_grace=3.0)


def build_ready_session(policy: Policy = POLICY) -> Stage:
    """Make a session whose agent has done its handshake."""
    stage = Stage(policy=policy)
    stage.greet_as_pi()
    return stage


def list_errors(stage: Stage) -> list[str]:
    """Give the error events that viewers saw."""
    return [event.text for event in stage.events if event.kind == "error"]


def test_the_drawing_has_the_statuses_and_the_edges_of_the_code() -> None:
    """A reader of the drawing has read the machine."""
    drawn: dict[SessionStatus, set[SessionStatus]] = {status: set() for status in SessionStatus}
    for line in (_status.__doc__ or "").splitlines():
        steps = re.split(r" --.*?--> ", line.strip())
        for sources, targets in itertools.pairwise(steps):
            for source in sources.split(", "):
                drawn[SessionStatus[source]] |= {SessionStatus[target] for target in targets.split(", ")}
    assert drawn == _status.ALLOWED_STATUS_CHANGES


def test_a_handshake_that_does_not_come_ends_the_agent_and_the_session() -> None:
    """The first start says whether the command is right: it is not tried again, and the error says what it was."""
    stage = Stage(policy=POLICY)
    stage.prompt("early")
    stage.agent.output["stderr"] += b"no api key\n"
    stage.look()
    stage.advance_to(30)
    assert stage.describe_end(1) == ("handshake_failed", 30.0, None)
    assert (stage.status, stage.agent.signals, stage.agent.is_reaped) == ("failed", ["TERM"], True)
    assert list_errors(stage) == ["agent: it did not answer in time: no api key"]
    assert stage.prompt("later") == 2
    assert stage.describe_end(2) == ("handshake_failed", 30.0, None)
    stage.advance_to(10_000)
    assert stage.starts == [0]


def test_an_exit_before_the_handshake_fails_with_the_code() -> None:
    """A wrong flag, a missing login: the exit code and the end of stderr say which."""
    stage = Stage(policy=POLICY)
    stage.prompt()
    stage.exit_agent(2)
    assert stage.describe_end(1) == ("handshake_failed", 0.0, None)
    assert list_errors(stage) == ["agent: the agent exited with code 2, 0 s after its start, without any output"]


@pytest.mark.parametrize("way", ["exits", "cannot start"])
def test_before_the_first_handshake_no_end_is_tried_again(way: str) -> None:
    """All prompts end at once, also later ones, and no caller waits for a restart (P6)."""
    stage = Stage(policy=POLICY, failures=[OSError(2, "no", "agent")] if way == "cannot start" else [])
    if way == "exits":
        stage.prompt("one")
        stage.prompt("two")
        stage.exit_agent(0)
        assert stage.describe_end(1) == stage.describe_end(2) == ("handshake_failed", 0.0, None)
    outcome = "handshake_failed" if way == "exits" else "spawn_failed"
    assert stage.describe_end(stage.prompt("later")) == (outcome, 0.0, None)
    assert (stage.status, stage.machine.deadlines) == ("failed", {})
    stage.advance_to(10_000)
    assert len(stage.agents) == (way == "exits")


@pytest.mark.parametrize(("number", "code"), [(2, 127), (13, 126)])
def test_a_command_that_cannot_be_started_fails(number: int, code: int) -> None:
    """The error number is given, and a program that asked can exit with the shell's code."""
    stage = Stage(policy=POLICY, failures=[OSError(number, "no", "agent")])
    stage.prompt()
    [outcome] = [event for event in stage.events if event.kind == "outcome"]
    assert outcome.result is not None
    assert (outcome.text, outcome.result.exit_code, stage.status) == ("spawn_failed", code, "failed")
    assert list_errors(stage) == [f"agent: agent: no (errno {number})"]


def test_a_crash_loses_the_prompt_in_flight_and_keeps_the_queue() -> None:
    """The prompt is not sent again: it may have had effects. The queued one goes to the new agent (P6)."""
    stage = build_ready_session()
    stage.prompt("one")
    stage.accept_prompt(1)
    stage.prompt("two")
    stage.advance_to(5)
    stage.exit_agent(3)
    error = "the agent exited with code 3, 5 s after its last output"
    [outcome] = [event for event in stage.events if event.kind == "outcome"]
    assert outcome.result is not None
    assert (outcome.text, outcome.result.exit_code, outcome.result.error) == ("agent_lost", 3, error)
    assert (stage.status, stage.agents[0].is_reaped) == ("restarting", True)
    assert stage.machine.deadlines == {"restart_backoff": 6 * SECOND}
    stage.advance_to(6)
    stage.greet_as_pi()
    assert [line["message"] for line in stage.take_sent()] == ["two"]


def test_a_restart_whose_handshake_fails_is_one_more_crash() -> None:
    """Once a command has worked, a start that fails may heal."""
    stage = build_ready_session()
    stage.exit_agent(1)
    stage.advance_to(1)
    assert stage.status == "restarting"
    stage.advance_to(31)
    assert stage.agent.signals == ["TERM"]
    assert stage.machine.deadlines == {"restart_backoff": 33 * SECOND}
    assert list_errors(stage)[-1] == "agent: it did not answer in time"
    stage.failures = [OSError(2, "no", "agent")]
    stage.advance_to(33)
    assert stage.machine.deadlines == {"restart_backoff": 37 * SECOND}


def test_a_descendant_that_ends_while_the_agent_lives_ends_nothing() -> None:
    """A sweep is for what an agent left; this one is at work."""
    stage = build_ready_session()
    assert stage.machine.feed(machine_events.TreeSwept(alone=True), 0) == []
    assert stage.status == "ready"
