"""The turns of a session in exact instants: acknowledgement, order, late words (P1-P3, P5, P9)."""

from __future__ import annotations

import pytest

from pytest_agentproc.supervisor import Policy
from pytest_agentproc.supervisor import _events as machine_events
from tests.unit.session_stage import SECOND, Stage

MINUTE = Policy(prompt_timeout=60.0, cancel_grace=300.0, kill_grace=2.0)


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


def test_a_prompt_is_delivered_and_ends_with_the_agents_last_message() -> None:
    """The plainest turn: its outcome comes at the instant of the completion, not of the last message."""
    stage = begin_first_prompt()
    assert stage.status == "prompting"
    stage.advance_to(5)
    stage.end_message("thinking", stop="toolUse")
    stage.end_message("done")
    assert stage.describe_end(1) is None
    stage.advance_to(6)
    stage.print_lines({"type": "agent_end"})
    assert stage.describe_end(1) == ("completed", 6.0, "done")
    assert stage.status == "ready"
    assert stage.machine.deadline is None


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


def test_a_prompt_after_a_timeout_waits_for_the_acknowledgement_and_its_time_begins_then() -> None:
    """It is accepted at once; for pi the acknowledgement is the end of the run and the answer to the abort (P3)."""
    stage = begin_first_prompt()
    stage.advance_to(61)
    stage.prompt("two")
    stage.prompt("three")
    assert [line["type"] for line in stage.take_sent()] == ["abort"]
    stage.advance_to(100)
    stage.answer_and_settle("part", stop="aborted")
    assert (stage.unacknowledged, stage.take_sent()) == (True, [])
    stage.answer_abort(1)
    assert (stage.unacknowledged, stage.status) == (False, "prompting")
    assert [line["message"] for line in stage.take_sent()] == ["two"]
    stage.accept_prompt(2)
    stage.advance_to(159)
    assert stage.describe_end(2) is None
    stage.advance_to(160)
    assert stage.describe_end(2) == ("timed_out", 160.0, None)


def test_words_of_a_cancelled_turn_reach_no_later_one() -> None:
    """They are shown as what they are, late, and the next turn has its own text only (P5)."""
    stage = begin_first_prompt()
    stage.advance_to(60)
    stage.prompt("two")
    stage.end_message("late words", stop="aborted")
    stage.print_lines({"type": "agent_end"})
    stage.answer_abort(1)
    stage.accept_prompt(2)
    stage.answer_and_settle("two's own")
    assert stage.describe_end(1) == ("timed_out", 60.0, None)
    assert stage.describe_end(2) == ("completed", 60.0, "two's own")
    assert [event.text for event in stage.events if event.kind == "late"] == ["late words"]


@pytest.mark.parametrize("kind", ["message_update", "tool_execution_update"])
def test_progress_moves_the_prompts_deadline(kind: str) -> None:
    """A turn that works on for hours is not too long (P2)."""
    stage = begin_first_prompt()
    for instant in range(50, 500, 50):
        stage.advance_to(instant)
        stage.print_lines({"type": kind})
    stage.advance_to(509)
    assert stage.describe_end(1) is None
    stage.advance_to(510)
    assert stage.describe_end(1) == ("timed_out", 510.0, None)


@pytest.mark.parametrize("line", [b'{"type": "queue_update"}\n', b"warning: noise\n", b'{"type": "turn_sta'])
def test_activity_is_no_progress(line: bytes) -> None:
    """Status lines, noise and half lines say that a process lives, not that the turn continues (P2)."""
    stage = begin_first_prompt()
    stage.advance_to(50)
    stage.agent.output["stdout"] += line
    stage.agent.output["stderr"] += b"."
    stage.look()
    stage.advance_to(60)
    assert stage.describe_end(1) == ("timed_out", 60.0, None)


def test_a_cancel_that_is_not_acknowledged_ends_the_agent_and_not_the_prompts_that_wait() -> None:
    """TERM after cancel_grace, KILL after kill_grace; the queued prompt goes to the next agent (P3)."""
    stage = begin_first_prompt()
    stage.advance_to(60)
    stage.prompt("two")
    first = stage.agent
    first.is_deaf = True
    stage.advance_to(359)
    assert (first.signals, stage.status) == ([], "ready")
    stage.advance_to(360)
    assert (first.signals, stage.status) == (["TERM"], "restarting")
    stage.advance_to(362)
    assert (first.signals, first.is_reaped) == (["TERM", "KILL"], True)
    assert stage.starts == [0, 362 * SECOND]
    stage.greet_as_pi()
    assert [line["message"] for line in stage.take_sent()] == ["two"]
    assert stage.describe_end(1) == ("timed_out", 60.0, None)
    assert stage.describe_end(2) is None


