"""Tests that leave processes beside tests that do not, on two workers at once: how often the verdict is right.

`python -m tests.process.tree_trials --runs N` runs N times the file of all ways of leaving a process, with as many
clean tests among them. It prints the verdicts, and fails if a leak was missed or a clean test was blamed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.plugin.leftovers import WAYS

__all__ = ["main"]

_CLEAN = {
    "popen": 'subprocess.run(["true"], check=True)',
    "shell": 'subprocess.run("cat <&0 &", shell=True, input=b"")',
    "ended": 'process = subprocess.Popen(["sleep", "1000"]); process.kill(); process.wait()',
    "nothing": "pass",
    "fork": "pid = os.fork() or os._exit(0); os.waitpid(pid, 0)",
    "mp_fork": 'one = multiprocessing.get_context("fork").Process(target=int); one.start(); one.join()',
}
_LIMIT = 300


def _write_test_file() -> str:
    clean = [(f"{name}_{index}", body) for index in range(3) for name, body in _CLEAN.items()]
    tests = [f"def test_clean_{name}(process_tree):\n    {body}\n" for name, body in clean]
    head, *ways = WAYS.source.split("\ndef test_")
    for index, way in enumerate(ways):
        tests.insert(2 * index, f"def test_leak_{way.replace('()', '(process_tree)', 1)}\n")
    return "\n".join([head, *tests])


def _run_tests(folder: Path) -> Counter[str]:
    report = folder / "report.xml"
    options = ["-q", "-n", "2", "-pno:cacheprovider", "-pno:asyncio", "-pno:hypothesispytest", f"--junitxml={report}"]
    command = [sys.executable, "-m", "pytest", *options, str(folder)]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, cwd=folder, timeout=_LIMIT)
    found: Counter[str] = Counter()
    by_name: dict[str, bool] = {}
    for case in ET.parse(report).iter("testcase"):  # noqa: S314  # written a moment ago by ourselves
        name = str(case.get("name"))
        by_name[name] = by_name.get(name, False) or case.find("error") is not None
        if case.find("failure") is not None:
            found["tests that failed by themselves"] += 1
    for name, is_red in by_name.items():
        is_leak = name.startswith("test_leak_")
        found[f"{'leaks' if is_leak else 'clean tests'} that are {'red' if is_red else 'green'}"] += 1
        if is_red != is_leak:
            sys.stdout.write(f"wrong: {name}\n")
    return found


def main(arguments: list[str]) -> int:
    """Run the trials; give the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.process.tree_trials", description=__doc__)
    parser.add_argument("--runs", type=int, default=10, metavar="N", help="how often the file is played")
    runs = parser.parse_args(arguments).runs
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="trials-") as name:
        folder = Path(name)
        folder.joinpath("pytest.ini").write_text("[pytest]\n", "utf-8")
        folder.joinpath("test_trials.py").write_text(_write_test_file(), "utf-8")
        for _ in range(runs):
            total += _run_tests(folder)
    seen = ", ".join(f"{count} {what}" for what, count in sorted(total.items()))
    sys.stdout.write(f"{runs} runs on two workers at once: {seen}\n")
    return int(set(total) != {"clean tests that are green", "leaks that are red"})


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
