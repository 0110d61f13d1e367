"""The page of a run: failures come first, every row leads to its line, and no bytes become markup."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_agentproc.harness import run_in_model
from pytest_agentproc.record import FailureMark, PageVerdict, Record, render_page
from pytest_agentproc.scenario import loads
from pytest_agentproc.subjects import reference_supervisor
from pytest_agentproc.verdict import (
    CheckRow,
    Verdict,
    choose_overall_verdict,
    find_failure_marks,
    judge_all_expectations,
)
from tests.bundled import load_all_bundled
from tests.event_lines import add_line
from tests.unit.handmade import SECOND, Script
from tests.unit.page_reading import read_page

SOURCE = """\
scenario: one
script:
  - spawn: {id: helper}
  - say: hello
  - silence: for ever
expect:
  leaks: none
"""
SCRIPT = Script(text=SOURCE)
LEAK = CheckRow("leaks", 7, "none", "helper (still alive)", Verdict.FAILED, "helper was started by line 3")
PASSED = CheckRow("outcome", 6, "inactive", "inactive", Verdict.PASSED)
JUDGED = PageVerdict("failed", (LEAK,), (PASSED,), {"agent": 5}, 102_000_000)
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&"


def build_record(*events: tuple[int, str, dict[str, Any]]) -> Record:
    """Make a record; instants are in seconds, and the process is the agent unless it is named."""
    record = Record({"subject": "reference", "clock": "virtual"})
    for at, code, data in events:
        add_line(record, at * SECOND, code, {"process": "agent", **data})
    return record


def build_timer_event(**what: Any) -> dict[str, Any]:
    """Tell something of the inactivity timer."""
    return {"process": "supervisor", "timer": "inactivity_timeout", **what}


def record_leak() -> Record:
    """Have an agent that is terminated, and its helper that is not."""
    return build_record(
        (0, "p", {"seen": True, "pid": 7, "parent": "supervisor"}),
        (0, "t", build_timer_event(armed=120 * SECOND)),
        (0, "p", {"process": "helper", "seen": True, "pid": 8, "parent": "agent", "line": 3}),
        (0, "m", {"line": 4, "step": "say"}),
        (0, "o", {"bytes": b"hello\n", "line": 4}),
        (0, "o", {"by": "supervisor", "size": 6}),
        (0, "m", {"line": 5, "step": "sleep"}),
        (10, "e", {"bytes": b"x"}),
        (10, "e", {"by": "supervisor", "size": 1}),
        (10, "t", build_timer_event(armed=130 * SECOND)),
        (130, "t", build_timer_event(fired=True)),
        (130, "s", {"process": "tree", "by": "supervisor", "signal": "TERM"}),
        (130, "t", build_timer_event(off=True)),
        (130, "m", {"process": "supervisor", "outcome": "inactive"}),
        (130, "x", {"signal": "TERM"}),
        (130, "x", {"by": "supervisor", "signal": "TERM"}),
        (130, "m", {"process": "supervisor", "returned": True}),
        (130, "m", {"process": "helper", "leaked": "alive", "line": 3}),
    )


def find_row_classes(html: str, words: str) -> list[set[str]]:
    """Give what is drawn in the first row that has these words."""
    return next([mark.classes for mark in drawn] for row, drawn in read_page(html).list_rows() if words in row.text)


def test_equal_arguments_give_equal_bytes() -> None:
    """Pages can be compared as files."""
    assert render_page(record_leak(), SCRIPT, JUDGED) == render_page(record_leak(), SCRIPT, JUDGED)


def test_what_failed_comes_before_everything_that_happened() -> None:
    """The reader of a red run's page wants to know what is wrong with it, and where that is written."""
    reading = read_page(render_page(record_leak(), SCRIPT, JUDGED))
    [banner] = reading.list_elements("article", "banner")
    assert banner.text == (
        "failed leaks one.scenario.yaml:7expectednoneseenhelper (still alive)(helper was started by line 3)"
    )
    assert reading.elements.index(banner) < reading.elements.index(reading.list_elements("table", "run")[0])
    assert [element.text for element in reading.list_elements("h1")] == ["one"]
    assert [element.text for element in reading.list_elements("dl", "facts")] == [
        "verdictfailedsubjectreferenceclockvirtualvirtual time130 stook102 ms"
    ]
    assert [element.text for element in reading.list_elements("details", "others")] == [
        "checks: 1 passedoutcome (passed)"
    ]


