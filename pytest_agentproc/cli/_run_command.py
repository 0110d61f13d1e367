"""Owns `agentproc run`: one scenario with one supervisor, reported as it happens, and its verdict. Judges nothing."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext, redirect_stdout
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from pytest_agentproc.cli._scenarios import load_scenario, report_wrong_file_name
from pytest_agentproc.cli._supervisors import (
    add_run_options,
    add_supervisor_options,
    load_supervisor_under_test,
    parse_time_scale,
)
from pytest_agentproc.clock import require_backend
from pytest_agentproc.defects import DEFECTS, Defect
from pytest_agentproc.errors import AdapterError, KitError, ScenarioError, UsageError
from pytest_agentproc.harness import (
    NotForRealTime,
    ScenarioRunner,
    explain_no_virtual_time,
    explain_real_time_only,
    run_in_model,
)
from pytest_agentproc.record import LiveRecord, Record, render_text
from pytest_agentproc.scenario import NotApplicable
from pytest_agentproc.subjects import ReferenceSupervisor
from pytest_agentproc.terminal import paint_verdicts
from pytest_agentproc.verdict import (
    Judgement,
    Verdict,
    build_judged_scenario,
    confirm_red_judgement,
    describe_findings,
    describe_unstated_limits,
    judge_all_expectations,
    judge_play,
)
from pytest_agentproc.vocabulary import LEVELS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable

    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.scenario import Scenario
    from pytest_agentproc.vocabulary import Subject


HELP_TEXT = """\
In real time the agent keeps a log. The supervisor's side is printed as it happens, both sides at the end.

exit codes:
  0  passed
  1  not passed: failed, crashed, an adapter error, undecided, not exercised, or not applicable
  2  there is no such scenario or supervisor, or the scenario has mistakes
  3  a kit error, or the machine was too slow: that is no verdict

examples:
  agentproc run lingers-and-ignores-term                              # the reference supervisor
  agentproc run hang.scenario.yaml --subject my_package.supervising:run_agent
  agentproc run lingers-and-ignores-term --command 'my-supervisor --timeout {inactivity_timeout} -- {agent}'
  agentproc run lingers-and-ignores-term --defect timeout-is-duration # a supervisor that is wrong on purpose
  agentproc run hang.scenario.yaml --all-defects                      # which defects the scenario catches
