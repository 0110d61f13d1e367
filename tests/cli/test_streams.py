"""No command prints a traceback because a standard stream is closed, full, or has no reader."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_agentproc.cli import main
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
    "record": ["record --yes --out x.scenario.yaml -- echo hi"],
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
    script = f'exec "{sys.executable}" -m pytest_agentproc record --yes --out x.scenario.yaml -- echo hi <&- >&- 2>&-'
    assert subprocess.run(["sh", "-c", script], timeout=60, check=False).returncode == 0
    assert "say: hi" in Path("x.scenario.yaml").read_text("utf-8")


UNICODE = "scenario: Größe → ✓\nagent: raw\nscript: [{say: Größe ✓ 日本}, {answer: done}]\nexpect: {text: nope}\n"
NOT_UTF_8 = [
    {"PYTHONIOENCODING": "ascii"},
    {"PYTHONIOENCODING": "latin-1"},
    {"PYTHONIOENCODING": "ascii:strict"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
]


@pytest.mark.slow
@pytest.mark.parametrize("env", NOT_UTF_8, ids=str)
@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["run", "größe.scenario.yaml"], r"\u2713"),
        (["run", "größe.scenario.yaml", "--json"], ""),
        (["check", "größe.scenario.yaml", "no-→.scenario.yaml"], ""),
        (["new", "--claim", "Größe ✓"], ""),
        (["search", "größe.scenario.yaml", "--runs", "1"], ""),
        (["list", "→"], ""),
        (["explain", "→"], ""),
        (["fake", "größe.scenario.yaml", "--dir", "größe"], ""),
        (["import", "größe.scenario.yaml", "--dialect", "raw"], r"\u2713"),
    ],
    ids=lambda value: str(value[0]) if isinstance(value, list) else "",
)
def test_a_stdout_that_is_not_utf_8_shows_escapes(
    words: list[str], shown: str, env: dict[str, str], tmp_path: Path
) -> None:
    """Claims, answers and names of files have any character, and old CI machines print Latin-1."""
    tmp_path.joinpath("größe.scenario.yaml").write_text(UNICODE, "utf-8")
    command = [sys.executable, "-m", "pytest_agentproc", *words]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, env={**os.environ, **env}, timeout=100, check=False
    )
    assert b"Traceback" not in done.stderr
    assert done.returncode in (0, 1, 2)
    assert shown.encode() in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("env", NOT_UTF_8, ids=str)
def test_pytest_shows_a_failure_line_by_line_on_a_stdout_that_is_not_utf_8(env: dict[str, str], tmp_path: Path) -> None:
    """Pytest itself escapes a whole text for one character, its line ends too."""
    tmp_path.joinpath("size.scenario.yaml").write_text(UNICODE, "utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-pno:cacheprovider",
        "-pno:hypothesispytest",
        "size.scenario.yaml",
    ]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, env={**os.environ, **env}, timeout=100, check=False
    )
    lines = done.stdout.decode("latin-1").splitlines()
    assert done.returncode == 1
    assert '    expected  "nope"' in lines
    assert any(line.startswith("    seen      ") and r"\u2713" in line for line in lines)


@pytest.mark.parametrize("command", ["run", "explain", "check"])
def test_help_of_a_command_is_the_command_s_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`git help log` and `docker help run` taught it."""
    assert main(["help", command]) == 0
    assert capsys.readouterr().out.startswith(f"usage: agentproc {command} ")


def test_help_of_an_unknown_command_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    """The general help would hide the mistake."""
    assert main(["help", "rum"]) == 2
    assert capsys.readouterr().err == "agentproc: there is no command rum: did you mean run?\n"
