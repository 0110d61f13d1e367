"""Owns what a session keeps of its judged scenarios, and what it prints of them at its end. Judges nothing.

Each is a property of its report, so that it crosses the wire of xdist; the process that reports gathers them.
"""

from __future__ import annotations

import gc
import importlib.metadata
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.plugin._baseline import begin_baseline, update_baseline
from pytest_agentproc.plugin._lost import lost
from pytest_agentproc.plugin._options import asked
from pytest_agentproc.plugin._rerun import rerun_command
from pytest_agentproc.plugin._results import write_results
from pytest_agentproc.plugin._subjects import is_plain, subjects_of
from pytest_agentproc.verdict import Judged, Verdict, kept, results, summary

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from pytest_agentproc.plugin._items import ScenarioItem
    from pytest_agentproc.verdict import Judgement

__all__ = ["begin_account", "keep"]

_PROPERTY = "agentproc_judged"
_NAME = "agentproc-account"


def begin_account(config: pytest.Config) -> None:
    """Read what is known, and have what is judged in a session gathered, if somebody wants to see it at the end.

    Raises:
        pytest.UsageError: the file of known failures has a mistake.
    """
    begin_baseline(config)
    if _is_wanted(config):
        config.pluginmanager.register(_Account(config), _NAME)


def _is_wanted(config: pytest.Config) -> bool:
    return any(asked(config, name) for name in ("update_baseline", "results")) or _is_summed_up(config)


def _is_summed_up(config: pytest.Config) -> bool:
    return bool(asked(config, "corpus")) or not is_plain(config)


def keep(item: ScenarioItem, judgement: Judgement, real: float = 0.0) -> None:
    """Keep what came of a scenario among the properties of its report.

    Args:
        item: the scenario's; what an earlier attempt of it left there goes.
        judgement: what came of it.
        real: how many seconds it took in real time.
    """
    if not item.config.pluginmanager.has_plugin(_NAME):
        return
    how = {"subject": item.subject.name, "clock": item.clock, "backend": item.backend}
    rerun = rerun_command(item) if judgement.is_red else ""
    judged = kept(judgement, item.scenario, **how, real=real, rerun=rerun)
    item.user_properties[:] = [pair for pair in item.user_properties if pair[0] != _PROPERTY]
    item.user_properties.append((_PROPERTY, judged.line()))


class _Account:
    """What the scenarios of a session came to.

    Args:
        config: the session's.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._judged: dict[str, Judged] = {}
        self._told: list[str] = []
        self._is_printed = False
        self._version = importlib.metadata.version("pytest-agentproc")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take what a report carries; the last one of an item counts.

        Who fails before he is played, or whose worker dies (xdist calls that `???`), has nothing to carry.
        """
        for name, value in report.user_properties if report.when == "call" else ():
            if name == _PROPERTY:
                self._judged[report.nodeid] = Judged.of_line(str(value))
        entry = lost(self._config, report) if report.failed and report.when in ("setup", "???") else None
        if entry is not None:
            self._judged[report.nodeid] = entry

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, exitstatus: int) -> Generator[None]:
        """Write the files first, and print the summary also if the report of another plugin, or pytest's own, fails.

        A supervisor leaves objects to the garbage collector, such as transports, whose finalizers print tracebacks. In
        CPython 3.11 such a finalizer breaks a parser that it interrupts ("AST constructor recursion depth mismatch").
        So they are finalized before the reports, and the collector waits until the reports are written.
        """
        self._write(exitstatus)
        gc.collect()
        was_on = gc.isenabled()
        gc.disable()
        try:
            return (yield)
        except BaseException:
            terminal = self._config.pluginmanager.get_plugin("terminalreporter")
            if terminal is not None:
                self._print(terminal, exitstatus)
            raise
        finally:
            if was_on:
                gc.enable()

    def _write(self, exitstatus: int) -> None:
        """Write what is to be written, unless the session was broken off, or this is one of several workers."""
        if not self._judged or exitstatus == pytest.ExitCode.INTERRUPTED or hasattr(self._config, "workerinput"):
            return
        if asked(self._config, "update_baseline"):
            self._told.append(update_baseline(self._config, [*self._judged.values()]))
        path = asked(self._config, "results")
        if path:
            self._told.append(write_results(self._config, results([*self._judged.values()], self._version)))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, exitstatus: int) -> Generator[None]:
        """Print after everybody else, also if something else fails there."""
        try:
            return (yield)
        finally:
            self._print(terminalreporter, exitstatus)

    def _print(self, terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
        """Print a table and a sentence for each subject, once, unless the session was broken off."""
        if self._is_printed or not self._judged or exitstatus == pytest.ExitCode.INTERRUPTED:
            return
        self._is_printed = True
        if not self._told and not _is_summed_up(self._config):
            return
        terminalreporter.section("agentproc")
        width = max(self._config.get_terminal_writer().fullwidth - 1, 79)
        for line in (*(self._summaries(width) if _is_summed_up(self._config) else ()), *self._told):
            terminalreporter.write_line(line)

    def _summaries(self, width: int) -> Iterator[str]:
        """Give the summary of each subject, in the order in which they were named."""
        for subject in subjects_of(self._config):
            of_one = [one for one in self._judged.values() if one.subject == subject.name]
            if of_one:
                yield from summary(of_one, self._version, width)
                for one in of_one:
                    if one.verdict in (Verdict.KIT_ERROR, Verdict.UNDECIDED) and one.reason and not one.digest:
                        yield f"agentproc: there is no verdict on {subject.name} in {one.scenario}: {one.reason}"