def test_the_difference_of_two_texts_keeps_its_lines() -> None:
    """In one paragraph the mark below a letter would stand anywhere."""
    row = CheckRow("text", 7, '"a"', '"b"', Verdict.FAILED, diff="- a\n+ b\n  ^")
    reading = read_page(render_page(record_leak(), SCRIPT, PageVerdict("failed", (row,))))
    assert [element.text for element in reading.list_elements("pre")] == ["- a\n+ b\n  ^"]


def test_a_check_below_must_names_its_level_and_the_command_is_there() -> None:
    """A reader sees at once whether a user is harmed, and how to see it again."""
    row = CheckRow("text", 7, '"a"', '"b"', Verdict.FAILED, level="should")
    reading = read_page(render_page(record_leak(), SCRIPT, PageVerdict("failed", (LEAK, row), rerun="pytest 'a b'")))
    assert [element.text for element in reading.list_elements("h2")[:2]] == [
        "failed leaks one.scenario.yaml:7",
        "failed text level should one.scenario.yaml:7",
    ]
    assert [element.text for element in reading.list_elements("p", "rerun")] == ["run it again: pytest 'a b'"]


def test_rows_and_lines_lead_to_each_other() -> None:
    """A keyboard goes from what happened to the step that did it, and back; no link leads nowhere."""
    reading = read_page(render_page(record_leak(), SCRIPT, JUDGED))
    ids = [element.attributes["id"] for element in reading.elements if "id" in element.attributes]
    links = [(element.text, element.attributes["href"]) for element in reading.list_elements("a")]
    assert len(ids) == len(set(ids))
    assert {place.removeprefix("#") for _, place in links} <= set(ids)
    starts = next(row for row, _ in reading.list_rows() if "helper starts" in row.text)
    assert ("line 3", "#L3") in links
    assert ("3", f"#{starts.attributes['id']}") in links
    assert links[0] == ("Skip to the diagram", "#run")


def test_the_source_says_where_a_check_failed_and_an_agent_stopped() -> None:
    """Both marks stand at their lines, in words too."""
    reading = read_page(render_page(record_leak(), SCRIPT, JUDGED))
    marked = {row.attributes["id"]: row.text for row in reading.list_elements("tr") if {"bad", "at"} & row.classes}
    assert marked["L7"] == "7  leaks: nonefailed: leaks"
    assert marked["L5"] == "5  - silence: for everlast step of the agent"


def test_a_leak_stays_to_the_bottom() -> None:
    """The life-line of an agent ends where it ended; a process that was left has one below the return."""
    html = render_page(record_leak(), SCRIPT, JUDGED)
    assert {"l", "e"} in find_row_classes(html, "dies of TERM")
    assert [mark for mark in find_row_classes(html, "RETURNS") if "l" in mark] == [{"l"}, {"l", "alive"}]
    assert [element.text for element in read_page(html).list_elements("span", "left")] == ["helper"]
    assert {"d", "leaked"} in find_row_classes(html, "LEAKED: still alive")


def test_bytes_signals_and_births_are_arrows() -> None:
    """Each has a look of its own; a read in the instant of its write is one arrow."""
    html = render_page(record_leak(), SCRIPT, JUDGED)
    assert {"a", "w", "out"} in find_row_classes(html, "stdout, 6 B")
    assert {"a", "w", "err"} in find_row_classes(html, "stderr, 1 B")
    assert {"a", "r", "sig"} in find_row_classes(html, "TERM \N{RIGHTWARDS ARROW} tree")
    assert {"a", "r", "born"} in find_row_classes(html, "helper starts")
    assert "reads stdout" not in html


