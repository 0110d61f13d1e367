"""Owns `agentproc check`: files in, all their problems out. Starts no process and runs on any platform."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agentproc.cli._scenarios import UNKNOWN_WORD_HINT, is_unknown_word_problem, report_wrong_file_name
from pytest_agentproc.corpus import SCENARIO_FILE_SUFFIX
from pytest_agentproc.errors import ScenarioError, UsageError, suggest_known_word
from pytest_agentproc.scenario import load_for_each_agent

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

    from pytest_agentproc.errors import ScenarioProblem
    from pytest_agentproc.scenario import Scenario


HELP_TEXT = """\
exit codes:
  0  no file has a mistake
  1  at least one has
  2  there is no such file, or no scenario below the folder

examples:
  agentproc check hang.scenario.yaml        # hang.scenario.yaml:7:5: unknown step "sya": did you mean "say"?
  agentproc check scenarios                 # every *.scenario.yaml below the folder
  agentproc check --json scenarios | jq '.problems[].message'
"""

_EXPECT_KEY_PATTERN = re.compile(r"^(expect|should|info):", re.MULTILINE)
_SKIPPED_FOLDER_NAMES = frozenset({"node_modules", "venv", "__pycache__"})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a scenario file, or a folder of them")
    parser.add_argument("--json", action="store_true", help="print one JSON object: files and problems")


def run_command(options: argparse.Namespace) -> int:
    """Print every problem of every file, in the order of the paths and of the lines.

    Raises:
        UsageError: a path is none, or a folder has no scenario.
    """
    files = list(dict.fromkeys(file for path in options.paths for file in _list_scenario_files(path)))
    problems, hints = _check_files(files)
    if options.json:
        rows = [
            {"file": problem.file, "line": problem.line, "column": problem.column, "message": problem.message}
            for problem in problems
        ]
        sys.stdout.write(f"{json.dumps({'files': len(files), 'problems': rows}, indent=2)}\n")
    else:
        sys.stdout.writelines(f"{problem}\n" for problem in problems)
        if any(map(is_unknown_word_problem, problems)):
            sys.stdout.flush()
            sys.stderr.write(f"agentproc check: {UNKNOWN_WORD_HINT}\n")
    sys.stdout.flush()
    for file in files:
        report_wrong_file_name("check", file)
    sys.stderr.writelines(f"agentproc check: {hint}\n" for hint in hints)
    return 1 if problems else 0


def _check_files(files: Iterable[str]) -> tuple[list[ScenarioProblem], list[str]]:
    """Give the problems of scenario files, and hints for what is allowed and seldom meant."""
    problems: list[ScenarioProblem] = []
    hints: list[str] = []
    for file in files:
        try:
            scenario, *_ = load_for_each_agent(file)
        except ScenarioError as error:
            problems += error.problems
        else:
            hints += _list_hints(scenario)
    return problems, hints


def _list_hints(scenario: Scenario) -> Iterator[str]:
    if not scenario.expected and not _EXPECT_KEY_PATTERN.search(scenario.text):  # `expect: {}` is meant
        yield (
            f"{scenario.path}: it has no expect, so only processes that are left make it red: "
            "write what must be true, such as expect: {outcome: completed}"
        )
    if not scenario.catches or sys.platform != "linux":  # a defect starts processes, so its code loads on Linux only
        return
    from pytest_agentproc.defects import DEFECT_NAMES  # slow to load

    for name in scenario.catches:
        if name not in DEFECT_NAMES:
            hint = suggest_known_word(name, DEFECT_NAMES, "agentproc list --defects WORDS finds them")
            yield f"{scenario.path}: catches: the kit has no defect {name}: {hint}"


def _list_scenario_files(path: str) -> list[str]:
    if not os.path.isdir(path):  # noqa: PTH112 -- the path is printed as it was given, `./` included
        if not Path(path).exists():
            raise UsageError(f"{path}: there is no such file or folder", "name scenario files, or folders of them")
        return [path]
    found = sorted(_find_scenarios_below(path))
    if not found:
        raise UsageError(
            f"{path}: no file below this folder is called *{SCENARIO_FILE_SUFFIX}", "scenarios are found by that name"
        )
    return found


def _find_scenarios_below(folder: str) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _SKIPPED_FOLDER_NAMES]
        yield from (os.path.join(place, name) for name in names if name.endswith(SCENARIO_FILE_SUFFIX))  # noqa: PTH118 -- as above