"""

_MAX_PLAY_ATTEMPTS = 3
_LINE_WIDTH = 100
MAX_SECONDS = 8.0
"""Of the machine, for all plays of a table; the play that passes it is the last one."""


class _RunSettings(NamedTuple):
    """A scenario, and how it is run."""

    scenario: Scenario
    subject: Subject
    clock: str
    backend: str
    scale: float | None
    say: Callable[[str], None]

    def play(self, runner: ScenarioRunner) -> PlayResult:
        """Run the scenario once."""
        if self.clock == "model":
            assert isinstance(self.subject, ReferenceSupervisor), "others were refused"
            return run_in_model(self.scenario, self.subject)
        if self.clock == "real":
            return runner.play_real(self.scenario, self.subject, backend=self.backend, scale=self.scale)
        return runner.play(self.scenario, self.subject, backend=self.backend)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("scenario", metavar="SCENARIO", help="a scenario file, or the id of a bundled one")
    add_supervisor_options(parser)
    parser.add_argument(
        "--all-defects", action="store_true", help="print which defects the scenario catches, on which check; in memory"
    )
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object, and no timeline")
    add_run_options(parser)


def run_command(options: argparse.Namespace) -> int:
    """Run, report and judge.

    Raises:
        UsageError: there is no such scenario or supervisor, or it cannot be played so.
        ScenarioError: the scenario has mistakes.
        KitError: the kit failed.
    """
    scenario, scale = load_scenario(options.scenario), parse_time_scale(options.scale)
    report_wrong_file_name("run", scenario.path)
    if options.all_defects:
        return _print_caught_defects(options, scenario)
    redirection = (
        redirect_stdout(sys.stderr) if options.json else nullcontext()
    )  # what it prints is no part of the object
    with redirection:
        subject = load_supervisor_under_test(options.subject, options.command, options.defect)
    require_backend(options.backend)
    clock = _choose_clock(subject, options.clock)
    backend = "model" if clock == "model" else options.backend
    way = _RunSettings(
        scenario, subject, clock, backend, scale, (lambda _line: None) if options.json else _print_line_now
    )
    way.say(f"{scenario.path}: {scenario.claim}")
    apart = ", in a process of its own" if clock == "virtual" and explain_real_time_only(subject) else ""
    where = "in the model" if clock == "model" else f"{clock} time{apart}, {backend}"
    way.say(f"supervisor {subject.name}, {where}\n")
    start = perf_counter()
    with redirection:
        judgement = _play_and_judge_run(way)
    if options.json:
        how = {"subject": subject.name, "clock": clock, "backend": backend}
        _print_line_now(build_judged_scenario(judgement, scenario, **how, real=perf_counter() - start).to_json_line())
    because = f": {judgement.reason}" if judgement.reason else ""
    record = f", record {judgement.played.record.digest()}" if judgement.played is not None else ""
    way.say(f"{judgement.verdict}{because}{record}")
    if judgement.verdict is Verdict.KIT_ERROR or (judgement.verdict is Verdict.UNDECIDED and not record):
        return 3
    return 0 if judgement.verdict is Verdict.PASSED else 1


def _print_caught_defects(options: argparse.Namespace, scenario: Scenario) -> int:
    for name in ("subject", "command", "defect", "clock"):
        if getattr(options, name) is not None:
            raise UsageError(
                f"--all-defects plays the reference supervisor with each defect, so --{name} has no effect",
                f"leave --{name} out",
            )
    try:
        table = play_all_defects(scenario)
    except NotApplicable as limit:
        raise UsageError(f"--all-defects: {limit.reason('model')}", "play one defect: --defect NAME") from limit
    if options.json:
        rows = [{"defect": caught.defect.name, "level": caught.level, "key": caught.key} for caught in table.caught]
        _print_line_now(json.dumps(rows))
    else:
        _print_line_now(f"{scenario.path}: {scenario.claim}\n")
        for line in format_defect_table(table):
            _print_line_now(line)
    return 0 if table.caught else 1


def _choose_clock(subject: Subject, clock: str | None) -> str:
    reason = explain_no_virtual_time(subject)
    if clock == "virtual" and reason:
        raise UsageError(f"--clock virtual: {reason}", "choose --clock real, or leave it out")
    if clock == "model" and not isinstance(subject, ReferenceSupervisor):
        raise UsageError(
            f"--clock model: it plays the reference supervisor only, and {subject.name} is another", "leave it out"
        )
    return clock or ("real" if reason else "virtual")


def _play_and_judge_run(way: _RunSettings) -> Judgement:
    """Play and judge; what cannot be played says why."""
    try:
        live = _LinePrinter(way.say)
        with ScenarioRunner(partial(LiveRecord, print_line=live.print_line, scenario=way.scenario)) as runner:
            return _play_until_judged(way, runner, live)
    except AdapterError as error:
        return Judgement(Verdict.ADAPTER_ERROR, reason=str(error))
    except NotForRealTime as error:
        return Judgement(Verdict.NOT_APPLICABLE, reason=f"in real time {error}")
    except NotApplicable as limit:
        return Judgement(Verdict.NOT_APPLICABLE, reason=limit.reason("supervisor"))


class _LinePrinter:
    """Prints the lines of a run that is under way.

    The supervisor's loop writes them. A reader that has left, or a full disk, must not break that loop: the error is
    raised after the run.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._error: OSError | None = None

    def print_line(self, line: str) -> None:
        """Print a line, unless an earlier one could not be printed."""
        if self._error is None:
            try:
                self._say(line)
            except OSError as error:
                self._error = error

    def raise_print_error(self) -> None:
        """Raise the error that kept a line from being printed, if there was one."""
        if self._error is not None:
            raise self._error