@pytest.mark.parametrize(("reach", "last"), [("agent", "agent"), ("group", "agent"), ("tree", "helper")])
def test_a_signal_goes_to_whom_it_is_for(reach: str, last: str) -> None:
    """A helper may have left the group of its agent: an arrow that ends at it would say that it was reached."""
    record = build_record(
        (0, "p", {"seen": True, "parent": "supervisor"}),
        (0, "p", {"process": "helper", "seen": True, "parent": "agent"}),
        (1, "s", {"process": reach, "by": "supervisor", "signal": "TERM"}),
    )
    rows = read_page(render_page(record, SCRIPT, JUDGED)).list_rows()
    lines = {row.text: [mark.attributes["style"] for mark in marks if "l" in mark.classes] for row, marks in rows}
    [arrow] = [mark.attributes["style"] for _, marks in rows for mark in marks if "sig" in mark.classes]
    begin, length = (int(part.split(":")[1].removesuffix("px")) for part in arrow.split(";"))
    *_, agent, helper = (int(style[5:-2]) for style in next(reversed(lines.values())))
    assert begin + length == {"agent": agent, "helper": helper}[last] - 5


def test_a_timer_that_is_armed_again_is_another_bar() -> None:
    """One long bar would look like one long wait."""
    html = render_page(record_leak(), SCRIPT, JUDGED)
    assert [mark for mark in find_row_classes(html, "due at 120 s") if "t" in mark] == [{"t", "b"}]
    assert [mark for mark in find_row_classes(html, "due at 130 s") if "t" in mark] == [{"t", "e"}, {"t", "b"}]
    assert {"t", "e", "fired"} in find_row_classes(html, "FIRES")
    timers = read_page(html).list_elements("i", "t")
    assert {element.attributes["title"] for element in timers} == {"inactivity_timeout"}
    assert [mark for mark in find_row_classes(html, "timer inactivity_timeout off") if "t" in mark] == []


def test_silences_and_repetitions_are_bands() -> None:
    """They are those of the text: one room groups for both."""
    dots = [(at, "o", {"bytes": b".", "line": 4}) for at in range(60, 360, 60)]
    reading = read_page(
        render_page(build_record((0, "p", {"seen": True, "parent": "supervisor"}), *dots), SCRIPT, JUDGED)
    )
    assert [element.text for element in reading.list_elements("td", "band")] == [
        "~ 60 s pass (virtual)",
        "\N{MULTIPLICATION SIGN} 5: the same 4 times more, every 60 s, the last at 300 s",
    ]
    assert [element.text for element in reading.list_elements("th", "time")] == ["time", "0 s", "", "60 s", ""]


def test_a_zombie_is_dashed_below_its_end() -> None:
    """It is dead, and still there."""
    record = build_record(
        (0, "p", {"seen": True, "parent": "supervisor"}),
        (0, "p", {"process": "helper", "seen": True, "parent": "agent"}),
        (1, "x", {"process": "helper", "code": 0}),
        (2, "m", {"process": "supervisor", "returned": True}),
        (2, "m", {"process": "helper", "leaked": "zombie"}),
    )
    html = render_page(record, SCRIPT, JUDGED)
    assert {"l", "dead", "b"} in find_row_classes(html, "exits with code 0")
    assert {"l", "dead"} in find_row_classes(html, "LEAKED: zombie")


def test_an_agent_that_was_replaced_is_written_to_no_more() -> None:
    """The supervisor knows of one agent at a time, the record of each."""
    record = build_record(
        (0, "m", {"process": "caller", "does": "prompt"}),
        (0, "p", {"seen": True, "parent": "supervisor"}),
        (1, "x", {"code": 1}),
        (2, "p", {"process": "agent 2", "seen": True, "parent": "supervisor"}),
        (2, "i", {"by": "supervisor", "size": 9}),
        (2, "m", {"process": "supervisor", "event": "status", "turn": None, "text": "ready"}),
    )
    drawn = {row.text: marks for row, marks in read_page(render_page(record, SCRIPT, JUDGED)).list_rows()}
    [arrow] = [mark for text, marks in drawn.items() if "writes stdin" in text for mark in marks if "a" in mark.classes]
    [birth] = [
        mark
        for text, marks in drawn.items()
        if "agent 2 starts" in text
        for mark in marks
        if "born" in mark.classes and "a" in mark.classes
    ]
    assert arrow.attributes["style"] == birth.attributes["style"]
    [reported] = [mark for text, marks in drawn.items() if "is ready" in text for mark in marks if "a" in mark.classes]
    assert reported.classes == {"a", "w", "say"}


