"""Prints the figures of each test, and the progress of a long session, beside the verdicts.

Figures are properties of the report, so they reach a junit file and cross the wire of xdist; `-v` shows the durations.
Progress is shown on a terminal only, where a user waits: not in a CI server's log, with `-q`, or by a worker of xdist.
`agentproc conform` reads the output of its pytest itself, so it names a descriptor of its own terminal.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.corpus import SCENARIO_FILE_SUFFIX
from pytest_agentproc.originals import monotonic
from pytest_agentproc.terminal import ERASE_LINE, PROGRESS_DESCRIPTOR_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.vocabulary import RunReport


_VIRTUAL_SECONDS_PROPERTY, _REAL_SECONDS_PROPERTY = "agentproc_virtual_s", "agentproc_real_s"
_NANOSECONDS_PER_SECOND = 1_000_000_000


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


def add_play_figures(status: Any, report: pytest.TestReport) -> Any:
    """Say with `-v` how long a scenario took, in virtual time and in real time."""
    figures: dict[str, Any] = dict(report.user_properties)
    if report.when != "call" or _VIRTUAL_SECONDS_PROPERTY not in figures:
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

_OVERWRITTEN_LINE_PERIOD_SECONDS = 1.0
"""The same where each line takes the place of the one before."""

_PROGRESS_PLUGIN_NAME = "agentproc-progress"


def show_progress(config: pytest.Config, ids: Sequence[str]) -> None:
    """Have the scenarios among these tests counted, if a user looks on.

    Args:
        config: the session's.
        ids: the tests that were collected; each worker of xdist finds the same.
    """
    plugins = config.pluginmanager
    descriptor = os.environ.pop(PROGRESS_DESCRIPTOR_VARIABLE, None)
    if hasattr(config, "workerinput") or plugins.has_plugin(_PROGRESS_PLUGIN_NAME):
        return  # the next worker of xdist, or one in the place of a worker that died
    count = sum(map(_is_scenario, ids))
    if descriptor is not None:
        write, period = _make_overwriting_writer(int(descriptor)), _OVERWRITTEN_LINE_PERIOD_SECONDS
    elif _is_on_terminal(config):
        write, period = _make_line_writer(config), _PROGRESS_LINE_PERIOD_SECONDS
    else:
        return
    plugins.register(_ProgressReporter(write, count, period), _PROGRESS_PLUGIN_NAME)


def _is_on_terminal(config: pytest.Config) -> bool:
    reporter: Any = config.pluginmanager.getplugin("terminalreporter")
    if reporter is None or config.get_verbosity() < 0:
        return False
    is_terminal = reporter.isatty  # a method, and a value before pytest 9
    return bool(is_terminal() if callable(is_terminal) else is_terminal)


def _make_line_writer(config: pytest.Config) -> Callable[[str], None]:
    reporter: Any = config.pluginmanager.getplugin("terminalreporter")

    def write_line(line: str) -> None:
        if config.pluginmanager.has_plugin("dsession"):
            reporter.write(f"\n{line}\n", flush=True)  # letters of workers stand wherever they come
        else:
            reporter.ensure_newline()
            reporter.write(line, flush=True)  # the next file begins a line

    return write_line


def _make_overwriting_writer(descriptor: int) -> Callable[[str], None]:
    os.set_inheritable(descriptor, False)  # no supervisor under test shall have it

    def overwrite_line(line: str) -> None:
        with suppress(OSError):  # the terminal has gone; the results have not
            columns = os.get_terminal_size(descriptor).columns or 80  # some say 0
            os.write(descriptor, f"{ERASE_LINE}{line[: columns - 1]}".encode())

    return overwrite_line


_LEAST_ANNOUNCED_SECONDS = 10


def announce_real_time(config: pytest.Config, items: Sequence[pytest.Item]) -> list[str]:
    """Say early how long real time takes, and how much it cannot judge, unless that is short."""
    from pytest_agentproc.harness import predict_real_seconds
    from pytest_agentproc.plugin._contributions import ScenarioTest
    from pytest_agentproc.plugin._options import get_option

    scale = get_option(config, "scale")
    found = [
        predict_real_seconds(item.scenario, item.subject, scale) for item in items if isinstance(item, ScenarioTest)
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

    def __init__(self, write: Callable[[str], None], count: int, period: float) -> None:
        self._write = write
        self._all = count
        self._period = period
        self._done: set[str] = set()
        self._red: set[str] = set()
        self._virtual = 0.0
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
        if now - self._told_at < self._period or not 0 < len(self._done) < self._all:
            return
        self._told_at = now
        self._write(self._format_progress_line(now - self._begun))

    def _format_progress_line(self, real: float) -> str:
        done = len(self._done)
        left = real / done * (self._all - done)
        return (
            f"agentproc: {done} of {self._all} scenarios in {real:.0f} s, {len(self._red)} failed, "
            f"{self._virtual:.0f} s virtual; about {left:.0f} s left"
        )


def _is_scenario(nodeid: str) -> bool:
    return f"{SCENARIO_FILE_SUFFIX}::" in nodeid
