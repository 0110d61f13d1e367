"""Owns `agentproc search`: scenarios and one supervisor in, what breaks it out, as files. Judges nothing."""

from __future__ import annotations

import argparse
import os
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agentproc.cli._supervisors import add_supervisor_options, load_supervisor_under_test
from pytest_agentproc.cli._workers import run_command_for_each_scenario
from pytest_agentproc.clock import require_backend
from pytest_agentproc.corpus import SCENARIO_FILE_SUFFIX, list_corpus_files, split_agent
from pytest_agentproc.errors import UsageError
from pytest_agentproc.harness import ScenarioRunner, explain_no_virtual_time
from pytest_agentproc.originals import monotonic
from pytest_agentproc.scenario import NotApplicable, load, load_for_each_agent
from pytest_agentproc.search import confirm_failure, explore, format_failure_scenario, require_hypothesis, search
from pytest_agentproc.terminal import ProgressLine

if TYPE_CHECKING:
    from pytest_agentproc.scenario import Scenario
    from pytest_agentproc.search import SearchResult
    from pytest_agentproc.vocabulary import Subject


HELP_TEXT = """\
A scenario may leave values open: {between: [0s, 700s]}, {one_of: [TERM, KILL]}, any_order, some_of. Settings of them
are drawn mostly just before, at and just after the supervisor's own limits. A setting is a find if it breaks
an expectation or a rule of every run, or if the supervisor differs from the reference supervisor. Each find is made
small and run three times with real processes.

With --explore scenarios without open values are searched. Each of their times is moved, pauses are put between their
steps, raw bytes are cut elsewhere, and neighbours on two streams change places. A change counts
only if the reference supervisor still meets the file's expectations (instants excepted: they are those of the
reference). Finds are made small, run and written in the same way.

exit codes:
  0  nothing was found
  1  something was: each find is a scenario file of its own
  2  there is no such scenario or supervisor, no value is open (with --explore: in each file one is), or Hypothesis is
     not installed
  3  a find did not repeat: that is the kit's fault, not the supervisor's

examples:
  agentproc search 'open-*'                      # the reference supervisor over the bundled open scenarios
  agentproc search mine.scenario.yaml --subject my_package.supervising:run_agent --seconds 60
  agentproc search 'open-run*' --defect timer-beats-exit --seed 7
  agentproc search 'session-*' --explore --runs 200 --subject my_package.supervising:run_agent
"""

_MAX_SEARCH_SECONDS = 86_400.0
_NOT_EXPLORED_MESSAGE = "not explored: with these limits the reference does not meet what the file expects"
_NOT_SEARCHED_MESSAGE = "not searched: no setting is a valid file with an agent that is silent after its last word"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("pattern", metavar="PATTERN", help="a file, a folder, or a pattern of ids of bundled scenarios")
    add_supervisor_options(parser)
    parser.add_argument("--explore", action="store_true", help="vary scenarios without open values")
    parser.add_argument("--runs", type=int, default=2000, help="settings of each scenario; 2000 without it")
    parser.add_argument("--seed", type=int, default=0, help="the same seed draws the same settings; 0 without it")
    parser.add_argument("--seconds", type=float, default=600.0, help="the limit for each scenario; 600 without it")
    parser.add_argument("--backend", choices=("asyncio", "trio"), default="asyncio", help="the event loop")
    parser.add_argument("-j", type=int, metavar="N", help="scenarios at a time; one for each core without it")
    parser.add_argument("--no-progress", action="store_true", help=argparse.SUPPRESS)  # several would share a line
    parser.add_argument("--out", default=".", metavar="FOLDER", help="where finds are written; here without it")


def run_command(options: argparse.Namespace) -> int:
    """Search each scenario, report the result, and write each find.

    Raises:
        UsageError: there is no scenario, no supervisor, or no way to search.
        ScenarioError: a scenario has mistakes.
    """
    if not options.explore:
        require_hypothesis()
    require_backend(options.backend)
    if options.runs < 1:
        raise UsageError(f"--runs {options.runs}: at least one setting is played", "try --runs 2000")
    if not 0 < options.seconds <= _MAX_SEARCH_SECONDS:
        raise UsageError(f"--seconds {options.seconds:g}: from above 0 to {_MAX_SEARCH_SECONDS:g}", "try --seconds 60")
    jobs = len(os.sched_getaffinity(0)) if options.j is None else options.j
    if jobs < 1:
        raise UsageError(f"-j {jobs}: at least one scenario is searched at a time", "try -j 1")
    out = Path(options.out)
    if not out.is_dir():
        raise UsageError(f"--out {options.out}: there is no such folder", "make it first")
    subject = load_supervisor_under_test(options.subject, None, options.defect)
    reason = explain_no_virtual_time(subject)
    if reason:
        raise UsageError(f"{subject.name} is not searched, since that needs virtual time: {reason}")
    scenarios = _load_searchable_scenarios(options.pattern, explored=options.explore)
    code = 0
    with ProgressLine(None if options.no_progress else sys.stderr, monotonic) as progress:
        if min(jobs, len(scenarios)) > 1:
            for came, reported in run_command_for_each_scenario(
                _make_search_command(options),
                [scenario.command_argument for scenario in scenarios],
                jobs,
                lambda done: progress.show(f"agentproc: {done} of {len(scenarios)} scenarios"),
            ):
                progress.erase()
                _print_lines_now(reported.removesuffix("\n"))
                code = max(code, came)
            return code
        with ScenarioRunner() as runner:
            for scenario in scenarios:
                code = max(code, _search_and_report_scenario(scenario, subject, options, runner, progress))
    return code