def test_hostile_bytes_never_become_markup() -> None:
    """The texts of agents, scenarios and checks are shown as they are."""
    record = build_record(
        (0, "p", {"process": HOSTILE, "seen": True, "parent": "supervisor"}),
        (0, "o", {"bytes": HOSTILE.encode() * 9}),
        (0, "m", {"given": {"argv": [HOSTILE] * 9}}),
        (0, "m", {"process": "supervisor", "fault": "deadlock", "message": HOSTILE}),
    )
    row = CheckRow(HOSTILE, 1, HOSTILE, HOSTILE, Verdict.FAILED, HOSTILE)
    script = Script(path=HOSTILE, claim=HOSTILE, text=f"{HOSTILE}\n")
    record.header["subject"] = HOSTILE
    html = render_page(record, script, PageVerdict(HOSTILE, (row,), (row,), {HOSTILE: 1}))
    reading = read_page(html)
    assert not {"script", "img"} & {element.tag for element in reading.elements}
    assert not {name for element in reading.elements for name in element.attributes if name.startswith("on")}
    assert html.count("&lt;script&gt;") >= 15
    assert reading.list_elements("h1")[0].text == HOSTILE


def test_what_cannot_be_printed_is_named() -> None:
    """A terminal's escapes, a half surrogate or a mark that turns the line around would hide what is there."""
    record = build_record((0, "o", {"bytes": "\x1b[31m\u202eevil\x00".encode() + b"\xff"}))
    html = render_page(record, Script(claim="half \ud800"), PageVerdict("passed"))
    assert r"\x1b[31m\u202eevil\x00\xff" in html
    assert r"half \ud800" in html
    assert html.encode().decode() == html


def test_nothing_is_loaded_or_run() -> None:
    """A page is attached to a bug report, and its reader opens it with or without a network."""
    html = render_page(record_leak(), SCRIPT, JUDGED)
    reading = read_page(html)
    assert not {"script", "link", "iframe", "object", "img"} & {element.tag for element in reading.elements}
    assert not [element for element in reading.elements if "src" in element.attributes]
    assert "url(" not in html
    assert "@import" not in html
    assert "default-src 'none'" in html


def test_the_middle_of_a_very_long_run_is_left_out() -> None:
    """The beginning and the end are what one looks at; a page of a flood opens as any other."""
    events = [(at, "o", {"bytes": b"%d" % at, "line": 4}) for at in range(1, 5000)]
    reading = read_page(render_page(build_record(*events), SCRIPT, JUDGED))
    # 4,999 rows of output, and a silence of a second before each of them
    assert "9698 rows are left out here" in [element.text for element in reading.list_elements("td", "band")]
    assert len(reading.list_rows()) == 301


@pytest.mark.parametrize("part", ["'", "\u202e", "\U000e0001", "\N{GRINNING FACE}"])
def test_a_page_is_smaller_than_a_megabyte(part: str) -> None:
    """Everything that can be long is as long as can be, and of what takes most room."""
    long = part * 5000
    events: list[tuple[int, str, dict[str, Any]]] = []
    for number in range(400):
        name = f"{long[:200]} {number}"
        events += [(number, "p", {"process": name, "seen": True, "parent": "supervisor"})]
        events += [(number, "o", {"process": name, "bytes": (long * 3).encode()})]
    rows = [CheckRow(long, line, long, long, Verdict.FAILED, long) for line in range(1, 200)]
    script = Script(path=long, claim=long, text=(long + "\n") * 3000)
    html = render_page(build_record(*events), script, PageVerdict("failed", rows, rows, {"agent": 2999}))
    assert len(html.encode()) < 1_000_000


