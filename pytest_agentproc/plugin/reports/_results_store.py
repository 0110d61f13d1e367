"""Keeps the judged scenarios of a session, prints them and writes them. Judges nothing.

A judged scenario is a property of its report, so it crosses the wire of xdist; the process that reports gathers them
all. A worker of xdist that dies takes its report along: only the id of the test that it had begun is left.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import re
import signal
import threading
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.corpus import SCENARIO_FILE_SUFFIX, find_corpus_folder
from pytest_agentproc.errors import ScenarioError
from pytest_agentproc.files import read_text_file, write_file
from pytest_agentproc.plugin._contributions import (
    get_language,
    get_subjects,
    is_reference_alone,
    is_reference_supervisor,
)
from pytest_agentproc.plugin._interruption import was_broken_off
from pytest_agentproc.plugin._options import CORPUS_NODE_ID_PREFIX, format_rerun_command, get_option
from pytest_agentproc.plugin._scripts import shorten_path
from pytest_agentproc.plugin.reports._tracebacks import pause_garbage_collection
from pytest_agentproc.scenario import load, read_agent_names
from pytest_agentproc.verdict import (
    Baseline,
    Conformance,
    JudgedScenario,
    Verdict,
    accept_failures,
    build_judged_scenario,
    format_results,
    format_summary,
    format_verdict_line,
    is_red_at_should_only,
    judge_conformance,
)
from pytest_agentproc.vocabulary import LEVELS

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from types import FrameType

    from pytest_agentproc.plugin._contributions import ScenarioTest
    from pytest_agentproc.scenario import ScenarioLanguage
    from pytest_agentproc.verdict import CheckRow, Judgement


def write_results(config: pytest.Config, text: str) -> str:
    """Write the file of results that was asked for, and say so; on the command line it is seen from where one is.

    Returns:
        one sentence; also about why it cannot be written, which is no failure of what was judged.
    """
    given = str(get_option(config, "results"))
    path = (config.rootpath if config.getoption("agentproc_results") is None else Path.cwd()) / given
    try:
        _write_text_file(path, text)
    except OSError as error:
        return f"agentproc: {shorten_path(path)} cannot be written: {error.strerror}"
    return f"agentproc: results in {shorten_path(path)}"


def _write_text_file(path: Path, text: str) -> None:
    """Write a file with the permissions of a new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    mask = os.umask(0)
    os.umask(mask)
    write_file(path, text, 0o666 & ~mask)


_BASELINE_STASH_KEY: pytest.StashKey[Baseline] = pytest.StashKey()
_DEFAULT_BASELINE_FILE_NAME = "agentproc-baseline.yaml"
_MAX_BASELINE_BYTES = 1 << 24
_FOLDERS_NOT_SEARCHED = ("node_modules", "venv", "build", "dist", "__pycache__")


def begin_baseline(config: pytest.Config) -> None:
    """Read the file, if there is one.

    Raises:
        pytest.UsageError: it cannot be read, is malformed, or lists a scenario that there is not.
    """
    path, is_updating = _find_baseline_path(config), get_option(config, "update_baseline")
    if not path.exists() and (is_updating or not get_option(config, "baseline")):
        return
    try:
        baseline = Baseline(read_text_file(path, _MAX_BASELINE_BYTES), shorten_path(path))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise pytest.UsageError(
            f"the baseline {shorten_path(path)} cannot be read: {reason}: --agentproc-update-baseline writes one"
        ) from error
    except ScenarioError as problems:
        raise pytest.UsageError(str(problems)) from None
    config.stash[_BASELINE_STASH_KEY] = baseline
    if not is_updating and baseline.list_unknown_scenarios(_find_scenario_ids(find_corpus_folder())):
        missing = baseline.list_unknown_scenarios(
            [*_find_scenario_ids(find_corpus_folder()), *_find_scenario_ids(config.rootpath)]
        )
        if missing:
            raise pytest.UsageError("\n".join(missing))


