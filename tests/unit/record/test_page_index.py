"""The index of pages: by rule, a column for each way to play, what is red first."""

from __future__ import annotations

from pytest_agentproc.record import IndexEntry, render_index
from tests.unit.page_reading import read_page

CORE, OTHER = ("reference", "asyncio", "virtual"), ("<b>other</b>", "trio", "real")
ENTRIES = [
    IndexEntry("two", "it exits", ("A1",), CORE, "failed", ("must", "should"), "two-core.html"),
    IndexEntry("one", "it <i>answers</i>", ("C4", "A1"), CORE, "passed", ("passed",), "one-core.html"),
    IndexEntry("one", "it <i>answers</i>", ("C4", "A1"), OTHER, "not applicable", ("n/a",)),
]


def test_an_index_does_not_depend_on_the_order_of_plays() -> None:
    """Workers report as they come."""
    assert render_index(ENTRIES) == render_index(ENTRIES[::-1])


def test_a_scenario_stands_below_each_rule_that_it_covers() -> None:
    """The reader of a rule finds all that is known of it; a scenario without a play or a page is no link."""
    reading = read_page(render_index(ENTRIES))
    assert [row.text for row in reading.list_elements("tr")][1:] == [
        "A1any byte is activity; a run that is silent for inactivity_timeout ends as inactive",
        "it <i>answers</i>onenot applicablepassed",
        "it exitstwonot playedfailed",
        "C4exit is the process's exit, not its pipes' EOF",
        "it <i>answers</i>onenot applicablepassed",
    ]
    assert [element.attributes["href"] for element in reading.list_elements("a")] == [
        "#all",
        "one-core.html",
        "two-core.html",
        "one-core.html",
    ]


def test_what_is_red_is_counted_first() -> None:
    """A play counts once, however many rules its scenario covers."""
    reading = read_page(render_index(ENTRIES))
    assert [element.text for element in reading.list_elements("li")] == [
        "1failed at must",
        "1failed at should",
        "1passed",
        "1not applicable",
        "2scenarios",
    ]
    assert [element.text for element in reading.list_elements("th")[:3]] == [
        "scenario",
        "<b>other</b>trioreal",
        "referenceasynciovirtual",
    ]


def test_a_failure_at_should_alone_is_told_apart() -> None:
    """It is good practice that is missed, and no user is harmed."""
    entries = [
        IndexEntry(name, name, (), CORE, "failed", columns)
        for name, columns in (("a", ("must", "should")), ("b", ("should",)), ("c", ("must",)))
    ]
    reading = read_page(render_index(entries, ["agentproc: mine is not conformant"]))
    assert [element.text for element in reading.list_elements("td")] == ["failed", "failed (should)", "failed"]
    assert [element.text for element in reading.list_elements("p")] == ["agentproc: mine is not conformant"]


def test_an_index_of_nothing_is_a_page() -> None:
    """A session that played no scenario still says so."""
    assert [element.text for element in read_page(render_index([])).list_elements("li")] == ["0scenarios"]