def test_processes_that_are_too_many_share_a_lane() -> None:
    """A process that was left keeps a lane of its own."""
    names = [f"child{number}" for number in range(40)]
    events: list[tuple[int, str, dict[str, Any]]] = [
        (0, "p", {"process": name, "seen": True, "parent": "supervisor"}) for name in names
    ]
    html = render_page(build_record(*events, (1, "m", {"process": "child39", "leaked": "alive"})), SCRIPT, JUDGED)
    headings = [element.text for element in read_page(html).list_elements("span", "h")]
    assert headings == ["supervisor", *names[:17], "child39", "22 others"]


def test_a_process_may_be_called_as_a_lane_is() -> None:
    """The timers stay where they are."""
    record = build_record(
        (0, "t", build_timer_event(armed=120 * SECOND)),
        (0, "p", {"process": "timers", "seen": True, "parent": "supervisor"}),
    )
    drawn = read_page(render_page(record, SCRIPT, JUDGED)).list_rows()
    [bar, birth] = [mark for _, marks in drawn for mark in marks if "b" in mark.classes]
    assert bar.classes == {"t", "b"}
    assert birth.classes == {"l", "b"}
    assert bar.attributes["style"] != birth.attributes["style"]


@pytest.mark.slow
def test_every_kind_of_run_has_a_page() -> None:
    """Sessions, several agents, restarts, trees: all links lead somewhere, and no life-line is left behind."""
    for scenario in load_all_bundled()[::12]:
        played = run_in_model(scenario, reference_supervisor())
        rows = judge_all_expectations(played)
        html = render_page(
            played.record, played.bound.scenario, PageVerdict(str(choose_overall_verdict(rows)), (), rows)
        )
        reading = read_page(html)
        ids = {element.attributes["id"] for element in reading.elements if "id" in element.attributes}
        assert {element.attributes["href"].removeprefix("#") for element in reading.list_elements("a")} <= ids
        assert len(html) < 200_000


def test_the_failing_row_is_marked_and_the_expected_instant_is_drawn_where_it_should_have_been() -> None:
    """A reader sees at one glance what came when, and when it should have come."""
    these = (
        FailureMark("TERM", "", 130 * SECOND, 70 * SECOND, "expected at 70 s", "expected here: TERM"),
        FailureMark("outcome", "", None, 500 * SECOND, "", "expected here: the outcome"),
    )
    reading = read_page(render_page(record_leak(), SCRIPT, JUDGED._replace(marks=these)))
    rows = [row for row, _ in reading.list_rows()]
    wrong, death = [row.text for row in rows if "wrong" in row.classes]
    assert wrong.startswith("supervisor: TERM \N{RIGHTWARDS ARROW} tree")
    assert wrong.endswith("expected at 70 s")
    assert death.endswith("dies of TERMexpected at 70 s")
    texts = [row.text for row in rows]
    place = texts.index("70 sexpected here: TERM")
    assert "expected" in rows[place].classes
    assert (texts[place - 1], texts[place + 1]) == ("~ 60 s pass (virtual)", "~ 60 s pass (virtual)")
    assert texts[-1] == "500 sexpected here: the outcome"


def test_failed_checks_are_paired_with_what_was_seen() -> None:
    """A signal that came late is one mark, one that did not come and one that was not expected are two."""
    text = (
        "scenario: a\nagent: pi\nscript:\n- when: {signal: TERM}\n  do: []\n- answer: done\n- silence: for ever\n"
        "expect:\n  outcome: failed\n  returned: 9s\n  signals: [{INT: 1s}, {KILL: 7s}]\n"
        "  processes: {agent: {gone_at: 8s}}\n"
    )
    played = run_in_model(loads(text), reference_supervisor())
    half = SECOND // 2
    assert [tuple(mark) for mark in find_failure_marks(played, judge_all_expectations(played))] == [
        ("outcome", "", half // 2, None, "expected failed", ""),
        ("returned", "", half, 9 * SECOND, "expected at 9 s", "expected here: the return"),
        ("TERM", "", half // 2, None, "not expected", "expected here: TERM"),
        ("KILL", "", half, 7 * SECOND, "expected at 7 s", "expected here: KILL"),
        ("INT", "", None, SECOND, "expected at 1 s", "expected here: INT"),
        ("end", "agent", half, 8 * SECOND, "expected at 8 s", "expected here: the end of agent"),
    ]
