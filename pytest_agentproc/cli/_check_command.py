"""Owns `agentproc check`: files in, all their problems out. Starts no process and runs on any platform."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agentproc.cli._scenarios import UNKNOWN_WORD_HINT, is_unknown_word_problem, report_wrong_file_name
from pytest_agentproc.corpus import SCENARIO_FILE_SUFFIX
from pytest_agentproc.errors import ScenarioError, UsageError
from pytest_agentproc.scenario import load_for_each_agent

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from pytest_agentproc.errors import ScenarioProblem


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
    files = [file for path in options.paths for file in _list_scenario_files(path)]
    problems = [problem for file in dict.fromkeys(files) for problem in _find_problems(file)]
    if options.json:
        rows = [
            {"file": problem.file, "line": problem.line, "column": problem.column, "message": problem.message}
            for problem in problems
        ]
        sys.stdout.write(f"{json.dumps({'files': len(set(files)), 'problems': rows}, indent=2)}\n")
    else:
        sys.stdout.writelines(f"{problem}\n" for problem in problems)
        if any(map(is_unknown_word_problem, problems)):
            sys.stdout.flush()
            sys.stderr.write(f"agentproc check: {UNKNOWN_WORD_HINT}\n")
    sys.stdout.flush()
    for file in dict.fromkeys(files):
        report_wrong_file_name("check", file)
    return 1 if problems else 0


def _find_problems(file: str) -> tuple[ScenarioProblem, ...]:
    try:
        load_for_each_agent(file)
    except ScenarioError as error:
        return error.problems
    return ()


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
