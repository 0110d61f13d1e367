"""The agents of a session in exact instants: handshake, crashes, restarts, stop, close (P6, P8)."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

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


def test_no_prompt_goes_out_before_the_handshake() -> None:
    """`ready` means a live agent that has done its handshake; until then its deadline is the only one."""
    stage = Stage(policy=POLICY)
    stage.prompt("early")
    assert (stage.status, stage.machine.deadlines) == ("starting", {"handshake_timeout": 30 * SECOND})
    stage.advance_to(29)
    stage.greet_as_pi()
    assert stage.list_statuses() == ["ready", "prompting"]
    assert [line["message"] for line in stage.take_sent()] == ["early"]


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


def test_a_stop_before_the_first_handshake_brings_a_new_agent() -> None:
    """The caller's word is no failure: the queue waits for the next agent (P3)."""
    stage = Stage(policy=POLICY)
    stage.prompt("one")
    stage.send_intents(machine_events.StopAgent())
    assert (stage.status, len(stage.agents)) == ("restarting", 2)
    stage.greet_as_pi()
    assert [line["message"] for line in stage.take_sent()] == ["one"]


def test_a_later_agent_that_dies_before_its_handshake_is_one_more_crash() -> None:
    """The command has worked once; the queue waits for an agent that greets (P6)."""
    stage = build_ready_session()
    stage.exit_agent(1)
    stage.prompt("one")
    stage.advance_to(1)
    stage.exit_agent(1)
    assert (stage.describe_end(1), stage.machine.deadlines) == (None, {"restart_backoff": 3 * SECOND})
    stage.advance_to(3)
    stage.greet_as_pi()
    assert [line["message"] for line in stage.take_sent()] == ["one"]


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


def test_a_prompt_that_comes_with_the_crash_is_not_lost_with_it() -> None:
    """In a look the exit comes before the caller: it is queued, and was never in flight."""
    stage = build_ready_session()
    stage.agent.exit = -11
    number = stage.prompt("at that instant")
    assert stage.describe_end(number) is None
    stage.advance_to(1)
    stage.greet_as_pi()
    assert [line["message"] for line in stage.take_sent()] == ["at that instant"]


def test_the_backoff_doubles_and_the_sixth_crash_in_ten_minutes_is_the_end() -> None:
    """Five restarts; then the queue ends, for no agent will come (P6)."""
    stage = build_ready_session()
    now = 0.0
    for delay in (1, 2, 4, 8, 16):
        stage.exit_agent(1)
        stage.advance_to(now + delay - 0.001)
        assert stage.status == "restarting"
        now += delay
        stage.advance_to(now)
        stage.greet_as_pi()
    assert stage.starts == [second * SECOND for second in (0, 1, 3, 7, 15, 31)]
    stage.prompt("one")
    stage.accept_prompt(1)
    stage.prompt("two")
    stage.exit_agent(1)
    assert (stage.describe_end(1), stage.describe_end(2)) == (("agent_lost", 31.0, None), ("agent_lost", 31.0, None))
    assert stage.status == "failed"
    stage.advance_to(10_000)
    assert len(stage.starts) == 6


@pytest.mark.parametrize("is_stopped", [False, True], ids=["it crashes", "the caller stops it"])
def test_without_restarts_the_end_of_the_agent_is_the_end_of_the_session(is_stopped: bool) -> None:
    """No agent comes for the queue, nor for a later prompt."""
    stage = build_ready_session(replace(POLICY, restart_backoff=None))
    stage.prompt("one")
    stage.accept_prompt(1)
    stage.prompt("two")
    stage.advance_to(5)
    if is_stopped:
        stage.send_intents(machine_events.StopAgent())
    stage.exit_agent(-15 if is_stopped else 3)
    assert stage.describe_end(1) == ("stopped" if is_stopped else "agent_lost", 5.0, None)
    assert (stage.describe_end(2), stage.status) == (("agent_lost", 5.0, None), "failed")
    assert stage.describe_end(stage.prompt("three")) == ("agent_lost", 5.0, None)
    stage.advance_to(10_000)
    assert stage.starts == [0]


def test_crashes_of_ten_minutes_ago_do_not_count() -> None:
    """An agent that dies now and then is not given up."""
    stage = build_ready_session()
    for crash in range(20):
        stage.advance_to(crash * 601)
        stage.exit_agent(1)
        stage.advance_to(crash * 601 + 1)
        stage.greet_as_pi()
    assert stage.status == "ready"
    assert stage.starts[-1] == (19 * 601 + 1) * SECOND


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


def test_stop_ends_the_agent_and_the_turn_and_a_new_agent_takes_the_queue() -> None:
    """It is the caller's word and no crash: the next start waits for nothing but the end of this one (P3)."""
    stage = build_ready_session()
    stage.prompt("one")
    stage.accept_prompt(1)
    stage.prompt("two")
    stage.agent.is_deaf = True
    stage.advance_to(5)
    stage.send_intents(machine_events.StopAgent())
    assert (stage.describe_end(1), stage.status) == (("stopped", 5.0, None), "restarting")
    stage.advance_to(8)
    assert stage.agents[0].signals == ["TERM", "KILL"]
    assert stage.starts == [0, 8 * SECOND]
    stage.greet_as_pi()
    assert [line["message"] for line in stage.take_sent()] == ["two"]