def _make_search_command(options: argparse.Namespace) -> list[str]:
    """Make the command that searches one scenario in the same way, but for that scenario."""
    given = {
        name: getattr(options, name) for name in ("subject", "defect", "runs", "seed", "seconds", "backend", "out")
    }
    chosen = [f"--{name}={value}" for name, value in given.items() if value is not None]
    return ["search", "-j", "1", "--no-progress", *chosen, *(["--explore"] if options.explore else [])]


def _load_searchable_scenarios(pattern: str, *, explored: bool) -> list[Scenario]:
    """Load the scenarios that a pattern names and that leave a value open, or leave none."""
    name, agent = split_agent(pattern)
    if agent and Path(name).is_file() and not Path(pattern).exists():
        every = [load(name, agent=agent)]
    else:
        every = [scenario for file in _find_scenario_files(pattern) for scenario in load_for_each_agent(file)]
    found = [scenario for scenario in every if bool(scenario.openings) is not explored]
    if not found and explored:
        raise UsageError(f"{pattern}: values are left open there", "leave --explore out: they are what is searched")
    if not found:
        raise UsageError(
            f"{pattern}: no value is left open there",
            "write {between: [0s, 700s]} in the place of one, or --explore",
        )
    return found


def _find_scenario_files(pattern: str) -> list[str]:
    path = Path(pattern)
    if path.is_dir():
        files = sorted(str(file) for file in path.rglob(f"*{SCENARIO_FILE_SUFFIX}"))
    elif path.exists():
        files = [pattern]
    else:
        files = [
            str(file)
            for file in list_corpus_files()
            if fnmatchcase(file.name.removesuffix(SCENARIO_FILE_SUFFIX), pattern)
        ]
    if not files:
        raise UsageError(f"{pattern}: there is no such file, and no bundled scenario of such a name", "try 'open-*'")
    return files


def _search_and_report_scenario(
    scenario: Scenario, subject: Subject, options: argparse.Namespace, runner: ScenarioRunner, progress: ProgressLine
) -> int:
    """Search one; give its exit code."""
    try:
        look = explore if options.explore else search
        result = look(
            scenario,
            subject,
            runs=options.runs,
            seed=options.seed,
            seconds=options.seconds,
            runner=runner,
            backend=options.backend,
            report=lambda runs: progress.show(f"agentproc: {scenario.id}: {runs} settings"),
        )
        progress.erase()
    except NotApplicable as limit:
        _print_lines_now(f"{scenario.id}: not applicable: {limit.reason('supervisor')}")
        return 0
    if result.runs == 0:
        _print_lines_now(f"{scenario.id}: not searched: the time was over before the first setting")
        return 0
    if result.counted == 0 and result.find is None:
        _print_lines_now(f"{scenario.id}: {_NOT_EXPLORED_MESSAGE if options.explore else _NOT_SEARCHED_MESSAGE}")
        return 0
    text = f"{scenario.id}: {_describe_setting_counts(result, explored=options.explore)} in {result.seconds:.1f} s"
    if result.find is None:
        _print_lines_now(f"{text}, seed {options.seed}: nothing found")
        return 0
    confirmed = confirm_failure(result.find, subject, runner, backend=options.backend)
    if not confirmed.repeats:
        _print_lines_now(
            f"{text}: setting {result.first} broke a promise in the model, and real processes do not repeat it"
        )
        _print_lines_now(
            f"{confirmed.difference}\nthis is a mistake of the kit, not of the supervisor: please report it"
        )
        return 3
    return _write_found_scenario(result, scenario, subject, options, text)


def _describe_setting_counts(result: SearchResult, *, explored: bool) -> str:
    """Say how many settings were looked at, and of how many something was asked."""
    settings = f"{result.runs} setting{'s' * (result.runs != 1)}"
    if explored:
        return f"{settings}, {result.counted} of them within what the file expects,"
    return settings if result.counted == result.runs else f"{settings}, {result.counted} of them played,"


def _write_found_scenario(
    result: SearchResult,
    scenario: Scenario,
    subject: Subject,
    options: argparse.Namespace,
    heading: str,
) -> int:
    assert result.find is not None
    name = "".join(letter if letter.isalnum() else "-" for letter in subject.name)
    stem = Path(scenario.path).name.removesuffix(SCENARIO_FILE_SUFFIX)
    file = (
        Path(options.out) / f"found-{'-'.join(filter(None, (stem, scenario.agent_name, name)))}{SCENARIO_FILE_SUFFIX}"
    )
    whom = f" --defect {options.defect}" if options.defect else f" --subject {options.subject or 'reference'}"
    where = "" if options.backend == "asyncio" else f" --backend {options.backend}"
    replay = f"agentproc run {file}{whom}{where}"
    text = format_failure_scenario(
        result.find,
        subject=subject.name,
        seed=options.seed,
        run=result.first,
        replay=replay,
        is_defect=options.defect is not None,
        explored=options.explore,
    )
    file.write_text(text, "utf-8")
    _print_lines_now(f"{heading}: setting {result.first} breaks a promise, three times of three with real processes")
    _print_lines_now(f"  {result.find.reason}\n  {replay}")
    return 1


def _print_lines_now(lines: str) -> None:
    sys.stdout.write(f"{lines}\n")
    sys.stdout.flush()
