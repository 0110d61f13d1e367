"""What no scenario says about the turns of a session: the words of a time-out, and the order within one look."""

from __future__ import annotations

import pytest

from pytest_agentproc.supervisor import Policy
from pytest_agentproc.supervisor import _events as machine_events
from tests.unit.session_stage import SECOND, Stage

MINUTE = Policy(prompt_timeout=60.0)


def build_ready_session(policy: Policy = MINUTE) -> Stage:
    """Make a session whose agent has done its handshake."""
    stage = Stage(policy=policy)
    stage.greet_as_pi()
    return stage


def begin_first_prompt(policy: Policy = MINUTE) -> Stage:
    """Make a session whose first prompt the agent has taken at zero."""
    stage = build_ready_session(policy)
    stage.prompt("one")
    stage.accept_prompt(1)
    assert stage.take_sent() == [{"id": "prompt-1", "type": "prompt", "message": "one"}]
    return stage


def test_a_timeout_cancels_the_turn_and_not_the_agent() -> None:
    """At that instant: the outcome, the cancel in the dialect, the word to viewers, status ready, no signal (P1)."""
    stage = begin_first_prompt()
    stage.advance_to(60)
    assert stage.describe_end(1) == ("timed_out", 60.0, None)
    assert stage.take_sent() == [{"id": "abort-1", "type": "abort"}]
    assert (stage.status, stage.unacknowledged, stage.agent.signals) == ("ready", True, [])
    [error] = [event for event in stage.events if event.kind == "error"]
    assert error.text == "no progress for 60 s: the turn was cancelled, the agent lives on"
    assert (error.turn, error.at) == (1, 60 * SECOND)


def test_a_timeout_reports_which_streams_the_agent_had_closed() -> None:
    """Its reader need not look for a word that could not come; a new agent has closed nothing (A5)."""
    stage = begin_first_prompt()
    stage.advance_to(20)
    for stream in ("stdout", "stderr"):
        stage.machine.feed(machine_events.StreamEnded(stream), 20 * SECOND)
    stage.advance_to(60)
    [error] = [event.text for event in stage.events if event.kind == "error"]
    assert error == ("no progress for 60 s, and stdout and stderr closed: the turn was cancelled, the agent lives on")
    stage.exit_agent(1)
    stage.advance_to(100)
    assert stage.machine.turns.watchdog.closed == []


@pytest.mark.parametrize(("stderr", "quoted"), [(b"", ""), (b"rate limit\n", "; its last words on stderr: rate limit")])
def test_the_error_of_a_turn_that_times_out_quotes_stderr(stderr: bytes, quoted: str) -> None:
    """The agent often says there why it makes no progress."""
    stage = begin_first_prompt()
    stage.agent.output["stderr"] += stderr
    stage.look()
    stage.advance_to(60)
    [error] = [event.text for event in stage.events if event.kind == "error"]
    assert error == f"no progress for 60 s: the turn was cancelled, the agent lives on{quoted}"


def test_at_one_instant_progress_comes_before_the_prompts_deadline() -> None:
    """Among equals the order is the table's (A3), and the outcome says which limit it was."""
    stage = begin_first_prompt(
        Policy(progress_timeout=60.0, prompt_timeout=60.0, inactivity_timeout=60.0, max_runtime=60.0)
    )
    stage.advance_to(60)
    assert stage.describe_end(1) == ("stalled", 60.0, None)


@pytest.mark.parametrize(("late", "ended"), [(0, None), (1, ("timed_out", 60.000000001, None))])
def test_who_prints_and_prints_holds_no_deadline_up(late: int, ended: object) -> None:
    """Further events of that very instant are waited for; in real time there is none to wait in."""
    stage = begin_first_prompt()
    stage.now = 60 * SECOND + late
    stage.agent.output["stdout"] += b"no event\n"
    stage.driver.look()
    assert stage.describe_end(1) == ended
    stage.driver.look()
    assert stage.describe_end(1) is not None