def test_close_ends_stdin_and_waits_before_each_step() -> None:
    """EOF, close_grace, TERM, kill_grace, KILL; turns end at the word (P8)."""
    stage = build_ready_session()
    stage.prompt("one")
    stage.accept_prompt(1)
    stage.prompt("two")
    stage.agent.is_deaf = True
    stage.advance_to(10)
    stage.send_intents(machine_events.CloseSession())
    assert (stage.status, stage.agent.has_eof, stage.agent.signals) == ("closed", True, [])
    assert (stage.describe_end(1), stage.describe_end(2)) == (("stopped", 10.0, None), ("stopped", 10.0, None))
    stage.advance_to(12)
    assert stage.agent.signals == ["TERM"]
    stage.advance_to(15)
    assert (stage.agent.signals, stage.agent.is_reaped, stage.is_over) == (["TERM", "KILL"], True, True)
    assert len(stage.starts) == 1


def test_an_agent_that_leaves_at_the_end_of_its_input_gets_no_signal() -> None:
    """And its exit at close is no crash."""
    stage = build_ready_session()
    stage.send_intents(machine_events.CloseSession())
    stage.exit_agent(0)
    assert (stage.is_over, stage.agent.signals, stage.list_statuses()[-1]) == (True, [], "closed")


def test_stop_while_it_closes_shortens_the_wait() -> None:
    """The caller need not wait for a grace that it gave."""
    stage = build_ready_session()
    stage.send_intents(machine_events.CloseSession(), machine_events.StopAgent())
    assert (stage.agent.signals, stage.is_over, len(stage.starts)) == (["TERM"], True, 1)


@pytest.mark.parametrize("way", ["restarting", "failed"])
def test_a_session_without_an_agent_closes_at_once(way: str) -> None:
    """There is no process to wait for, and the restart that was due is not made."""
    stage = build_ready_session() if way == "restarting" else Stage(policy=POLICY, failures=[OSError(2, "no", "agent")])
    if way == "restarting":
        stage.exit_agent(1)
    assert stage.status == way
    stage.send_intents(machine_events.CloseSession())
    assert (stage.is_over, stage.status, stage.machine.deadlines) == (True, "closed", {})


def test_an_agent_that_reads_no_more_is_given_its_grace_and_replaced() -> None:
    """It lives, but cannot be talked to: the undelivered prompt is input_failed, never an exception (F5)."""
    stage = build_ready_session()
    stage.agent.is_reading = False
    stage.prompt("one")
    assert (stage.describe_end(1), stage.machine.deadlines["close_grace"]) == (None, 2 * SECOND)
    stage.advance_to(2)
    assert stage.describe_end(1) == ("input_failed", 2.0, None)
    assert stage.agents[0].signals == ["TERM"]
    assert stage.status == "restarting"


def test_a_session_that_cannot_cancel_is_not_ready() -> None:
    """The timed-out turn has its outcome, but the agent does not read the cancel: `ready` would be a lie (P1)."""
    stage = build_ready_session()
    stage.prompt("one")
    stage.accept_prompt(1)
    stage.agent.is_reading = False
    stage.advance_to(3600)
    assert (stage.describe_end(1), stage.status) == (("timed_out", 3600.0, None), "restarting")
    stage.advance_to(3602)
    assert stage.agents[0].signals == ["TERM"]


def test_a_descendant_that_ends_while_the_agent_lives_ends_nothing() -> None:
    """A sweep is for what an agent left; this one is at work."""
    stage = build_ready_session()
    assert stage.machine.feed(machine_events.TreeSwept(alone=True), 0) == []
    assert stage.status == "ready"


def test_an_agent_that_dies_while_it_is_written_to_is_a_crash() -> None:
    """A broken pipe is seen before the exit; the exit decides."""
    stage = build_ready_session()
    stage.prompt("one")
    stage.agent.is_reading = False
    stage.agent.exit = 9
    stage.look()
    assert stage.describe_end(1) == ("agent_lost", 0.0, None)


def test_a_line_without_end_is_a_protocol_error_and_a_crash() -> None:
    """The turn says so, the tree is terminated, and a new agent is started (F3)."""
    stage = Stage(policy=Policy(max_line_bytes=200))
    stage.greet_as_pi()
    stage.prompt("one")
    stage.agent.output["stdout"] += b"x" * 201
    stage.look()
    assert stage.describe_end(1) == ("protocol_error", 0.0, None)
    assert (stage.agents[0].signals, stage.status) == (["TERM"], "restarting")


def test_what_a_dying_agent_says_reaches_nobody() -> None:
    """Once it is forced to stop, its words are late and its answers start nothing."""
    stage = build_ready_session()
    stage.prompt("one")
    stage.accept_prompt(1)
    stage.agent.is_deaf = True
    stage.send_intents(machine_events.StopAgent())
    stage.prompt("two")
    stage.answer_and_settle("too late")
    assert (stage.describe_end(1), stage.describe_end(2)) == (("stopped", 0.0, None), None)
    assert stage.status == "restarting"
