"""Owns which runs are kept as pages, where, and the index of them. Draws none itself, and judges nothing.

The pages are written where a scenario is played: below xdist by the workers. Their index entries travel with the report
of the test, so that the process that sees all reports makes the index.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.plugin._options import format_rerun_command, get_option

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.plugin._contributions import ScenarioTest
    from pytest_agentproc.record import IndexEntry
    from pytest_agentproc.scenario import Scenario
    from pytest_agentproc.verdict import CheckRow, Judgement, Verdict


_PAGE_PROPERTY = "agentproc_page"
# Without a cache each red run once left a folder of its own among the temporary files, for ever.
_NO_FOLDER_NOTE = "there is no page, as pytest has no cache here: --agentproc-report=DIR keeps one"
_REAL_SECONDS_PROPERTY = "agentproc_real_s"
_NANOSECONDS_PER_SECOND = 1_000_000_000
_MAX_FILE_NAME_CHARS = 80
_FAILURE_NOTES_PLUGIN_NAME, _INDEX_WRITER_PLUGIN_NAME = "agentproc-pages", "agentproc-index"
_FAILURE_NOTES_STASH_KEY: pytest.StashKey[list[str]] = pytest.StashKey()
_PAGE_COUNT_STASH_KEY: pytest.StashKey[int] = pytest.StashKey()
_REPORT_FOLDER_STASH_KEY: pytest.StashKey[Path] = pytest.StashKey()


def begin_report(config: pytest.Config) -> None:
    """Make the folder of the report, and have the process that sees all tests write its index.

    Raises:
        pytest.UsageError: there can be no such folder, or all runs are wanted and there is none.
    """
    name = get_option(config, "report")
    if not name:
        if get_option(config, "timeline") == "always":
            raise pytest.UsageError(
                "agentproc_timeline = always: the pages need a folder: add --agentproc-report=DIR, or choose on-failure"
            )
        return
    folder = config.invocation_params.dir / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise pytest.UsageError(f"--agentproc-report={name}: {error.strerror}: name a folder to write to") from None
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_PageIndexWriter(config, folder), _INDEX_WRITER_PLUGIN_NAME)


def forget_earlier_pages(node: pytest.Item) -> None:
    """Forget the pages of an earlier attempt at a test: those of this one take their places, in the index too."""
    node.stash[_PAGE_COUNT_STASH_KEY] = 0
    node.stash[_FAILURE_NOTES_STASH_KEY] = []
    node.user_properties[:] = [pair for pair in node.user_properties if pair[0] != _PAGE_PROPERTY]


def add_run_page(node: pytest.Item, played: PlayResult, rows: Sequence[CheckRow], verdict: Verdict) -> None:
    """Keep a run as a page, if such runs are to be kept.

    A red play that says nothing of the subject, as the machine was too slow, is not. A page that an earlier session
    kept of the same test goes.
    """
    from pytest_agentproc.verdict import Judgement, Verdict

    config = node.config
    name, which = get_option(config, "report"), get_option(config, "timeline")
    is_good = verdict in (Verdict.PASSED, Verdict.NOT_APPLICABLE, Verdict.KNOWN)
    is_red = not is_good and played.bound.scenario.level != "info"
    if which == "off" or (is_red and played.was_starved):
        return
    number = node.stash[_PAGE_COUNT_STASH_KEY] = node.stash.get(_PAGE_COUNT_STASH_KEY, 0) + 1
    wants_all = which == "always" or (which == "auto" and name)
    file = ""
    why = _NO_FOLDER_NOTE
    try:
        folder = _find_report_folder(config, name)
    except OSError as error:  # the cache is where nobody can write
        folder, why = None, f"there is no page: {error}"
    if folder is None:
        if is_red:
            _add_failure_note(node, why)
    elif is_red or wants_all:
        file = _write_page(node, folder, number, _render_page(node, played, rows, verdict), is_told=is_red)
    else:
        with contextlib.suppress(OSError):  # it is where nobody can write: nobody did
            (folder / _make_page_file_name(_get_id_without_group(node), number)).unlink(missing_ok=True)
    if name:
        judgement = Judgement(verdict, tuple(rows), played)
        scenario, header = played.bound.scenario, played.record.header
        way = str(header.get("subject", "")), getattr(node, "backend", ""), str(header.get("clock", ""))
        _add_index_entry(node, scenario, judgement, way, file)


def add_unplayed_entry(item: ScenarioTest, judgement: Judgement) -> None:
    """List in the index a scenario that could not be played, or whose play says nothing."""
    if get_option(item.config, "report") and get_option(item.config, "timeline") != "off":
        clock = "real" if item.clock == "real" else "virtual"
        _add_index_entry(item, item.scenario, judgement, (item.subject.name, item.backend, clock))


def _add_index_entry(
    node: pytest.Item, scenario: Scenario, judgement: Judgement, way: tuple[str, str, str], file: str = ""
) -> None:
    """Add the entry of a play; a test that is a scenario has one."""
    from pytest_agentproc.verdict import build_judged_scenario, list_counted_columns

    subject, backend, clock = way
    judged = build_judged_scenario(judgement, scenario, subject=subject, clock=clock, backend=backend, real=0.0)
    is_scenario = getattr(node, "scenario", None) is not None
    if is_scenario:
        node.user_properties[:] = [pair for pair in node.user_properties if pair[0] != _PAGE_PROPERTY]
    entry = {
        "name": scenario.id if is_scenario else _get_id_without_group(node),
        "claim": scenario.claim,
        "covers": scenario.covers,
        "way": [word for word in way if word],
        "verdict": str(judgement.verdict),
        "columns": list_counted_columns(judged),
        "file": file,
    }
    node.user_properties.append((_PAGE_PROPERTY, json.dumps(entry)))


def _render_page(node: pytest.Item, played: PlayResult, rows: Sequence[CheckRow], verdict: Verdict) -> str:
    from pytest_agentproc.record import PageVerdict, render_page
    from pytest_agentproc.verdict import find_failure_marks, find_last_step, list_unmet_checks

    scenario = played.bound.scenario
    failed = list_unmet_checks(rows)
    steps = {process: find_last_step(played.record, process) or 0 for process in played.bound.parts or ("agent",)}
    real = next((float(str(value)) for name, value in node.user_properties if name == _REAL_SECONDS_PROPERTY), None)
    took = None if real is None else round(real * 1000) * (_NANOSECONDS_PER_SECOND // 1000)
    others = [row for row in rows if row not in failed]
    rerun = format_rerun_command(node) if failed else ""
    return render_page(
        played.record,
        scenario,
        PageVerdict(str(verdict), failed, others, steps, took, find_failure_marks(played, rows), rerun),
    )


def _write_page(node: pytest.Item, folder: Path, number: int, html: str, *, is_told: bool) -> str:
    """Write a page, and have its place told below the failure; a disk that is full is no failure of the subject."""
    file = _make_page_file_name(_get_id_without_group(node), number)
    try:
        (folder / file).write_text(html, "utf-8")
    except OSError as error:
        _add_failure_note(node, f"there is no page: {error}")
        return ""
    if is_told:
        _add_failure_note(node, str(folder / file))
    return file


def _add_failure_note(node: pytest.Item, words: str) -> None:
    """Add a note below the failure of a test, if it fails."""
    plugins = node.config.pluginmanager
    if not plugins.has_plugin(_FAILURE_NOTES_PLUGIN_NAME):
        plugins.register(_FailureNotes(), _FAILURE_NOTES_PLUGIN_NAME)
    node.stash.setdefault(_FAILURE_NOTES_STASH_KEY, []).append(words)


def _find_report_folder(config: pytest.Config, name: str) -> Path | None:
    """Give the folder of the report, else one in pytest's cache; None if there is no cache."""
    if name:
        return config.invocation_params.dir / name
    cache = getattr(config, "cache", None)
    if _REPORT_FOLDER_STASH_KEY not in config.stash and cache is not None:
        config.stash[_REPORT_FOLDER_STASH_KEY] = cache.mkdir("agentproc")
    return config.stash.get(_REPORT_FOLDER_STASH_KEY, None)