def test_the_callers_cancel_ends_a_turn_as_cancelled_when_it_is_acknowledged() -> None:
    """The turn stays in flight until the agent says how it ended."""
    stage = begin_first_prompt()
    stage.advance_to(1)
    stage.send_intents(machine_events.CancelTurn(), machine_events.CancelTurn(1))
    assert [line["type"] for line in stage.take_sent()] == ["abort"]
    assert (stage.status, stage.unacknowledged) == ("prompting", True)
    stage.advance_to(2)
    stage.answer_and_settle("part", stop="aborted")
    stage.answer_abort(1)
    assert stage.describe_end(1) == ("cancelled", 2.0, "part")
    assert (stage.status, stage.unacknowledged) == ("ready", False)


def test_a_good_result_that_crosses_the_callers_cancel_is_completed() -> None:
    """It was done; the answer to the abort still has to come before the next prompt goes out."""
    stage = begin_first_prompt()
    stage.send_intents(machine_events.CancelTurn())
    stage.prompt("two")
    stage.answer_and_settle("done")
    assert stage.describe_end(1) == ("completed", 0.0, "done")
    assert [line["type"] for line in stage.take_sent()] == ["abort"]
    stage.answer_abort(1)
    assert [line["message"] for line in stage.take_sent()] == ["two"]


def test_a_callers_cancel_that_nobody_acknowledges_is_cancelled_when_the_agent_is_forced() -> None:
    """The wait has an end, and the caller's word is the cause."""
    stage = begin_first_prompt()
    stage.advance_to(10)
    stage.send_intents(machine_events.CancelTurn())
    stage.advance_to(310)
    assert stage.describe_end(1) == ("cancelled", 310.0, None)
    assert stage.agent is not stage.agents[0]


def test_a_queued_prompt_is_cancelled_without_a_word_to_the_agent() -> None:
    """There is nothing that the agent could stop."""
    stage = begin_first_prompt()
    number = stage.prompt("two")
    stage.send_intents(machine_events.CancelTurn(number))
    assert stage.describe_end(number) == ("cancelled", 0.0, None)
    assert stage.take_sent() == []
    stage.answer_and_settle("one's")
    assert stage.describe_end(1) == ("completed", 0.0, "one's")


def test_a_cancel_of_no_named_turn_during_the_handshake_cancels_the_first_prompt_that_waits() -> None:
    """The caller saw its prompt as the one at work, so the cancel must not be lost."""
    stage = Stage(policy=MINUTE)
    stage.prompt("one")
    stage.prompt("two")
    stage.send_intents(machine_events.CancelTurn(None))
    assert stage.describe_end(1) == ("cancelled", 0.0, None)
    stage.greet_as_pi()
    assert [sent["message"] for sent in stage.take_sent()] == ["two"]


@pytest.mark.parametrize(("stderr", "quoted"), [(b"", ""), (b"rate limit\n", "; its last words on stderr: rate limit")])
def test_the_error_of_a_turn_that_times_out_quotes_stderr(stderr: bytes, quoted: str) -> None:
    """The agent often says there why it makes no progress."""
    stage = begin_first_prompt()
    stage.agent.output["stderr"] += stderr
    stage.look()
    stage.advance_to(60)
    [error] = [event.text for event in stage.events if event.kind == "error"]
    assert error == f"no progress for 60 s: the turn was cancelled, the agent lives on{quoted}"


def test_a_cancel_that_came_before_the_turn_began_goes_out_again() -> None:
    """An abort of nothing is answered and stops nothing; the run that begins after it must not continue for ever."""
    stage = build_ready_session()
    stage.prompt("one")
    stage.send_intents(machine_events.CancelTurn())
    stage.answer_abort(1)
    assert [line["type"] for line in stage.take_sent()] == ["prompt", "abort"]
    stage.accept_prompt(1)
    assert [line["type"] for line in stage.take_sent()] == ["abort"]
    stage.answer_and_settle("", stop="aborted")
    assert (stage.describe_end(1), stage.unacknowledged) == (("cancelled", 0.0, None), True)
    stage.answer_abort(1)
    assert not stage.unacknowledged


