"""The summary of a session: which rules failed, how much of what, and who is conformant."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest

from pytest_agentproc.verdict import (
    JudgedCheck,
    JudgedScenario,
    compute_results_digest,
    format_summary,
    hash_corpus,
    judge_conformance,
)

ONE = JudgedScenario(
    scenario="one",
    file="f1",
    level="must",
    covers=("A1", "T1"),
    subject="mine",
    clock="virtual",
    backend="asyncio",
    verdict="passed",
    digest="d1",
    rows=(JudgedCheck("outcome", "passed", "completed", "completed"),),
)


def build_judged(verdict: str, **others: object) -> JudgedScenario:
    """Give one with another verdict, which its one check has."""
    level = str(others.get("level", "must"))
    rows = (JudgedCheck("outcome", verdict, "completed", "failed", level),)
    return dataclasses.replace(ONE, **{"verdict": verdict, "rows": rows, **others})  # type: ignore[arg-type]


def build_checks(**levels: str) -> tuple[JudgedCheck, ...]:
    """Give one check for each level, with its verdict."""
    return tuple(JudgedCheck(f"{level} key", verdict, "", "", level) for level, verdict in levels.items())


def test_it_crosses_a_wire() -> None:
    """A worker of xdist writes it, the process that reports reads it."""
    assert JudgedScenario.from_json_fields(json.loads(ONE.to_json_line())) == ONE


@pytest.mark.parametrize(
    ("verdicts", "conformance"),
    [
        (["passed"], "is conformant"),
        (["passed", "not applicable", "known"], "is conformant"),
        (["not applicable"], "was not judged"),
        (["known"], "was not judged"),
        ([], "was not judged"),
        (["passed", "undecided"], "is undecided"),
        (["passed", "not exercised"], "is undecided"),
        (["passed", "failed", "kit error"], "is not conformant"),
        (["passed", "crashed"], "is not conformant"),
        (["passed", "undecided", "adapter error"], "has no verdict"),
        (["passed", "kit error"], "has no verdict"),
    ],
)
def test_what_the_checks_say_of_a_supervisor(verdicts: list[str], conformance: str) -> None:
    """A pass needs something passed and nothing failed; without an applicable check nothing was shown."""
    assert judge_conformance([build_judged(verdict) for verdict in verdicts]) == conformance


def test_only_a_failed_must_keeps_a_supervisor_from_being_conformant() -> None:
    """A careful program may do otherwise than a `should`; a file at level `info` decides nothing."""
    for others in (
        [ONE, build_judged("undecided", level="should"), build_judged("failed", level="info")],
        [ONE, build_judged("failed", level="should")],
        [build_judged("failed", rows=build_checks(must="passed", should="failed"))],
        [build_judged("passed", level="should")],
    ):
        assert judge_conformance(others) == "is conformant"
    failed = build_judged("failed", rows=build_checks(must="failed", should="passed"))
    assert judge_conformance([ONE, failed]) == "is not conformant"
    assert judge_conformance([build_judged("passed", level="info")]) == "was not judged"


def test_the_sentence_gives_three_numbers() -> None:
    """Failed musts, failed shoulds and undecided musts are counted by scenario; one may count at two levels."""
    judged = [
        ONE,
        build_judged("failed", scenario="both", rows=build_checks(must="failed", should="failed")),
        build_judged("failed", scenario="lower", rows=build_checks(must="passed", should="failed", info="failed")),
        build_judged("undecided", scenario="open"),
        build_judged("undecided", scenario="open too", level="should"),
    ]
    sentence, others, _ = format_summary(judged, "1.2.3")[-3:]
    assert sentence.endswith(" is not conformant: must: 1 failed, should: 2 failed, undecided: 1")
    assert others.startswith("  1 passed, 1 not applicable, ")


def test_a_crash_counts_as_failed_at_its_level() -> None:
    """The supervisor is wrong either way; after a crash at level `should` it can still be conformant."""
    crash = build_judged("crashed", scenario="two", level="should")
    assert "is conformant: must: 0 failed, should: 1 failed, undecided: 0" in format_summary([ONE, crash], "1")[-3]
    assert (
        "is not conformant: must: 1 failed, " in format_summary([ONE, build_judged("crashed", scenario="two")], "1")[-3]
    )


def test_an_undecided_must_is_said_beside_the_verdict() -> None:
    """The supervisor's behaviour there is unknown, so nobody can call it conformant."""
    sentence = format_summary(
        [ONE, build_judged("undecided", scenario="two"), build_judged("not exercised", scenario="three")], "1.2.3"
    )[-3]
    assert sentence == "agentproc: mine is undecided: must: 0 failed, should: 0 failed, undecided: 2"


def test_informational_scenarios_are_counted_apart() -> None:
    """The other figures are those of rules. One that does not apply is not counted."""
    told = format_summary(
        [ONE, build_judged("failed", level="info"), build_judged("not applicable", level="info")], "1.2.3"
    )[-2]
    assert told.startswith("  1 passed, 0 not applicable, 0 known, 1 informational; ")


def test_other_verdicts_have_another_digest() -> None:
    """The same records may be judged in two ways."""
    assert compute_results_digest([ONE]) != compute_results_digest([build_judged("failed")])
    assert compute_results_digest([build_judged("failed", rows=build_checks(must="failed"))]) != compute_results_digest(
        [build_judged("failed", rows=build_checks(should="failed"))]
    )


