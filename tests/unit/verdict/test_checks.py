"""The words of a check: reports come from the subject, and nothing unseen is ever green."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_agentproc.errors import Deadlock
from pytest_agentproc.record import Record
from pytest_agentproc.scenario import TIME_EXPECT_KEYS
from pytest_agentproc.verdict import CheckRow, Verdict, choose_overall_verdict, judge_all_expectations
from pytest_agentproc.verdict._value_text import show_wanted
from pytest_agentproc.vocabulary import RunReport
from tests.event_lines import add_line
from tests.unit.handmade import (
    SECOND,
    BoundScenario,
    Events,
    Expected,
    Script,
    judge_events,
    judge_one_key,
    play_by_hand,
)


@pytest.mark.parametrize(
    ("key", "wanted", "answer"),
    [
        ("outcome", "completed", {"outcome": "completed"}),
        ("outcome", {"not": "completed"}, {"outcome": "stopped"}),
        ("outcome", {"any_of": ["completed", "failed"]}, {"outcome": "failed"}),
        ("exit_code", 0, {"exit_code": 0}),
        ("text", {"exact": "done"}, {"text": "done"}),
        ("text", {"contains": "on"}, {"text": "done"}),
        ("text", {"matches": "^d.*e$"}, {"text": "done"}),
        ("transcript", {"exact": "a\nb"}, {"transcript": "a\nb"}),
        ("stop_reason", "stop", {"stop_reason": "stop"}),
        ("model", "m1", {"model": "m1"}),
        ("usage", {"input": 3}, {"usage": {"input": 3, "output": 4}}),
        ("elapsed", 5, {"elapsed": 5}),
        ("error", {"contains": "120 s"}, {"error": "silent for 120 s"}),
        ("warnings", [], {"warnings": ()}),
        ("warnings", [{"exact": "artifacts_incomplete"}], {"warnings": ("slow_disk", "artifacts_incomplete")}),
        ("warnings", [{"exact": "exit_contradicts_result"}], {"warnings": ("exit_contradicts_result",)}),
        ("noise", 2, {"noise": 2}),
        ("stderr_tail", {"contains": "oops"}, {"stderr_tail": b"\xffoops\n"}),
    ],
)
def test_a_reported_value_that_fits_passes_and_one_that_is_not_reported_is_undecided(
    key: str, wanted: Any, answer: dict[str, Any]
) -> None:
    """Silence of the subject is neither good nor bad, and never green."""
    assert judge_one_key(key, wanted, **answer)[0] == "passed"
    assert judge_one_key(key, wanted)[::2] == ("undecided", "not reported by the subject")


def test_what_is_not_reported_decides_only_where_the_scenario_turns_on_it() -> None:
    """A supervisor that has no warnings is not asked for them by a file about something else."""
    expected = Expected("outcome", "completed"), Expected("warnings", [])
    script = Script(catches={"some-defect": "outcome"})
    record = Record()
    add_line(record, 0, "p", {"process": "agent", "seen": True, "parent": "supervisor", "line": 0})
    reported, silent = RunReport(outcome="completed"), RunReport(warnings=())
    for answer, verdict in ((reported, Verdict.PASSED), (silent, Verdict.UNDECIDED)):
        rows = judge_all_expectations(play_by_hand(BoundScenario(expected, scenario=script), record, answer))
        assert choose_overall_verdict(rows) is verdict
    assert [row.verdict for row in rows] == [Verdict.UNDECIDED, Verdict.PASSED]


@pytest.mark.parametrize(
    ("catches", "answer", "verdicts"),
    [
        ({}, {"outcome": "completed"}, ["passed", "undecided", "undecided"]),
        ({"a": "text", "b": "noise"}, {"text": "hi"}, ["not applicable", "passed", "not applicable"]),
        ({"a": "text", "b": "noise"}, {"text": "ha"}, ["not applicable", "failed", "not applicable"]),
        ({"a": "noise"}, {"outcome": "completed"}, ["passed", "not applicable", "undecided"]),
        ({"a": "text", "b": "noise"}, {"outcome": "completed"}, ["passed", "undecided", "undecided"]),
    ],
)
def test_one_deciding_key_that_is_reported_decides(
    catches: dict[str, str], answer: dict[str, Any], verdicts: list[str]
) -> None:
    """A file turns on any of what its defects turn red, and on all that it states if it names none."""
    expected = Expected("outcome", "completed"), Expected("text", {"exact": "hi"}), Expected("noise", 0)
    record = Record()
    add_line(record, 0, "p", {"process": "agent", "seen": True, "parent": "supervisor", "line": 0})
    rows = judge_all_expectations(
        play_by_hand(BoundScenario(expected, scenario=Script(catches=catches)), record, RunReport(**answer))
    )
    assert [row.verdict.value for row in rows] == verdicts


@pytest.mark.parametrize(
    ("warning", "catches", "verdict"),
    [
        ("it was ended after its grace", {}, "not applicable"),
        ("it was ended after its grace", {"a": "warnings"}, "failed"),
        ("slow_disk", {}, "not applicable"),
        ("slow_disk", {"a": "warnings"}, "not applicable"),
        ("exit_contradicts_result", {}, "failed"),
    ],
)
def test_what_else_is_odd_is_a_supervisors_own_to_say(warning: str, catches: dict[str, str], verdict: str) -> None:
    """A warning that is no name of the kit's decides only in a scenario whose defect turns on warnings."""
    expected = Expected("outcome", "completed"), Expected("warnings", [])
    record = Record()
    add_line(record, 0, "p", {"process": "agent", "seen": True, "parent": "supervisor", "line": 0})
    answer = RunReport(outcome="completed", warnings=(warning,))
    rows = judge_all_expectations(
        play_by_hand(BoundScenario(expected, scenario=Script(catches=catches)), record, answer)
    )
    assert [row.verdict.value for row in rows] == ["passed", verdict]