def apply_baseline(item: ScenarioTest, rows: Sequence[CheckRow]) -> tuple[CheckRow, ...]:
    """Give the rows of a scenario, with the known failures of the baseline applied."""
    if (item.scenario if item.played is None else item.played.bound.scenario).level == "info":
        return tuple(rows)
    if get_option(item.config, "update_baseline"):
        return accept_failures(rows)
    baseline = item.config.stash.get(_BASELINE_STASH_KEY, None)
    if baseline is None:
        return tuple(rows)
    return baseline.apply_to_rows(
        rows, item.scenario.id, item.subject.name, is_reference=is_reference_supervisor(item.subject)
    )


def update_baseline(config: pytest.Config, judged: Sequence[JudgedScenario]) -> str:
    """Write the file anew, and say so, or why it cannot be written: a failure here would lose pytest's own summary."""
    path = _find_baseline_path(config)
    baseline = config.stash.get(_BASELINE_STASH_KEY, None) or Baseline("", shorten_path(path))
    scenarios = [
        *_find_scenario_ids(find_corpus_folder()),
        *_find_scenario_ids(config.rootpath),
        *(result.scenario for result in judged),
    ]
    references = [subject.name for subject in get_subjects(config) if is_reference_supervisor(subject)]
    text = baseline.format_updated_baseline(judged, scenarios, references)
    try:
        _write_text_file(path, text)
    except OSError as error:
        return f"agentproc: {shorten_path(path)} cannot be written: {error.strerror}"
    return f"agentproc: {shorten_path(path)} lists {len(Baseline(text, str(path)).known)} known failures"


def _find_baseline_path(config: pytest.Config) -> Path:
    given = get_option(config, "baseline")
    if not given:
        return (config.inipath.parent if config.inipath else config.rootpath) / _DEFAULT_BASELINE_FILE_NAME
    by_ini = config.getoption("agentproc_baseline") is None
    return (config.rootpath if by_ini else Path.cwd()) / str(given)


def _find_scenario_ids(folder: Path | None) -> Iterator[str]:
    """Find the ids of the scenarios below a folder, by their files' names."""
    for _, folders, files in os.walk(folder) if folder is not None else ():
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _FOLDERS_NOT_SEARCHED]
        yield from (file.removesuffix(SCENARIO_FILE_SUFFIX) for file in files if file.endswith(SCENARIO_FILE_SUFFIX))


_NODE_ID_PATTERN = re.compile(r"(?P<file>.*)::[^\[]*\[(?P<axes>.*)\](@.*)?")
"""As `ScenarioFile` gives it; `--dist=loadgroup` puts the group after it."""


def judge_unplayed_scenario(config: pytest.Config, report: pytest.TestReport) -> JudgedScenario | None:
    """Make an entry of a scenario that was begun and never judged: an error without an owner is the kit's.

    Returns:
        the entry; None if the report is not about a scenario.
    """
    found = _NODE_ID_PATTERN.fullmatch(report.nodeid)
    if found is None or not found["file"].endswith(SCENARIO_FILE_SUFFIX):
        return None
    place, corpus = found["file"].removeprefix(f"{CORPUS_NODE_ID_PREFIX}/"), find_corpus_folder()
    is_bundled = corpus is not None and place != found["file"]
    path = (corpus if is_bundled and corpus is not None else config.rootpath) / place
    axes = found["axes"].removesuffix("-real")
    agents = [name for name in read_agent_names(path) if axes.startswith(f"{name}-")]
    agent = max(agents, key=len, default="")  # `gemini` begins like `gemini-stream`
    subject, _, backend = axes.removeprefix(f"{agent}-" if agent else "").rpartition("-")
    return JudgedScenario(
        **_describe_scenario(path, agent, get_language(config), report),
        subject=subject or get_subjects(config)[0].name,
        clock="virtual" if axes == found["axes"] else "real",
        backend=backend,
    )


