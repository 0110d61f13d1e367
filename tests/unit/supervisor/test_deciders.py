"""The deciders as values: what ends a run, when, and as what. No process and no machine around them."""

from __future__ import annotations

import pytest

from pytest_agentproc.supervisor import (
    Completion,
    Escalation,
    OutcomeRules,
    RestartCounter,
    SendSignal,
    StdinFeeder,
    Watchdog,
)
from pytest_agentproc.supervisor import _events as machine_events
from pytest_agentproc.supervisor._ending import EscalationStep
from pytest_agentproc.supervisor.dialects import Failure, Finished, Line, Meaning, Message, Noise, Other, Resumed
from pytest_agentproc.vocabulary import Outcome, Policy

SECOND = 1_000_000_000
POLICY = Policy(
    inactivity_timeout=10.0,
    max_runtime=60.0,
    linger_grace=1.0,
    linger_kill_grace=2.0,
    leftover_kill_grace=3.0,
    kill_grace=5.0,
)


def build_watchdog(
    inactivity_timeout: float | None = 10.0, max_runtime: float | None = 60.0, start: int = 0
) -> Watchdog:
    """Make a watchdog that watches from an instant on."""
    made = Watchdog(Policy(inactivity_timeout=inactivity_timeout, max_runtime=max_runtime))
    made.start(start)
    return made


def build_completion(*meanings: Meaning) -> Completion:
    """Feed meanings, one each second."""
    made = Completion()
    for second, meaning in enumerate(meanings, 1):
        made.feed(meaning, second * SECOND)
    return made


# Watchdog.


def test_limits_count_from_the_start() -> None:
    """The clock of a run is not that of the machine."""
    watchdog = build_watchdog(start=3)
    assert watchdog.deadlines == {"inactivity_timeout": 10 * SECOND + 3, "max_runtime": 60 * SECOND + 3}
    assert watchdog.deadline == 10 * SECOND + 3


def test_a_limit_that_is_off_never_comes() -> None:
    """None is no limit, not a long one."""
    assert build_watchdog(None, None).deadline is None
    assert build_watchdog(None).deadlines == {"max_runtime": 60 * SECOND}


def test_nothing_is_due_before_its_instant_and_at_it_it_is() -> None:
    """Limits are exact to the nanosecond."""
    watchdog = build_watchdog()
    assert watchdog.find_expired_limit(10 * SECOND - 1) is None
    assert watchdog.find_expired_limit(10 * SECOND) == ("inactivity_timeout", Outcome.INACTIVE)


def test_activity_moves_one_limit_and_not_the_other() -> None:
    """A run that talks for ever is not silent, but it has run for too long in the end (A1, A2)."""
    watchdog = build_watchdog()
    watchdog.note_activity(9 * SECOND, "stderr", 1)
    assert watchdog.deadlines == {"inactivity_timeout": 19 * SECOND, "max_runtime": 60 * SECOND}
    watchdog.note_activity(59 * SECOND, "stdout", 1)
    assert watchdog.find_expired_limit(60 * SECOND) == ("max_runtime", Outcome.OVERRAN)


def test_at_one_instant_silence_is_reported_before_the_runtime() -> None:
    """Among equals the gentler word wins (A3)."""
    assert build_watchdog(60.0).find_expired_limit(60 * SECOND) == ("inactivity_timeout", Outcome.INACTIVE)


def test_a_late_look_reports_of_the_limit_that_came_first() -> None:
    """A host that was away must not swap what happened."""
    assert build_watchdog(10.0, 4.0).find_expired_limit(100 * SECOND) == ("max_runtime", Outcome.OVERRAN)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_any_byte_of_either_stream_is_activity(stream: str) -> None:
    """A spinner on stderr is work as well (A1)."""
    assert build_watchdog().is_activity(stream, b"\0")
    assert not build_watchdog().is_activity(stream, b"")


