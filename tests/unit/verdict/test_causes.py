"""Red scenarios grouped by cause: what is one cause, in which order they stand, and what is printed of each."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_agentproc.verdict import JudgedCheck, JudgedScenario, format_summary

FRAMES = "\n  glue.py:3 in mine: await go()\n  sup.py:{line} in go: line.decode()"


def build_failed_scenario(
    scenario: str, *rows: tuple[Any, ...], verdict: str = "failed", level: str = "must", **others: Any
) -> JudgedScenario:
    """Give a scenario with red rows: key, expected and seen."""
    made = (JudgedCheck(key, verdict, wanted, seen, level) for key, wanted, seen in rows)
    return JudgedScenario(
        scenario=scenario,
        file=scenario,
        level=level,
        covers=(),
        subject="mine",
        clock="virtual",
        backend="asyncio",
        verdict=verdict,
        rows=tuple(made),
        rerun=f"rerun {scenario}",
        **others,
    )


def print_causes(*judged: JudgedScenario) -> list[str]:
    """Give the lines of the causes."""
    lines = format_summary(judged, "1")
    return lines[1:-4] if lines[0] == "" else lines


def test_scenarios_that_miss_one_rule_are_one_line_with_a_count() -> None:
    """Instants, quoted texts and the names of descendants differ, and the mistake is one."""
    never = [
        build_failed_scenario(f"s{at}", ("signals", f"TERM at {at} s, KILL at {at + 2} s", "none")) for at in range(30)
    ]
    text = build_failed_scenario("text", ("text", '"one"', '"two"'), level="should")
    helper = [
        build_failed_scenario(f"h{name}", ("leaks", "none", f"{name} (still alive)")) for name in ("server", "tool")
    ]
    agent = build_failed_scenario("agent", ("leaks", "none", "agent (still alive), server (stopped)"))
    assert print_causes(text, *helper, agent, *never) == [
        "what went wrong (must, should: scenarios)                           must  should",
        "failed: signals: expected TERM at *, KILL at *, seen none             30       -",
        "  rerun s0",
        "failed: leaks: a descendant is left (still alive)                      2       -",
        "  rerun hserver",
        "failed: leaks: the agent is left (still alive)                         1       -",
        "  rerun agent",
        'failed: text: expected "one", seen "two"                               -       1',
        "  rerun text",
    ]


def test_values_are_shown_if_the_words_alone_say_nothing() -> None:
    """A reader learns nothing from `expected *, seen *`."""
    lost = [build_failed_scenario(name, ("text", '"done"', '""')) for name in "ab"]
    late = [build_failed_scenario(f"late{at}", ("elapsed", f"{at} s", f"{at + 1} s")) for at in range(3)]
    named = [
        build_failed_scenario(f"named{at}", ("text", f'contains "{at}"', '"x"'), level="should") for at in range(2)
    ]
    assert [line.split("  ")[0] for line in print_causes(*lost, *late, *named)[1::2]] == [
        "failed: elapsed, for example: expected 0 s, seen 1 s",
        'failed: text: expected "done", seen ""',
        "failed: text: expected contains *, seen *",
    ]


def test_a_scenario_counts_for_the_cause_that_explains_most() -> None:
    """A failure beside it follows from it; so does the time of an end, unless nothing else failed."""
    signals, outcome = ("signals", "TERM at 60 s", "none"), ("outcome", "inactive", "completed")
    late = ("elapsed", "60 s", "75 s")
    lines = print_causes(
        build_failed_scenario("a", outcome, signals),
        build_failed_scenario("b", signals, late),
        build_failed_scenario("c", signals),
        build_failed_scenario("d", late),
    )
    assert [" ".join(line.split()) for line in lines[1::2]] == [
        "failed: signals: expected TERM at *, seen none 3 -",
        "failed: elapsed: expected 60 s, seen 75 s 1 -",
    ]


def test_a_printed_command_runs_a_scenario_that_alone_has_the_same_cause() -> None:
    """A user who runs the printed command must find the words above it again, and not those of another check."""
    outcome, text = ("outcome", "inactive", "completed"), ("text", '"a"', '"b"')
    leaks, signals = ("leaks", "none", "tool (still alive)"), ("signals", "TERM at 60 s", "none")
    session = {
        "a": build_failed_scenario("a", text, outcome),
        "b": build_failed_scenario("b", outcome, text),
        "c": build_failed_scenario("c", outcome, signals),
        "d": build_failed_scenario("d", leaks, signals),
    }
    lines = print_causes(*session.values())
    assert [line.split("  ")[0] for line in lines[1::2]] == [
        "failed: outcome: expected inactive, seen completed",
        "failed: leaks: a descendant is left (still alive)",
    ]
    assert lines[2::2] == ["  rerun b", "  rerun d"]
    alone = [print_causes(session[line.rpartition(" ")[2]])[1] for line in lines[2::2]]
    assert [line.split("  ")[0] for line in alone] == [line.split("  ")[0] for line in lines[1::2]]


def test_a_run_that_cannot_go_on_is_named_by_its_first_clause() -> None:
    """Which process waits for what differs from scenario to scenario."""
    fault = "deadlock: nobody can move: pid {} waits for its child, and no deadline is left"
    lines = print_causes(
        build_failed_scenario("a", ("outcome", "any", fault.format(1))),
        build_failed_scenario("b", ("turns.1.text", "x", fault.format(2))),
    )
    assert lines[1].split("  ")[0] == "failed: deadlock: nobody can move"
    assert lines[2:] == ["  rerun a"]


@pytest.mark.parametrize(
    ("verdict", "observed", "words"),
    [
        (
            "crashed",
            f"it raised ValueError: chunk 65537{FRAMES.format(line=8)}",
            "crashed: sup.py:8 in go: ValueError: *",
        ),
        ("adapter error", "it returned 3\ngive a RunReport", "adapter error: it returned *"),
        ("kit error", "once 1\nthen 2", "kit error: once *"),
    ],
)
def test_each_word_for_what_went_wrong_begins_its_line(verdict: str, observed: str, words: str) -> None:
    """A crash is named by the place where it happened, not by what it says."""
    lines = print_causes(
        *(build_failed_scenario(name, ("answer", "an answer", observed), verdict=verdict) for name in ("one", "two"))
    )
    assert lines[1].startswith(words.rstrip("*"))
    assert lines[1].endswith(" 2       -")
    assert lines[2:] == ["  rerun one"]


def test_an_undecided_must_is_red_and_an_undecided_should_is_not() -> None:
    """The lines are those of red tests, and of scenarios that have no rows."""
    row = ("text", '"hi"', "not reported by the subject")
    asked = (
        build_failed_scenario("a", row, verdict="undecided"),
        build_failed_scenario("b", row, verdict="undecided", level="should"),
    )
    broken = build_failed_scenario("c", verdict="kit error", reason="kit error: worker 3 was lost")
    never = build_failed_scenario("d", verdict="kit error")
    assert [line.split("  ")[0] for line in print_causes(*asked, broken, never)[1::2]] == [
        "kit error: there was no play to judge",
        "kit error: worker * was lost",
        "undecided: text: not reported by the subject",
    ]


def test_only_ten_causes_are_printed() -> None:
    """The file of results has all."""
    judged = [build_failed_scenario(f"s{number:02}", (f"key{chr(97 + number)}", "a", "b")) for number in range(13)]
    lines = print_causes(*judged, build_failed_scenario("last", ("keym", "a", "b")))
    assert (len(lines), lines[-1]) == (22, "and 3 more, of 3 scenarios: the file of results has all")