@pytest.mark.parametrize(
    ("mode", "said", "verdict"),
    [
        ("text", "one\n", "passed"),
        ("text", "one\r\n", "passed"),
        ("text", "one ", "failed"),
        ("text", "\none", "failed"),
        ("json", "one\n", "failed"),
    ],
)
def test_plain_output_may_be_reported_with_the_end_of_its_last_line(mode: str, said: str, verdict: str) -> None:
    """It is what the agent printed; elsewhere a text is the agent's word for word."""
    bound, record = BoundScenario((Expected("text", {"exact": "one"}),), scenario=Script(mode=mode)), Record()
    add_line(record, 0, "p", {"process": "agent", "seen": True, "parent": "supervisor", "line": 0})
    [row] = [
        row for row in judge_all_expectations(play_by_hand(bound, record, RunReport(text=said))) if row.key == "text"
    ]
    assert row.verdict.value == verdict


@pytest.mark.parametrize(
    ("key", "wanted", "answer", "row"),
    [
        ("outcome", "completed", {"outcome": "failed"}, ("completed", "failed", "")),
        ("exit_code", 0, {"exit_code": 1}, ("0", "1", "")),
        ("text", {"exact": "one"}, {"text": "two"}, ('"one"', '"two"', "")),
        ("text", {"exact": "one"}, {"text": "ode"}, ('"one"', '"ode"', "they differ from character 2 on")),
        (
            "text",
            {"exact": "one"},
            {"text": "on"},
            ('"one"', '"on"', "they differ from character 3 on: 3 characters were wanted, and 2 came"),
        ),
        (
            "stderr_tail",
            {"matches": "^x{200}$"},
            {"stderr_tail": b"x" * 100},
            ('matches "^x{200}$"', f'"{"x" * 100}"', "it has 100 characters"),
        ),
        (
            "stderr_tail",
            {"matches": "^x{200}$"},
            {"stderr_tail": b"x" * 400},
            ('matches "^x{200}$"', f'400 characters: "{"x" * 150}" ... "{"x" * 150}"', ""),
        ),
        ("text", {"exact": "one"}, {"text": "one\n"}, ('"one"', '"one\\n"', "they differ in white space only")),
        (
            "text",
            {"exact": "first"},
            {"text": "last", "transcript": "first\nlast"},
            ('"first"', '"last"', "the transcript has it: it is not the final message"),
        ),
        ("text", {"contains": "x"}, {"text": "done"}, ('contains "x"', '"done"', "")),
        ("text", {"matches": "^x"}, {"text": "done"}, ('matches "^x"', '"done"', "")),
        ("usage", {"input": 3}, {"usage": {"input": 4}}, ("input: 3", "input: 4", "")),
        (
            "warnings",
            [],
            {"warnings": ("own", "exit_contradicts_result")},
            ("none", "own, exit_contradicts_result", ""),
        ),
        ("noise", 0, {"noise": 2}, ("0", "2", "")),
    ],
)
def test_a_reported_value_that_differs_fails_with_both_in_words(
    key: str, wanted: Any, answer: dict[str, Any], row: tuple[str, str, str]
) -> None:
    """Expected, seen, and a hint only where one applies."""
    assert judge_one_key(key, wanted, **answer) == ("failed", *row)


