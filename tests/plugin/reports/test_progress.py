"""A line now and then says how far a long session has come, to who sits before a terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.plugin.scenarios import GREEN, RED

if TYPE_CHECKING:
    from collections.abc import Iterator

IMPATIENT = """
from pytest_agentproc.plugin.reports import _progress
period = _progress._PROGRESS_LINE_PERIOD_SECONDS
_progress._PROGRESS_LINE_PERIOD_SECONDS = 0

def pytest_unconfigure():
    _progress._PROGRESS_LINE_PERIOD_SECONDS = period  # some sessions run within the process of other tests
"""


@pytest.fixture(autouse=True)
def _long(pytester: pytest.Pytester) -> None:
    """Have a session in which a line is due after each of its three scenarios, and a test of another project."""
    pytester.makeconftest(IMPATIENT)
    pytester.makepyfile(test_own="def test_own(): pass")
    for name, text in {"one": GREEN, "two": RED, "zzz": GREEN}.items():
        pytester.path.joinpath(f"{name}.scenario.yaml").write_text(text)


def run_on_terminal(pytester: pytest.Pytester, *arguments: str) -> Iterator[str]:
    """Run pytest on a terminal, and give its lines with N for what the machine took."""
    mine, its = pty.openpty()
    command = ["timeout", "120", sys.executable, "-m", "pytest", "--color=no", "-p", "no:terminalprogress", "--tb=no"]
    with subprocess.Popen([*command, *arguments], stdin=its, stdout=its, stderr=its, cwd=pytester.path) as process:
        os.close(its)
        parts = []
        try:
            while part := os.read(mine, 65536):
                parts.append(part)
        except OSError:  # so a terminal ends
            process.wait()
    os.close(mine)
    text = re.sub(r"(in|about) \d+ s", r"\1 N s", b"".join(parts).decode())
    yield from (line.rstrip() for line in text.splitlines())


LINES = [
    "agentproc: 1 of 3 scenarios in N s, 0 failed, 0 s virtual; about N s left",
    "agentproc: 2 of 3 scenarios in N s, 1 failed, 2 s virtual; about N s left",
]


@pytest.mark.slow
def test_a_terminal_shows_how_far_it_is(pytester: pytest.Pytester) -> None:
    """Dots alone are too little for an hour; other tests, and the last scenario, need no line."""
    lines = [*run_on_terminal(pytester, "-k", "not own")]
    begin = next(index for index, line in enumerate(lines) if line.startswith("one"))
    assert [re.sub(r" +\[.*", "", line) for line in lines[begin : begin + 5]] == [
        "one.scenario.yaml .",
        LINES[0],
        "two.scenario.yaml F",
        LINES[1],
        "zzz.scenario.yaml .",
    ]


@pytest.mark.once
@pytest.mark.slow
def test_with_workers_it_is_reported_once(pytester: pytest.Pytester) -> None:
    """The process that reports counts for all of them."""
    assert [line for line in run_on_terminal(pytester, "-n", "1", "-k", "not own") if "agentproc: " in line] == LINES


@pytest.mark.slow
def test_quiet_sessions_and_files_have_none(pytester: pytest.Pytester) -> None:
    """A log of a CI server is read afterwards."""
    assert [line for line in run_on_terminal(pytester, "-q") if "agentproc: " in line] == []
    pytester.runpytest().stdout.no_fnmatch_line("agentproc: *")


def test_a_run_without_real_time_begins_without_an_empty_line(pytester: pytest.Pytester) -> None:
    """The line about real time is there or not, and an empty one is nothing to read."""
    (pytester.path / "hi.scenario.yaml").write_text("scenario: hi\nagent: raw\nscript: [{answer: hi}]\nexpect: {}\n")
    assert pytester.runpytest("-q").outlines[0].startswith(".")
