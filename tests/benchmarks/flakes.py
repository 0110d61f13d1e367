"""Finds tests that do not always pass: runs the suite, or a part of it, many times, and names the red tests.

    python -m tests.benchmarks.flakes --runs 20 --workers 8          the whole suite
    python -m tests.benchmarks.flakes --runs 20 scenarios            the bundled ones; further words go to pytest.

With more workers than cores, the workers take time from each other, and races show. Prints a line for each run, and at
the end how often each test was red. Ends with 1 if a test was red, or if pytest itself did not come to its end.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from time import monotonic

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 1800.0
"""Seconds for one run: a longer run counts as a flake."""


def read_failed_tests(report: Path) -> tuple[int, list[str]]:
    """Count the tests of a junit file, and name its failed tests."""
    cases = [*ET.parse(report).iter("testcase")]  # noqa: S314  # pytest has just written it
    red = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    return len(cases), [f"{case.get('classname')}::{case.get('name')}" for case in red]


def run_pytest(report: Path, workers: int, words: list[str]) -> tuple[int, list[str]]:
    """Run pytest once.

    Returns:
        how many tests there were, and what was red, pytest itself included.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(workers), f"--junitxml={report}", *words]
    report.unlink(missing_ok=True)
    try:
        completed = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return 0, [f"pytest: not at its end after {LIMIT:.0f} s"]
    if not report.exists():
        return 0, [f"pytest: ended with {completed.returncode}, and without a report"]
    count, red = read_failed_tests(report)
    return count, red if red or completed.returncode == 0 else [f"pytest: ended with {completed.returncode}"]


def main() -> int:
    """Play all runs, and report their results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--workers", type=int, default=8)
    options, words = parser.parse_known_args()
    flakes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(1, options.runs + 1):
            start = monotonic()
            count, red = run_pytest(Path(folder) / "report.xml", options.workers, words)
            flakes.update(red)
            print(
                f"run {number} of {options.runs}: {count} tests, {len(red)} red, {monotonic() - start:.0f} s",
                flush=True,
            )
    for name, times in flakes.most_common():
        print(f"{times} of {options.runs} times red: {name}")
    print(f"{options.runs} runs with {options.workers} workers: {len(flakes)} flakes")
    return 1 if flakes else 0


if __name__ == "__main__":
    sys.exit(main())