def test_every_time_is_written_as_one() -> None:
    """The table of keys says which are times, so that a new key is shown in seconds and not in nanoseconds."""
    assert {key: show_wanted(key, 5 * SECOND) for key in TIME_EXPECT_KEYS} == dict.fromkeys(TIME_EXPECT_KEYS, "5 s")
    assert {"elapsed", "returned", "gone_at", "alive_at"} <= TIME_EXPECT_KEYS


def test_times_are_exact_and_reported_with_their_difference() -> None:
    """One nanosecond is a difference, and the kit must be able to show it."""
    assert judge_one_key("elapsed", 120 * SECOND, elapsed=120 * SECOND + 1) == (
        "failed",
        "120 s",
        "120.000000001 s",
        "1 ns later",
    )


def test_a_time_that_equals_a_limit_names_the_limit() -> None:
    """300 s expected, 120 s seen: that it is the inactivity timeout is half of the diagnosis."""
    hint = judge_one_key("elapsed", 300 * SECOND, elapsed=120 * SECOND)[3]
    assert hint == "180 s earlier; 120 s is inactivity_timeout"


def test_a_limit_of_sessions_explains_nothing_of_a_run() -> None:
    """2 s are the grace of a close, too, and a run has none."""
    assert judge_one_key("elapsed", 3 * SECOND, elapsed=2 * SECOND)[3] == "1 s earlier; 2 s is kill_grace"


def test_an_inactive_verdict_on_an_agent_that_printed_says_when() -> None:
    """The first defect of all: duration taken for silence."""
    events: Events = [
        (60 * SECOND, "o", {"bytes": b".", "line": 3}),
        (120 * SECOND, "m", {"process": "supervisor", "outcome": "inactive"}),
    ]
    hint = "the last byte came at 60 s, 60 s before; inactivity_timeout is 120 s"
    assert judge_one_key("outcome", "completed", events=events, outcome="inactive") == (
        "failed",
        "completed",
        "inactive",
        hint,
    )
    events[1] = (180 * SECOND, *events[1][1:])
    assert judge_one_key("outcome", "completed", events=events, outcome="inactive")[3] == ""


def test_an_inactive_verdict_on_an_agent_that_had_ended_says_so() -> None:
    """Exit beats the timer: an agent that ends at the deadline has ended."""
    events: Events = [
        (120 * SECOND, "x", {"code": 0}),
        (120 * SECOND, "m", {"process": "supervisor", "outcome": "inactive"}),
    ]
    hint = judge_one_key("outcome", "completed", events=events, outcome="inactive")[3]
    assert hint == "the agent had ended by itself, at 120 s"


def test_a_fault_of_the_clock_fails_the_outcome_and_exercises_nothing_else() -> None:
    """The later course of the run is unknown."""
    fault = Deadlock("nobody can move\nagent waits for stdin")
    rows = judge_events(
        Expected("outcome", "completed"), Expected("elapsed", 5), Expected("leaks", [], line=0), fault=fault
    )
    assert [(row.key, row.verdict, row.seen) for row in rows] == [
        ("outcome", Verdict.FAILED, "deadlock: nobody can move\nagent waits for stdin"),
        ("elapsed", Verdict.NOT_EXERCISED, "the run ended in a deadlock"),
        ("leaks", Verdict.NOT_EXERCISED, "the run ended in a deadlock"),
    ]