def test_one_prompt_is_in_flight_at_a_time() -> None:
    """Claude swallows a prompt that comes while a tool runs, pi refuses it (P9)."""
    stage = build_ready_session()
    for text in ("one", "two", "three"):
        stage.prompt(text)
    for number, text in enumerate(("one", "two", "three"), 1):
        assert [line["message"] for line in stage.take_sent()] == [text]
        stage.accept_prompt(number)
        stage.answer_and_settle(text.upper())
        assert stage.describe_end(number) == ("completed", 0.0, text.upper())


def test_a_prompt_that_pi_refuses_has_failed_with_pis_words() -> None:
    """An extension's own run keeps it busy: that is no crash, and nothing hangs."""
    stage = build_ready_session()
    stage.print_lines({"type": "agent_start"})
    stage.prompt("one")
    busy = {"id": "prompt-1", "type": "response", "command": "prompt", "success": False, "error": "busy"}
    stage.print_lines(busy)
    assert stage.describe_end(1) == ("failed", 0.0, None)
    [event] = [event for event in stage.events if event.kind == "outcome"]
    assert event.result is not None
    assert (event.result.error, event.result.exit_code) == ("busy", 1)
    stage.answer_and_settle("the extension's")
    assert stage.list_background_texts() == ["the extension's"]


def test_a_run_that_pi_began_itself_is_a_background_turn() -> None:
    """Its words and its end are no prompt's, though a prompt was written meanwhile (B1)."""
    stage = build_ready_session()
    stage.print_lines({"type": "agent_start"})
    stage.end_message("by myself")
    stage.prompt("one")
    stage.print_lines({"type": "agent_end"})
    assert stage.list_background_texts() == ["by myself"]
    stage.accept_prompt(1)
    stage.answer_and_settle("asked")
    assert stage.describe_end(1) == ("completed", 0.0, "asked")


@pytest.mark.parametrize("stop", ["error", "aborted"])
def test_an_error_that_nobody_asked_for_is_failed(stop: str) -> None:
    """Pi ends its run all the same, and its last message says why."""
    stage = begin_first_prompt()
    stage.answer_and_settle("", stop)
    assert stage.describe_end(1) == ("failed", 0.0, None)


def test_max_runtime_caps_a_turn_and_inactivity_cancels_only_where_it_is_set() -> None:
    """All limits of a turn cancel; none of them ends the agent (A1, A2)."""
    stage = begin_first_prompt(Policy(max_runtime=100.0, prompt_timeout=60.0))
    for instant in (50, 99):
        stage.advance_to(instant)
        stage.end_message("work", stop="toolUse")
    stage.advance_to(100)
    assert stage.describe_end(1) == ("overran", 100.0, "work")
    quiet = begin_first_prompt(Policy(inactivity_timeout=30.0))
    quiet.advance_to(20)
    quiet.agent.output["stderr"] += b"."
    quiet.look()
    quiet.advance_to(50)
    assert quiet.describe_end(1) == ("inactive", 50.0, None)
    assert quiet.agent.signals == []


def test_at_one_instant_progress_comes_before_the_prompts_deadline() -> None:
    """Among equals the order is the table's (A3), and the outcome says which limit it was."""
    stage = begin_first_prompt(
        Policy(progress_timeout=60.0, prompt_timeout=60.0, inactivity_timeout=60.0, max_runtime=60.0)
    )
    stage.advance_to(60)
    assert stage.describe_end(1) == ("stalled", 60.0, None)


def test_output_beats_the_deadline_of_its_instant() -> None:
    """Words said in time count, whoever looked first (A4)."""
    stage = begin_first_prompt()
    stage.now = 60 * SECOND
    stage.answer_and_settle("just in time")
    assert stage.describe_end(1) == ("completed", 60.0, "just in time")


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


def test_an_idle_session_may_be_silent_for_ever() -> None:
    """No limit runs while nothing is in flight."""
    stage = build_ready_session(
        Policy(prompt_timeout=60.0, inactivity_timeout=30.0, max_runtime=90.0, progress_timeout=10.0)
    )
    assert stage.machine.deadlines == {}
    stage.advance_to(1_000_000)
    assert stage.status == "ready"
