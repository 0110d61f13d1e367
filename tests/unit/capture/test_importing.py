"""The commands `import` and `schema`: what they print, what they keep, what they say of what cannot be."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_agentproc.capture import draft_scenario_from_log
from pytest_agentproc.capture._paste import find_escapes_before_event
from pytest_agentproc.cli import main
from pytest_agentproc.scenario import build_schema, load, loads

LOG = 'it hangs\n{"type":"assistant","message":{"content":[{"type":"text","text":"a"}]}}\n'


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("log.txt").write_text(LOG, "utf-8")


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:00"),
        ("1970-01-01T00:00:00", "2500-12-31T23:59:59"),
        ("+1:00", f"+{'9' * 100}:00:00"),
        ("[0.1]", f"[{'9' * 100}.0]"),
    ],
    ids=["ends-of-the-calendar", "centuries", "hours", "seconds"],
)
def test_times_that_lie_centuries_apart_are_no_times(first: str, last: str) -> None:
    """A log with a wrong date in it makes a draft that loads; it once was a stack, or a draft that did not."""
    event = '{"type":"assistant","message":{"content":[{"type":"text","text":"a"}]}}'
    loads(draft_scenario_from_log(f"{first} {event}\n{last} {event}\n", "claude", "log"))


def test_a_time_of_5000_digits_is_no_stack() -> None:
    """A field of an event can hold anything."""
    event = '{"type":"assistant","timestamp":"+%s","message":{"content":[{"type":"text","text":"a"}]}}'
    loads(draft_scenario_from_log(f"{event % ('9' * 5000)}\n{event % ('8' * 5000)}\n", "claude", "log"))


def test_many_titles_before_a_brace_are_read_at_once() -> None:
    """Each more title once doubled the time, so a hostile line was never read to its end."""
    assert find_escapes_before_event("\x1b]0;a" * 40 + "{ ") == ""
    assert find_escapes_before_event("\x1b]0;a\x1b]0;b\x07") == "\x1b]0;a\x07\x1b]0;b\x07"


def test_a_draft_is_printed_or_written_and_loads(capsys: pytest.CaptureFixture[str]) -> None:
    """Without --out the draft goes where a pipe takes it."""
    assert main(["import", "log.txt", "--dialect", "claude"]) == 0
    printed = capsys.readouterr().out
    assert main(["import", "log.txt", "--dialect", "claude", "--yes", "--out", "a.scenario.yaml"]) == 0
    assert capsys.readouterr().out == "a.scenario.yaml\n"
    assert Path("a.scenario.yaml").read_text("utf-8") == printed
    assert load("a.scenario.yaml").claim == "it hangs"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.txt", "--dialect", "pi"], "agentproc import: none.txt cannot be read: No such file or directory\nname"),
        (["bytes.txt", "--dialect", "pi"], "bytes.txt:2:3: the log is not UTF-8: save it as UTF-8 text"),
        (
            ["log.txt", "--dialect", "pi"],
            "log.txt:2:1: no line is an event of pi: it looks like claude, write --dialect ",
        ),
        (
            ["log.txt", "--dialect", "claude", "--yes", "--out", "log.txt"],
            "log.txt is there already\nchoose another name, or re",
        ),
        (
            ["log.txt", "--dialect", "claude", "--yes", "--out", "no/a"],
            "no/a cannot be written: No such file or directory\nname",
        ),
    ],
)
def test_a_failed_import_is_explained_in_a_sentence(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An existing file is a user's work, and a traceback is no message."""
    Path("bytes.txt").write_bytes(b"a\nb \xff\n")
    assert main(["import", *words]) == 2
    output = capsys.readouterr()
    assert message in output.err
    assert output.out == ""
    assert Path("log.txt").read_text("utf-8") == LOG


def test_the_schema_is_printed_or_written_with_the_line_that_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    """A schema that no file names is one that no editor uses."""
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == build_schema()
    assert main(["schema", "--out", "s.json"]) == 0
    line = "the first line of a scenario beside it: # yaml-language-server: $schema=s.json"
    assert capsys.readouterr().out == f"s.json\n{line}\n"
    assert json.loads(Path("s.json").read_text("utf-8")) == build_schema()
    assert main(["schema", "--out", "no/s.json"]) == 2
    assert "no/s.json cannot be written: No such file or directory\nname another place" in capsys.readouterr().err


@pytest.mark.slow
def test_both_commands_need_nothing_that_only_unix_has() -> None:
    """A report is read where the reader sits: no process is started, so no kernel matters.

    detect-secrets imports `subprocess`, which every platform has.
    """
    code = """
import sys
for name in ("fcntl", "resource", "termios", "pty", "grp", "psutil", "anyio"):
    sys.modules[name] = None
from pytest_agentproc.cli import main
sys.exit(main(sys.argv[1:]))
"""
    for words in (["import", "log.txt", "--dialect", "claude"], ["schema"]):
        run = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False, timeout=60
        )
        said = "agentproc import: not played again: this needs Linux\n" if words[0] == "import" else ""
        assert (run.returncode, run.stderr) == (0, said)
        assert run.stdout
