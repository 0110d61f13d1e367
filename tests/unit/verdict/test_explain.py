"""The text of a failure, word for word: it is what users of the kit read most."""

from __future__ import annotations

import textwrap
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_agentproc.errors import Deadlock
from pytest_agentproc.record import Record
from pytest_agentproc.reference import find_entries
from pytest_agentproc.scenario import loads
from pytest_agentproc.verdict import (
    CheckRow,
    Verdict,
    describe_findings,
    explain_leaks,
    explain_play,
    judge_all_expectations,
)
from pytest_agentproc.vocabulary import Policy
from tests.unit.handmade import play_by_hand

SECOND = 1_000_000_000
SCENARIO: Any = SimpleNamespace(
    path="scenarios/drip.scenario.yaml",
    claim="a byte a minute is activity",
    catches={},
    expected=(),
    covers=("A1",),
    level="must",
    prints_events=False,
    is_session=False,
    harm="work is lost",
    text=textwrap.dedent(
        """\
        scenario: a byte a minute is activity
        agent: raw
        script:
          - drip: {stdout: ".", every: 60s, for: 300s}
        expect:
          outcome: completed
          elapsed: 300s
          exit_code: 0
        """
    ),
)


def build_expected(key: str, wanted: object, line: int) -> SimpleNamespace:
    """State one expect key as the scenario binds it."""
    return SimpleNamespace(key=key, wanted=wanted, line=line, not_applicable=None, level="must", unstated=())


def build_play(record: Record, answer: Any, fault: Exception | None = None) -> Any:
    """Put a run together by hand."""
    expect = (
        build_expected("outcome", "completed", 6),
        build_expected("elapsed", 300 * SECOND, 7),
        build_expected("exit_code", 0, 8),
        build_expected("leaks", [], 0),
    )
    bound = SimpleNamespace(scenario=SCENARIO, policy=Policy(), expect=expect, parts={})
    return play_by_hand(bound, record, answer, fault)


def test_a_failure_says_where_what_and_how_it_came_to_that() -> None:
    """First line clickable, rows of expected and seen with their lines, the step, the timeline, the digest."""
    record = Record()
    record.add(0, "p", {"process": "agent", "seen": True, "pid": 7, "parent": None, "line": 0})
    record.add(0, "m", {"process": "agent", "line": 4, "step": "drip"})
    record.add(60 * SECOND, "o", {"process": "agent", "bytes": b".", "line": 4})
    record.add(60 * SECOND, "o", {"process": "agent", "by": "supervisor", "size": 1})
    record.add(120 * SECOND, "m", {"process": "supervisor", "outcome": "inactive"})
    run = build_play(record, SimpleNamespace(outcome="inactive", elapsed=120 * SECOND, exit_code=0, turns=None))
    assert explain_play(run, judge_all_expectations(run)) == textwrap.dedent(
        f"""\
        scenarios/drip.scenario.yaml:6: a byte a minute is activity
          harm: work is lost

          outcome: failed  scenarios/drip.scenario.yaml:6
            expected  completed
            seen      inactive
                      (the last byte came at 60 s, 60 s before; inactivity_timeout is 120 s)
          elapsed: failed  scenarios/drip.scenario.yaml:7
            expected  300 s
            seen      120 s
                      (180 s earlier; 120 s is inactivity_timeout)
          passed: exit_code, leaks
          the agent's last step: scenarios/drip.scenario.yaml:4: - drip: {{stdout: ".", every: 60s, for: 300s}}
          read more: agentproc explain A1

         time  supervisor         agent and descendants
          0 s                     starts
                                  drip: {{stdout: ".", every: 60s, for: 300s}}  [line 4]
               ~~~ 60 s pass ~~~
         60 s  reads stdout, 1 B  stdout, 1 B "."  [line 4]
               ~~~ 60 s pass ~~~
        120 s  OUTCOME inactive

        failed, record {record.digest()}"""
    )


def test_a_fault_is_shown_as_what_was_seen() -> None:
    """A deadlock names who waits for what, indented under its row; the gravest row comes first."""
    run = build_play(Record(), None, Deadlock("nobody can move\nagent waits for stdin"))
    assert explain_play(run, judge_all_expectations(run)).splitlines()[:11] == [
        "scenarios/drip.scenario.yaml:6: a byte a minute is activity",
        "  harm: work is lost",
        "",
        "  outcome: failed  scenarios/drip.scenario.yaml:6",
        "    expected  completed",
        "    seen      deadlock: nobody can move",
        "              agent waits for stdin",
        "  elapsed: not exercised  scenarios/drip.scenario.yaml:7",
        "    expected  300 s",
        "    seen      the run ended in a deadlock",
        "  exit_code: not exercised  scenarios/drip.scenario.yaml:8",
    ]