def test_a_fault_fails_a_scenario_that_expects_no_outcome() -> None:
    """A file may check times only; a deadlock fails it all the same."""
    rows = judge_events(Expected("elapsed", 5), fault=Deadlock("nobody can move"))
    assert (rows[0].key, rows[0].verdict, rows[0].wanted) == ("outcome", Verdict.FAILED, "any")


def test_a_leak_is_seen_through_a_fault() -> None:
    """A leak fails by itself."""
    leak: Events = [(9, "m", {"process": "child1", "leaked": "zombie", "line": 4})]
    (_, row) = judge_events(Expected("leaks", []), events=leak, fault=Deadlock("nobody can move"))
    assert (row.verdict, row.seen) == (Verdict.FAILED, "child1 (zombie)")


def test_a_limit_that_the_subject_does_not_have_makes_its_check_not_applicable() -> None:
    """A supervisor with other limits is judged by its own."""
    (row,) = judge_events(Expected("elapsed", None, not_applicable="max_runtime"), elapsed=5)
    assert (row.verdict, row.seen) == (Verdict.NOT_APPLICABLE, "the subject has no max_runtime")


def test_an_outcome_that_is_not_to_be_is_named() -> None:
    """Where more than one is right, a scenario says which is wrong; of a turn as of a run."""
    wanted = {"not": "completed"}
    assert judge_one_key("outcome", wanted, outcome="completed")[:3] == ("failed", "not completed", "completed")
    assert judge_one_key("turns.1.outcome", wanted, turns=(RunReport(outcome="completed"),))[1] == "not completed"
    assert judge_one_key("turns.1.outcome", wanted, turns=(RunReport(outcome="agent_lost"),))[0] == "passed"
    assert judge_one_key("turns.1.outcome", wanted, turns=(RunReport(),))[0] == "undecided"


def test_one_of_several_outcomes_may_be_right() -> None:
    """Where a protocol can be read in two ways, a scenario names both outcomes."""
    wanted = {"any_of": ["completed", "failed"]}
    assert judge_one_key("outcome", wanted, outcome="inactive")[:3] == ("failed", "completed or failed", "inactive")
    assert judge_one_key("turns.1.outcome", wanted, turns=(RunReport(outcome="failed"),))[0] == "passed"
    assert judge_one_key("turns.1.outcome", wanted, turns=(RunReport(),))[0] == "undecided"


@pytest.mark.parametrize("error", [None, ""])
def test_none_and_an_empty_text_both_report_no_error(error: str | None) -> None:
    """Some write the one, others the other; where words were due, None says nothing, and "" that there are none."""
    assert judge_one_key("error", {"exact": ""}, error=error)[0] == "passed"
    assert judge_one_key("turns.1.error", {"exact": ""}, turns=(RunReport(error=error),))[0] == "passed"
    assert judge_one_key("error", {"contains": "x"}, error=error)[0] == ("undecided" if error is None else "failed")
    assert judge_one_key("error", {"exact": ""}, error="x")[0] == "failed"


def test_nothing_is_green_if_no_agent_was_started() -> None:
    """A supervisor that starts nothing leaks nothing, sends no signal, and must not look like a good supervisor."""
    checks = {"outcome": "completed", "text": {"exact": "x"}, "signals": [], "leaks": [], "error": {"contains": "x"}}
    expected = tuple(Expected(key, wanted) for key, wanted in checks.items())
    status = Expected("agent_status", {"code": 0, "signal": None, "forced": None})
    record = Record()
    add_line(record, 0, "x", {"process": "agent", "by": "supervisor", "code": 0})  # the subject's word is not enough
    answer = RunReport(outcome="completed", text="other")
    rows = judge_all_expectations(play_by_hand(BoundScenario((*expected, status)), record, answer))
    assert [row.verdict.value for row in rows] == [
        *("not exercised", "failed", "not exercised", "not exercised", "undecided", "failed"),
    ]
    assert (rows[0].seen, rows[-1].seen) == ("no agent was started; completed", "no agent was started")