def _play_until_judged(way: _RunSettings, runner: ScenarioRunner, live: _LinePrinter) -> Judgement:
    for _ in range(_MAX_PLAY_ATTEMPTS):
        played = way.play(runner)
        live.raise_print_error()
        if isinstance(played.record, LiveRecord):
            played.record.flush()
        judgement = judge_play(played, is_reference=isinstance(way.subject, ReferenceSupervisor))
        if judgement.is_red and played.was_starved:
            way.say("\nthe machine was too slow for that: once more\n")
            continue
        if judgement.is_red and played.is_virtual:
            runner.new_record = Record
            judgement = confirm_red_judgement(judgement, partial(way.play, runner))
        if reason := played.record.header.get("out_of_reach"):
            way.say(f"\nit was played in real time: {reason}")
        if played.pace is not None:
            way.say(f"\n{render_text(played.record, way.scenario)}")
        if way.clock == "model":
            way.say(render_text(played.record, way.scenario))
        way.say(f"\n{describe_findings(played, judgement.rows)}\n" if judgement.is_red else "")
        for line in describe_unstated_limits(judgement.rows, _LINE_WIDTH)[1:]:
            way.say(f"{line}\n")
        return judgement
    return Judgement(Verdict.UNDECIDED, reason=f"in real time the machine was too slow {_MAX_PLAY_ATTEMPTS} times")


def _print_line_now(line: str) -> None:
    sys.stdout.write(f"{paint_verdicts(line, sys.stdout)}\n")
    sys.stdout.flush()


class CaughtDefect(NamedTuple):
    """A defect, and the first check that it fails."""

    defect: Defect
    level: str
    key: str


class DefectTable(NamedTuple):
    """Which defects a scenario catches.

    Args:
        caught: those that it catches, the harmful ones first.
        passed: the names of those that it passes with.
        unplayed: the names of those for which the time was too short.
        reference: the keys that fail without a defect.
    """

    caught: list[CaughtDefect]
    passed: list[str]
    unplayed: list[str]
    reference: list[str]


def play_all_defects(scenario: Scenario, clock: Callable[[], float] = perf_counter) -> DefectTable:
    """Play a scenario with each defect in the model; a defect that changes nothing of its kind is left out.

    Args:
        scenario: it.
        clock: seconds of the machine.

    Raises:
        NotApplicable: virtual time cannot play it.
        ScenarioError: the script has no end, and nothing ends it.
    """
    right = ReferenceSupervisor()
    reference = {key for key, _ in _list_failed_checks(scenario, right)}
    table = DefectTable([], [], [], sorted(reference))
    end = clock() + MAX_SECONDS
    for defect in DEFECTS.values():
        subject = ReferenceSupervisor(defect.name, defect.deciders, defect.session_deciders)
        kind = "session_deciders" if scenario.is_session else "deciders"
        if getattr(subject, kind) == getattr(right, kind):
            continue  # it breaks the other kind
        if clock() >= end:
            table.unplayed.append(defect.name)
            continue
        failed = [check for check in _list_failed_checks(scenario, subject) if check[0] not in reference]
        if failed:
            key, level = min(failed, key=lambda check: LEVELS.index(check[1]))
            table.caught.append(CaughtDefect(defect, level, key))
        else:
            table.passed.append(defect.name)
    table.caught.sort(key=lambda caught: LEVELS.index(caught.level))
    return table


def _list_failed_checks(scenario: Scenario, subject: ReferenceSupervisor) -> list[tuple[str, str]]:
    """Give the key and level of each check that fails; a play that breaks fails none."""
    try:
        rows = judge_all_expectations(run_in_model(scenario, subject))
    except (KitError, ScenarioError):
        if subject.name == "reference":
            raise
        return []
    return [(row.key, row.level) for row in rows if row.verdict is Verdict.FAILED]


def format_defect_table(table: DefectTable) -> Iterable[str]:
    """Write a table of caught defects, and how many the scenario passes with."""
    if table.reference:
        yield f"the reference supervisor itself fails: {', '.join(table.reference)}; these keys are left out"
        yield ""
    rows = [("level", "defect", "first check that fails", "what it does")]
    rows += [(caught.level, caught.defect.name, caught.key, caught.defect.story) for caught in table.caught]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows if table.caught else []:
        yield "  ".join([*(f"{cell:{width}}" for cell, width in zip(row, widths, strict=False)), row[3]])
    yield "" if table.caught else "the scenario catches no defect"
    played = len(table.caught) + len(table.passed)
    other = len(DEFECTS) - played - len(table.unplayed)
    yield f"{len(table.caught)} of {played} defects are caught; {other} more cannot matter here"
    if table.unplayed:
        yield f"{len(table.unplayed)} were not played, as {MAX_SECONDS:g} s were over: {', '.join(table.unplayed)}"
