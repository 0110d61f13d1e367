"""Levels: how much each check counts, in one file with blocks for lower ones."""

from __future__ import annotations

import pytest

from pytest_agentproc.errors import ScenarioError
from pytest_agentproc.record import Record
from pytest_agentproc.scenario import loads
from pytest_agentproc.verdict import CheckRow, Verdict, choose_overall_verdict, judge_all_expectations
from pytest_agentproc.vocabulary import Policy, RunReport
from tests.event_lines import add_line
from tests.unit.handmade import BoundScenario, Expected, Script, play_by_hand

FILE = """\
scenario: a claim
harm: the answer is lost
agent: raw
script: [{answer: done}]
expect: {outcome: completed, text: done}
should: {elapsed: 0s}
info: {exit_code: 0}
"""
SESSION = """\
scenario: a claim
agent: {dialect: acp, mode: session}
script: [{wait_for: prompt 1}, {answer: done}]
expect: {turns: [{text: done}], background: []}
should: {turns: [{exit_code: 0}], background: []}
"""


def list_problems(text: str) -> list[str]:
    """Give the messages of a malformed text."""
    with pytest.raises(ScenarioError) as caught:
        loads(text)
    return [str(problem) for problem in caught.value.problems]


def build_check(level: str, verdict: Verdict) -> CheckRow:
    """Give a check that the file states."""
    return CheckRow(level, 1, "", "", verdict, level=level)


def test_each_check_has_the_level_of_its_block() -> None:
    """The check for left processes counts as much as the file."""
    scenario = loads(FILE)
    assert scenario.harm == "the answer is lost"
    bound = scenario.bind(Policy())
    assert {expectation.key: expectation.level for expectation in bound.expect} == {
        "outcome": "must",
        "text": "must",
        "elapsed": "should",
        "exit_code": "info",
        "leaks": "must",
    }


def test_the_block_expect_has_the_level_of_the_file() -> None:
    """A file at level should has no checks that must hold."""
    text = FILE.replace("harm:", "level: should\nharm:").replace("should: {elapsed: 0s}\n", "")
    assert {expectation.level for expectation in loads(text).bind(Policy()).expect} == {"should", "info"}


def test_lists_of_turns_are_put_together() -> None:
    """Each block lists the turns from the first one on; background turns are counted once."""
    bound = loads(SESSION).bind(Policy())
    assert [(expectation.key, expectation.level) for expectation in bound.expect] == [
        ("turns.1.text", "must"),
        ("background", "must"),
        ("turns.1.exit_code", "should"),
        ("leaks", "must"),
    ]


def test_a_key_stands_at_one_level_only() -> None:
    """The message names the line in which it stands already."""
    assert list_problems(FILE.replace("should: {elapsed: 0s}", "should: {text: {contains: d}}")) == [
        "<text>:6:10: text stands in line 5 already: write it at one level only"
    ]


@pytest.mark.parametrize(("level", "line"), [("should", 7), ("info", 7), ("info", 8)])
def test_a_block_is_below_the_level_of_its_file(level: str, line: int) -> None:
    """Otherwise there would be two places for the same."""
    found = list_problems(FILE.replace("harm:", f"level: {level}\nharm:"))
    assert f"<text>:{line}:1: the level of this scenario is {level}: write these checks under expect" in found


def test_a_path_in_a_lower_block_is_named_as_it_stands() -> None:
    """A mistake under should is not looked for under expect."""
    assert list_problems(FILE.replace("elapsed: 0s", "elapsed: []")) == [
        "<text>:6:19: should.elapsed must be a time such as 10s, not a list"
    ]


def test_an_informational_check_decides_for_the_reference_supervisor_alone() -> None:
    """It is a choice of its own, which binds no other one."""
    rows = [build_check("must", Verdict.PASSED), build_check("info", Verdict.FAILED)]
    assert choose_overall_verdict(rows) is Verdict.FAILED
    assert choose_overall_verdict(rows, counts_info=False) is Verdict.PASSED
    assert choose_overall_verdict(rows[1:], counts_info=False) is Verdict.FAILED, (
        "of a file at level info nothing else is left"
    )


@pytest.mark.parametrize("verdict", [Verdict.UNDECIDED, Verdict.NOT_EXERCISED])
def test_an_open_should_leaves_a_decided_must_alone(verdict: Verdict) -> None:
    """A must that nothing decides stays open, whatever stands below it."""
    assert (
        choose_overall_verdict([build_check("must", Verdict.PASSED), build_check("should", verdict)]) is Verdict.PASSED
    )
    assert (
        choose_overall_verdict([build_check("must", Verdict.NOT_APPLICABLE), build_check("should", verdict)]) is verdict
    )
    assert choose_overall_verdict([build_check("must", verdict), build_check("should", Verdict.PASSED)]) is verdict
    assert (
        choose_overall_verdict([build_check("must", Verdict.PASSED), build_check("should", Verdict.FAILED)])
        is Verdict.FAILED
    )


def test_a_must_that_is_not_reported_stays_undecided_whatever_a_should_says() -> None:
    """A scenario of good practice alone cannot show that no user is harmed."""
    expected = Expected("outcome", "completed"), Expected("elapsed", 0, level="should")
    script = Script(catches={"some-defect": "elapsed"})
    rows = judge_all_expectations(
        play_by_hand(BoundScenario(expected, scenario=script), _record_start(), RunReport(elapsed=0))
    )
    assert [row.verdict for row in rows] == [Verdict.UNDECIDED, Verdict.PASSED]


@pytest.mark.parametrize(
    ("answer", "verdict"), [({"text": "a"}, Verdict.NOT_APPLICABLE), ({}, Verdict.UNDECIDED)], ids=["text", "no text"]
)
def test_a_supervisor_without_a_transcript_is_judged_by_its_text(answer: dict[str, str], verdict: Verdict) -> None:
    """The text is all that its user reads."""
    expected = Expected("text", {"exact": "a"}), Expected("transcript", {"exact": "a"})
    script = Script(catches={"some-defect": "transcript"})
    report = RunReport(**answer)  # type: ignore[arg-type]
    rows = judge_all_expectations(play_by_hand(BoundScenario(expected, scenario=script), _record_start(), report))
    assert rows[1].verdict is verdict


def _record_start() -> Record:
    record = Record()
    add_line(record, 0, "p", {"process": "agent", "seen": True, "pid": 7, "parent": "supervisor", "line": 0})
    return record