def _describe_scenario(path: Path, agent: str, language: ScenarioLanguage, report: pytest.TestReport) -> dict[str, Any]:
    """Describe a scenario by its file; a file with a mistake gives an undecided entry with that mistake."""
    try:
        scenario = load(shorten_path(path), language, agent=agent)
    except ScenarioError as problems:
        fields = {"file": "", "level": LEVELS[0], "covers": (), "reason": str(problems.problems[0])}
        name = path.name.removesuffix(SCENARIO_FILE_SUFFIX) + (f"[{agent}]" if agent else "")
        return {"scenario": name, "verdict": str(Verdict.UNDECIDED), **fields}
    return {
        "scenario": scenario.id,
        "file": hashlib.sha256(scenario.text.encode()).hexdigest(),
        "level": scenario.level,
        "covers": scenario.covers,
        "verdict": str(Verdict.KIT_ERROR),
        "reason": _explain_failure(report),
    }


def _explain_failure(report: pytest.TestReport) -> str:
    if report.when == "setup":
        return "something failed before it was played"
    return str(report.longrepr).partition(" while running ")[0]


_JUDGEMENT_PROPERTY = "agentproc_judged"
_RESULTS_PLUGIN_NAME = "agentproc-account"


def begin_results(config: pytest.Config) -> None:
    """Read the known failures, and gather the judged scenarios of a session, if the user wants them at the end.

    Raises:
        pytest.UsageError: the file of known failures has a mistake.
    """
    begin_baseline(config)
    if get_option(config, "update_baseline") or get_option(config, "results") or _is_summary_wanted(config):
        config.pluginmanager.register(_ResultsCollector(config), _RESULTS_PLUGIN_NAME)


def _is_summary_wanted(config: pytest.Config) -> bool:
    return bool(get_option(config, "corpus")) or not is_reference_alone(config)


def record_judgement(item: ScenarioTest, judgement: Judgement, real: float = 0.0) -> None:
    """Record the judgement of a scenario among the properties of its report.

    Args:
        item: the scenario's; what an earlier attempt of it left there goes.
        judgement: its judgement.
        real: how many seconds it took in real time.
    """
    if not item.config.pluginmanager.has_plugin(_RESULTS_PLUGIN_NAME):
        return
    how = {"subject": item.subject.name, "clock": item.clock, "backend": item.backend}
    rerun = format_rerun_command(item) if judgement.is_red else ""
    judged = build_judged_scenario(judgement, item.scenario, **how, real=real, rerun=rerun)
    item.user_properties[:] = [pair for pair in item.user_properties if pair[0] != _JUDGEMENT_PROPERTY]
    item.user_properties.append((_JUDGEMENT_PROPERTY, judged.to_json_line()))


def list_verdict_lines(config: pytest.Config) -> list[str]:
    """Give the sentence on each subject, as the summary prints it; none if there is no summary."""
    collector = config.pluginmanager.get_plugin(_RESULTS_PLUGIN_NAME)
    if collector is None or not _is_summary_wanted(config):
        return []
    return [format_verdict_line(judged, is_whole=collector.is_whole) for judged in collector.list_judged_by_subject()]