def test_the_table_has_failed_rules_first_and_then_the_undecided() -> None:
    """The eye begins at the top; a rule without knowledge has no line of its own."""
    judged = [
        ONE,
        build_judged("failed", scenario="two", covers=("T1", "C1")),
        build_judged("undecided", scenario="three", covers=("A9",)),
        build_judged("not applicable", scenario="four", covers=("B1", "B2", "C1")),
        build_judged("adapter error", scenario="five", covers=("F5",)),
        build_judged("known", scenario="six", covers=("A1",)),
    ]
    *table, empty, _, _, _ = lines = format_summary(judged, "1.2.3")
    assert table == [
        "rule (must, should: failed)  must  should  errors  undecided  known  passed  n/a",
        "C1  a lingering agent gets      1       -       -          -      -       -    1",
        "    linger_grace, TERM, linger_kill_grace, KILL; the outcome stands",
        "T1  terminate and kill mean     1       -       -          -      -       1    -",
        "    the whole tree",
        "F5  stdin is written while      -       -       1          -      -       -    -",
        "    output is read; EPIPE never raises",
        "A9  the one-number form of      -       -       -          1      -       -    -",
        "    a limit means silence, never duration",
        "A1  any byte is activity; a     -       -       -          -      1       1    -",
        "    run that is silent for inactivity_timeout ends as inactive",
        "nothing applied of: B1, B2",
        "",
        "as in bug reports            must  should  errors  undecided  known  passed  n/a",
        "K01  lingers after the          1       -       -          -      -       -    1",
        "     final result",
        "K02  silent but alive, and      -       -       -          1      1       1    -",
        "     killed for it",
        "K05  orphans: servers,          1       -       -          -      -       1    -",
        "     launchers, daemons",
        "",
        "what went wrong (must, should: scenarios)                           must  should",
        "adapter error: outcome: expected completed, seen failed                1       -",
        "failed: outcome: expected completed, seen failed                       1       -",
        "undecided: outcome: expected completed, seen failed                    1       -",
    ]
    assert empty == ""
    hashes = hash_corpus(judged)[:12], compute_results_digest(judged)[:12]
    assert lines[-3:] == [
        "agentproc: mine is not conformant: must: 1 failed, should: 0 failed, undecided: 1",
        "  1 adapter error, 1 passed, 1 not applicable, 1 known; virtual clock",
        f"  pytest-agentproc 1.2.3, corpus {hashes[0]}, digest {hashes[1]}",
    ]


def test_checks_that_real_time_cannot_decide_are_not_called_not_applicable() -> None:
    """A supervisor that is conformant in real time has not been held to it."""
    judged = [
        ONE,
        build_judged("not applicable", scenario="two", covers=("B1",), reason="not applicable: no sessions"),
        build_judged(
            "not applicable", scenario="three", covers=("A4", "B1"), reason="not applicable in real time: a tie"
        ),
        build_judged("not applicable", scenario="four", covers=("P1",), reason="not applicable: no sessions"),
    ]
    told = format_summary(judged, "1.2.3")
    assert told[told.index("nothing applied of: P1") + 1] == "real time could show nothing of: A4, B1"


def test_errors_and_known_failures_have_a_column_only_if_there_are_any() -> None:
    """The words of a rule need the room."""
    first, row, below, *_ = format_summary([build_judged("failed", covers=("T1", "C1"))], "1.2.3")
    assert first == "rule (must, should: failed)                 must  should  undecided  passed  n/a"
    assert row == "C1  a lingering agent gets linger_grace,       1       -          -       -    -"
    assert below == "    TERM, linger_kill_grace, KILL; the outcome stands"


def test_hashes_depend_on_files_and_records_and_on_no_order() -> None:
    """Workers report in any order; another file or another record is another hash."""
    two = build_judged("passed", scenario="two")
    assert hash_corpus([ONE, two]) == hash_corpus([two, ONE, ONE])
    assert compute_results_digest([ONE, two]) == compute_results_digest([two, ONE])
    assert hash_corpus([ONE]) != hash_corpus([build_judged("passed", file="f2")])
    assert compute_results_digest([ONE]) != compute_results_digest([build_judged("passed", digest="d2")])


def test_both_clocks_are_named() -> None:
    """A result of virtual time only was not shown in real time."""
    lines = format_summary([build_judged("passed", clock="real"), ONE], "1.2.3")
    assert re.search(
        r" is conformant: must: 0 failed, should: 0 failed, undecided: 0\n  2 passed, .* virtual and real clock\n",
        "\n".join(lines),
    )


def test_a_scenario_that_does_not_apply_names_no_clock() -> None:
    """A static program is judged in real time, and what does not apply to it was not played at all."""
    lines = format_summary(
        [build_judged("passed", clock="real"), build_judged("not applicable", scenario="two")], "1.2.3"
    )
    assert lines[-2].endswith("; real clock")
    assert format_summary([build_judged("not applicable")], "1.2.3")[-2].endswith("; virtual clock")


def test_limits_that_are_not_stated_are_named_with_what_they_cost() -> None:
    """The most requested one comes first; informational scenarios are not counted."""
    kill, both = ("kill_grace",), ("close_grace", "kill_grace")
    rows = (*ONE.rows, *(JudgedCheck("signals", "not applicable", "", "", "must", names) for names in (kill, both)))
    lines = format_summary(
        [build_judged("passed", rows=rows), build_judged("passed", level="info", rows=rows)], "1.2.3"
    )
    assert "state kill_grace, close_grace to have 2 more checks judged" in lines
    assert "state kill_grace to have 1 more check judged" in format_summary(
        [build_judged("passed", rows=rows[:2])], "1.2.3"
    )
    assert not any(line.startswith("state ") for line in format_summary([ONE], "1.2.3"))
    crossed = JudgedScenario.from_json_fields(json.loads(build_judged("passed", rows=rows).to_json_line()))
    assert [row.unstated for row in crossed.rows] == [(), kill, both]
