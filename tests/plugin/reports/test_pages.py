"""The pages of a session: which runs are kept, where, what is said of them, and the index of all."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import pytest

from tests.plugin.scenarios import GREEN, RED
from tests.unit.page_reading import read_page

if TYPE_CHECKING:
    from pathlib import Path

HEADING = "*- the run as a page -*"


def write_scenarios(pytester: pytest.Pytester) -> None:
    """Write a green scenario and a red scenario."""
    (pytester.path / "one.scenario.yaml").write_text(GREEN.replace("expect:", "covers: [A1, C4]\nexpect:"))
    (pytester.path / "two.scenario.yaml").write_text(RED)


def list_pages(folder: Path) -> list[str]:
    """List the pages in a folder, without the marks that tell tests of one name apart."""
    return sorted(file.name.rpartition("-")[0] or file.name for file in folder.glob("*.html"))


def test_a_red_run_is_kept_and_its_page_is_named(pytester: pytest.Pytester) -> None:
    """The reader of the failure has the page at hand without a request; a green run leaves nothing."""
    write_scenarios(pytester)
    result = pytester.runpytest()
    folder = pytester.path / ".pytest_cache" / "d" / "agentproc"
    assert list_pages(folder) == ["two-asyncio"]
    [page] = folder.glob("*.html")
    result.stdout.fnmatch_lines(["failed, record *", HEADING, str(page)])
    [banner, _] = read_page(page.read_text("utf-8")).list_elements("article", "banner")
    assert banner.text.startswith("failed outcome two.scenario.yaml:9expectedcompletedseenfailed")


def test_a_page_goes_once_its_run_is_green(pytester: pytest.Pytester) -> None:
    """A page of yesterday's failure would be taken for today's."""
    write_scenarios(pytester)
    pytester.runpytest()
    (pytester.path / "two.scenario.yaml").write_text(RED.replace("exit: 3", "exit: 0"))
    assert pytester.runpytest().ret == 0
    assert list_pages(pytester.path / ".pytest_cache" / "d" / "agentproc") == []


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        ([], ["index.html", "one-asyncio", "two-asyncio"]),
        (["--agentproc-timeline=always"], ["index.html", "one-asyncio", "two-asyncio"]),
        (["--agentproc-timeline=on-failure"], ["index.html", "two-asyncio"]),
        (["--agentproc-timeline=off"], ["index.html"]),
    ],
)
def test_a_report_keeps_what_is_asked_for(pytester: pytest.Pytester, arguments: list[str], kept: list[str]) -> None:
    """All runs, unless an option says otherwise."""
    write_scenarios(pytester)
    result = pytester.runpytest("--agentproc-report=some/pages", *arguments)
    folder = pytester.path / "some" / "pages"
    assert list_pages(folder) == kept
    assert not (pytester.path / ".pytest_cache" / "d" / "agentproc").exists()
    result.stdout.fnmatch_lines([f"* runs as pages: {folder / 'index.html'}"])


def test_the_ini_file_asks_too(pytester: pytest.Pytester) -> None:
    """As for every option."""
    write_scenarios(pytester)
    pytester.makeini("[pytest]\nagentproc_report = pages\nagentproc_timeline = on-failure\n")
    pytester.runpytest()
    assert list_pages(pytester.path / "pages") == ["index.html", "two-asyncio"]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [[], pytest.param(["-n", "2"], marks=pytest.mark.once)])
def test_the_index_lists_every_play(pytester: pytest.Pytester, workers: list[str]) -> None:
    """By the rules that are covered, a column for each way to play; below xdist the controller writes it."""
    write_scenarios(pytester)
    arguments = ["--agentproc-report=pages", "--agentproc-backend=both", "-p", "xdist", *workers]
    assert pytester.runpytest_subprocess(*arguments).ret == 1
    reading = read_page((pytester.path / "pages" / "index.html").read_text("utf-8"))
    assert [element.text for element in reading.list_elements("ul", "counts")] == ["2failed at must2passed2scenarios"]
    heads = [element.text for element in reading.list_elements("th") if element.attributes["scope"] == "col"]
    assert heads == ["scenario", "referenceasynciovirtual", "referencetriovirtual"]
    rows = [row.text for row in reading.list_elements("tr")][1:]
    assert rows == [
        "no rule",
        "an agent says hello and exits with code 3twofailedfailed",
        "A1any byte is activity; a run that is silent for inactivity_timeout ends as inactive",
        "an agent says hello and exitsonepassedpassed",
        "C4exit is the process's exit, not its pipes' EOF",
        "an agent says hello and exitsonepassedpassed",
    ]
    addresses = {element.attributes["href"] for element in reading.list_elements("a")}
    links = {address for address in addresses if not address.startswith("#")}
    assert links == {file.name for file in (pytester.path / "pages").glob("*.html")} - {"index.html"}


def test_a_run_of_a_fixture_has_a_page(pytester: pytest.Pytester) -> None:
    """A test may play several; the source is the test's own, from the line on at which it begins."""
    pytester.makepyfile(
        test_runs="""
        def test_two(agent_run):
            agent_run("- exit: 0")
            agent_run({"agent": "raw", "script": [{"exit": 3}], "expect": {"exit_code": 0}})
        """
    )
    result = pytester.runpytest("--agentproc-report=pages")
    second, first = sorted((pytester.path / "pages").glob("test-two-*"))
    assert second.name == first.name.replace(".html", "-2.html")
    result.stdout.fnmatch_lines([HEADING, str(second)])


def test_all_runs_need_a_folder(pytester: pytest.Pytester) -> None:
    """No user would find hundreds of pages in a cache."""
    result = pytester.runpytest("--agentproc-timeline=always")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.errlines[0] == (
        "ERROR: agentproc_timeline = always: the pages need a folder: add --agentproc-report=DIR, or choose on-failure"
    )


def test_a_report_that_cannot_be_written_is_refused(pytester: pytest.Pytester) -> None:
    """Before anything is played, not after hours."""
    (pytester.path / "taken").write_text("")
    result = pytester.runpytest("--agentproc-report=taken")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.errlines[0] == "ERROR: --agentproc-report=taken: File exists: name a folder to write to"


def test_without_a_cache_no_folder_is_left(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each red run left a folder among the temporary files; a note says how to keep the page."""
    monkeypatch.setattr(tempfile, "tempdir", str(pytester.path))
    write_scenarios(pytester)
    result = pytester.runpytest("-p", "no:cacheprovider")
    assert not [*pytester.path.glob("agentproc-*")]
    result.stdout.fnmatch_lines(
        [HEADING, "there is no page, as pytest has no cache here: --agentproc-report=DIR keeps one"]
    )


def test_a_page_that_cannot_be_written_is_no_failure_of_its_own(pytester: pytest.Pytester) -> None:
    """The verdict stands, and the report names the missing page."""
    write_scenarios(pytester)
    folder = pytester.path / ".pytest_cache" / "d" / "agentproc"
    pytester.runpytest()
    [page] = folder.glob("*.html")
    page.unlink()
    page.mkdir()
    result = pytester.runpytest()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines([HEADING, "there is no page: *Is a directory*"])


def test_a_cache_that_cannot_be_written_fails_no_test(pytester: pytest.Pytester) -> None:
    """A green test stays green in a folder of another user."""
    write_scenarios(pytester)
    (pytester.path / ".pytest_cache").mkdir()
    (pytester.path / ".pytest_cache" / "d").write_text("")
    result = pytester.runpytest()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines([HEADING, "there is no page: *"])