class _ResultsCollector:
    """The results of the scenarios of a session."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._judged: dict[str, JudgedScenario] = {}
        self._told: list[str] = []
        self._is_printed = False
        self.is_whole = True
        self._version = importlib.metadata.version("pytest-agentproc")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take what a report carries; the last one of an item counts.

        A test that fails before its run, or whose worker dies (xdist calls that `???`), has nothing to carry.
        """
        for name, value in report.user_properties if report.when == "call" else ():
            if name == _JUDGEMENT_PROPERTY:
                self._judged[report.nodeid] = JudgedScenario.from_json_fields(json.loads(str(value)))
        entry = (
            judge_unplayed_scenario(self._config, report) if report.failed and report.when in ("setup", "???") else None
        )
        if entry is not None:
            self._judged[report.nodeid] = entry

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Take a TERM, such as that of `timeout 120 pytest`, for an interrupt while scenarios run."""
        with nullcontext() if hasattr(self._config, "workerinput") else _treat_term_as_interrupt():
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, exitstatus: int) -> Generator[None]:
        """Write the files first, and print the summary also if the report of another plugin, or pytest's own, fails."""
        self.is_whole = exitstatus != pytest.ExitCode.INTERRUPTED and not was_broken_off(self._config)
        self._write_files()
        try:
            with pause_garbage_collection():
                return (yield)
        except BaseException:
            terminal = self._config.pluginmanager.get_plugin("terminalreporter")
            if terminal is not None:
                self._print_summary(terminal)
            raise

    def _write_files(self) -> None:
        """Write what is to be written, unless this is one of several workers; no baseline of a part."""
        if not self._judged or hasattr(self._config, "workerinput"):
            return
        if self.is_whole and get_option(self._config, "update_baseline"):
            self._told.append(update_baseline(self._config, [*self._judged.values()]))
        path = get_option(self._config, "results")
        if path:
            text = format_results([*self._judged.values()], self._version, is_whole=self.is_whole)
            self._told.append(write_results(self._config, text))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Generator[None]:
        """Print after all other plugins, also if something else fails there."""
        try:
            return (yield)
        finally:
            self._print_summary(terminalreporter)

    def _print_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print a table and a sentence for each subject, once; without a verdict if the session was interrupted."""
        if self._is_printed or not self._judged:
            return
        self._is_printed = True
        if not self._told and not _is_summary_wanted(self._config):
            return
        terminalreporter.section("agentproc")
        width = max(self._config.get_terminal_writer().fullwidth - 1, 79)
        summaries = self._format_summaries(width) if _is_summary_wanted(self._config) else ()
        for line in (*summaries, *self._told):
            terminalreporter.write_line(line)

    def _format_summaries(self, width: int) -> Iterator[str]:
        """Give the summary of each subject, in the order in which they were named."""
        for of_one in self.list_judged_by_subject():
            name = of_one[0].subject
            yield from format_summary(of_one, self._version, width, is_whole=self.is_whole)
            yield from self._explain_red_should(of_one)
            reason = next((judged.out_of_reach for judged in of_one if judged.out_of_reach), "")
            if reason:
                yield f"agentproc: {name} was judged in real time: {reason}"
            for judged in of_one:
                if judged.verdict in (Verdict.KIT_ERROR, Verdict.UNDECIDED) and judged.reason and not judged.digest:
                    yield f"agentproc: there is no verdict on {name} in {judged.scenario}: {judged.reason}"

    def list_judged_by_subject(self) -> list[list[JudgedScenario]]:
        """Give the judged scenarios of each subject that has some, in the order in which they were named."""
        names = [subject.name for subject in get_subjects(self._config)]
        found = [[judged for judged in self._judged.values() if judged.subject == name] for name in names]
        return [of_one for of_one in found if of_one]

    def _explain_red_should(self, judged: Sequence[JudgedScenario]) -> Iterator[str]:
        """Say why pytest fails though the line above calls the supervisor conformant."""
        count = sum(map(is_red_at_should_only, judged))
        if not count or get_option(self._config, "level") == "must":
            return
        if judge_conformance(judged) is Conformance.CONFORMANT:
            scenarios, them = ("1 scenario", "it") if count == 1 else (f"{count} scenarios", "them")
            yield f"  pytest fails for {scenarios} at level should; --agentproc-level=must lets {them} pass"


@contextmanager
def _treat_term_as_interrupt() -> Iterator[None]:
    """Take SIGTERM for SIGINT while the block runs, unless other code handles it."""
    is_free = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if not is_free or threading.current_thread() is not threading.main_thread():
        yield
        return
    me = os.getpid()

    def interrupt(number: int, _frame: FrameType | None) -> None:
        if os.getpid() == me:
            signal.raise_signal(signal.SIGINT)
            return
        # A supervisor may fork, and end its child by TERM: that child ends as if this handler were not there.
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is interrupt:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