def _get_id_without_group(node: pytest.Item) -> str:
    """Give a test's id without the group that `--dist=loadgroup` puts after it."""
    return f"{node.nodeid.rpartition('::')[0]}::{node.name}"


def _make_page_file_name(nodeid: str, number: int) -> str:
    """Name a page after its test, so that two tests never share one and a test always has the same."""
    words = re.sub(r"[^A-Za-z0-9.]+", "-", nodeid.rpartition("::")[2])[:_MAX_FILE_NAME_CHARS].strip("-.")
    mark = hashlib.sha256(nodeid.encode(errors="replace")).hexdigest()[:8]
    return f"{words}-{mark}{f'-{number}' if number > 1 else ''}.html"


class _FailureNotes:
    """Adds the notes of a failed test to its report."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Add a section to the report, which goes wherever the report goes."""
        report = yield
        places = item.stash.get(_FAILURE_NOTES_STASH_KEY, None)
        if places and report.failed and report.when == "call":
            report.sections.append(("the run as a page", "\n".join(places)))
        return report


class _PageIndexWriter:
    """Collects the pages from the reports of all tests, and writes their index."""

    def __init__(self, config: pytest.Config, folder: Path) -> None:
        self._config = config
        self._folder = folder
        self._entries: dict[str, list[IndexEntry]] = {}
        self._problem = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take in the pages of a test, wherever it ran; those of its last attempt count."""
        if report.when == "call":
            pages = [_parse_index_entry(text) for name, text in report.user_properties if name == _PAGE_PROPERTY]
            self._entries[report.nodeid] = pages

    @property
    def _index_entries(self) -> list[IndexEntry]:
        return [page for pages in self._entries.values() for page in pages]

    def pytest_sessionfinish(self) -> None:
        """Write the index, once all tests are over; a failure here would lose pytest's own summary."""
        from pytest_agentproc.plugin.reports._results_store import list_verdict_lines
        from pytest_agentproc.record import render_index

        try:
            html = render_index(self._index_entries, list_verdict_lines(self._config))
            (self._folder / "index.html").write_text(html, "utf-8")
        except OSError as error:
            self._problem = f": there is no index: {error.strerror}"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say where to begin."""
        terminalreporter.write_line(
            f"{len(self._index_entries)} runs as pages: {self._folder / 'index.html'}{self._problem}"
        )


def _parse_index_entry(text: object) -> IndexEntry:
    from pytest_agentproc.record import IndexEntry

    entry = json.loads(str(text))
    return IndexEntry(**{**entry, **{name: tuple(entry[name]) for name in ("covers", "way", "columns")}})
