"""The text of a failure, word for word: it is what users of the kit read most."""

from __future__ import annotations

import textwrap
import time
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
from pytest_agentproc.verdict._value_text import draw_text_difference, judge_text
from pytest_agentproc.vocabulary import Policy
from tests.event_lines import add_line
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
    mode="raw",
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
    add_line(record, 0, "p", {"process": "agent", "seen": True, "pid": 7, "parent": None, "line": 0})
    add_line(record, 0, "m", {"process": "agent", "line": 4, "step": "drip"})
    add_line(record, 60 * SECOND, "o", {"process": "agent", "bytes": b".", "line": 4})
    add_line(record, 60 * SECOND, "o", {"process": "agent", "by": "supervisor", "size": 1})
    add_line(record, 120 * SECOND, "m", {"process": "supervisor", "outcome": "inactive"})
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


def test_a_text_of_several_lines_is_shown_with_its_difference() -> None:
    """Quoted, eight lines with one other letter are two rows that look the same."""
    run = build_play(Record(), SimpleNamespace(text="one\ntwo\nthrea\nfour\n", transcript=None, turns=None))
    run.bound.expect = (build_expected("text", {"exact": "one\ntwo\nthree\nfour\n"}, 6),)
    assert explain_play(run, judge_all_expectations(run)).splitlines()[3:14] == [
        "  text: failed  scenarios/drip.scenario.yaml:6",
        '    expected  "one\\ntwo\\nthree\\nfour\\n"',
        '    seen      "one\\ntwo\\nthrea\\nfour\\n"',
        "              (they differ from character 13 on)",
        "      - expected, + seen",
        "      @@ line 1 @@",
        "        one",
        "        two",
        "      - three",
        "      + threa",
        "            ^",
    ]


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
    add_line(record, 0, "m", {"process": "agent", "line": 4, "step": "drip"})
    assert explain_leaks(SCENARIO, record) == ""
    add_line(record, 0, "m", {"process": "agent", "leaked": "alive", "line": 0})
    add_line(record, 0, "m", {"process": "child1", "leaked": "zombie", "line": 2})
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
        add_line(record, 0, "o", {"process": "agent", "bytes": piece})
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
    add_line(record, 0, "m", {"process": "caller", "does": "prompt"})
    add_line(record, 0, "m", {"process": "caller", "waits": "for status prompting", "line": 4})
    run = build_play(record, None, Deadlock("nobody can move"))
    step = '- drip: {stdout: ".", every: 60s, for: 300s}'
    waits = f"  the caller waits for status prompting: scenarios/drip.scenario.yaml:4: {step}"
    assert waits in explain_play(run, judge_all_expectations(run)).splitlines()
    add_line(record, SECOND, "m", {"process": "caller", "does": "cancel"})
    assert waits not in explain_play(run, judge_all_expectations(run)).splitlines()


_POEM = "one\ntwo\nthree\nfour\nfive\nsix\nseven"
_WORDS = "word " * 60


@pytest.mark.parametrize(
    ("wanted", "observed", "drawn"),
    [
        pytest.param("one", "one\ntwo", [], id="a short text is compared by eye"),
        pytest.param("one\n", "two\n", [], id="the end of its line makes it no text of two lines"),
        pytest.param(_POEM, "", [], id="nothing came, so there is nothing to compare"),
        pytest.param(
            _POEM,
            _POEM.replace("five", "fife"),
            ["@@ line 3 @@", "  three", "  four", "- five", "+ fife", "    ^", "  six", "  seven"],
            id="a letter of a line",
        ),
        pytest.param(
            _POEM,
            _POEM.replace("two\n", ""),
            ["@@ line 1 @@", "  one", "- two", "  three", "  four"],
            id="a line is missing",
        ),
        pytest.param(
            _POEM,
            f"{_POEM}\n",
            ["@@ line 6 @@", "  six", "  seven", "+"],
            id="a line end too much",
        ),
        pytest.param(
            "one\ntwo", "one\ntwo  ", ["@@ line 1 @@", "  one", "- two", "+ two\\u0020\\u0020", "     ^"], id="blanks"
        ),
        pytest.param(
            f"{_POEM}\n" * 2,
            f"{_POEM}\n{_POEM}\n".replace("one", "0"),
            [
                *("@@ line 1 @@", "- one", "+ 0", "  two", "  three"),
                *("@@ line 6 @@", "  six", "  seven", "- one", "+ 0", "  two", "  three"),
            ],
            id="two places",
        ),
        pytest.param(
            f"{_WORDS}end",
            f"{_WORDS}and",
            [
                "@@ line 1 @@",
                f"- ...{'word ' * 8}end",
                f"+ ...{'word ' * 8}and",
                f"{' ' * 45}^",
            ],
            id="a long line is shown from shortly before the difference",
        ),
        pytest.param(
            f"start {_WORDS}",
            f"stalt {_WORDS}",
            [
                "@@ line 1 @@",
                f"- start {('word ' * 17)[:84]}...",
                f"+ stalt {('word ' * 17)[:84]}...",
                "     ^",
            ],
            id="a long line is cut at its end",
        ),
    ],
)
def test_the_lines_that_differ_are_drawn(wanted: str, observed: str, drawn: list[str]) -> None:
    """Two escaped lines of 300 characters and "character 222" are no help."""
    lines = [line.rstrip() for line in draw_text_difference(wanted, observed).splitlines()]
    assert lines == (["- expected, + seen", *drawn] if drawn else [])


def test_a_drawing_is_short_and_soon_there() -> None:
    """An agent prints megabytes, and a failure is read on a terminal."""
    wanted, observed = ("\n".join(f"{word} {number % 7}" for number in range(100_000)) for word in ("a", "b"))
    begun = time.process_time()
    lines = draw_text_difference(wanted, observed).splitlines()
    assert time.process_time() - begun < 2
    assert len(lines) == 32
    assert lines[-1] == "... and more"


def test_a_difference_far_below_is_found() -> None:
    """Only the lines about it are compared with each other."""
    wanted = "\n".join(map(str, range(50_000)))
    lines = draw_text_difference(wanted, wanted.replace("49990", "x")).splitlines()
    assert lines[1:6] == ["@@ line 49989 @@", "  49988", "  49989", "- 49990", "+ x"]


@pytest.mark.parametrize(
    ("matcher", "observed", "has_diff"),
    [
        ({"exact": _POEM}, _POEM, False),
        ({"exact": _POEM}, _POEM[1:], True),
        ({"contains": _POEM}, _POEM[1:], False),
        ({"matches": f"^{_POEM}$"}, _POEM[1:], False),
    ],
)
def test_only_a_failed_comparison_with_a_whole_text_is_drawn(
    matcher: dict[str, str], observed: str, *, has_diff: bool
) -> None:
    """A pattern has no lines, and a part of a text may stand anywhere."""
    assert bool(judge_text(matcher, observed).diff) is has_diff
