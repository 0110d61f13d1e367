"""No command prints a traceback because a standard stream is closed, full, or has no reader."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_agentproc.cli._commands import MODULE_AND_PURPOSE_BY_COMMAND

HELLO = "scenario: it says hello\nagent: {dialect: claude, mode: print}\nscript: [{answer: hello}]\n"
LINES = {
    "": ["", "--help", "--version", "bogus"],
    "check": ["check hello.scenario.yaml", "check --help"],
    "conform": ["conform", "conform nobody"],
    "explain": ["explain T1", "explain", "explain nothing"],
    "fake": ["fake hello.scenario.yaml --dir fakes"],
    "import": ["import log.txt --dialect raw"],
    "list": ["list", "list --help", "list --json"],
    "new": ["new a-name"],
    "record": ["record --out x.scenario.yaml -- echo hi"],
    "run": ["run hello.scenario.yaml --clock model"],
    "schema": ["schema"],
    "search": ["search"],
    "time": ["time", "time --help", "time -- true"],
}
STREAMS = {
    "closed": ">&-",
    "all closed": "<&- >&- 2>&-",
    "full": ">/dev/full",
    "errors closed": "2>&-",
    "errors full": "2>/dev/full",
    "not for writing": "1</dev/null",
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in a folder with a scenario and a log."""
    monkeypatch.chdir(tmp_path)
    Path("hello.scenario.yaml").write_text(HELLO, "utf-8")
    Path("log.txt").write_text("hello\n", "utf-8")


def test_every_command_is_tried() -> None:
    """A new command is one more that prints."""
    assert {*LINES} - {""} == {*MODULE_AND_PURPOSE_BY_COMMAND}


@pytest.mark.slow
@pytest.mark.parametrize("how", STREAMS)
@pytest.mark.parametrize("command", LINES)
def test_a_stream_that_cannot_be_written_gives_no_traceback(command: str, how: str) -> None:
    """A script may close what it does not read."""
    for line in LINES[command]:
        script = f'exec "{sys.executable}" -m pytest_agentproc {line} {STREAMS[how]}'
        completed = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60, check=False)
        assert (line, "Traceback" in completed.stderr, "Exception ignored" in completed.stderr) == (line, False, False)
        assert (line, completed.returncode in (0, 2, 3)) == (line, True)


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2])
def test_a_reader_that_has_gone_before_the_first_word_is_no_failure(number: int) -> None:
    """Help, versions and refusals are printed, too."""
    for line in LINES[""] + LINES["list"]:
        reading, writing = os.pipe()
        os.close(reading)
        out, err = (writing, subprocess.PIPE) if number == 1 else (subprocess.PIPE, writing)
        words = [sys.executable, "-m", "pytest_agentproc", *line.split()]
        completed = subprocess.run(words, text=True, timeout=60, check=False, stdout=out, stderr=err)
        os.close(writing)
        assert (line, (completed.stdout or "", completed.stderr or "")[2 - number].count("Traceback")) == (line, 0)
        assert (line, completed.returncode in (0, 2, 141)) == (line, True)


@pytest.mark.slow
def test_no_file_of_ours_takes_the_place_of_a_closed_stream() -> None:
    """The output of a program is discarded then, and reaches no file that is being written."""
    script = f'exec "{sys.executable}" -m pytest_agentproc record --out x.scenario.yaml -- echo hi <&- >&- 2>&-'
    assert subprocess.run(["sh", "-c", script], timeout=60, check=False).returncode == 0
    assert "say: hi" in Path("x.scenario.yaml").read_text("utf-8")