def test_a_closed_stream_moves_no_limit() -> None:
    """It is neither activity nor exit (A5)."""
    watchdog = build_watchdog()
    before = dict(watchdog.deadlines)
    watchdog.note_stream_end(5 * SECOND, "stdout")
    assert watchdog.deadlines == before


def test_a_watchdog_at_rest_has_no_limit_until_it_is_armed_again() -> None:
    """A completion that is taken back brings the old limits back."""
    watchdog = build_watchdog()
    watchdog.disarm()
    assert (watchdog.deadline, watchdog.find_expired_limit(100 * SECOND)) == (None, None)
    watchdog.note_activity(8 * SECOND, "stdout", 1)
    assert watchdog.deadline is None
    watchdog.arm(9 * SECOND)
    assert watchdog.deadlines == {"inactivity_timeout": 18 * SECOND, "max_runtime": 60 * SECOND}


def test_a_watchdog_explains_itself() -> None:
    """The sentence says what a person would ask: how long, after how much, and what was closed."""
    watchdog = build_watchdog()
    watchdog.note_activity(2 * SECOND, "stdout", 5)
    assert (
        watchdog.explain_expiry("inactivity_timeout", 12 * SECOND + SECOND // 2)
        == "no output for 10.5 s, after 5 bytes"
    )
    assert watchdog.explain_expiry("max_runtime", 60 * SECOND) == "still running after 60 s, with 5 bytes of output"
    watchdog.note_stream_end(3 * SECOND, "stdout")
    watchdog.note_stream_end(4 * SECOND, "stderr")
    closed = "no output for 10 s, after 5 bytes, and stdout and stderr closed"
    assert watchdog.explain_expiry("inactivity_timeout", 12 * SECOND) == closed


# Escalation.


def test_a_good_end_is_lingered_terminated_and_killed() -> None:
    """Each step has the grace of a good end (C1)."""
    escalation = Escalation(POLICY)
    escalation.start_linger_grace(0)
    assert (escalation.timer, escalation.deadline, escalation.has_signalled) == ("linger_grace", SECOND, False)
    assert escalation.take_due_step(SECOND) == SendSignal("TERM")
    assert (escalation.timer, escalation.deadline, escalation.has_signalled) == ("linger_kill_grace", 3 * SECOND, True)
    assert escalation.take_due_step(3 * SECOND) == SendSignal("KILL")
    assert (escalation.timer, escalation.deadline, escalation.escalation_step) == ("", None, EscalationStep.DONE)


def test_a_bad_end_has_the_longer_grace() -> None:
    """An agent that is given up may have much to put away (T1)."""
    escalation = Escalation(POLICY)
    assert escalation.terminate(SECOND) == SendSignal("TERM")
    assert (escalation.timer, escalation.deadline) == ("kill_grace", 6 * SECOND)


def test_a_grace_counts_from_the_signal_that_was_sent() -> None:
    """A host that was away sends late and still waits in full."""
    escalation = Escalation(POLICY)
    escalation.start_linger_grace(0)
    escalation.take_due_step(4 * SECOND)
    assert escalation.deadline == 6 * SECOND


def test_a_linger_that_is_withdrawn_waits_for_nothing() -> None:
    """The agent continues, and must not be terminated at the old instant."""
    escalation = Escalation(POLICY)
    escalation.start_linger_grace(0)
    escalation.stop_waiting()
    assert (escalation.escalation_step, escalation.timer, escalation.deadline) == (EscalationStep.NONE, "", None)


def test_nothing_is_withdrawn_after_the_signal() -> None:
    """TERM cannot be taken back, so neither can the grace after it."""
    escalation = Escalation(POLICY)
    escalation.start_linger_grace(0)
    escalation.take_due_step(SECOND)
    escalation.stop_waiting()
    assert (escalation.escalation_step, escalation.deadline) == (EscalationStep.KILL, 3 * SECOND)


def test_leftovers_are_terminated_with_a_grace_of_their_own_and_once() -> None:
    """The agent has ended well or ill by itself; its descendants are only in the way (T6)."""
    escalation = Escalation(POLICY)
    assert escalation.end_leftovers(SECOND) == [SendSignal("TERM")]
    assert (escalation.timer, escalation.deadline) == ("leftover_kill_grace", 4 * SECOND)
    assert escalation.end_leftovers(2 * SECOND) == []


def test_the_ladder_ends_with_the_agent_reaped() -> None:
    """No zombie stays, and no timer (T3)."""
    escalation = Escalation(POLICY)
    escalation.terminate(0)
    assert escalation.finish() == [machine_events.ReapAgent(), machine_events.FinishRun()]
    assert escalation.deadline is None


# Completion.


def test_a_completion_has_its_instant_and_its_verdict() -> None:
    """A run's time ends with its work and not with its process."""
    done = build_completion(Message("a"), Finished(True, final=False))
    assert (done.at, done.ok, done.text) == (2 * SECOND, True, "a")


def test_a_second_completion_changes_the_result_and_not_the_instant() -> None:
    """The last word counts, but the work was over before."""
    done = build_completion(Finished(True, final=False), Finished(False, final=True, error="no"))
    assert (done.at, done.ok, done.error, done.final) == (SECOND, False, "no", True)


def test_an_end_that_says_nothing_keeps_what_was_said() -> None:
    """The end of the agent after a failed message is no success."""
    assert build_completion(Finished(False, final=False, error="no"), Finished(None, final=True)).ok is False
    assert build_completion(Finished(None, final=True)).ok is True


def test_a_completion_that_is_not_final_is_taken_back() -> None:
    """The agent continues: there is no result yet, and no error of the old one."""
    back = build_completion(Finished(False, final=False, error="overloaded"), Resumed())
    assert (back.at, back.ok, back.error) == (None, None, "")


def test_a_completion_after_a_withdrawal_has_its_own_instant() -> None:
    """A completion that was taken back does not count."""
    done = build_completion(Finished(False, final=False, error="overloaded"), Resumed(), Finished(True, final=False))
    assert (done.at, done.ok, done.error) == (3 * SECOND, True, "")


def test_a_final_completion_stands() -> None:
    """An end stays an end, even if the agent prints more after it."""
    done = build_completion(Finished(True, final=True), Resumed())
    assert (done.at, done.ok) == (SECOND, True)


def test_the_text_is_the_last_message_and_the_transcript_all() -> None:
    """The words before a tool are not the answer."""
    done = build_completion(Message("let me see", "toolUse", "m1"), Message("two files", "stop", usage={"n": 1}))
    assert (done.text, done.transcript) == ("two files", "let me see\ntwo files")
    assert (done.stop_reason, done.model, done.usage) == ("stop", "m1", {"n": 1})


def test_the_text_of_plain_lines_is_all_of_them() -> None:
    """A dialect without messages has no last one."""
    assert build_completion(Line("a"), Line("b")).text == "a\nb"
    assert build_completion().text is None


def test_noise_is_counted_and_errors_are_kept() -> None:
    """Neither completes anything (F2)."""
    seen = build_completion(Noise(b"?"), Other("event"), Noise(b"!"), Failure("no key"))
    assert (seen.noise, seen.error, seen.at) == (2, "no key", None)


# Ending.


@pytest.mark.parametrize(
    ("meanings", "status", "has_completion", "expected"),
    [
        ([], 0, False, Outcome.COMPLETED),
        ([], 3, False, Outcome.FAILED),
        ([], -9, False, Outcome.INCOMPLETE),
        ([], 0, True, Outcome.INCOMPLETE),
        ([], 3, True, Outcome.INCOMPLETE),
        ([Finished(True, final=True)], 0, True, Outcome.COMPLETED),
        ([Finished(True, final=True)], 3, True, Outcome.COMPLETED),
        ([Finished(True, final=False)], -15, True, Outcome.COMPLETED),
        ([Finished(False, final=True)], 0, True, Outcome.FAILED),
        ([Finished(True, final=False), Resumed()], 0, True, Outcome.INCOMPLETE),
    ],
)
def test_a_result_decides_and_without_one_the_exit(
    meanings: list[Meaning], status: int, has_completion: bool, expected: Outcome
) -> None:
    """The exit code of an agent that has said how it went adds nothing; of one that should have, it is not enough."""
    outcome = OutcomeRules().judge_exit(
        build_completion(*meanings), status, build_watchdog(), 0, has_completion=has_completion
    )
    assert outcome is expected


def test_an_exit_at_a_limits_instant_is_an_exit() -> None:
    """Exit beats the timer (A4)."""
    assert (
        OutcomeRules().judge_exit(Completion(), 0, build_watchdog(), 10 * SECOND, has_completion=False)
        is Outcome.COMPLETED
    )


@pytest.mark.parametrize("streams", [[], ["stdout"], ["stdout", "stderr"]])
def test_an_agent_is_gone_by_its_exit_alone(streams: list[str]) -> None:
    """A descendant may hold its pipes open, and it may close them and live (C4)."""
    assert OutcomeRules().is_gone(streams, has_exited=True)
    assert not OutcomeRules().is_gone(streams, has_exited=False)


@pytest.mark.parametrize(("errno", "missing"), [(2, True), (20, True), (13, False), (8, False), (7, False)])
def test_a_start_that_fails_is_of_two_kinds(errno: int, missing: bool) -> None:
    """There is no such file, or there is one that cannot be executed (P6)."""
    assert OutcomeRules().is_missing(errno) is missing


@pytest.mark.parametrize(
    ("silent", "broken", "prompt", "lost"),
    [
        (True, True, b"x", True),
        (False, True, b"x", False),
        (True, False, b"x", False),
        (True, True, b"", False),
    ],
)
def test_a_prompt_is_lost_when_the_agent_lives_on_in_silence(
    silent: bool, broken: bool, prompt: bytes, lost: bool
) -> None:
    """An agent may close its input and still do its work (F5)."""
    feeder = StdinFeeder(prompt)
    feeder.is_broken = broken
    assert OutcomeRules().is_input_lost(feeder, silent=silent) is lost


@pytest.mark.parametrize(
    ("outcome", "status", "forced", "expected"),
    [
        (Outcome.COMPLETED, 3, False, ["exit_contradicts_result"]),
        (Outcome.COMPLETED, 3, True, []),
        (Outcome.COMPLETED, 0, False, []),
        (Outcome.COMPLETED, -15, False, []),
        (Outcome.FAILED, 3, False, []),
    ],
)
def test_a_good_result_with_a_bad_exit_is_a_warning(
    outcome: Outcome, status: int, forced: bool, expected: list[str]
) -> None:
    """The result stands; a contradiction of the agent is reported, unless we caused it."""
    assert OutcomeRules().find_warnings(outcome, status, forced=forced) == expected


# Feeder.


def test_a_feeder_hands_out_what_is_left() -> None:
    """Every byte goes out once and in order, however few are taken at a time."""
    feeder = StdinFeeder(b"abcdef")
    feeder.note_written(4)
    assert (bytes(feeder.unwritten_bytes), feeder.is_delivered) == (b"ef", False)
    feeder.note_written(2)
    assert feeder.is_delivered


def test_a_stream_is_read_until_its_end() -> None:
    """Its end may be reported twice."""
    feeder = StdinFeeder(b"")
    for _ in range(2):
        feeder.note_stream_end("stdout")
        assert feeder.streams == ["stderr"]


def test_a_backoff_is_doubled_before_it_is_rounded() -> None:
    """A third of a second is no whole number of nanoseconds, and two thirds are not twice the one above (P6)."""
    restarts = RestartCounter(Policy(restart_backoff=1 / 3))
    assert [restarts.plan_restart(0) for _ in range(6)] == [
        333333334,
        666666667,
        1333333334,
        2666666667,
        5333333334,
        None,
    ]
