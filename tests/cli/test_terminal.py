"""What a user sees of `agentproc` on a terminal beside the words: colours, and how far a long command is."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_agentproc.terminal import ERASE_LINE, ProgressLine, format_columns, paint_verdicts

OPEN = """\
scenario: an agent that exits soon is not ended
agent: pi
script:
  - silence: {between: [1s, 2s]}
  - exit: 3
"""
HASTY = """
from pytest_agentproc.plugin.reports import _progress

_progress._OVERWRITTEN_LINE_PERIOD_SECONDS = 0
"""


def run_on_terminal(*arguments: str, **env: str) -> str:
    """Run the command with a terminal as stdout and stderr, and give what is on it."""
    return run_python_on_terminal("-m", "pytest_agentproc", *arguments, **env)


def run_python_on_terminal(*arguments: str, **env: str) -> str:
    """Run Python with a terminal as stdout and stderr, and give what is on it."""
    mine, its = pty.openpty()
    command = ["timeout", "120", sys.executable, *arguments]
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env={**os.environ, **env}) as process:
        os.close(its)
        parts = []
        try:
            while part := os.read(mine, 65536):
                parts.append(part)
        except OSError:  # so a terminal ends
            process.wait()
    os.close(mine)
    return b"".join(parts).decode()


class Terminal(io.StringIO):
    """A stream that says of itself that it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


PAINTED, PLAIN = "\x1b[32mpassed\x1b[0m: leaks", "passed: leaks"
CLOSED = io.StringIO()
CLOSED.close()


@pytest.mark.parametrize(
    ("env", "stream", "seen"),
    [
        ({}, Terminal(), PAINTED),
        ({}, io.StringIO(), PLAIN),
        ({}, object(), PLAIN),
        ({}, CLOSED, PLAIN),
        ({"TERM": "dumb"}, Terminal(), PLAIN),
        ({"NO_COLOR": "1"}, Terminal(), PLAIN),
        ({"NO_COLOR": ""}, Terminal(), PAINTED),
        ({"FORCE_COLOR": "1"}, io.StringIO(), PAINTED),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, Terminal(), PLAIN),
    ],
)
def test_colours_follow_the_terminal_and_the_environment(
    monkeypatch: pytest.MonkeyPatch, env: dict[str, str], stream: io.StringIO, seen: str
) -> None:
    """The two variables mean what they mean to other programs."""
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm", **env}.items():
        monkeypatch.setenv(name, value)
    assert paint_verdicts(PLAIN, stream) == seen


@pytest.mark.parametrize(
    ("text", "painted"),
    [
        ("failed, record 12", ["failed"]),
        ("  outcome: failed  a.scenario.yaml:4\n  passed: leaks", ["failed", "passed"]),
        ("  processes.agent 2.argv: undecided (level should)", ["undecided"]),
        ("agentproc: my bot is not conformant: must: 1 failed", ["is not conformant"]),
        ("agentproc: bot is conformant: must: 0 failed", ["is conformant"]),
        ('           prints "failed, record"', []),
        ("passed by the user", []),
        ("    seen      failed", []),
    ],
)
def test_the_verdict_alone_has_a_colour(monkeypatch: pytest.MonkeyPatch, text: str, painted: list[str]) -> None:
    """Words of an agent or of a claim are no verdict."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert re.findall(r"\x1b\[3[123]m(.*?)\x1b\[0m", paint_verdicts(text, io.StringIO())) == painted


def test_a_run_is_coloured_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last line is the verdict."""
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    seen = run_on_terminal("run", "one-number-is-silence", TERM="xterm")
    assert seen.splitlines()[-1].startswith("\x1b[32mpassed\x1b[0m, record ")


@pytest.mark.parametrize(
    ("columns", "stream", "lines"),
    [
        (80, io.StringIO(), ["  one-name  K1  " + "word " * 13 + "end", "  two       K12 a thing"]),
        (60, Terminal(), ["  one-name  K1   " + ("word " * 8).rstrip(), " " * 17 + "word " * 5 + "end"]),
        (40, Terminal(), ["  one-name  K1", "      " + ("word " * 6).rstrip()]),
    ],
)
def test_rows_are_folded_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, columns: int, stream: io.StringIO, lines: list[str]
) -> None:
    """A line of 160 characters that a terminal breaks itself has no columns left; a program reads whole lines."""
    monkeypatch.setenv("COLUMNS", str(columns))
    found = format_columns([("one-name", "K1", "word " * 13 + "end"), ("two", "K12", "a thing")], stream, "  ")
    assert [" ".join(line.split()) for line in found][: len(lines)] == [" ".join(line.split()) for line in lines]
    assert not isinstance(stream, Terminal) or max(map(len, found)) < columns
    assert len(found) == 2 or isinstance(stream, Terminal)


@pytest.mark.parametrize(
    ("stream", "seen"),
    [(Terminal(), f"{ERASE_LINE}5 done in 2 s{ERASE_LINE}8 done in 3 s{ERASE_LINE}"), (io.StringIO(), "")],
)
def test_a_line_of_progress_comes_late_and_goes(stream: io.StringIO, seen: str) -> None:
    """A short command has none, no line is written more than once a second, and a file has none at all."""
    now = 0.0
    with ProgressLine(stream, lambda: now) as progress:
        for count in range(10):
            progress.show(f"{count} done")
            now += 0.4
    assert stream.getvalue() == seen


@pytest.mark.slow
@pytest.mark.parametrize(
    ("jobs", "words"), [("1", r"open-run-x: \d+ settings"), ("2", r"\d of 2 scenarios")], ids=["one", "several"]
)
def test_search_says_on_a_terminal_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: str, words: str
) -> None:
    """Ten minutes of silence look like a command that hangs."""
    monkeypatch.chdir(tmp_path)
    for name in ("open-run-x", "open-run-y")[: int(jobs)]:
        Path(f"{name}.scenario.yaml").write_text(OPEN, "utf-8")
    command = "from pytest_agentproc import terminal; terminal._SECONDS_BEFORE_PROGRESS = 0\n"
    command += f"from pytest_agentproc.cli import main; main(['search', '.', '--runs', '20', '-j', '{jobs}'])"
    first, *lines = run_python_on_terminal("-c", command).split(ERASE_LINE)
    assert first == ""
    assert re.fullmatch(rf"agentproc: {words} in \d+ s", lines[0])
    assert "nothing found" in lines[-1]


@pytest.mark.slow
def test_conform_says_on_a_terminal_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line goes when the results come; with a file in place of the terminal there is none."""
    monkeypatch.chdir(tmp_path)
    Path("conftest.py").write_text(HASTY, "utf-8")
    command = ("conform", "reference", "-k", "one-number-is-silence or claude-never-prints")
    line, last, *rest = run_on_terminal(*command, NO_COLOR="1").split(ERASE_LINE)[1:]
    assert re.fullmatch(r"agentproc: 1 of 2 scenarios in \d+ s, 0 failed, \d+ s virtual; about \d+ s left", line)
    assert rest == []
    assert last.startswith("rule (must, should: failed)")
    done = subprocess.run(
        ["timeout", "120", sys.executable, "-m", "pytest_agentproc", *command], capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
