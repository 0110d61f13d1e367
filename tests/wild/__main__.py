"""Play the cases and write the page: `python -m tests.wild --sources FOLDER [REPOSITORY ...]`; without one, all.

FOLDER holds the git directories: `git clone --bare https://github.com/OWNER/NAME FOLDER/OWNER+NAME`.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import pytest

from pytest_agentproc.harness import ScenarioRunner
from tests.wild.cases import CASES
from tests.wild.page import PAGE, RESULTS, read_results, write_page_text
from tests.wild.playing import find_repository, play_case


def main() -> None:
    """Play each whose repository is there, keep the results of the others, and write results and page."""
    parser = argparse.ArgumentParser(prog="python -m tests.wild", description=__doc__)
    parser.add_argument("--sources", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("repositories", nargs="*", metavar="REPOSITORY")
    options = parser.parse_args()
    results = read_results()
    with ScenarioRunner() as runner:
        for case in CASES:
            if options.repositories and case.program.repository not in options.repositories:
                continue
            repository = find_repository(options.sources, case.program.repository)
            if repository is None:
                sys.stderr.write(f"{case.name}: no {case.program.repository} in {options.sources}\n")
                continue
            try:
                results[case.name] = play_case(runner, case, repository)
            except (pytest.skip.Exception, pytest.fail.Exception) as error:  # it cannot be installed
                sys.stderr.write(f"{case.name}: {error}\n")
                continue
            sys.stderr.write(f"{case.name}: {results[case.name]}\n")
    ordered = {case.name: results[case.name] for case in CASES if case.name in results}
    RESULTS.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", "utf-8")
    PAGE.write_text(write_page_text(), "utf-8")


if __name__ == "__main__":
    main()
