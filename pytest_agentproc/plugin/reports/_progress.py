"""Prints the figures of each test, and the progress of a long session, beside the verdicts.

Figures are properties of the report, so they reach a junit file and cross the wire of xdist; `-v` shows the durations.
Progress is shown on a terminal only, where a user waits: not in a CI server's log, with `-q`, or by a worker of xdist.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.corpus import SCENARIO_FILE_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    from pytest_agentproc.harness import PlayResult
    from pytest_agentproc.vocabulary import RunReport


_VIRTUAL_SECONDS_PROPERTY, _REAL_SECONDS_PROPERTY = "agentproc_virtual_s", "agentproc_real_s"
_NANOSECONDS_PER_SECOND = 1_000_000_000
_SESSION_OVER_STASH_KEY: pytest.StashKey[bool] = pytest.StashKey()


def record_play_figures(item: pytest.Item, played: PlayResult, real: float) -> None:
    """Record the figures of a play among the properties of its report.

    Args:
        item: the scenario's; what an earlier attempt of it left there goes.
        played: what was played.
        real: how many seconds it took in real time.
    """
    events, answer, fault = played.record.events, played.answer, played.fault
    figures = {
        _VIRTUAL_SECONDS_PROPERTY: (events[-1].at if events else 0) / _NANOSECONDS_PER_SECOND,
        _REAL_SECONDS_PROPERTY: round(real, 6),
        "agentproc_outcome": _format_outcome(answer) if answer is not None else getattr(fault, "reason", ""),
        "agentproc_digest": played.record.digest(),
    }
    item.user_properties[:] = [pair for pair in item.user_properties if pair[0] not in figures]
    item.user_properties.extend(figures.items())


def _format_outcome(answer: RunReport) -> str:
    """Name the outcome, or those of a session's turns in their order."""
    if answer.sessions:
        return "; ".join(f"{name}: {_format_outcome(part)}" for name, part in answer.sessions.items())
    if answer.turns is None:
        return str(answer.outcome)
    return ", ".join(str(turn.outcome) for turn in answer.turns)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Leave the words of the summary alone: people and tools look there for `FAILED` and an id after it."""
    session.config.stash[_SESSION_OVER_STASH_KEY] = True


@pytest.hookimpl(wrapper=True)
def pytest_report_teststatus(report: pytest.TestReport, config: pytest.Config) -> Generator[None, Any, Any]:
    """Say with `-v` how long a scenario took, in virtual time and in real time."""
    status = yield
    figures = dict(getattr(report, "user_properties", ()))
    if (
        report.when != "call"
        or _VIRTUAL_SECONDS_PROPERTY not in figures
        or not status
        or _SESSION_OVER_STASH_KEY in config.stash
    ):
        return status
    if config.get_verbosity(pytest.Config.VERBOSITY_TEST_CASES) <= 0:
        return status
    from pytest_agentproc.record import format_duration

    category, letter, word = status
    word, *markup = word if isinstance(word, tuple) else (word,)
    virtual = format_duration(round(figures[_VIRTUAL_SECONDS_PROPERTY] * _NANOSECONDS_PER_SECOND))
    real = format_duration(round(figures[_REAL_SECONDS_PROPERTY] * 1000) * 1_000_000)
    word = f"{word} ({virtual} virtual, {real} real)"
    return category, letter, (word, *markup) if markup else word


_PROGRESS_LINE_PERIOD_SECONDS = 10.0
"""Real seconds from line to line; a session that is shorter has none."""

_PROGRESS_PLUGIN_NAME = "agentproc-progress"


def pytest_sessionstart(session: pytest.Session) -> None:
    """Have the scenarios of the session counted, if a user looks on."""
    config = session.config
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if reporter is None or hasattr(config, "workerinput") or config.get_verbosity() < 0:
        return
    is_terminal = reporter.isatty  # a method, and a value before pytest 9
    if is_terminal() if callable(is_terminal) else is_terminal:
        config.pluginmanager.register(_ProgressReporter(reporter), _PROGRESS_PLUGIN_NAME)


_LEAST_ANNOUNCED_SECONDS = 10


def pytest_report_collectionfinish(config: pytest.Config, items: Sequence[pytest.Item]) -> list[str]:
    """Say early how long real time takes, and how much it cannot judge, unless that is short."""
    real = [item for item in items if getattr(item, "clock", "") == "real"]
    if not real:
        return []  # an empty text would be an empty line
    from pytest_agentproc.harness import predict_real_seconds
    from pytest_agentproc.plugin._contributions import ScenarioTest
    from pytest_agentproc.plugin._options import get_option

    scale = get_option(config, "scale")
    found = [
        predict_real_seconds(item.scenario, item.subject, scale) for item in real if isinstance(item, ScenarioTest)
    ]
    played = [seconds for seconds in found if seconds is not None]
    if sum(played) < _LEAST_ANNOUNCED_SECONDS:
        return []
    line = (
        f"agentproc: real time: about {sum(played):.0f} s one after the other; scenarios played: {len(played)}, "
        f"not judged in real time: {len(found) - len(played)}"
    )
    return [line]


class _ProgressReporter:
    """How far a session has come."""

    def __init__(self, reporter: Any) -> None:
        self._reporter = reporter
        self._all = 0
        self._done: set[str] = set()
        self._red: set[str] = set()
        self._virtual = 0.0
        self._begun = self._told_at = monotonic()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Learn how many there are."""
        self._begin_counting_scenarios(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Learn it from a worker, who have all found the same."""
        self._begin_counting_scenarios(ids)

    def _begin_counting_scenarios(self, ids: Iterable[str]) -> None:
        self._all = max(self._all, sum(map(_is_scenario, ids)))
        self._begun = self._told_at = monotonic()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a scenario, once however often it is played."""
        if not _is_scenario(report.nodeid):
            return
        if report.failed:
            self._red.add(report.nodeid)
        if report.when == "call":
            self._virtual += sum(
                float(str(value)) for name, value in report.user_properties if name == _VIRTUAL_SECONDS_PROPERTY
            )
        if report.when == "teardown":
            self._done.add(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self) -> None:
        """Print the line if it is time, and there is more to come."""
        now = monotonic()
        if now - self._told_at < _PROGRESS_LINE_PERIOD_SECONDS or not 0 < len(self._done) < self._all:
            return
        self._told_at = now
        line = self._format_progress_line(now - self._begun)
        if self._reporter.config.pluginmanager.has_plugin("dsession"):
            self._reporter.write(f"\n{line}\n", flush=True)  # letters of workers stand wherever they come
        else:
            self._reporter.ensure_newline()
            self._reporter.write(line, flush=True)  # the next file begins a line

    def _format_progress_line(self, real: float) -> str:
        done = len(self._done)
        left = real / done * (self._all - done)
        return (
            f"agentproc: {done} of {self._all} scenarios in {real:.0f} s, {len(self._red)} failed, "
            f"{self._virtual:.0f} s virtual; about {left:.0f} s left"
        )


def _is_scenario(nodeid: str) -> bool:
    return f"{SCENARIO_FILE_SUFFIX}::" in nodeid