@pytest.mark.parametrize(
    ("covers", "row", "word"),
    [
        (("C1", "T1"), CheckRow("outcome", 1, "completed", "inactive", Verdict.FAILED), "C1"),
        (("C1", "T1"), CheckRow("leaks", 0, "none", "agent", Verdict.FAILED), "T1"),
        ((), CheckRow("turns.1.outcome", 1, "completed", "inactive", Verdict.FAILED), "inactive"),
        ((), CheckRow("turns.1.text", 1, "a", "b", Verdict.FAILED), "text"),
        ((), CheckRow("artifacts.stdout.log", 1, "a", "b", Verdict.FAILED), "stdout.log"),
        ((), CheckRow("artifacts.result.json.usage", 1, "a", "b", Verdict.FAILED), "usage"),
        (("C1",), CheckRow("text", 1, "a", "not reported", Verdict.UNDECIDED), "undecided"),
        (("C1",), CheckRow("answer", 0, "an answer", "it raised", Verdict.ADAPTER_ERROR), "adapter error"),
    ],
)
def test_a_failure_ends_with_the_word_to_look_up(covers: tuple[str, ...], row: CheckRow, word: str) -> None:
    """The rule says why the check exists; without one, the outcome or the key is what is not understood."""
    run = build_play(Record(), None)
    run.bound.scenario = SimpleNamespace(**{**vars(SCENARIO), "covers": covers})
    assert describe_findings(run, [row]).splitlines()[-1] == f"  read more: agentproc explain {word}"
    assert find_entries(word)[0] != []


def test_processes_that_were_left_are_named_with_their_steps() -> None:
    """A descendant is found at its spawn, an agent at the step that it was at."""
    record = Record()
    record.add(0, "m", {"process": "agent", "line": 4, "step": "drip"})
    assert explain_leaks(SCENARIO, record) == ""
    record.add(0, "m", {"process": "agent", "leaked": "alive", "line": 0})
    record.add(0, "m", {"process": "child1", "leaked": "zombie", "line": 2})
    lines = explain_leaks(SCENARIO, record).splitlines()
    assert lines[-1].endswith("child1: LEAKED: zombie  [line 2]")
    assert lines[:4] == [
        'scenarios/drip.scenario.yaml:4: agent was left (still alive): - drip: {stdout: ".", every: 60s, for: 300s}',
        "scenarios/drip.scenario.yaml:2: child1 was left (zombie): agent: raw",
        "",
        "time  supervisor  agent and descendants",
    ]


def test_lines_that_are_no_events_are_quoted_where_they_may_be_the_reason() -> None:
    """A supervisor that gives up at a banner fails with the banner. Other failures do not quote it."""
    record = Record()
    for piece in (b'{"type": "start"}\n\x1b[1mUpdate', b" me\n", *(f"warning {i}\n".encode() for i in range(4))):
        record.add(0, "o", {"process": "agent", "bytes": piece})
    run = build_play(record, SimpleNamespace(outcome="failed"))
    row = CheckRow("outcome", 6, "completed", "failed", Verdict.FAILED)
    run.bound.scenario = SimpleNamespace(**{**vars(SCENARIO), "prints_events": True})
    assert describe_findings(run, [row]).splitlines()[6:-1] == [
        "  lines on stdout that are no JSON object:",
        '    "\\u001b[1mUpdate me"',
        '    "warning 0"',
        '    "warning 1"',
        "    ... and 2 more",
    ]
    other = CheckRow("elapsed", 6, "1 s", "2 s", Verdict.FAILED)
    assert "no JSON" not in describe_findings(run, [other])
    run.bound.scenario.prints_events = False
    assert "no JSON" not in describe_findings(run, [row])


@pytest.mark.parametrize(
    ("agent", "is_by_lines"),
    [
        ("raw", False),
        ("{dialect: gemini, mode: text}", False),
        ("{dialect: gemini, mode: json}", False),
        ("{dialect: gemini, mode: stream}", True),
        ("{dialect: pi, mode: json}", True),
        ("{dialect: pi, mode: rpc}", True),
        ("codex", True),
        ("claude", True),
        ("acp", True),
    ],
)
def test_a_line_is_an_event_by_dialect_and_mode(agent: str, *, is_by_lines: bool) -> None:
    """The mode `json` of pi prints events, and that of gemini prints one object over many lines."""
    assert loads(f"scenario: a\nagent: {agent}\nscript: [silence: 1s]\n").prints_events is is_by_lines


def test_a_fault_names_what_the_caller_of_a_session_waits_for() -> None:
    """An adapter that reports no statuses learns here why the drive does not continue."""
    record = Record()
    record.add(0, "m", {"process": "caller", "does": "prompt"})
    record.add(0, "m", {"process": "caller", "does": "waits for status prompting", "line": 4})
    run = build_play(record, None, Deadlock("nobody can move"))
    step = '- drip: {stdout: ".", every: 60s, for: 300s}'
    waits = f"  the caller waits for status prompting: scenarios/drip.scenario.yaml:4: {step}"
    assert waits in explain_play(run, judge_all_expectations(run)).splitlines()
    record.add(SECOND, "m", {"process": "caller", "does": "cancel"})
    assert waits not in explain_play(run, judge_all_expectations(run)).splitlines()
