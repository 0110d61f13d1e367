"""Try the packages and write the page: `python -m tests.clients.found [PACKAGE ...]`. Without a name, all of them."""

from __future__ import annotations

import json
import sys

from pytest_agentproc.harness import ScenarioRunner
from tests.clients.found.judging import judge_package
from tests.clients.found.packages import PACKAGES
from tests.clients.found.page import PAGE, RESULTS, read_results, write_page_text


def main() -> None:
    """Try each, keep the rows of the others, and write results and page."""
    names = sys.argv[1:]
    rows = read_results() if RESULTS.exists() else {}
    with ScenarioRunner() as runner:
        for package in PACKAGES:
            if not names or package.name in names:
                rows[package.name] = judge_package(runner, package)
                sys.stderr.write(f"{package.name}: {rows[package.name].get('check', 'passed')}\n")
    ordered = [rows[package.name] for package in PACKAGES if package.name in rows]
    RESULTS.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", "utf-8")
    PAGE.write_text(write_page_text(), "utf-8")


if __name__ == "__main__":
    main()