@pytest.mark.parametrize(
    ("outcome", "cannot_spawn"), [("spawn_failed", None), ("spawn_failed", "not_found"), ("failed", "not_found")]
)
def test_an_agent_that_cannot_be_started_need_not_be(outcome: str, cannot_spawn: str | None) -> None:
    """There the start is what is judged."""
    expected = (Expected("outcome", outcome), Expected("leaks", []))
    bound = BoundScenario(expected, scenario=Script(cannot_spawn=cannot_spawn))
    rows = judge_all_expectations(play_by_hand(bound, Record(), RunReport(outcome=outcome)))
    assert {row.verdict for row in rows} == {Verdict.PASSED}


def test_our_own_mistakes_are_kit_errors() -> None:
    """They must never be read as a verdict on the subject."""
    assert judge_one_key("no_such_key", 1)[::2] == ("kit error", "nothing checks this key")
    (row,) = judge_all_expectations(play_by_hand(BoundScenario((Expected("outcome", "completed"),)), Record(), None))
    assert (row.verdict, row.seen) == (Verdict.KIT_ERROR, "the run has neither an answer nor a fault")


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        ([("passed", 3), ("passed", 0)], "passed"),
        ([("passed", 3), ("not applicable", 4)], "passed"),
        ([("not applicable", 4), ("passed", 0)], "not applicable"),
        ([("passed", 0)], "passed"),
        ([("passed", 3), ("not exercised", 4)], "not exercised"),
        ([("undecided", 3), ("not exercised", 4)], "undecided"),
        ([("undecided", 3), ("failed", 4)], "failed"),
        ([("failed", 3), ("adapter error", 4)], "adapter error"),
        ([("adapter error", 3), ("kit error", 4)], "kit error"),
    ],
)
def test_the_gravest_row_speaks_for_the_scenario(found: list[tuple[str, int]], verdict: str) -> None:
    """A check that was not exercised is never green, and neither is its scenario."""
    assert choose_overall_verdict(CheckRow("key", line, "", "", Verdict(name)) for name, line in found) == verdict


def test_a_time_that_the_subject_measured_may_be_shorter_in_real_time_alone() -> None:
    """Its own clock starts when the agent's start is through, which takes a while there; instants are never early."""
    assert judge_one_key("elapsed", 100, elapsed=98)[0] == "failed"
    assert judge_one_key("elapsed", 100, elapsed=98, tolerance=8)[0] == "passed"
    assert judge_one_key("elapsed", 100, elapsed=97, tolerance=8)[::3] == ("failed", "3 ns earlier")
    assert judge_one_key("elapsed", 100, elapsed=108, tolerance=8)[0] == "passed"
    assert judge_one_key("elapsed", 100, elapsed=109, tolerance=8)[0] == "failed"


RETURN = (5 * SECOND, "m", {"process": "supervisor", "returned": True})


@pytest.mark.parametrize(
    ("events", "verdict", "observed"),
    [
        ([RETURN], "passed", "acted at 5 s"),
        ([(5 * SECOND, "s", {"signal": "TERM"}), (9 * SECOND, *RETURN[1:])], "passed", "acted at 5 s"),
        ([(5 * SECOND, "x", {"process": "child1", "signal": "KILL"})], "passed", "acted at 5 s"),
        ([(4 * SECOND, "s", {"signal": "TERM"}), RETURN], "undecided", "not reported by the subject"),
        ([(9 * SECOND, *RETURN[1:])], "undecided", "not reported by the subject"),
        (
            [(5 * SECOND, "m", {"step": "die: KILL", "line": 3}), (5 * SECOND, "x", {"signal": "KILL"})],
            "undecided",
            "not reported by the subject",
        ),
    ],
)
def test_who_acts_at_the_wanted_instant_need_not_say_when_it_knew(events: Events, verdict: str, observed: str) -> None:
    """A supervisor that tells outcomes alone still shows when it ended a run; another instant shows less."""
    assert judge_one_key("elapsed", 5 * SECOND, events=events)[::2] == (verdict, observed)


@pytest.mark.parametrize(("acted", "verdict"), [(98, "passed"), (108, "passed"), (97, "failed"), (109, "undecided")])
def test_in_real_time_it_acts_not_long_after(acted: int, verdict: str) -> None:
    """As near as a time that it reports; a later supervisor may have taken long to act."""
    events = [(acted, "m", {"process": "supervisor", "returned": True})]
    assert judge_one_key("elapsed", 100, events=events, tolerance=8)[0] == verdict
